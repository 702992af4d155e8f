"""Guess before the answer: which line of a race is best?"""

import numpy as np
import polars as pl

from gpuschedlab import Table
from gpuschedlab.autosched import Race
from gpuschedlab.widgets import Guess


def gains_of_lines(race: Race) -> pl.DataFrame:
    """A row for each line of a race: how many times as short the average JCT of all jobs is as under the default; the best first."""
    figures = race.figures(np.inf)
    rows = [(name, round(figures["default"] / value, 3)) for name, value in figures.items()]
    return pl.DataFrame(rows, schema=["line", "times as good"], orient="row").sort("times as good", descending=True)


def best_line(race: Race, title: str) -> Guess:
    """Ask which line of a race that was tuned for the average is best, when all jobs have ended; the table of all waits."""
    table = gains_of_lines(race)
    best, gain = table.row(0)
    tuned = dict(table.iter_rows())["tuned"]
    return Guess(
        f"{title} Which line is best?",
        f"Best here: {best}, {gain:.2f} times as good as the default. Tuned is {tuned:.2f} times as good.",
        Table(table),
        choices=tuple(race.lines),
        right=best,
    )
