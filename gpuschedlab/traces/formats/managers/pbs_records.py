"""Meaning of each record of a PBS log: of which job it is, whether it stands for a run of it, and how long that was suspended."""

from typing import NamedTuple

import polars as pl

from gpuschedlab.traces.logs.raw import LINE
from gpuschedlab.traces.logs.states import NAMED, RUNNING, WAITING, of_exit

KEYS: dict[str, str] = NAMED["pbs"]
"""Our columns <- keys of a record."""
BEFORE = ("Q", "A", "D", "a", "P", "p")
"""Types of records that a job may have before it starts."""
DURING = ("S", "s", "R", "E", "C", "T", "u", "c", "e", "z", "r")
"""Types of records of a job that has started."""
MOVED = "M"
ENDS = ("E", "R")
"""Types of records that end a run."""
COURSE = ("S", *ENDS)


class JobRows(NamedTuple):
    """Rows of jobs: runs, and jobs that never started; and how many records beside them say more of these jobs, or are of no job."""

    table: pl.DataFrame
    beside: dict[str, int]


def job_rows(frame: pl.DataFrame, latest: float | None) -> JobRows:
    """Return `JobRows`: one row per run, of its E or R record, or an S record that nothing ends; and one of each job without a run.

    `frame` has columns type, id, at (s), start, end, state and line numbers; `latest` is the log's last instant (s).
    """
    # See OpenPBS, acct.h, for the types: R reruns a job, z suspends it, r resumes it; L, U, B and others are of no job.
    frame = frame.with_columns(job_id=pl.col("id"))
    kind = pl.col("type")
    of_jobs = frame.filter(kind.is_in([*BEFORE, *DURING, MOVED]))
    runs = _runs(of_jobs)
    runs = runs.join(_suspended(of_jobs, runs, latest), on=["job_id", "start"], how="left", maintain_order="left")
    other_records = of_jobs.join(runs.select("job_id"), on="job_id", how="anti", maintain_order="left")
    unstarted = _without_runs(other_records)
    log_rows = pl.concat([runs, unstarted], how="diagonal")
    parent = pl.col("job_id").str.contains("[]", literal=True)
    reason = pl.when(parent).then(pl.lit("array_parents"))
    log_rows = log_rows.with_columns(left=reason.otherwise("left"))
    beside = {"events": of_jobs.height - log_rows.height, "records_of_no_job": frame.height - of_jobs.height}
    return JobRows(log_rows.sort(LINE), beside)


def _runs(of_jobs: pl.DataFrame) -> pl.DataFrame:
    """Return a frame of runs by their last record; an S record that another start follows has no end, and is left out by that name."""
    kind = pl.col("type")
    course = of_jobs.filter(kind.is_in(COURSE))
    # Torque's R says nothing of the run: it is that of the S before it, and ended as the record was written.
    rerun = kind == "R"
    instant = pl.col("at").cast(pl.Int64).cast(pl.String)
    known_keys = [record_key for record_key in KEYS if record_key not in ("end", "state")]
    completed = [_or_before(record_key) for record_key in known_keys]
    reruns = course.with_columns(*completed, end=pl.coalesce("end", instant)).filter(rerun)
    course = course.filter(rerun.not_())
    course = pl.concat([course, reruns]).sort(LINE)
    follower = kind.shift(-1).over("job_id")
    start = pl.col("start")
    same_start = start == start.shift(-1).over("job_id")
    started = course.filter(kind == "S", follower.is_null())
    lost = course.filter(kind == "S", (follower == "S") & same_start.fill_null(False).not_())
    ended = course.filter(kind == "E").with_columns(meaning=of_exit(pl.col("state")))
    rerun_rows = course.filter(rerun, pl.col("start").is_not_null())
    run_parts = [
        ended,
        rerun_rows.with_columns(meaning=pl.lit("killed"), state=pl.lit("REQUEUED")),
        started.with_columns(meaning=pl.lit(RUNNING)),
        lost.with_columns(left=pl.lit("attempts_without_end")),
    ]
    run_rows = pl.concat(run_parts, how="diagonal")
    if "left" not in run_rows.columns:
        run_rows = run_rows.with_columns(left=pl.lit(None, pl.String))
    return run_rows


def _or_before(name: str) -> pl.Expr:
    """Return an expression (`pl.Expr`): the value of each record, or of the one before it of the same job; null if neither has one."""
    before = pl.col(name).shift(1).over("job_id")
    return pl.coalesce(name, before).alias(name)


def _suspended(of_jobs: pl.DataFrame, runs: pl.DataFrame, latest: float | None) -> pl.DataFrame:
    """Return a frame of the seconds for which each run (job_id, start) was suspended: from z records to the next r, or to its end."""
    marks = of_jobs.join(runs.select(LINE, began="start"), on=LINE, how="left", maintain_order="left")
    kind = pl.col("type")
    marks = marks.filter(kind.is_in([*COURSE, "z", "r"]))
    # A mark belongs to the run that ends next; if none does, to the one that began last.
    own_start = pl.coalesce("began", pl.when(kind == "S").then("start"))
    ending = pl.when(kind.is_in(ENDS)).then(own_start)
    began = pl.coalesce(ending.backward_fill(), own_start.forward_fill())
    marks = marks.with_columns(began=began.over("job_id"))
    instant = pl.col("at")
    next_mark = instant.shift(-1).over("job_id")
    until = next_mark.fill_null(pl.lit(latest, pl.Float64))
    spans = marks.with_columns(span=until - instant).filter(kind == "z")
    return spans.group_by("job_id", start="began", maintain_order=True).agg(suspended=pl.col("span").sum())


def _without_runs(job_records: pl.DataFrame) -> pl.DataFrame:
    """Return a frame of one row per job of which no record says a run: it waited, was moved away, or ran before and after the log."""
    kind = pl.col("type")
    moved = (kind == MOVED).any().over("job_id")
    ran = kind.is_in(DURING).any().over("job_id")
    reason = pl.when(moved).then(pl.lit("moved"))
    reason = reason.when(ran).then(pl.lit("without_start"))
    job_records = job_records.with_columns(left=reason).unique("job_id", keep="first", maintain_order=True)
    instant = pl.col("at").cast(pl.Int64).cast(pl.String)
    return job_records.with_columns(submit=pl.coalesce("submit", instant), meaning=pl.lit(WAITING))
