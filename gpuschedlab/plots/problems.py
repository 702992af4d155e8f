"""Figures of other problems: servers with their shards, and a network with its flows."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.plots.style import COLOURS, Drawing, axis, bar


class ServerBlocks(NamedTuple):
    """Shards on servers: load (N, D) of each shard on each server, whether its replica is new (N, D), and the band (low, high)."""

    load: np.ndarray
    new: np.ndarray
    band: tuple[float, float]
    name: str


class LinkMap(NamedTuple):
    """A network: place (V, 2), links (E, 2), share of each link's capacity in use (E,), price of each (E,), and a name."""

    place: np.ndarray
    links: np.ndarray
    used: np.ndarray
    price: np.ndarray
    name: str


def draw_server_blocks(numbers: ServerBlocks) -> Drawing:
    """Lay out `ServerBlocks`: a bar a server, a block a shard, new replicas in another colour, and the band as lines."""
    data, style = [], []
    height = np.cumsum(numbers.load, axis=1)
    for i, (name, mine) in enumerate((("stayed", ~numbers.new), ("new here", numbers.new))):
        server, shard = np.nonzero((numbers.load > 0) & mine)
        size = numbers.load[server, shard]
        data.append({"x": server, "y": size, "base": height[server, shard] - size, "customdata": shard})
        hover = f"<b>shard %{{customdata}}</b> on server %{{x}}: %{{y:.3f}}<extra>{name}</extra>"
        style.append({"type": "bar", "name": name, "hovertemplate": hover, "marker": bar(i)})
    ends = [-0.5, len(numbers.load) - 0.5]
    for name, level in zip(("least", "most"), numbers.band, strict=True):
        data.append({"x": ends, "y": [level, level]})
        look = {"color": COLOURS[4], "dash": "dash", "width": 2}
        style.append({"type": "scatter", "mode": "lines", "name": name, "line": look, "hoverinfo": "skip"})
    live = {"title_text": f"Load of servers: {numbers.name}"}
    layout = {"barmode": "overlay", "xaxis": axis("server"), "yaxis": axis("share of all load", rangemode="tozero")}
    return Drawing(data, style, live, layout)


def draw_link_map(numbers: LinkMap) -> Drawing:
    """Lay out `LinkMap`: links by how full they are, and the price of the dearest at their middle."""
    data, style = [], []
    groups = (
        ("below half", 0.0, 0.5),
        ("half to full", 0.5, 1 - 1e-6),
        ("full", 1 - 1e-6, np.inf),
        ("cut", -np.inf, 0.0),
    )
    for i, (name, low, high) in enumerate(groups):
        mine = numbers.links[(numbers.used >= low) & (numbers.used < high)]
        gaps = np.full((len(mine), 1), np.nan)
        x, y = (np.concatenate([numbers.place[mine, k], gaps], axis=1).ravel() for k in (0, 1))
        data.append({"x": x, "y": y})
        look = {
            "color": COLOURS[(0, 5, 1, 7)[i]],
            "width": (1, 2, 4, 2)[i],
            "dash": "dot" if name == "cut" else "solid",
        }
        style.append({"type": "scatter", "mode": "lines", "name": name, "line": look, "hoverinfo": "skip"})
    middle = numbers.place[numbers.links].mean(axis=1)
    dear = np.flatnonzero(numbers.price > 1e-6)
    data.append({"x": middle[dear, 0], "y": middle[dear, 1], "customdata": numbers.price[dear]})
    hover = "one Mb/s more here carries <b>%{customdata:.2f}</b> more in all<extra></extra>"
    marker = {"color": COLOURS[4], "size": 8, "symbol": "diamond"}
    style.append(
        {"type": "scatter", "mode": "markers", "name": "has a price", "marker": marker, "hovertemplate": hover}
    )
    hidden = {"showticklabels": False, "showgrid": False, "zeroline": False}
    return Drawing(
        data, style, {"title_text": numbers.name}, {"xaxis": axis("", **hidden), "yaxis": axis("", **hidden)}
    )
