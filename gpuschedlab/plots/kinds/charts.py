"""Lines of one's own: the shortest way from numbers to a figure."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.plots.kinds.style import Drawing, named_lines


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
        traces = named_lines(self.x, self.values)
        return Drawing.of(traces, self.title, showlegend=True, x=self.x_title, y=self.y_title)
