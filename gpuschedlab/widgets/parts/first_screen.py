"""The Explorer's first screen: measures and views of two runs, in words, and the record that a page draws; no widgets."""

from datetime import timedelta
from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.metrics import utilisation
from gpuschedlab.metrics.columns import jobs_of, known
from gpuschedlab.metrics.fairness import finish_time_fairness
from gpuschedlab.metrics.sentence import span, two_spans
from gpuschedlab.metrics.who_pays import Scope, compared
from gpuschedlab.plots.job_changes import Compared
from gpuschedlab.plots.kinds.style import HOUR

COLUMNS = ("jct_mean", "jct_median", "jct_p99", "queueing_mean", "unfair_fraction", "utilisation", "preemptions")
"""Metrics of the table; their heads, hints and words stand in `plots/web/screen.js`."""


class Measured(NamedTuple):
    """A run job by job: times to finish and waits (n,), s, whether a job was treated unfairly, times it was stopped; GPUs in use."""

    jct: np.ndarray
    queueing: np.ndarray
    unfair: np.ndarray
    stopped: np.ndarray
    utilisation: float

    def table(self, among: np.ndarray | None = None) -> dict[str, float]:
        """Return a dict of the table's metrics, by names in `METRICS`, of the jobs that `among` (n,) picks; nan without jobs."""
        among = np.isfinite(self.jct) & (True if among is None else among)
        times, waits, unfair, stopped = (measured_column[among] for measured_column in self[:4])
        if not len(times):
            return dict.fromkeys(COLUMNS, float("nan"))
        median, jct_p99 = np.percentile(times, [50, 99])
        table_metrics = (times.mean(), median, jct_p99, waits.mean(), unfair.mean(), self.utilisation, stopped.sum())
        return dict(zip(COLUMNS, map(float, table_metrics)))


def measured(run) -> Measured:
    """Return a run `Measured`, job by job; the same values as `run.summary()` if all jobs are picked."""
    jobs = jobs_of(run)
    known_jobs = known(run, False)
    rho = finish_time_fairness(run)
    took, waited, unfair = (np.full(len(known_jobs), np.nan) for _ in range(3))
    took[known_jobs] = (jobs["end"] - jobs["submit"])[known_jobs]
    waited[known_jobs] = jobs["queueing"][known_jobs]
    unfair[known_jobs] = np.where(np.isnan(rho), np.nan, rho > 1.0 + 1e-9)
    return Measured(took, waited, unfair, jobs["preemptions"], utilisation(run))


ALL = 1e9
"""End of a span that has none."""
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class View(NamedTuple):
    """The view: dots by "run" time or "gpus", row of a job, spans of submission (h) and of run time (s) or GPUs."""

    by: str = "run"
    job: int | None = None
    time: tuple[float, float] | None = None
    size: tuple[float, float] | None = None


class Screen:
    """Two runs compared, as some view has it: `difference` is that of the jobs that are framed, `whole` that of all.

    Given are the runs, the figures `measured` of them, and their names in sentences and on lines, each now and before.
    """

    def __init__(
        self, runs: list, found: list[Measured], names: list[str], short: list[str], view: View, place: str = ""
    ):
        self.runs = runs
        self.measured = found
        self.view = view
        jobs = jobs_of(runs[0])
        self.whole = self.difference = compared(*runs, names, Scope(place=place))
        job_moved = np.zeros(len(jobs["submit"]), int)
        weekday = _weekday(runs[0])
        job_moved[self.whole.later.rows] = 1
        job_moved[self.whole.sooner.rows] = -1
        job_columns = (jobs[column_name] for column_name in ("gpus", "submit", "duration"))
        self.compared = Compared(
            tuple(short), *job_columns, *(measured_run.jct for measured_run in found), job_moved, weekday
        )
        spans = ((jobs["submit"] / HOUR, view.time), (jobs["gpus" if view.by == "gpus" else "duration"], view.size))
        self._framed = [(x >= span[0]) & (x <= span[1]) if span else x == x for x, span in spans]
        self.among = np.logical_and(*self._framed) if view.time or view.size else None
        if self.among is not None:
            self.difference = compared(*runs, names, Scope(self.among, self._of(), place))

    def _of(self) -> str:
        """Words for the jobs that are framed."""
        view = self.view
        clauses = []
        if view.time:
            framed_ends = [clock(hours, self.compared.weekday) for hours in view.time]
            clauses.append("submitted " + " to ".join(framed_ends))
        if view.size:
            clauses.append(f"that {self._size_clause()}")
        return " ".join(clauses)

    def _size_clause(self) -> str:
        """Words for the run times or GPUs that are framed: up to one size, from one on, or between two."""
        low, high = self.view.size
        if self.view.by == "run":
            least_span = span(float(f"{low:.2g}"))
            most_span = span(float(f"{high:.2g}"))
            small = f"run for at most {most_span}"
            large = f"run for more than {least_span}"
            between = f"run {least_span} to {most_span}"
        else:
            small = f"need at most {high:g} GPUs"
            large = f"need at least {low:g} GPUs"
            between = f"need {low:g} to {high:g} GPUs"
        if low <= 1:
            return small
        if high >= ALL:
            return large
        return between

    def record(self, why: dict) -> dict:
        """Return a dict that a page draws the screen from; `why` is the view's job and why it waited, now and before."""
        fields = {"view": self.view._asdict(), "kind": self.whole.kind, "table": self.table()}
        fields |= self.compared.sent(self.view.job, *self._framed)
        return fields | {"lit": None if self.view.job is None else self.lit(self.view.job, why)}

    def lit(self, row: int, why: dict) -> dict:
        """Return a dict that a page draws one job from: `why` it waited, its times and when it held GPUs, now and before."""
        compared_jobs = self.compared
        times = {side_name: float(getattr(compared_jobs, side_name)[row]) for side_name in ("now", "before", "submit")}
        times["held"] = [_spans_of(run, row) for run in self.runs]
        return why | times | {"row": row, "spans": two_spans(compared_jobs.now[row], compared_jobs.before[row])}

    def table(self) -> dict:
        """Return a dict: metrics of both runs on the framed jobs, number of these, and the interval of the first's ratio."""
        difference = self.difference
        table_runs = self.measured[: 1 if self.whole.kind == "self" else 2]
        run_metrics = [list(measures.table(self.among).values()) for measures in table_runs]
        shown_ratio = [difference.value, difference.low, difference.high][
            : 3 if difference.low == difference.low and difference.kind not in ("same", "self") else 1
        ]
        return {"values": run_metrics, "jobs": None if self.among is None else difference.jobs, "ratio": shown_ratio}


def _spans_of(run, row: int) -> list[tuple[float, float]]:
    """List of start and end (s) of the times in which a job of a run held GPUs, in order; empty if it never did."""
    stretches = run.allocations.filter(pl.col("job") == row)
    spans = stretches.select("start", "end").unique()
    return spans.sort("start").rows()


def clock(hours: float, weekday: int | None) -> str:
    """Return a time since the trace's start as text, as a reader says it."""
    day, hour = divmod(hours, 24.0)
    day_name = f"day {day + 1:.0f}"
    if weekday is not None:
        day_name = DAYS[int(day + weekday) % 7]
    return f"{day_name} {int(hour):02}:{int(hour % 1 * 60):02}"


def _weekday(run) -> int | None:
    """Index of the weekday of time zero; None if the trace has no clock, or one that does not begin at midnight."""
    jobs = jobs_of(run)
    if "clock" not in jobs:
        return None
    first_clock = jobs["clock"][0].item()
    if not first_clock:
        return None
    zero = first_clock - timedelta(seconds=float(jobs["submit"][0]))
    if zero.hour == zero.minute == 0:
        return zero.weekday()
    return None
