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
    """Return a frame of attempts: `job, attempt` (from 0), `job_id, submit, start, end, gpus, nodes, at`, `LOGGED`, `why`.

    `at` are names; `why` is done, preempted, node or open.
    """
    if isinstance(log, Run):
        frame = _of_run(log)
    else:
        frame = _of_rows(log)
    absent = [
        pl.lit(None, kind).alias(logged_name)
        for logged_name, kind in LOGGED.items()
        if logged_name not in frame.columns
    ]
    frame = frame.with_columns(absent).with_columns(pl.col("status").fill_null("completed"))
    frame = frame.select("job", "job_id", "submit", "start", "end", "gpus", "nodes", "at", *LOGGED, "why")
    frame = frame.filter(pl.col("end") > pl.col("start")).sort("job", "start")
    if frame.is_empty():
        raise EstimatorError("twin: found no attempt in the log; expected jobs that ran. Give a longer log.")
    job_number = pl.col("job").rank("dense") - 1
    attempt = pl.int_range(pl.len()).over("job")
    return frame.with_columns(job=job_number, attempt=attempt)


def _of_run(run: Run) -> pl.DataFrame:
    """Return the frame of a run's attempts: rows of its allocations that go on from the one before are one attempt."""
    node = pl.col("node").alias("at")
    attempt_rows = run.allocations.filter(~pl.col("profiling")).group_by("job", "start", maintain_order=True)
    attempt_rows = attempt_rows.agg(pl.col("end").max(), pl.col("gpus").sum(), node, pl.col("delay").first())
    attempt_rows = attempt_rows.sort("job", "start")
    end_before = pl.col("end").shift(1).over("job")
    apart = (pl.col("start") - end_before).fill_null(1.0) > 1e-6
    begins = apart | pl.col("delay").is_not_null()
    attempt_rows = attempt_rows.with_columns(number=begins.cum_sum().over("job"))
    first_of_stretch = [pl.col(column_name).first() for column_name in ("start", "gpus", "at")]
    attempt_rows = attempt_rows.group_by("job", "number", maintain_order=True).agg(
        *first_of_stretch, pl.col("end").last()
    )
    job_columns = [column_name for column_name in ("job_id", "submit", *LOGGED) if column_name in run.jobs.columns]
    jobs = run.jobs.with_row_index("job").select(pl.col("job").cast(pl.Int64), *job_columns, last=pl.col("end"))
    down = {(node, round(outage_begin, 3)) for node, outage_begin, _ in run.info["events"]}
    failed = []
    for nodes, attempt_end in attempt_rows.select("at", "end").iter_rows():
        failed.append(any((node, round(attempt_end, 3)) in down for node in nodes))
    ends_job = (pl.col("end") - pl.col("last")).abs() < 1e-6
    why = pl.when(ends_job).then(pl.lit("done"))
    why = why.when("failed").then(pl.lit("node")).otherwise(pl.lit("preempted"))
    node_names = pl.col("at").cast(pl.List(pl.String))
    attempt_rows = attempt_rows.with_columns(failed=pl.Series(failed), nodes=pl.col("at").list.len(), at=node_names)
    return attempt_rows.join(jobs, on="job", maintain_order="left").with_columns(why=why)


def _of_rows(log: pl.DataFrame) -> pl.DataFrame:
    """Return the frame of attempts of a log that was read with attempts="each"; those after a requeue are of the same job."""
    if not isinstance(log, pl.DataFrame):
        raise EstimatorError(f"twin: found {type(log).__name__}; expected a Run, or a frame: the trace of an intake.")
    running = pl.lit(False)
    if "censored" in log.columns:
        running = pl.col("censored").fill_null(False)
    _check_rows(log, running)
    ids = pl.col("job_id").cast(pl.String)
    has_1 = ids.str.contains("#1$").any()
    counts_from_1 = log.select(has_1).item()
    if not counts_from_1:  # an intake counts from #2 on
        ids = ids.str.replace(r"#\d+$", "")
    state = pl.col("state").cast(pl.String).str.to_uppercase()
    attempt_rows = log.with_columns(ids, state=state).sort("job_id", "started")
    attempt_end = pl.col("started") + pl.col("duration")
    begins = ~follows_requeue(pl.col("state"), pl.col("submit"), attempt_end)
    failed = pl.col("state").is_in(FAILED)
    preempted = pl.col("state").is_in(REQUEUED)
    why = pl.when(running).then(pl.lit("open"))
    why = why.when(failed).then(pl.lit("node"))
    why = why.when(preempted).then(pl.lit("preempted")).otherwise(pl.lit("done"))
    attempt_rows = attempt_rows.with_columns(why=why, job=begins.cum_sum())
    nodes = pl.lit(1)
    if "nodes" in attempt_rows.columns:
        nodes = pl.col("nodes").fill_null(1)
    submit = pl.col("submit").min().over("job")
    return attempt_rows.with_columns(
        submit, start="started", end=attempt_end, nodes=nodes, at=_node_names(attempt_rows)
    )


def _check_rows(log: pl.DataFrame, running: pl.Expr) -> None:
    """Raise an EstimatorError if columns are missing, jobs are merged, or rows lack GPUs or an end and are not `running`."""
    missing_columns = [column_name for column_name in (*NEEDED, "state") if column_name not in log.columns]
    if missing_columns:
        row_problem = f"twin: found no column {', '.join(missing_columns)} in the log"
        raise EstimatorError(f"{row_problem}; expected {', '.join(NEEDED)} and state, as of an intake of a log.")
    if "attempts" in log.columns:
        merged = log.filter(pl.col("attempts") > 1)
        if merged.height:
            raise EstimatorError(
                f"twin: found a merged log, in which {merged.height:,} jobs have one row for several attempts (job {merged['job_id'][0]}); "
                'expected one row per attempt. Read it with attempts="each".'
            )
    text_columns = [column_name for column_name in NEEDED[1:] if not log[column_name].dtype.is_numeric()]
    if text_columns:
        raise EstimatorError(
            f"twin: found column {text_columns[0]} of {log[text_columns[0]].dtype}; expected seconds, or GPUs."
        )
    has_end = pl.col("state").is_not_null() | running
    has_gpus = (pl.col("gpus") > 0).fill_null(False)
    bad = log.drop_nulls(["started", "duration"]).filter(~(has_end & has_gpus))
    if bad.height:
        row_problem = f"twin: found gpus {bad['gpus'][0]}, state {bad['state'][0]} of job {bad['job_id'][0]}"
        raise EstimatorError(
            f"{row_problem}, and {bad.height - 1:,} more; expected GPUs, and how it ended. Mend these rows."
        )


def _node_names(attempt_rows: pl.DataFrame) -> pl.Series | pl.Expr:
    """Names of the nodes of each row as a `Series` of lists; a null expression (`Expr`) if the log has none."""
    kind = pl.List(pl.String)
    if "nodelist" not in attempt_rows.columns:
        return pl.lit(None, kind)
    node_lists = attempt_rows["nodelist"].unique().drop_nulls()
    names_of_list = {node_list: hosts(node_list) for node_list in node_lists}
    lists = [list(names_of_list.get(node_list, ())) for node_list in attempt_rows["nodelist"]]
    return pl.Series(lists, dtype=kind)


def load_at_start(log: pl.DataFrame, capacity: float) -> np.ndarray:
    """Return an array (n, 4): load, logarithm of wait and time of day at the first start of each job, as the log shows them."""
    first_attempts = log.filter(attempt=0)
    attempt_starts = log["start"].to_numpy()
    attempt_ends = log["end"].to_numpy()
    gpus = log["gpus"].to_numpy()
    first_starts = first_attempts["start"].to_numpy()
    begun = np.argsort(attempt_starts)
    ended = np.argsort(attempt_ends)
    gpus_begun = np.concatenate([[0.0], np.cumsum(gpus[begun])])
    gpus_ended = np.concatenate([[0.0], np.cumsum(gpus[ended])])
    attempts_begun = np.searchsorted(attempt_starts[begun], first_starts)
    attempts_ended = np.searchsorted(attempt_ends[ended], first_starts, "right")
    used = gpus_begun[attempts_begun] - gpus_ended[attempts_ended]
    hour = 2 * np.pi * (first_starts % 86_400) / 86_400
    wait = np.log1p(np.maximum(first_starts - first_attempts["submit"].to_numpy(), 0))
    return np.column_stack([used / capacity, wait, np.sin(hour), np.cos(hour)])
