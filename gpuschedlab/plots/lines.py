"""Lines of one's own: the shortest way from numbers to a figure."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.plots.style import Drawing, axis, line


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


def draw_lines(numbers: Lines) -> Drawing:
    """Lay out `Lines`: a line for each name."""
    data = [{"x": numbers.x, "y": y, "name": name} for name, y in numbers.values.items()]
    style = [{"type": "scatter"} | line(i) for i in range(len(data))]
    live = {"title_text": numbers.title}
    sides = {"xaxis": axis(numbers.x_title), "yaxis": axis(numbers.y_title)}
    return Drawing(data, style, live, sides | {"showlegend": True})
