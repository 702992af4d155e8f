"""Warm jobs: submitted before time 0, played so that a run does not begin with an empty cluster, and not counted."""

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces import validate


def validated_warm(warm: pl.DataFrame | None, trace: pl.DataFrame) -> pl.DataFrame | None:
    """Return a frame of warm jobs with the columns of a trace, or None if there are none.

    Raises
    ------
    TraceError
        It is no frame, a row is bad, a job is submitted at 0 or later, or has the name of a job of the trace.
    """
    if not isinstance(warm, pl.DataFrame | None):
        raise TraceError(f"warm: found a {type(warm).__name__}; expected a polars.DataFrame, or None.")
    if warm is None or warm.is_empty():
        return None
    late = warm.filter(pl.col("submit") >= 0)
    if not late.is_empty():
        raise TraceError(
            f"warm: found {late.height:,} of {warm.height:,} jobs submitted at 0 or later, the first {late['job_id'][0]}; expected "
            "jobs before the trace, on its clock. Subtract the days from their column `submit`."
        )
    first_submission = warm["submit"].min()
    sound = validate(warm.with_columns(pl.col("submit") - first_submission), source="warm")
    common = [column_name for column_name in trace.columns if column_name in sound.columns]
    sound = sound.select(common).with_columns(pl.col("submit") + first_submission)
    twice = sound.join(trace, on="job_id", how="semi")
    if not twice.is_empty():
        raise TraceError(
            f"warm: found job {twice['job_id'][0]} in the trace as well, and {twice.height - 1:,} more; expected other names. "
            "Put a word before them."
        )
    return sound


def parted_played(played: pl.DataFrame) -> dict[str, pl.DataFrame | None]:
    """Return a dict of a scenario's parts `trace` and `warm` (frames) that play these jobs; `warm` is None if it has none."""
    warm = played.filter(pl.col("submit") < 0)
    if warm.is_empty():
        return {"trace": played, "warm": None}
    return {"trace": played.filter(pl.col("submit") >= 0), "warm": warm}
