"""Guess before the answer: a question on the page hides the outputs that follow it in its cell, until it is answered or skipped.

Without a page that runs widgets (a batch run, the site, a printed notebook) nothing is asked, and all outputs are there.
"""

from pathlib import Path

import anywidget
import polars as pl
import traitlets

HERE = Path(__file__).parent
VIEW = "application/vnd.jupyter.widget-view+json"


class Guess(anywidget.AnyWidget):
    """How many times as good a line is as another, and which is best: asked once, scored against what was computed."""

    _esm, _css = (HERE / f"guessing.{kind}" for kind in ("js", "css"))
    asked = traitlets.Dict().tag(sync=True)
    score = traitlets.Unicode().tag(sync=True)

    def _repr_mimebundle_(self, **options):
        given = super()._repr_mimebundle_(**options)
        data, *more = given if isinstance(given, tuple) else (given,)
        data = {"text/plain": " ", VIEW: data[VIEW]}
        return (data, *more) if more else data


def times_as_good(table: pl.DataFrame, line: str, other: str = "default") -> Guess:
    """Ask what a table of `answers.gained` says of a line beside another, and which of those beside it is best."""
    beside = table.filter(pl.col("beside") == other)
    (row,) = beside.filter(pl.col("line") == line).rows(named=True)
    best = beside.sort("times as good", descending=True).row(0, named=True)
    names = [*beside["line"], other]
    asked = {
        "times": row["times as good"],
        "low": row["95 % from"],
        "high": row["95 % to"],
        "line": line,
        "other": other,
    }
    asked |= {"names": names, "best": best["line"] if best["times as good"] > 1 else other}
    sure = beside.filter(pl.col("95 % from") > 1)["line"]
    return Guess(asked=asked | {"sure": ", ".join(sure)})
