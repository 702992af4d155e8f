"""Failures of nodes and the error of predictions, with intervals."""

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


def prediction_error(predicted: np.ndarray, work: np.ndarray) -> tuple[float, float, float]:
    """Deviation of the log-normal factor between predictions (n,) and work (n,), and its 95 % interval, as `Noisy.error`."""
    n, variance = len(work), np.log(predicted / work).var(ddof=1)
    ends = [variance, *(variance * (n - 1) / chi2.ppf((0.975, 0.025), n - 1))]
    return tuple(float(np.sqrt(np.expm1(v))) for v in ends)
