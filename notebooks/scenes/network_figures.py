"""Figures of other problems: servers with their shards, and a network with its flows."""

import numpy as np

from gpuschedlab.plots.kinds.style import COLOURS, Drawing, axis, bar, marks, stroke


def server_blocks(load: np.ndarray, new: np.ndarray, band: tuple[float, float], name: str) -> Drawing:
    """Shards on servers: a bar a server, a block a shard, new replicas in another colour, and the band as lines.

    load : (N, D) of each shard on each server; new : (N, D) whether its replica is new; band : low and high.
    """
    traces, height = [], np.cumsum(load, axis=1)
    for i, (words, mine) in enumerate((("stayed", ~new), ("new here", new))):
        server, shard = np.nonzero((load > 0) & mine)
        size = load[server, shard]
        blocks = {"x": server, "y": size, "base": height[server, shard] - size, "customdata": shard, "width": 0.75}
        hover = f"<b>shard %{{customdata}}</b> on server %{{x}}: %{{y:.3f}}<extra>{words}</extra>"
        traces.append((blocks, {"type": "bar", "name": words, "hovertemplate": hover, "marker": bar(i)}))
    ends = [-0.5, len(load) - 0.5]
    for words, level in zip(("least", "most"), band, strict=True):
        traces.append(({"x": ends, "y": [level] * 2}, stroke(name=words, color=COLOURS[4], dash="dash", width=2)))
    sides = {"x": "server", "y": "share of all load"}
    return Drawing.of(traces, f"Load of servers: {name}", barmode="overlay", zero=True, **sides)


def link_map(place: np.ndarray, links: np.ndarray, used: np.ndarray, price: np.ndarray, name: str) -> Drawing:
    """A network: links by how full they are, and the price of the dearest at their middle.

    place : (V, 2); links : (E, 2); used : (E,) share of each link's capacity in use, below 0: cut; price : (E,) of each.
    """
    traces, full = [], 1 - 1e-6
    groups = {"below half": (0.0, 0.5), "half to full": (0.5, full), "full": (full, np.inf), "cut": (-np.inf, 0.0)}
    for (words, (low, high)), colour, width in zip(groups.items(), (0, 5, 1, 7), (1, 2, 4, 2), strict=True):
        mine = links[(used >= low) & (used < high)]
        gaps = np.full((len(mine), 1), np.nan)
        x, y = (np.concatenate([place[mine, k], gaps], axis=1).ravel() for k in (0, 1))
        dash = "dot" if words == "cut" else "solid"
        traces.append(({"x": x, "y": y}, stroke(name=words, color=COLOURS[colour], width=width, dash=dash)))
    dear = np.flatnonzero(price > 1e-6)
    x, y = place[links].mean(axis=1)[dear].T
    hover = "one Mb/s more here carries <b>%{customdata:.2f}</b> more in all<extra></extra>"
    marker = {"color": COLOURS[4], "size": 8, "symbol": "diamond"}
    traces.append(({"x": x, "y": y, "customdata": price[dear]}, marks(marker, hover, name="has a price")))
    hidden = axis("", showticklabels=False, showgrid=False, zeroline=False)
    return Drawing.of(traces, name, x=hidden, y=hidden)
