"""Guess before the answer: how many times as good is one line as another, and which is best?"""

import polars as pl

from gpuschedlab.widgets import Guess


def times_as_good(table: pl.DataFrame, line: str, *shown, other: str = "default") -> Guess:
    """Ask what a table of `answers.gained` says of a line beside another, and which of those beside it is best; `shown` waits."""
    beside = table.filter(pl.col("beside") == other)
    (row,) = beside.filter(pl.col("line") == line).rows(named=True)
    first = beside.sort("times as good", descending=True).row(0, named=True)
    best = first["line"] if first["times as good"] > 1 else other
    sure = ", ".join(beside.filter(pl.col("95 % from") > 1)["line"])
    return Guess(
        f"How many times as good is {line} as {other}? And which line is best?",
        *shown,
        f"Surely better than {other}: {sure or 'none'}.",
        choices=(*beside["line"], other),
        right=best,
        times=(row["times as good"], row["95 % from"], row["95 % to"]),
    )
