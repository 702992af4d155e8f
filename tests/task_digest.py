"""What a task of the suite is made of, in a few numbers."""

import polars as pl


def digest_of(task) -> tuple:
    """Version, jobs, cluster, and sums of what its first scenario holds."""
    made = task.make()(1)
    sums = [made.trace[name].cast(pl.Float64).fill_null(-1.0).sum() for name in ("submit", "gpus", "duration")]
    return (task.version, made.trace.height, str(made.cluster), *(round(x, 3) for x in sums))
