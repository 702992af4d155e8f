"""GPUs of Slurm's records in text, of TRES or of GRES."""

import polars as pl

from gpuschedlab.traces.logs.devices import devices, of_gres, of_tres, whole_or_share
from gpuschedlab.traces.logs.options import Options

TRES, GRES = ("AllocTRES", "ReqTRES"), ("AllocGRES", "ReqGRES")


def gpus_of(jobs: pl.DataFrame, options: Options) -> tuple[pl.DataFrame, list[str]]:
    """GPUs, their types and slices, of TRES or of GRES."""
    fields = [f for f in TRES if f in jobs.columns] or [f for f in GRES if f in jobs.columns]
    assumed: list[str] = []
    per_node = pl.lit(1.0)
    if not fields:
        found = devices(pl.repeat("", jobs.height, eager=True), of_tres)
    elif fields[0] in TRES:
        # What else stands there (memory, billing) differs from job to job.
        entries = [pl.col(f).str.extract_all(r"(?:gres/gpu|shard)[^,]*").list.join(",") for f in fields]
        said = [pl.when(pl.col(f).is_not_null()).then(entry) for f, entry in zip(fields, entries, strict=True)]
        found = devices(jobs.select(pl.coalesce(said)).to_series(), of_tres)
    else:
        found = devices(jobs.select(pl.coalesce(fields)).to_series(), of_gres)
        if options.gres == "node" and "NNodes" in jobs.columns:
            per_node = jobs.select(pl.col("NNodes").cast(pl.Float64, strict=False).fill_null(1.0)).to_series()
            assumed = ["GRES counts GPUs of each node (gres = 'total': of the job)"]
    shards = pl.col("shards") / (options.shards or float("inf"))
    total = pl.col("gpus") * per_node + shards.fill_null(0.0)
    return (
        found.select(
            whole_or_share(total).alias("\0gpus"),
            pl.when(pl.col("gpu_types").list.len() > 0).then("gpu_types").alias("\0gpu_types"),
            pl.col("shape").alias("\0shape"),
            pl.col("shards").fill_null(0.0).alias("\0shards"),
        ),
        assumed,
    )
