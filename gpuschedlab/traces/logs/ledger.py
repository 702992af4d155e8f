"""The report on a log: rows that came in, rows left out and why, and assumptions."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import cached_property
from html import escape

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.traces.logs.seen_nodes import cluster_seen
from gpuschedlab.traces.schema import LINE
from gpuschedlab.traces.trace_statistics import demand

#: Reasons for which GPU-hours are lost; the others are no jobs, or used no GPU.
LOSSES = ("bad", "shards", "no_duration")
#: Reasons in the words of the line, where they are not their names.
WORDS = {"cpu_only": "CPU-only", "no_duration": "without a duration"}
HOUR = 3600.0
DAY = 86_400.0
FEW = 0.01
MANY = 0.1
"""Shares of GPU-hours lost from which on a warning is given, and from which on the log is refused."""


@dataclass(frozen=True)
class Report:
    """Report on the rows of a log.

    Parameters
    ----------
    format, file : str
        The format, and the file read.
    bytes, rows, jobs : int
        Size of the file, its records, and jobs kept.
    gpu_hours, gpu_hours_out : float
        Of the jobs kept, and of records that held GPUs and were left out.
    left_out : dict of str to dict
        Reason -> rows, gpu_hours, share (of all GPU-hours), example (line of the file); and tasks, if a row stands for several of an
        array.
    beside : dict of str to int
        Rows that say more of a job, kept or left out, for which another row stands, and rows of no job; by kind. Each row of
        the log is a job, left out, or beside them (`accounted`).
    within : dict of str to int
        Entries that lie inside rows and count for nothing, such as attempts without times, by reason.
    used : dict of str to str
        Columns of the trace <- those of the file.
    guessed, unused : list of str
        Columns that were found by their names, and those of the file that were not used.
    assumed : list of str
        Facts that the log does not say, and that were taken for granted.
    missing : list of str
        Facts that this format does not hold.
    zone : str or None
        Time zone of the clock.
    zero : str or float
        The instant that is zero: date of the first kept job, or its seconds if the log has no dates.
    span : float
        Seconds from the first submission to the last.
    gaps : list
        (end in s, hours, share of jobs before) of gaps above 12 h between submissions.
    dense : tuple of float
        Shortest span that holds 99 % of submissions: its start, and its length (s).
    known : dict of str to float
        Share (%) of jobs with requested times, recorded starts, types, users.
    peak : float
        Most GPUs in use at once, by recorded starts, of each attempt; 0 without any.
    """

    format: str
    file: str
    bytes: int = 0
    rows: int = 0
    jobs: int = 0
    gpu_hours: float = 0.0
    gpu_hours_out: float = 0.0
    left_out: dict[str, dict] = field(default_factory=dict)
    beside: dict[str, int] = field(default_factory=dict)
    within: dict[str, int] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)
    guessed: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    zone: str | None = None
    zero: str | float | None = None
    span: float = 0.0
    gaps: list = field(default_factory=list)
    dense: tuple[float, float] = (0.0, 0.0)
    known: dict[str, float] = field(default_factory=dict)
    peak: float = 0.0

    @property
    def lost(self) -> float:
        """Share of GPU-hours that could be lost, a float: bad rows, shards, jobs without a duration."""
        return sum(entry["share"] for reason, entry in self.left_out.items() if reason in LOSSES)

    def counts(self) -> dict[str, int]:
        """Return a dict of the numbers of rows left out, by reason."""
        return {reason: entry["rows"] for reason, entry in self.left_out.items()}

    @property
    def accounted(self) -> int:
        """Number of rows that are a job, are left out for a reason, or stand beside these: all rows of the log."""
        left_out = sum(self.counts().values())
        return self.jobs + left_out + sum(self.beside.values())

    def line(self) -> str:
        """The report in one line."""
        report_parts = [f"intake: {self.rows:,} rows, {self.jobs:,} jobs, {self.gpu_hours:,.0f} GPU-h"]
        if self.left_out:
            report_parts.append(f"left out: {', '.join(map(self._in_words, self.left_out))}")
        if self.beside:
            report_parts.append(f"beside them: {counted(self.beside)}")
        if self.within:
            report_parts.append(f"not counted within rows: {counted(self.within)}")
        if self.accounted != self.rows:
            report_parts.append(f"{self.rows - self.accounted:,} rows are in no job and in no count")
        if self.assumed:
            report_parts.append(f"assumed: {'; '.join(self.assumed)}")
        if self.gaps:
            longest = max(hours for _, hours, _ in self.gaps)
            report_parts.append(f"{len(self.gaps)} gaps above 12 h (longest {longest:,.1f} h)")
            # A quiet night among the first jobs is no sign that the log has not begun.
            if early := [
                gap_instant for gap_instant, hours, before in self.gaps if before < FEW and hours > longest / 4
            ]:
                within = f"99 % of jobs lie within {self.dense[1] / DAY:.1f} days"
                report_parts.append(f"{within}: since = '{early[-1] // DAY:.0f} d' begins after the gaps")
        suspects = [unused_column for unused_column in self.unused if looks_like_a_factor(unused_column)]
        report_parts += [f"not used: {', '.join(suspects)}"] if suspects else []
        return "; ".join(report_parts)

    def _in_words(self, reason: str) -> str:
        """Return a phrase, a text: rows left out for a reason, and how many tasks of arrays they stand for, if these are more."""
        entry = self.left_out[reason]
        reason_words = f"{entry['rows']:,} {WORDS.get(reason, reason.replace('_', ' '))}"
        tasks = entry.get("tasks")
        if tasks is None:
            return reason_words
        return f"{reason_words} ({tasks:,} tasks of arrays)"

    def summary(self) -> dict:
        """Return a dict of all of it, as plain values."""
        return asdict(self) | {"lost": self.lost}

    def _repr_html_(self) -> str:
        html_rows = "".join(
            f"<tr><td>{escape(reason)}</td><td>{e['rows']:,}</td><td>{e['gpu_hours']:,.1f}</td><td>{e['share']:.1%}</td>"
            f"<td>{e['example'] or ''}</td></tr>"
            for reason, e in self.left_out.items()
        )
        head = "<tr><th>left out</th><th>rows</th><th>GPU-hours</th><th>share</th><th>line</th></tr>"
        return f"<details><summary>{escape(self.line())}</summary><table>{head}{html_rows}</table></details>"


def counted(counts: dict[str, int]) -> str:
    """Counts in words, by reason."""
    return ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in counts.items())


def looks_like_a_factor(name: str) -> bool:
    """Whether an unused column may change how many GPUs, or for how long."""
    return any(
        factor_word in name.lower()
        for factor_word in ("worker", "instance", "replica", "milli", "gres", "type", "limit")
    )


class Ledger:
    """Rows that are left out: their number, GPU-hours, and a line as an example, by reason."""

    def __init__(self, left: dict[str, int]):
        self.rows = +Counter(left)  # without zeros
        self.work: Counter[str] = Counter()
        self.line: dict[str, int] = {}
        self.unknown: Counter[str] = Counter()
        self.tasks: Counter[str] = Counter()
        self.peak = 0.0
        self.waiting: pl.DataFrame | None = None

    def take(self, reason: str, rows: pl.DataFrame) -> None:
        """Count rows that are left out; return nothing."""
        if not rows.height:
            return
        gpus = pl.col("gpus")
        gpu_seconds = gpus * pl.col("duration")
        spent = pl.when(gpus == 0).then(0.0).otherwise(gpu_seconds)
        work = rows.select(spent.fill_nan(None)).to_series()
        known_work = work.is_between(0, 1e15).fill_null(False)
        self.rows[reason] += rows.height
        self.work[reason] += float(work.filter(known_work).sum()) / HOUR
        self.unknown[reason] += int((~known_work).sum())
        self.line.setdefault(reason, rows[LINE][0])
        if "tasks" in rows.columns and rows["tasks"].null_count() < rows.height:
            self.tasks[reason] += int(rows["tasks"].fill_null(1).sum())

    def take_unread(self, reason: str, rows: int) -> None:
        """Count rows that do not say their GPUs or time; return nothing."""
        self.rows += Counter({reason: rows})
        self.unknown[reason] += rows

    def figures(self, kept: pl.DataFrame) -> dict:
        """Return a dict of the fields of the report.

        GPU-hours of a lost row that does not say them are those of a job kept, on average.
        """
        hours = float((kept["gpus"] * kept["duration"]).sum()) / HOUR
        mean = hours / kept.height if kept.height else 1.0
        lost = {r: float(self.work[r]) + (mean * self.unknown[r] if r in LOSSES else 0.0) for r in self.rows}
        total = hours + sum(lost.values())
        entries = {
            reason: {
                "rows": n,
                "gpu_hours": lost[reason],
                "share": lost[reason] / total if total else 0.0,
                "example": self.line.get(reason),
            }
            for reason, n in self.rows.items()
        }
        for reason, tasks in self.tasks.items():
            entries[reason]["tasks"] = tasks
        return {"jobs": kept.height, "gpu_hours": hours, "gpu_hours_out": sum(lost.values()), "left_out": entries}


def most_at_once(jobs: pl.DataFrame, start: str = "started") -> float:
    """Return the most GPUs in use at once, a float, by recorded starts, of which each counts once; 0 without any."""
    if start not in jobs.columns:
        return 0.0
    jobs = jobs.select("job_id", start, "gpus", "duration").drop_nulls().sort("duration")
    jobs = jobs.unique(["job_id", start], keep="last").sort(start)
    starts, gpus, durations = (jobs[name].to_numpy() for name in (start, "gpus", "duration"))
    in_use = demand(starts, gpus, durations, starts)
    return round(float(in_use.max(initial=0.0)), 6)


SEEN = "the nodes that jobs of the log ran on, and the most in use at once on one of a type"


@dataclass(frozen=True)
class Intake:
    """A log that was read.

    `trace` is None of a list of nodes, `cluster` if the log says none. `waiting` has the jobs that wait at the log's end, without
    `duration`, or is None.
    """

    trace: pl.DataFrame | None
    cluster: Cluster | None
    report: Report
    waiting: pl.DataFrame | None = None

    @property
    def machines(self) -> Cluster | None:
        """The log's `Cluster`; if it says none, the nodes that its jobs ran on, or as many as hold the most GPUs in use at once.

        None if nothing says so.
        """
        return self.machines_and_source[0]

    @cached_property
    def nodes_seen(self) -> Cluster | None:
        """`Cluster` of the nodes that jobs of the log ran on (`cluster_seen`); None if the log does not say on which, or when."""
        return None if self.trace is None else cluster_seen(self.trace)

    @cached_property
    def machines_and_source(self) -> tuple[Cluster | None, str]:
        """Tuple of the `Cluster` (or None), and in words how it is known: "" if the log says it or there is none."""
        if self.cluster is not None or self.trace is None or not self.report.peak:
            return self.cluster, ""
        if self.nodes_seen is not None:
            return self.nodes_seen, SEEN
        gpus = self.trace["gpus"]
        per = self.trace["nodes"] if "nodes" in self.trace.columns else np.inf
        gpus_each = int(np.ceil((gpus / per).max() or min(gpus.max(), 8)))
        guess = Cluster.homogeneous(int(np.ceil(self.report.peak / gpus_each)), gpus_each)
        return guess, "a guess from the most GPUs in use at once"

    def _repr_html_(self) -> str:
        return self.report._repr_html_()
