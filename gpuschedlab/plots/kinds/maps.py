"""A function of two numbers, or a table of them, as a map."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.plots.kinds.style import Drawing, line

SHADES = ("#FFFFFF", "#D6E4F0", "#8FB3D3", "#456F99")
"""From the least value to the greatest."""


class Landscape(NamedTuple):
    """title, x_title, y_title, z_title : words; x : (n,); y : (m,); z : (m, n) values; paths : (k, 2) points by name of the path.

    A table has a text in each cell, and says with `hover`, `colours` and `look` how it looks.

    Examples
    --------
    >>> from gpuschedlab import plots
    >>> x = np.linspace(-1, 1, 5)
    >>> bowl = plots.Landscape("Bowl", "x", "y", "height", x, x, x**2 + x[:, None] ** 2, {"down": np.array([[1, 1], [0, 0]])})
    >>> [trace.type for trace in plots.figure(bowl).data]
    ['heatmap', 'scatter']
    """

    title: str
    x_title: str | dict
    y_title: str | dict
    z_title: str
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    paths: dict[str, np.ndarray] | None = None
    text: list | None = None
    hover: str = "%{x:.3f}, %{y:.3f}: %{z:.2f}<extra></extra>"
    colours: tuple[str, ...] = SHADES
    look: dict | None = None

    def draw(self, *over) -> Drawing:
        """The map, and over it a line for each path, with a marker where it turns, or other traces."""
        bar = {"colorbar": {"title": {"text": self.z_title}, "thickness": 12}} if self.z_title else {"showscale": False}
        # Colours and places, not the name of a scale: plotly.js has RdBu and others the other way round than plotly's Python.
        scale = [[i / (len(self.colours) - 1), colour] for i, colour in enumerate(self.colours)]
        look = {"type": "heatmap", "texttemplate": "%{text}", "hovertemplate": self.hover, "colorscale": scale}
        look |= bar | (self.look or {})
        cells = {"x": self.x, "y": self.y, "z": self.z}
        cells, look = (cells | {"text": self.text}, look) if self.text else (cells, look | {"texttemplate": ""})
        traces, live = [(cells, look), *over], {"title_text": self.title}
        for i, (name, path) in enumerate((self.paths or {}).items()):
            traces.append(({"x": path[:, 0], "y": path[:, 1], "name": name}, line(2 * i + 1, place=i)))
        if self.paths:
            live |= {f"{side}axis_range": [float(at[0]), float(at[-1])] for side, at in (("x", self.x), ("y", self.y))}
        legend = {"showlegend": True} if self.paths else {}
        return Drawing.of(traces, live, x=self.x_title, y=self.y_title, **legend)


SweepMap = Landscape
