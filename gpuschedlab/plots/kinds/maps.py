"""A function of two numbers as a map, with paths on it."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.plots.kinds.style import Drawing, heat, line

SHADES = ("#FFFFFF", "#D6E4F0", "#8FB3D3", "#456F99")
"""From the least value to the greatest."""


class Landscape(NamedTuple):
    """title, x_title, y_title, z_title : words; x : (n,); y : (m,); z : (m, n) values; paths : (k, 2) points by name of the path.

    Examples
    --------
    >>> from gpuschedlab import plots
    >>> x = np.linspace(-1, 1, 5)
    >>> bowl = plots.Landscape("Bowl", "x", "y", "height", x, x, x**2 + x[:, None] ** 2, {"down": np.array([[1, 1], [0, 0]])})
    >>> [trace.type for trace in plots.figure(bowl).data]
    ['heatmap', 'scatter']
    """

    title: str
    x_title: str
    y_title: str
    z_title: str
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    paths: dict[str, np.ndarray]

    def draw(self) -> Drawing:
        """The map, and over it a line for each path, with a marker where it turns."""
        look = heat(
            "%{x:.3f}, %{y:.3f}: %{z:.2f}<extra></extra>",
            SHADES,
            colorbar={"title": {"text": self.z_title}, "thickness": 12},
        )
        traces = [({"x": self.x, "y": self.y, "z": self.z}, look | {"texttemplate": ""})]
        for i, (name, path) in enumerate(self.paths.items()):
            traces.append(({"x": path[:, 0], "y": path[:, 1], "name": name}, line(2 * i + 1, place=i)))
        ends = {f"{side}axis_range": [float(at[0]), float(at[-1])] for side, at in (("x", self.x), ("y", self.y))}
        return Drawing.of(traces, {"title_text": self.title} | ends, showlegend=True, x=self.x_title, y=self.y_title)
