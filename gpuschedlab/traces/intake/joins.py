"""Rows of a log that are one job: parts that hold GPUs together, and attempts that follow each other."""

import polars as pl

from gpuschedlab.traces.logs.raw import LINE
from gpuschedlab.traces.logs.states import RESIZING, RUNNING, WAITING, follows_requeue


def join_parts(frame: pl.DataFrame, how: str, snapshot: float | None) -> tuple[pl.DataFrame, float]:
    """Make one row of the parts of each job: GPUs add, end is the latest; and the GPU-seconds that this adds."""
    # With `how` "common" they started together; with "last" a job starts when its last part does, and parts that were
    # submitted after all earlier ones had ended are another attempt.
    if how == "common":
        parts = frame.filter(pl.col("part").is_not_null())
        rest = frame.filter(pl.col("part").is_null())
        keys = ["job_id", "submit"]
    elif how == "last":
        frame = frame.sort("job_id", "submit", LINE, maintain_order=True)
        over = pl.col("end").fill_null(float("inf")).cum_max().shift(1).over("job_id")
        parts = frame.with_columns(attempt=(pl.col("submit") >= over).fill_null(False).cum_sum().over("job_id"))
        rest = frame.clear()
        keys = ["job_id", "attempt"]
    else:
        return frame, 0.0
    if parts.is_empty():
        return frame, 0.0
    open_end = pl.col("end").null_count() > 0
    end = pl.when(open_end).then(None).otherwise(pl.col("end").max())
    latest = pl.when(pl.col("start").null_count() == 0).then(pl.col("start").max())
    begun = pl.col("start").min() if how == "common" else latest
    order = (RUNNING, "failed", "killed", WAITING, "completed")
    seen = [pl.when((pl.col("meaning") == w).any()).then(pl.lit(w)) for w in order]
    runs_on = pl.when(pl.col("censored").any()).then(pl.lit(snapshot, pl.Float64))
    lasted = pl.col("duration").max() if how == "common" else pl.coalesce(end, runs_on) - begun
    own = {
        "gpus": pl.col("gpus").sum(),
        "submit": pl.col("submit").min(),
        "start": begun,
        "end": end,
        "duration": lasted,
        "lasted": lasted,
        "censored": pl.col("censored").any(),
        "meaning": pl.coalesce(seen),
        LINE: pl.col(LINE).min(),
        "recorded": (pl.col("gpus") * pl.col("duration")).sum(),
    }
    if "state" in frame.columns:
        odd = pl.col("state").filter(pl.col("meaning") != "completed")
        own["state"] = pl.coalesce(odd.first(), pl.col("state").first())
    if "gpu_types" in frame.columns:
        own["gpu_types"] = pl.col("gpu_types").explode().drop_nulls().unique(maintain_order=True)
    if "nodes" in frame.columns:
        own |= _nodes_of_parts(frame.columns)
    others = [c for c in frame.columns if c not in own and c not in keys]
    joined = parts.group_by(keys, maintain_order=True).agg(
        *(pl.col(c).drop_nulls().first() for c in others), **{k: v for k, v in own.items() if k not in keys}
    )
    if "gpu_types" in frame.columns:
        joined = joined.with_columns(pl.when(pl.col("gpu_types").list.len() > 0).then("gpu_types").alias("gpu_types"))
    known = joined.filter(pl.col("duration").is_not_null())
    more = (known["gpus"] * known["duration"]).sum() - known["recorded"].sum()
    columns = frame.columns
    joined = joined.select(columns) if not rest.height else pl.concat([rest, joined.select(columns)]).sort(LINE)
    return joined, float(more)


def _nodes_of_parts(columns: list[str]) -> dict[str, pl.Expr]:
    """Nodes of a job's parts together: all apart, or all on the same ones, as many GPUs on each; and their names."""
    held = pl.col("gpus") > 0
    names = pl.col("nodelist" if "nodelist" in columns else LINE)
    nodes, each, where = (v.filter(held) for v in (pl.col("nodes"), pl.col("gpus") / pl.col("nodes"), names))
    alike, together = ((v.n_unique() == 1) & (v.null_count() == 0) for v in (each, where))
    apart = (where.n_unique() == where.len()) | (where.null_count() > 0)
    count = pl.when(together).then(nodes.first()).when(apart).then(nodes.sum())
    listed = names.drop_nulls().unique(maintain_order=True).cast(pl.String).str.join(",").replace("", None)
    return {"nodes": pl.when(alike).then(count), "nodelist": listed}


def join_attempts(frame: pl.DataFrame, repeats: str, *, each: bool = False) -> tuple[pl.DataFrame, dict, dict]:
    """Make one row of the attempts of each job, and number other jobs of the same name: `ID#2`; counts of rows less, and a line."""
    # Durations of attempts add; submit and start are the first's, GPUs and state the last's. Pieces of a job that was
    # resized keep their GPU-time, on the GPUs of the longest piece.
    if repeats == "error" or not (twice := frame["job_id"].is_duplicated()).any():
        return frame, {}, {}
    rows = frame.filter(twice).sort("job_id", "submit", LINE, maintain_order=True)
    # A record that was written again when the job had ended takes the place of the earlier one.
    records = rows.sort("censored", "duration", descending=[True, False], nulls_last=True, maintain_order=True)
    keys = ["job_id", "submit", "start" if "start" in records.columns else "duration"]
    records = records.unique(keys, keep="last", maintain_order=True).sort(*keys, LINE)
    counts = {"repeated": rows.height - records.height}
    lines = {"repeated": rows.join(records, on=LINE, how="anti")[LINE].min()}
    if "state" not in records.columns:
        records = records.with_columns(state=pl.lit(None, pl.String))
    end = pl.coalesce("end", pl.col("start") + pl.col("duration"))
    first = pl.col("job_id").is_first_distinct()
    resized = pl.col("state").shift(1).over("job_id").is_in(RESIZING).fill_null(False)
    if each:
        follows = pl.lit(False)
        resized = pl.lit(False)
    elif repeats == "requeue":
        follows = follows_requeue(pl.col("state"), pl.col("submit"), end) | resized
    else:
        follows = pl.lit(True)
    records = records.with_columns(
        chain=(first | follows.not_()).cum_sum().over("job_id"), resized=resized & first.not_()
    )
    work = (pl.col("gpus") * pl.col("duration")).sum()
    longest = pl.col("gpus").sort_by("duration").last()
    pieces = pl.col("resized").any()
    of_job = {
        "gpus": pl.when(pieces).then(longest).otherwise(pl.col("gpus").last()),
        "duration": pl.when(pieces).then(work / longest).otherwise(pl.col("duration").sum()),
        "attempts": pl.len().cast(pl.Int64) - pl.col("resized").sum(),
        "meaning": pl.col("meaning").last(),
        "censored": pl.col("censored").last(),
        "parts": pl.col("resized").sum(),
    }
    of_job |= {name: pl.col(name).last() for name in ("state", "nodes", "end") if name in frame.columns}
    unchanged = [c for c in frame.columns if c not in of_job and c != "job_id"]
    jobs = records.group_by("job_id", "chain", maintain_order=True).agg(
        *(pl.col(c).first() for c in unchanged), **of_job
    )
    counts["parts"] = int(jobs["parts"].sum())
    counts["attempts"] = records.height - jobs.height - counts["parts"]
    number = pl.col("chain") - pl.col("chain").min().over("job_id") + 1
    again = pl.when(number > 1).then(pl.format("{}#{}", "job_id", number)).otherwise("job_id")
    jobs = jobs.with_columns(again.alias("job_id")).select(*frame.columns, "attempts")
    return pl.concat([frame.filter(~twice), jobs], how="diagonal").sort(LINE), counts, lines
