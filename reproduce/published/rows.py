"""Rows of published numbers, each measured as soon as the cases that it needs have answers.

A source gives a function for each row. Such a function asks for the answers that it needs; the first that nobody has yet is measured,
and the function is called again. So no row waits for cases of others, and nothing is measured that no wanted row needs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from typing import Any

from gpuschedlab._extras import need
from reproduce.published.numbers import Left, Number, Ours

Value = float | str | Ours | None
"""What a row is: measured, the reason why it was not, or nothing where this run leaves it out."""

Row = Callable[[], Value]
"""Gives the value of a row, or raises `NotYet`."""

LEFT = "not measured by this code yet: `make published STALE=1` measures it, and goes on where it ended"
"""Why there is no value: cases of the row have no answer."""


class NotYet(Exception):
    """A row needs the answer of a case that is not known.

    Parameters
    ----------
    measure : callable
        Measures it.
    case : tuple
        Its arguments after the folder of the reference data.
    """

    def __init__(self, measure: Callable, case: tuple):
        super().__init__(f"{measure.__module__}.{measure.__qualname__}{case}")
        self.measure = measure
        self.case = case


def given(values: Mapping[Number, Value]) -> dict[Number, Row]:
    """Rows that need no case: their values are there.

    Examples
    --------
    >>> number = Number("table 1", "w", "p", "m")
    >>> given({number: 2.0})[number]()
    2.0
    """
    return {number: partial(_same, value) for number, value in values.items()}


def _same(value: Value) -> Value:
    return value


class Measuring:
    """Cases that are being measured, on some processes or, with one, in this one."""

    def __init__(self, study):
        self.study = study
        self.running: dict[Future, NotYet] = {}
        joblib = need("joblib", "published rows")
        self.workers = joblib.effective_n_jobs(study.workers)
        self.pool = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pool is not None:
            self.pool.shutdown(wait=False, kill_workers=True)

    @property
    def free(self) -> bool:
        """Whether a process has nothing to do."""
        return len(self.running) < self.workers

    def may_begin(self, asked: NotYet) -> bool:
        """Whether a process is free, time is left, and a case is not being measured already."""
        measured = any((one.measure, one.case) == (asked.measure, asked.case) for one in self.running.values())
        return self.free and not measured and time.monotonic() < self.study.until

    def begin(self, asked: NotYet) -> None:
        """Begin to measure a case; with one process, measure it."""
        if self.workers == 1:
            self.study.keep(asked.measure, asked.case, asked.measure(self.study.data, *asked.case))
            return
        if self.pool is None:
            loky = need("joblib.externals.loky", "published rows")
            self.pool = loky.ProcessPoolExecutor(self.workers)
        self.running[self.pool.submit(asked.measure, self.study.data, *asked.case)] = asked

    def end_some(self) -> bool:
        """Wait until something has been measured, and keep it; whether there was anything, and time."""
        if not self.running:
            return False
        seconds = max(0.0, self.study.until - time.monotonic())
        done, _ = wait(self.running, None if seconds == float("inf") else seconds, FIRST_COMPLETED)
        for future in done:
            asked = self.running.pop(future)
            self.study.keep(asked.measure, asked.case, future.result())
        return bool(done)


def measure_rows(
    study,
    rows: Mapping[Number, Row],
    wanted: Iterable[Number],
    measured: Callable[[Number, Any], None] = lambda number, value: None,
) -> dict[Number, Value]:
    """Values of the wanted rows, in the order in which they are wanted.

    Parameters
    ----------
    study : Study
        Knows and keeps the answers of cases, and until when it may measure.
    rows : mapping of Number to callable
        Each gives the value of a row, or raises `NotYet`.
    wanted : iterable of Number
        Rows that are asked for.
    measured : callable
        Is called with each number and its value as soon as it is there.

    Returns
    -------
    dict
        Of every wanted row; `Left` where time was over before its cases had answers. Rows that are None are left out.
    """
    wanted = list(wanted)
    left = dict.fromkeys(wanted)
    found: dict[Number, Value] = {}
    bar = need("tqdm.auto", "progress bars").tqdm(total=len(wanted), disable=None, unit="row")
    with bar, Measuring(study) as work:
        while left:
            for number in list(left):
                if work.free and _comes(rows[number], number, found, work):
                    del left[number]
                    bar.update()
                    measured(number, found[number])
            if left and not work.end_some():
                break
    found |= {number: Left(LEFT) for number in left}
    return {number: found[number] for number in wanted if found[number] is not None}


def _comes(row: Row, number: Number, found: dict[Number, Value], work: Measuring) -> bool:
    """Enter the value of a row, if its cases have answers; otherwise begin to measure one of them, if that may be."""
    while True:
        try:
            found[number] = row()
        except NotYet as asked:
            if not work.may_begin(asked):
                return False
            work.begin(asked)
        else:
            return True
