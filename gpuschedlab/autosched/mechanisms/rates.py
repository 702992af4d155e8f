"""Failures of nodes, their repair, and the error of predictions, with intervals."""

import numpy as np
import polars as pl
from scipy.stats import chi2


def failures(log: pl.DataFrame, node_gpus: float) -> tuple[float, float, float, int, float]:
    """Failures of a busy node (1/s), ends of the exact 95 % interval (Poisson), their count, and busy node-seconds: full nodes."""
    until = log["submit"].max()
    inside = log.filter(pl.col("start") < until)
    busy = float(((inside["end"].clip(upper_bound=until) - inside["start"]) * inside["gpus"]).sum()) / node_gpus
    count = inside.filter((pl.col("why") == "node") & (pl.col("end") < until))["end"].n_unique()
    ends = (chi2.ppf(0.025, 2 * count) / 2 if count else 0.0), chi2.ppf(0.975, 2 * count + 2) / 2
    rates = (float(x) / max(busy, 1e-9) for x in (count, *ends))
    return *rates, count, busy


def repairs(log: pl.DataFrame) -> tuple[float, float, float, int]:
    """Mean seconds to repair a node, ends of the 95 % interval (exponential), and their count.

    A repair is over when a job that waits for one node takes it; other starts come later than it, and tell nothing.
    """
    ready = pl.coalesce(pl.col("end").shift(1).over("job"), "submit")
    rows = log.select("start", "end", "why", "at", waited=(pl.col("start") - ready > 1.0) & (pl.col("nodes") == 1))
    rows = rows.explode("at").drop_nulls("at")
    down = rows.filter(why="node").group_by("at", start="end", maintain_order=True).agg(jobs=pl.len())
    starts = rows.select("start", "at", "waited", next="start").sort("at", "start")
    found = down.with_columns(begin="start").sort("at", "start")
    found = found.join_asof(starts, on="start", by="at", strategy="forward", check_sortedness=False)
    found = found.with_columns(gap=pl.col("next") - pl.col("begin")).drop_nulls("gap")
    # Of each failure the node that all jobs held.
    found = found.sort("begin", "jobs", "gap").group_by("begin", maintain_order=True).last()
    gaps = found.filter("waited")["gap"].to_numpy()
    mean = float(gaps.mean()) if len(gaps) else 0.0
    n = 2 * len(gaps)
    low, high = (n * mean / chi2.ppf((0.975, 0.025), n)).tolist() if n else (0.0, np.inf)
    return mean, low, high, len(gaps)


def prediction_error(predicted: np.ndarray, work: np.ndarray) -> tuple[float, float, float]:
    """Deviation of the log-normal factor between predictions (n,) and work (n,), and its 95 % interval, as `Noisy.error`."""
    n = len(work)
    variance = np.log(predicted / work).var(ddof=1)
    ends = [variance, *(variance * (n - 1) / chi2.ppf((0.975, 0.025), n - 1))]
    return tuple(float(np.sqrt(np.expm1(v))) for v in ends)
