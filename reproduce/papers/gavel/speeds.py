"""Speeds from Gavel's published throughputs, of jobs alone and in pairs."""

import polars as pl

from gpuschedlab.speeds.profiles import need_columns
from gpuschedlab.speeds.table import Speeds


def gavel_speeds(
    frame: pl.DataFrame, *, gpus_per_node: int = 4, sharing_type: str = "v100", unpacked: float = 0.0
) -> Speeds:
    """Make speeds from Gavel's throughputs (OSDI'20, section 7.1): iterations a second on k80, p100 and v100.

    Parameters
    ----------
    frame : polars.DataFrame
        `gpu_type` (``v100`` on the fewest nodes, ``v100_unconsolidated`` on more), `model`, `n_gpus`,
        `partner` (null: alone), `partner_gpus`, `iters_per_s`, `partner_iters_per_s`.
    gpus_per_node : int
        GPUs on each node: n GPUs are consolidated on ceil(n / gpus_per_node) nodes.
    sharing_type : str
        Type on one GPU of which the sharing speeds are taken.
    unpacked : float
        Pairs slower than this fraction of running alone, either of them, are never packed.

    Returns
    -------
    Speeds
        Absolute rates (iterations a second); a job's work is its `target`. Throughputs of 0 (out of memory)
        are left out.

    Raises
    ------
    SpeedError
        Columns are missing.

    Notes
    -----
    Differs from the paper in: one sharing speed for each pair, measured on one GPU of one type, serves all
    types and numbers of GPUs.
    """
    columns = ("gpu_type", "model", "n_gpus", "partner", "partner_gpus", "iters_per_s", "partner_iters_per_s")
    need_columns(frame, "gavel_speeds", columns)
    loose = pl.col("gpu_type").str.ends_with("_unconsolidated")
    alone = frame.filter(pl.col("partner").is_null() & (pl.col("iters_per_s") > 0)).select(
        "model",
        pl.col("gpu_type").str.strip_suffix("_unconsolidated"),
        pl.when(~loose).then((pl.col("n_gpus") + gpus_per_node - 1) // gpus_per_node).alias("n_nodes"),
        "n_gpus",
        rate="iters_per_s",
        # On one GPU there is nothing to consolidate: the table repeats its number.
        repeated=loose & (pl.col("n_gpus") == 1),
    )
    pairs = {
        (a, b): speed
        for a, b, speed in gavel_sharing(frame, sharing_type).iter_rows()
        if speed > 0 and speed >= unpacked
    }
    pairs = {(a, b): speed for (a, b), speed in pairs.items() if (b, a) in pairs}
    types = alone["gpu_type"].unique().sort()
    return Speeds.from_frame(alone.filter(~pl.col("repeated")), gpu_types=types, sharing=pairs)


def gavel_sharing(frame: pl.DataFrame, gpu_type: str = "v100") -> pl.DataFrame:
    """Relative speeds of Gavel's models on one shared GPU.

    Columns `model, partner, relative_speed` (0: out of memory, never packed). A pair measured in one order
    serves for both.
    """
    one = frame.filter(pl.col("n_gpus") == 1, gpu_type=gpu_type)
    alone = one.filter(pl.col("partner").is_null()).select("model", alone="iters_per_s")
    pairs = one.filter(pl.col("partner").is_not_null(), pl.col("partner_gpus") == 1)
    mirrored = pairs.select(model="partner", partner="model", iters_per_s="partner_iters_per_s")
    both = pl.concat([pairs.select(mirrored.columns), mirrored]).unique(
        ["model", "partner"], keep="first", maintain_order=True
    )
    speed = pl.when(pl.col("alone") > 0).then(pl.col("iters_per_s") / pl.col("alone")).otherwise(0.0)
    return both.join(alone, on="model", maintain_order="left").select("model", "partner", relative_speed=speed)
