"""Make the tables of this folder from the Titan artifact's measurements: `PYTHONPATH=.:tests python data/tasks/make.py FOLDER`."""

import sys
from pathlib import Path

import polars as pl

from reproduce.papers.ymir import titan

SIZES = (1, 2, 3, *range(4, 33, 4))
"""GPUs."""


def figures(data_dir) -> dict[str, pl.DataFrame]:
    """Rows of the files, by name: derived figures of all foundation models.

    Returns
    -------
    dict
        ``tasks``: `fm, task, n_nodes, n_gpus, epochs, rate` (epochs an hour). ``transfers``: `fm, mode`
        (merged or transfer), `other, task, factor` (on the task's speed; of merged ones both tasks' samples count).
        ``curves``: `fm, mode` (own, merged or transfer), `task, other, progress` (epochs of the task alone), `metric`.
    """
    rates, factors, curves = [], [], []
    for fm in titan.MODELS:
        known = titan.tasks(data_dir, fm)
        table, gains = titan.speeds(data_dir, fm), titan.transfer(data_dir, fm, known)
        shapes = [(k, n) for n in SIZES for k in range(-(-n // titan.GPUS_PER_NODE), min(n, titan.NODES) + 1)]
        nodes, counts = (list(column) for column in zip(*shapes, strict=True))
        codes = table.model_codes(known["model"])
        found = table.rates(codes, [0.0] * len(codes), [0] * len(counts), nodes, counts)
        for (task, epochs), each in zip(known.select("task", "epochs").iter_rows(), found, strict=True):
            rates += [(fm, task, *at, epochs, round(3600 * r, 4)) for at, r in zip(shapes, each, strict=True) if r > 0]
        pairs = [("merged", b, a, f) for (a, b), f in gains.merged.items()]
        pairs += [("transfer", a, b, f) for (a, b), f in gains.transfer.items()]
        curves.append(short_curves(gains.curves.frame(), fm))
        factors += [(fm, mode, a[len(fm) + 1 :], b[len(fm) + 1 :], round(f, 4)) for mode, a, b, f in sorted(pairs)]
    return {
        "tasks": pl.DataFrame(rates, ["fm", "task", "n_nodes", "n_gpus", "epochs", "rate"], orient="row"),
        "transfers": pl.DataFrame(factors, ["fm", "mode", "other", "task", "factor"], orient="row"),
        "curves": pl.concat(curves),
    }


def short_curves(frame: pl.DataFrame, fm: str) -> pl.DataFrame:
    """A row for each curve, with lists of its points, from a row for each point (`Curves.frame`)."""
    bare = [pl.col(c).str.strip_prefix(f"{fm}@").alias(name) for c, name in (("model", "task"), ("other", "other"))]
    points = [pl.col("progress").round(2).cast(pl.Float32), pl.col("metric").round(4).cast(pl.Float32)]
    rows = frame.select(pl.lit(fm).alias("fm"), "mode", *bare, *points)
    return rows.group_by("fm", "mode", "task", "other", maintain_order=True).agg("progress", "metric")


def write(rows: dict[str, pl.DataFrame], folder: Path) -> None:
    """Write tables, those with lists as parquet."""
    for name, frame in rows.items():
        if name == "curves":
            frame.write_parquet(folder / f"{name}.parquet", compression_level=19)
        else:
            frame.write_csv(folder / f"{name}.csv")


if __name__ == "__main__":
    write(figures(Path(sys.argv[1])), Path(__file__).parent)
