"""The answer to when jobs will start: day and hour with a range, what they wait for, and which request would start sooner."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from html import escape

import numpy as np
import polars as pl

from gpuschedlab.metrics.sentence import span
from gpuschedlab.papers.clusters.starts.answered import ENOUGH, Calibration
from gpuschedlab.papers.clusters.starts.forward import HORIZON
from gpuschedlab.papers.clusters.starts.waits_for import counted
from gpuschedlab.table_display import Table

DAY = 86_400.0
GAIN = 60.0
"""Seconds by which another request must start sooner, on average, to be named."""
NOW = 30.0
"""Seconds within which a job is said to start now: those between two passes of Slurm's backfill."""
FITS = 0.8
"""Share of alike jobs that must have run within a shorter limit for it to be named without a warning."""


@dataclass(frozen=True, eq=False, repr=False)
class When:
    """When jobs of a site will start.

    Parameters
    ----------
    file : str
        The site's file.
    instant : float
        Instant of the question, s of the log.
    zero : float or None
        Seconds since 1970 of the log's zero, by its own clock; None without dates.
    table : polars.DataFrame
        One row per job: `job_id`, `gpus`, and `user` and `requested_time` if the log has them; `waited` (s so far); `start`, `low`,
        `high` (s of the log): the median and the range of 80 %; `later`, share of the plays in which it does not start within two
        weeks; `ahead`, jobs that wait now and start before it.
    plays : int
        How often the rule was played forward.
    calibration : Calibration
        The log's own answered questions.
    missed : str
        What the replay misses of the log; "" if it keeps to it.
    reasons : tuple of str
        What the job waits for, if one was asked for.
    sooner : polars.DataFrame or None
        Other requests of that job (`smaller_requests.sooner`).
    notes : tuple of str
    """

    file: str
    instant: float
    zero: float | None
    table: pl.DataFrame
    plays: int
    calibration: Calibration
    missed: str = ""
    reasons: tuple[str, ...] = ()
    sooner: pl.DataFrame | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def calibrated(self) -> bool:
        """Whether the ranges have a per cent."""
        return self.calibration.enough

    @cached_property
    def sentence(self) -> str:
        """Return when the first job of the table starts, in words."""
        first_job = self.table.row(0, named=True)
        request_words = [counted(first_job["gpus"])]
        limit = first_job.get("requested_time")
        if limit is not None and np.isfinite(limit):
            request_words.append(f"limit {span(limit)}")
        if first_job.get("user"):
            request_words.append(f"user {first_job['user']}")
        job_words = f"Job {first_job['job_id']} ({', '.join(request_words)})"
        if first_job["low"] == first_job["high"] <= self.instant + NOW:
            return f"{job_words} starts now, {self.date(self.instant)}, in all plays."
        start = f"{job_words} starts about {self.date(first_job['start'])}"
        low = self.date(first_job["low"])
        high = self.date(first_job["high"])
        if self.calibrated:
            return f"{start}; with 80 % between {low} and {high}."
        return f"{start}; in most plays between {low} and {high}."

    @property
    def basis(self) -> str:
        """Return on what the range rests, in words."""
        answers = self.calibration.answers
        if self.calibrated:
            range_held = f"the range as played held {self.calibration.held:.0%} of them"
            return f"Calibrated on {answers} answered questions of this log: {range_held}. {self.plays} plays."
        return (
            f"Not calibrated, so no per cent: the log has {answers} answered questions before this instant, {ENOUGH} are needed. "
            f"{self.plays} plays."
        )

    def date(self, seconds: float) -> str:
        """Return an instant of the log (s) as a text: a day and an hour by its clock, or without dates a day of the log."""
        if seconds >= self.instant + HORIZON - 1:
            return f"after {self.date(self.instant + HORIZON - 1)}"
        if self.zero is None:
            day, second_of_day = divmod(seconds, DAY)
            minutes = int(second_of_day // 60)
            return f"day {int(day) + 1}, {minutes // 60:02d}:{minutes % 60:02d}"
        since_1970 = timedelta(seconds=self.zero + seconds)
        date = datetime.fromtimestamp(0, UTC) + since_1970
        return f"{date:%a %d %b %Y %H:%M}"

    @property
    def requests(self) -> list[str]:
        """List of sentences about other requests that would start sooner; empty if they were not asked for."""
        if self.sooner is None:
            return []
        better = self.sooner.filter(pl.col("sooner") >= GAIN)
        request_lines = []
        for request in better.iter_rows(named=True):
            request_line = f"{span(request['sooner'])} sooner with {request['request']}: about {self.date(self.instant + request['start'])}"
            if request["fits"] < FITS:
                request_line += f"; only {10 * request['fits']:.0f} of 10 alike jobs ran within it"
            request_lines.append(f"{request_line}.")
        return request_lines or ["No smaller request that was tried starts sooner."]

    def summary(self) -> dict:
        """Return a dict of all of it, as plain values."""
        return {
            "instant": self.instant,
            "date": self.date(self.instant),
            "calibrated": self.calibrated,
            "answered questions": self.calibration.answers,
            "held as played": self.calibration.held,
            "plays": self.plays,
            "replay": self.missed,
            "jobs": self.table.to_dicts(),
            "waits for": list(self.reasons),
            "sooner": [] if self.sooner is None else self.sooner.to_dicts(),
            "notes": list(self.notes),
        }

    def shown(self) -> Table:
        """Return the answers as a `Table` that a person reads, with dates."""
        dates = {}
        for date_column in ("start", "low", "high"):
            instants = self.table[date_column].to_list()
            dates[date_column] = pl.Series([self.date(instant) for instant in instants])
        dated_table = self.table.with_columns(**dates).drop("later")
        low = "from"
        high = "to"
        if self.calibrated:
            low = "10 % before"
            high = "90 % before"
        shown_names = {"job_id": "job", "gpus": "GPUs", "requested_time": "limit", "start": "starts about"}
        shown_names |= {"low": low, "high": high, "ahead": "jobs ahead"}
        return Table(dated_table, names=shown_names, units={"waited": "s", "requested_time": "s"})

    def lines(self) -> list[str]:
        """Return a list of sentences: all of it; of several jobs without the table."""
        answer_lines = [f"As of {self.date(self.instant)}, by what the log had until then."]
        if self.table.is_empty():
            return [*answer_lines, "No job waits."]
        if self.table.height == 1:
            answer_lines += [self.sentence, *self.reasons, *self.requests]
        answer_lines.append(self.basis)
        answer_lines += [f"note: {note}" for note in (self.missed, *self.notes) if note]
        return answer_lines

    def __str__(self) -> str:
        answer_lines = self.lines()
        if self.table.height > 1:
            answer_lines.insert(1, f"{self.shown()}")
        return "\n".join(answer_lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        sentences = "".join(f"<p>{escape(line)}</p>" for line in self.lines())
        return sentences + self.shown()._repr_html_()
