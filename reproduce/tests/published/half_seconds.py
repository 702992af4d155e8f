"""The command that measures rows, with a measuring function that only waits: `python half_seconds.py FOLDER`."""

import sys
import time
from functools import partial
from pathlib import Path

from reproduce import published
from reproduce.papers.copter import problems
from reproduce.published import committed, inputs
from reproduce.published.numbers import Number, Ours

SOURCE = "copter-problems"


def half_a_second(data, number: int) -> int:
    """Answer of a case, after half a second."""
    time.sleep(0.5)
    return number


def row(study, number: Number, case: int) -> Ours:
    """Value of a row, which is the number of its case."""
    return Ours(float(study.answer(problems.waited, (case,))))


def main(folder: Path):
    """Measure each row of a table by a case of its own."""
    published.FOLDER = folder
    inputs.FILE = folder / "files.txt"
    numbers = list(committed.read_measured(folder / f"{SOURCE}.csv").found)
    problems.waited = half_a_second
    half_a_second.__module__ = problems.__name__
    half_a_second.__qualname__ = "waited"
    problems.ours = lambda study: {number: partial(row, study, number, case) for case, number in enumerate(numbers)}
    published.reproduce([SOURCE], folder, stale=True, workers=1, out=folder / "out")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
