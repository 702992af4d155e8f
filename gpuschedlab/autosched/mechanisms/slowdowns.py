"""Loss by spreading a job over nodes: a power of the believed slowdown, from a log of attempts."""

from dataclasses import replace

import numpy as np
import polars as pl

from gpuschedlab.autosched.mechanisms.work.pace import Pace
from gpuschedlab.autosched.mechanisms.work.residuals import power_range, residuals_of
from gpuschedlab.cluster.distinct_rows import distinct_rows
from gpuschedlab.speeds import Speeds
from gpuschedlab.speeds.codes import ANY, config_codes

POWERS = np.geomspace(0.05, 8.0, 100)
FACTOR = 6.0
"""Ends of an interval that are further apart than this say nothing."""


def powered(speeds: Speeds, power: float) -> Speeds:
    """Relative speeds whose slowdown by placement is a power of the believed one; speeds of GPU types stay."""
    rate = speeds.rate.copy()
    for m in np.flatnonzero(speeds.relative):
        own = slice(speeds.first[m], speeds.first[m + 1])
        code = speeds.code[own]
        row = speeds.row[own]
        base = np.searchsorted(code, config_codes(code >> 40, ANY, ANY))
        there = (code >= 0) & (code[np.minimum(base, len(code) - 1)] == config_codes(code >> 40, ANY, ANY))
        whole = speeds.rate[row[base[there]]]
        rate[row[there]] = whole * (speeds.rate[row[there]] / whole) ** power
    return replace(speeds, rate=rate)


def slowdowns(log: pl.DataFrame, speeds: Speeds | None) -> np.ndarray:
    """Logarithm (n,) of the believed speed of each attempt's placement, against the same GPUs on the fewest nodes."""
    found = np.zeros(log.height)
    if speeds is None:
        return found
    model = speeds.model_codes(log["model"])
    nodes = log["nodes"].to_numpy()
    gpus = log["gpus"].to_numpy()
    known = np.flatnonzero((model >= 0) & (gpus >= 1))
    cells, which, *_ = distinct_rows(np.column_stack([nodes, gpus])[known].astype(int))
    if not len(known):
        return found
    zero = np.zeros(len(cells), int)
    progress = np.zeros(len(speeds.models))
    rates = speeds.rates(np.arange(len(speeds.models)), progress, zero, *cells.T)
    alone = speeds.rates(np.arange(len(speeds.models)), progress, zero[:1], np.array([ANY]), np.array([ANY]))
    found[known] = np.log(rates / alone)[model[known], which]
    return np.where(np.isfinite(found) & speeds.relative[np.maximum(model, 0)], found, 0.0)


def power_of(log: pl.DataFrame, slow: np.ndarray, pace: Pace, load: np.ndarray) -> tuple[float, float, float, int]:
    """Power of the slowdown, ends of its 95 % interval, and rows behind it; (1, 0, inf, 0) if no job was spread.

    At the true power the work that the log implies does not depend on the first placement, with model, size, load and task
    held fixed.
    """
    return power_range(residuals_of(log, load), slow, pace, POWERS)
