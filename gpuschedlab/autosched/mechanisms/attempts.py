"""Attempts of jobs, one row each, as an accounting log has them: from a Run, or from an intake with attempts="each"."""

import numpy as np
import polars as pl

from gpuschedlab.errors import EstimatorError
from gpuschedlab.sim import Run
from gpuschedlab.traces.logs.hosts import hosts
from gpuschedlab.traces.logs.states import REQUEUED, follows_requeue

NEEDED = ("job_id", "submit", "started", "gpus", "duration")
LOGGED = {"user": pl.String, "name": pl.String, "model": pl.String, "status": pl.String, "predicted": pl.Float64}
"""Columns that a log may have."""
FAILED = ("NODE_FAIL", "NF")


def attempts_of(log: Run | pl.DataFrame) -> pl.DataFrame:
    """`job, attempt` (from 0), `job_id, submit, start, end, gpus, nodes, at` (names), `LOGGED`, `why`: done, preempted, node, open."""
    frame = _of_run(log) if isinstance(log, Run) else _of_rows(log)
    absent = [pl.lit(None, kind).alias(name) for name, kind in LOGGED.items() if name not in frame.columns]
    frame = frame.with_columns(absent).with_columns(pl.col("status").fill_null("completed"))
    frame = frame.select("job", "job_id", "submit", "start", "end", "gpus", "nodes", "at", *LOGGED, "why")
    frame = frame.filter(pl.col("end") > pl.col("start")).sort("job", "start")
    if frame.is_empty():
        raise EstimatorError("twin: found no attempt in the log; expected jobs that ran. Give a longer log.")
    return frame.with_columns(job=pl.col("job").rank("dense") - 1, attempt=pl.int_range(pl.len()).over("job"))


def _of_run(run: Run) -> pl.DataFrame:
    """Attempts of a run: rows of its allocations that go on from the one before are one attempt."""
    held = pl.col("end").max(), pl.col("gpus").sum(), pl.col("node").alias("at"), pl.col("delay").first()
    rows = run.allocations.filter(~pl.col("profiling"))
    rows = rows.group_by("job", "start", maintain_order=True).agg(held).sort("job", "start")
    apart = (pl.col("start") - pl.col("end").shift(1).over("job")).fill_null(1.0) > 1e-6
    rows = rows.with_columns(number=(apart | pl.col("delay").is_not_null()).cum_sum().over("job"))
    first = [pl.col(name).first() for name in ("start", "gpus", "at")]
    rows = rows.group_by("job", "number", maintain_order=True).agg(*first, pl.col("end").last())
    known = [name for name in ("job_id", "submit", *LOGGED) if name in run.jobs.columns]
    jobs = run.jobs.with_row_index("job").select(pl.col("job").cast(pl.Int64), *known, last=pl.col("end"))
    down = {(node, round(begin, 3)) for node, begin, _ in run.info["events"]}
    failed = [any((node, round(end, 3)) in down for node in at) for at, end in rows.select("at", "end").iter_rows()]
    why = pl.when((pl.col("end") - pl.col("last")).abs() < 1e-6).then(pl.lit("done"))
    why = why.when("failed").then(pl.lit("node")).otherwise(pl.lit("preempted"))
    at = pl.col("at").cast(pl.List(pl.String))
    rows = rows.with_columns(failed=pl.Series(failed), nodes=pl.col("at").list.len(), at=at)
    return rows.join(jobs, on="job", maintain_order="left").with_columns(why=why)


def _of_rows(log: pl.DataFrame) -> pl.DataFrame:
    """Attempts of a log that was read with attempts="each": those that follow a requeue are of the same job."""
    if not isinstance(log, pl.DataFrame):
        raise EstimatorError(f"twin: found {type(log).__name__}; expected a Run, or a frame: the trace of an intake.")
    if missing := [name for name in (*NEEDED, "state") if name not in log.columns]:
        found = f"twin: found no column {', '.join(missing)} in the log"
        raise EstimatorError(f"{found}; expected {', '.join(NEEDED)} and state, as of an intake of a log.")
    if "attempts" in log.columns and (many := log.filter(pl.col("attempts") > 1)).height:
        raise EstimatorError(
            f"twin: found a merged log, in which {many.height:,} jobs have one row for several attempts (job {many['job_id'][0]}); "
            'expected one row per attempt. Read it with attempts="each".'
        )
    if text := [name for name in NEEDED[1:] if not log[name].dtype.is_numeric()]:
        raise EstimatorError(f"twin: found column {text[0]} of {log[text[0]].dtype}; expected seconds, or GPUs.")
    open_ = pl.col("censored").fill_null(False) if "censored" in log.columns else pl.lit(False)
    known = (pl.col("state").is_not_null() | open_) & (pl.col("gpus") > 0).fill_null(False)
    if (bad := log.drop_nulls(["started", "duration"]).filter(~known)).height:
        found = f"twin: found gpus {bad['gpus'][0]}, state {bad['state'][0]} of job {bad['job_id'][0]}"
        raise EstimatorError(f"{found}, and {bad.height - 1:,} more; expected GPUs, and how it ended. Mend these rows.")
    ids = pl.col("job_id").cast(pl.String)
    if not log.select(ids.str.contains("#1$").any()).item():  # an intake counts from #2 on
        ids = ids.str.replace(r"#\d+$", "")
    rows = log.with_columns(ids, state=pl.col("state").cast(pl.String).str.to_uppercase()).sort("job_id", "started")
    again = pl.col("state").is_in(REQUEUED)
    begins = ~follows_requeue(pl.col("state"), pl.col("submit"), pl.col("started") + pl.col("duration"))
    why = pl.when(open_).then(pl.lit("open")).when(pl.col("state").is_in(FAILED)).then(pl.lit("node"))
    rows = rows.with_columns(
        why=why.when(again).then(pl.lit("preempted")).otherwise(pl.lit("done")), job=begins.cum_sum()
    )
    nodes = pl.col("nodes").fill_null(1) if "nodes" in rows.columns else pl.lit(1)
    end = pl.col("started") + pl.col("duration")
    lists = pl.lit(None, pl.List(pl.String))
    if "nodelist" in rows.columns:
        named = {text: hosts(text) for text in rows["nodelist"].unique().drop_nulls()}
        lists = pl.Series([list(named.get(text, ())) for text in rows["nodelist"]], dtype=pl.List(pl.String))
    return rows.with_columns(pl.col("submit").min().over("job"), start="started", end=end, nodes=nodes, at=lists)


def load_at_start(log: pl.DataFrame, capacity: float) -> np.ndarray:
    """Load, logarithm of the wait and time of day (n, 4) at the first start of each job, as the log itself shows them."""
    first = log.filter(attempt=0)
    start, end, gpus = (log[name].to_numpy() for name in ("start", "end", "gpus"))
    t = first["start"].to_numpy()
    begun = np.argsort(start)
    ended = np.argsort(end)
    before = [np.concatenate([[0.0], np.cumsum(gpus[order])]) for order in (begun, ended)]
    used = before[0][np.searchsorted(start[begun], t)] - before[1][np.searchsorted(end[ended], t, "right")]
    hour = 2 * np.pi * (t % 86_400) / 86_400
    wait = np.log1p(np.maximum(t - first["submit"].to_numpy(), 0))
    return np.column_stack([used / capacity, wait, np.sin(hour), np.cos(hour)])
