"""Make models.csv, relative speeds of models, of Gavel's and Chronus' data: `PYTHONPATH=.:tests python data/models/make.py FOLDER`."""

import sys
from pathlib import Path

import polars as pl

from reproduce.papers.gavel.speeds import gavel_sharing

REPRESENTATIVES = {
    "ResNet-18 (batch size 64)": "resnet18",
    "ResNet-50 (batch size 64)": "resnet50",
    "Transformer (batch size 64)": "transformer",
    "LM (batch size 20)": "lm",
    "Recommendation (batch size 2048)": "recommendation",
    "CycleGAN": "cyclegan",
}
"""One batch size a model of Gavel (OSDI'20, table 2), the middle one."""

REFERENCE = "v100"


def model_figures(gavel: pl.DataFrame, slowdown: pl.DataFrame) -> pl.DataFrame:
    """Derive the rows of models.csv from the published measurements.

    Parameters
    ----------
    gavel : polars.DataFrame
        As for `gavel_speeds`.
    slowdown : polars.DataFrame
        As for `placement_speeds`.

    Returns
    -------
    polars.DataFrame
        `kind, model, gpu_type, n_gpus, n_nodes, partner, relative_speed`, to 4 decimals. Kind ``gpu_type``:
        on one GPU of the type against a v100; ``n_nodes``: spread over so many nodes against the fewest;
        ``partner``: sharing one v100 with the partner against alone. Speeds by placement and partner are at
        most 1.

    Notes
    -----
    Gavel's "unconsolidated" throughputs are taken as one GPU a node. It did not measure recommendation and
    cyclegan on several GPUs: they get the geometric mean of the others. Chronus' models were not measured on
    other types: they get resnet50's.
    """
    gavel = gavel.with_columns(pl.col("model", "partner").replace_strict(REPRESENTATIVES, default=None))
    # A job alone has no partner, and a partner that represents nothing is no job alone.
    gavel = gavel.filter(
        pl.col("model").is_not_null(), pl.col("partner").is_not_null() | pl.col("partner_gpus").is_null()
    )
    spread = _spread(gavel, slowdown)
    types = _types(gavel, slowdown)
    sharing = gavel_sharing(gavel, REFERENCE).select(
        "model",
        "partner",
        relative_speed=pl.col("relative_speed").clip(upper_bound=1.0),
        kind=pl.lit("partner"),
    )
    columns = ["kind", "model", "gpu_type", "n_gpus", "n_nodes", "partner", "relative_speed"]
    return (
        pl.concat([types, spread, sharing], how="diagonal")
        .select(columns)
        .with_columns(pl.col("relative_speed").round(4))
        .sort(columns[:-1])
    )


def _types(gavel, slowdown):
    """Rows of kind gpu_type."""
    one = gavel.filter(pl.col("partner").is_null(), ~pl.col("gpu_type").str.contains("_"), n_gpus=1)
    base = one.filter(gpu_type=REFERENCE).select("model", base="iters_per_s")
    speed = pl.col("iters_per_s") / pl.col("base")
    rows = one.join(base, on="model", maintain_order="left").select(
        "model", "gpu_type", relative_speed=speed, kind=pl.lit("gpu_type")
    )
    alike = rows.filter(model="resnet50").drop("model")
    return pl.concat(
        [rows, slowdown.select("model").unique(maintain_order=True).join(alike, how="cross").select(rows.columns)]
    )


def _spread(gavel, slowdown):
    """Rows of kind n_nodes."""
    alone = gavel.filter(pl.col("partner").is_null(), pl.col("n_gpus") > 1, pl.col("iters_per_s") > 0)
    together = alone.filter(gpu_type=REFERENCE).select("model", "n_gpus", base="iters_per_s")
    apart = alone.filter(gpu_type=f"{REFERENCE}_unconsolidated").join(
        together, on=["model", "n_gpus"], maintain_order="left"
    )
    rows = apart.select(
        "model",
        "n_gpus",
        n_nodes="n_gpus",
        relative_speed=(pl.col("iters_per_s") / pl.col("base")).clip(upper_bound=1.0),
    )
    mean = rows.group_by("n_gpus", "n_nodes", maintain_order=True).agg(pl.col("relative_speed").log().mean().exp())
    others = [m for m in REPRESENTATIVES.values() if m not in set(rows["model"])]
    guessed = pl.DataFrame({"model": others}).join(mean, how="cross")
    measured = slowdown.filter(pl.col("n_nodes") > 1).with_columns(pl.col("relative_speed").clip(upper_bound=1.0))
    parts = [part.select(rows.columns) for part in (rows, guessed, measured)]
    return pl.concat(parts).with_columns(kind=pl.lit("n_nodes"))


if __name__ == "__main__":
    profiles = Path(sys.argv[1]) / "profiles"
    frames = pl.read_parquet(profiles / "gavel_speed.parquet"), pl.read_csv(profiles / "placement_slowdown.csv")
    model_figures(*frames).write_csv(Path(__file__).parent / "models.csv")
