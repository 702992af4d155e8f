"""Rows of a log that are one job: parts that hold GPUs together, and attempts that follow each other."""

import polars as pl

from gpuschedlab.traces.logs.raw import LINE, filled, label
from gpuschedlab.traces.logs.states import RESIZING, RUNNING, WAITING, follows_requeue


def join_parts(frame: pl.DataFrame, how: str, snapshot: float | None) -> tuple[pl.DataFrame, float]:
    """Make one row of the parts of each job, and return a tuple: the frame, and the GPU-seconds that this adds.

    GPUs add, end is the latest.
    """
    # With `how` "common" they started together; with "last" a job starts when its last part does, and parts that were
    # submitted after all earlier ones had ended are another attempt.
    if how == "common":
        part_rows = frame.filter(pl.col("part").is_not_null())
        whole_jobs = frame.filter(pl.col("part").is_null())
        keys = ["job_id", "submit"]
    elif how == "last":
        frame = frame.sort("job_id", "submit", LINE, maintain_order=True)
        latest_end = pl.col("end").fill_null(float("inf")).cum_max()
        over = latest_end.shift(1).over("job_id")
        begins_attempt = (pl.col("submit") >= over).fill_null(False)
        part_rows = frame.with_columns(attempt=begins_attempt.cum_sum().over("job_id"))
        whole_jobs = frame.clear()
        keys = ["job_id", "attempt"]
    else:
        return frame, 0.0
    if part_rows.is_empty():
        return frame, 0.0
    of_job = _sums_of_parts(frame.columns) | _times_of_parts(how, snapshot)
    of_parts = [part_column for part_column in frame.columns if part_column not in of_job and part_column not in keys]
    first_values = pl.col(of_parts).drop_nulls().first()
    of_job = {part_column: value for part_column, value in of_job.items() if part_column not in keys}
    joined = part_rows.group_by(keys, maintain_order=True).agg(first_values, **of_job)
    if "gpu_types" in frame.columns:
        joined = joined.with_columns(gpu_types=filled("gpu_types"))
    ended = joined.filter(pl.col("duration").is_not_null())
    more = (ended["gpus"] * ended["duration"]).sum() - ended["recorded"].sum()
    joined = joined.select(frame.columns)
    if whole_jobs.height:
        joined = pl.concat([whole_jobs, joined]).sort(LINE)
    return joined, float(more)


def _sums_of_parts(columns: list[str]) -> dict[str, pl.Expr]:
    """Return a dict of expressions: columns of a job from its parts, without times: sums, and the state of the part that went worst."""
    order = (RUNNING, "failed", "killed", WAITING, "completed")
    meanings = [label((pl.col("meaning") == part_meaning).any(), part_meaning) for part_meaning in order]
    of_job = {
        "gpus": pl.col("gpus").sum(),
        "censored": pl.col("censored").any(),
        "meaning": pl.coalesce(meanings),
        LINE: pl.col(LINE).min(),
        "recorded": (pl.col("gpus") * pl.col("duration")).sum(),
    }
    if "state" in columns:
        not_completed = pl.col("state").filter(pl.col("meaning") != "completed")
        of_job["state"] = pl.coalesce(not_completed.first(), pl.col("state").first())
    if "gpu_types" in columns:
        types = pl.col("gpu_types").explode().drop_nulls()
        of_job["gpu_types"] = types.unique(maintain_order=True)
    if "nodes" in columns:
        of_job |= _nodes_of_parts(columns)
    return of_job


def _times_of_parts(how: str, snapshot: float | None) -> dict[str, pl.Expr]:
    """Return a dict of expressions (`pl.Expr`): times of a job from its parts; `how` and `snapshot` as in `join_parts`."""
    open_end = pl.col("end").null_count() > 0
    end = pl.when(open_end).then(None).otherwise(pl.col("end").max())
    if how == "common":
        start = pl.col("start").min()
        duration = pl.col("duration").max()
    else:
        starts = pl.col("start")
        all_started = starts.null_count() == 0
        start = pl.when(all_started).then(starts.max())
        any_runs = pl.col("censored").any()
        runs_on = pl.when(any_runs).then(pl.lit(snapshot, pl.Float64))
        duration = pl.coalesce(end, runs_on) - start
    return {"submit": pl.col("submit").min(), "start": start, "end": end, "duration": duration, "lasted": duration}


def _nodes_of_parts(columns: list[str]) -> dict[str, pl.Expr]:
    """Return a dict of expressions: nodes of a job's parts together, and their names.

    Nodes are all apart, or all the same ones, as many GPUs on each.
    """
    has_gpus = pl.col("gpus") > 0
    part_nodes = pl.col(LINE)
    if "nodelist" in columns:
        part_nodes = pl.col("nodelist")
    nodes = pl.col("nodes").filter(has_gpus)
    gpus_of_node = (pl.col("gpus") / pl.col("nodes")).filter(has_gpus)
    names_with_gpus = part_nodes.filter(has_gpus)
    apart = (names_with_gpus.n_unique() == names_with_gpus.len()) | (names_with_gpus.null_count() > 0)
    on_same = pl.when(_is_one(names_with_gpus)).then(nodes.first())
    node_count = on_same.when(apart).then(nodes.sum())
    distinct_names = part_nodes.drop_nulls().unique(maintain_order=True)
    listed = distinct_names.cast(pl.String).str.join(",").replace("", None)
    return {"nodes": pl.when(_is_one(gpus_of_node)).then(node_count), "nodelist": listed}


def _is_one(values: pl.Expr) -> pl.Expr:
    """Return an expression (`pl.Expr`): whether values are all the same, and none is null."""
    return (values.n_unique() == 1) & (values.null_count() == 0)


def join_attempts(frame: pl.DataFrame, repeats: str, *, each: bool = False) -> tuple[pl.DataFrame, dict, dict]:
    """Make one row of the attempts of each job, number other jobs of the same name, `ID#2`, and return a tuple.

    It has the frame, and two dicts: counts of rows less, and a line of each.
    """
    # Durations of attempts add; submit and start are the first's, GPUs and state the last's. Pieces of a job that was
    # resized keep their GPU-time, on the GPUs of the longest piece.
    if repeats == "error" or not (twice := frame["job_id"].is_duplicated()).any():
        return frame, {}, {}
    repeated_rows = frame.filter(twice).sort("job_id", "submit", LINE, maintain_order=True)
    # A record that was written again when the job had ended takes the place of the earlier one.
    records = repeated_rows.sort("censored", "duration", descending=[True, False], nulls_last=True, maintain_order=True)
    keys = ["job_id", "submit", "duration"]
    if "start" in records.columns:
        keys = ["job_id", "submit", "start"]
    records = records.unique(keys, keep="last", maintain_order=True).sort(*keys, LINE)
    row_counts = {"repeated": repeated_rows.height - records.height}
    first_lines = {"repeated": repeated_rows.join(records, on=LINE, how="anti")[LINE].min()}
    if "state" not in records.columns:
        records = records.with_columns(state=pl.lit(None, pl.String))
    end = pl.coalesce("end", pl.col("start") + pl.col("duration"))
    first = pl.col("job_id").is_first_distinct()
    state_before = pl.col("state").shift(1).over("job_id")
    resized = state_before.is_in(RESIZING).fill_null(False)
    if each:
        follows = pl.lit(False)
        resized = pl.lit(False)
    elif repeats == "requeue":
        follows = follows_requeue(pl.col("state"), pl.col("submit"), end) | resized
    else:
        follows = pl.lit(True)
    begins = first | follows.not_()
    records = records.with_columns(chain=begins.cum_sum().over("job_id"), resized=resized & first.not_())
    work = (pl.col("gpus") * pl.col("duration")).sum()
    longest = pl.col("gpus").sort_by("duration").last()
    pieces = pl.col("resized").any()
    gpus = pl.when(pieces).then(longest)
    duration = pl.when(pieces).then(work / longest)
    of_job = {
        "gpus": gpus.otherwise(pl.col("gpus").last()),
        "duration": duration.otherwise(pl.col("duration").sum()),
        "attempts": pl.len().cast(pl.Int64) - pl.col("resized").sum(),
        "meaning": pl.col("meaning").last(),
        "censored": pl.col("censored").last(),
        "parts": pl.col("resized").sum(),
    }
    of_job |= {
        attempt_column: pl.col(attempt_column).last()
        for attempt_column in ("state", "nodes", "end")
        if attempt_column in frame.columns
    }
    unchanged = [c for c in frame.columns if c not in of_job and c != "job_id"]
    chains = records.group_by("job_id", "chain", maintain_order=True)
    jobs = chains.agg(pl.col(unchanged).first(), **of_job)
    row_counts["parts"] = int(jobs["parts"].sum())
    row_counts["attempts"] = records.height - jobs.height - row_counts["parts"]
    chain = pl.col("chain")
    attempt_number = chain - chain.min().over("job_id") + 1
    numbered_name = pl.format("{}#{}", "job_id", attempt_number)
    again = pl.when(attempt_number > 1).then(numbered_name).otherwise("job_id")
    jobs = jobs.with_columns(again.alias("job_id")).select(*frame.columns, "attempts")
    joined = pl.concat([frame.filter(~twice), jobs], how="diagonal")
    return joined.sort(LINE), row_counts, first_lines
