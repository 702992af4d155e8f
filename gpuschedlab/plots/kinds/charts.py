"""Lines, bars and points by name: the shortest way from numbers to a figure."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.plots.kinds.style import Drawing, bar, line, looks, marks


class Chart(NamedTuple):
    """What lines, bars and points share: the fields of `Lines`."""

    title: str
    x_title: str | dict
    y_title: str | dict
    x: np.ndarray | None
    values: dict[str, np.ndarray | dict]
    hover: str | None = None
    look: dict | None = None
    layout: dict | None = None

    def draw(self) -> Drawing:
        """A trace for each name."""
        layout = {"showlegend": True} if self.layout is None else self.layout
        return Drawing.of(self.traces(), self.title, x=self.x_title, y=self.y_title, **layout)

    def traces(self) -> list[tuple[dict, dict]]:
        """Pairs of a changing and a fixed part, one a trace, which a `Drawing` of several kinds is made of."""
        found = []
        for i, (which, (name, given)) in enumerate(zip(looks(self.values), self.values.items())):
            data = given if isinstance(given, dict) else {"x": self.x, "y": given}
            hover = self.hover and self.hover.replace("NAME", name)
            found.append((data | {"name": name}, self._styled(which, i, hover)))
        return found


class Lines(Chart):
    """Lines over a common axis: title, x_title, y_title : words, with units; x : (n,); values : (n,) by name of the line.

    A line that has an x of its own is a dict of plotly's `x`, `y` and whatever else its `hover` shows; NAME in it is the line's own.
    An axis may be a dict, too; `look` is of the lines (`width`, `shape`), `layout` as in `Drawing.of`.

    Examples
    --------
    >>> from gpuschedlab import plots
    >>> mine = plots.Lines("Squares", "x", "x squared", np.arange(3), {"squares": np.arange(3) ** 2})
    >>> plots.figure(mine).layout.title.text
    'Squares'
    """

    __slots__ = ()

    def _styled(self, which: int, i: int, hover: str | None) -> dict:
        return line(which, hover, i, **self.look or {})


class Bars(Chart):
    """Bars side by side over names x, a kind for each name of values (n,); fields as in `Lines`."""

    __slots__ = ()

    def _styled(self, which: int, i: int, hover: str | None) -> dict:
        shown = {"hovertemplate": hover} if hover else {}
        return {"type": "bar", "marker": bar(i)} | shown | (self.look or {})


class Points(Chart):
    """Points, a colour and a symbol for each name of values; fields as in `Lines`, `look` is of the markers."""

    __slots__ = ()

    def _styled(self, which: int, i: int, hover: str | None) -> dict:
        marker = {name: line(i)["marker"][name] for name in ("color", "symbol")}
        return marks(marker | (self.look or {}), hover)


Arrivals = Durations = FairnessCdf = FreeSpace = JctCdf = SweepLines = Lines
Interruptions = MetricBars = Bars
"""Kinds by the names of their figures."""
