"""Figures of other problems: servers with their shards, and a network with its flows."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.plots.kinds.style import COLOURS, Drawing, axis, bar, marks, stroke


class ServerBlocks(NamedTuple):
    """Shards on servers: load (N, D) of each shard on each server, whether its replica is new (N, D), and the band (low, high)."""

    load: np.ndarray
    new: np.ndarray
    band: tuple[float, float]
    name: str

    def draw(self) -> Drawing:
        """A bar a server, a block a shard, new replicas in another colour, and the band as lines."""
        traces, height = [], np.cumsum(self.load, axis=1)
        for i, (name, mine) in enumerate((("stayed", ~self.new), ("new here", self.new))):
            server, shard = np.nonzero((self.load > 0) & mine)
            size = self.load[server, shard]
            blocks = {"x": server, "y": size, "base": height[server, shard] - size, "customdata": shard, "width": 0.75}
            hover = f"<b>shard %{{customdata}}</b> on server %{{x}}: %{{y:.3f}}<extra>{name}</extra>"
            traces.append((blocks, {"type": "bar", "name": name, "hovertemplate": hover, "marker": bar(i)}))
        ends = [-0.5, len(self.load) - 0.5]
        for name, level in zip(("least", "most"), self.band, strict=True):
            look = stroke(name=name, color=COLOURS[4], dash="dash", width=2)
            traces.append(({"x": ends, "y": [level, level]}, look))
        sides = {"x": "server", "y": "share of all load"}
        return Drawing.of(traces, f"Load of servers: {self.name}", barmode="overlay", zero=True, **sides)


class LinkMap(NamedTuple):
    """A network: place (V, 2), links (E, 2), share of each link's capacity in use (E,), price of each (E,), and a name."""

    place: np.ndarray
    links: np.ndarray
    used: np.ndarray
    price: np.ndarray
    name: str

    def draw(self) -> Drawing:
        """Links by how full they are, and the price of the dearest at their middle."""
        traces, full = [], 1 - 1e-6
        groups = {"below half": (0.0, 0.5), "half to full": (0.5, full), "full": (full, np.inf), "cut": (-np.inf, 0.0)}
        for (name, (low, high)), colour, width in zip(groups.items(), (0, 5, 1, 7), (1, 2, 4, 2), strict=True):
            mine = self.links[(self.used >= low) & (self.used < high)]
            gaps = np.full((len(mine), 1), np.nan)
            x, y = (np.concatenate([self.place[mine, k], gaps], axis=1).ravel() for k in (0, 1))
            dash = "dot" if name == "cut" else "solid"
            traces.append(({"x": x, "y": y}, stroke(name=name, color=COLOURS[colour], width=width, dash=dash)))
        middle = self.place[self.links].mean(axis=1)
        dear = np.flatnonzero(self.price > 1e-6)
        points = {"x": middle[dear, 0], "y": middle[dear, 1], "customdata": self.price[dear]}
        hover = "one Mb/s more here carries <b>%{customdata:.2f}</b> more in all<extra></extra>"
        marker = {"color": COLOURS[4], "size": 8, "symbol": "diamond"}
        traces.append((points, marks(marker, hover, name="has a price")))
        hidden = axis("", showticklabels=False, showgrid=False, zeroline=False)
        return Drawing.of(traces, self.name, x=hidden, y=hidden)
