"""The kind of a log, and how often intervals of what-if held the truth on made logs of that kind."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

FIGURES = ("mean wait", "bounded slowdown", "waited over an hour")
"""Of a what-if, of which means are compared."""
DAY = 86_400.0
SWING = 0.2
"""Of submissions over the day: length of the mean of unit vectors, 0 where all instants are alike, from which on a log is daily."""
HEAVY = 2.5
"""Squared coefficient of variation of run times, 1 where they are exponential, from which on they have heavy tails."""
BATCHES = 3.0
"""The same of the times between so many submissions in a row, on average: from here on jobs come in batches."""
IN_A_ROW = 50


class Kind(NamedTuple):
    """Kind of a log: whether day and night differ, run times have heavy tails, and jobs come in batches.

    Examples
    --------
    >>> print(Kind(), Kind(daily=True, batches=True))
    flat daily and batches
    """

    daily: bool = False
    heavy: bool = False
    batches: bool = False

    def __str__(self) -> str:
        kind_words = ("daily", "heavy tails", "batches")
        return " and ".join(kind_word for kind_word, has in zip(kind_words, self, strict=True) if has) or "flat"

    def held(self, figure: str) -> tuple[float, float]:
        """Return a tuple: lowest and highest share of a figure's intervals that held the truth on made logs of the kind.

        See docs/howto/intervals.md.
        """
        return HELD[self][figure]

    def in_percent(self, figure: str) -> str:
        """The same in words.

        Examples
        --------
        >>> Kind().in_percent("mean wait")
        '94 to 100 %'
        """
        low, high = self.held(figure)
        return f"{100 * low:.0f} to {100 * high:.0f} %"


def kind_of(submit: np.ndarray, ran: np.ndarray) -> Kind:
    """Return the `Kind` of a log from its submissions and run times (n,), both in seconds.

    A log of fewer than three jobs is flat.

    Examples
    --------
    >>> day = np.arange(10) * 86_400.0
    >>> print(kind_of(np.repeat(day, 20), np.full(200, 60.0)))
    daily and batches
    """
    if len(submit) < 3:
        return Kind()
    instant = np.exp(2j * np.pi * submit / DAY)
    gaps = np.diff(np.sort(submit))
    swing = abs(instant.mean())
    return Kind(
        daily=bool(swing >= SWING),
        heavy=bool(squared_variation(ran) >= HEAVY),
        batches=bool(local_variation(gaps) >= BATCHES),
    )


def squared_variation(values: np.ndarray) -> float:
    """Return the squared coefficient of variation of values (n,); 0 where their mean is 0."""
    mean = float(np.mean(values))
    return float(np.var(values)) / mean**2 if mean else 0.0


def local_variation(gaps: np.ndarray) -> float:
    """Return the mean squared coefficient of variation of `IN_A_ROW` gaps each, so that it does not grow as rates change with the hour.

    Fewer gaps are one row.
    """
    gap_rows = max(1, len(gaps) // IN_A_ROW)
    return float(np.mean([squared_variation(gap_row) for gap_row in np.array_split(gaps, gap_rows)]))


def _by_figure(*shares: tuple[float, float]) -> dict[str, tuple[float, float]]:
    return dict(zip(FIGURES, shares, strict=True))


HELD: Mapping[Kind, Mapping[str, tuple[float, float]]] = {
    Kind(): _by_figure((0.94, 1.0), (0.87, 1.0), (0.93, 1.0)),
    Kind(batches=True): _by_figure((0.37, 0.95), (0.63, 0.91), (0.93, 0.98)),
    Kind(heavy=True): _by_figure((0.8, 0.98), (0.79, 0.95), (0.93, 0.99)),
    Kind(heavy=True, batches=True): _by_figure((0.12, 0.81), (0.51, 0.87), (0.92, 1.0)),
    Kind(daily=True): _by_figure((0.95, 1.0), (0.89, 0.98), (0.93, 1.0)),
    Kind(daily=True, batches=True): _by_figure((0.42, 0.99), (0.6, 0.92), (0.93, 1.0)),
    Kind(daily=True, heavy=True): _by_figure((0.8, 0.97), (0.82, 0.96), (0.93, 1.0)),
    Kind(daily=True, heavy=True, batches=True): _by_figure((0.12, 0.76), (0.47, 0.84), (0.93, 1.0)),
}
"""By kind and figure: lowest and highest share of intervals that held the truth, of cells in which a log in ten has one."""
