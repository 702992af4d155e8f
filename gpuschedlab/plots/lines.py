"""Lines of one's own: the shortest way from numbers to a figure."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.plots.style import Drawing, axis, line

__all__ = ["Lines"]


class Lines(NamedTuple):
    """Lines over a common axis: title, x_title, y_title : words, with units; x : (n,); values : (n,) by name of the line.

    Examples
    --------
    >>> from gpuschedlab import plots
    >>> mine = plots.Lines("Squares", "x", "x squared", np.arange(3), {"squares": np.arange(3) ** 2})
    >>> plots.figure(mine).layout.title.text
    'Squares'
    """

    title: str
    x_title: str
    y_title: str
    x: np.ndarray
    values: dict[str, np.ndarray]

    def draw(self) -> Drawing:
        """A line for each name."""
        traces = [({"x": self.x, "y": y, "name": name}, line(i)) for i, (name, y) in enumerate(self.values.items())]
        sides = {"xaxis": axis(self.x_title), "yaxis": axis(self.y_title)}
        return Drawing.of(traces, {"title_text": self.title}, showlegend=True, **sides)
