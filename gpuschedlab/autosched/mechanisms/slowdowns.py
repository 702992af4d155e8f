"""What is lost by spreading a job over nodes: a power of the believed slowdown, from a log of attempts."""

from dataclasses import replace

import numpy as np
import polars as pl

from gpuschedlab.cluster.distinct_rows import distinct_rows
from gpuschedlab.speeds import Speeds
from gpuschedlab.speeds.codes import ANY, config_codes

POWERS = np.geomspace(0.05, 8.0, 100)
CRITICAL = 1.96
CLIP = 3.0
OFTEN = 3
"""Test statistic at the ends of an interval; deviations at which a row is cut; repeats of a task beyond which no more is gained."""
FACTOR = 6.0
"""Ends of an interval that are further apart than this say nothing."""


def powered(speeds: Speeds, power: float) -> Speeds:
    """Relative speeds whose slowdown by placement is a power of what it was; speeds of GPU types stay."""
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


def work_of(log: pl.DataFrame, slow: np.ndarray, delay, power: float) -> np.ndarray:
    """Seconds of work of each job (J,): what it held less delays, at the speed of its placement; after a failure it begins again."""
    held = (log["end"] - log["start"]).to_numpy() - np.where(log["attempt"].to_numpy() == 0, 0.0, delay)
    own = np.where((log["why"] == "node").to_numpy(), 0.0, np.maximum(held, 1.0) * np.exp(power * slow))
    return np.maximum(np.bincount(log["job"].to_numpy(), own), 1.0)


def power_of(log: pl.DataFrame, slow: np.ndarray, delay, load: np.ndarray) -> tuple[float, float, float, int]:
    """Power of the slowdown, ends of its 95 % interval, and rows behind it; (1, 0, inf, 0) where no job was spread.

    At the true power the work that the log implies does not depend on the first placement, with model, size, load and task
    held fixed (g-estimation); the interval holds the powers that this test does not refuse.
    """
    first = log.filter(attempt=0)
    start = (log["attempt"] == 0).to_numpy()
    groups = (pl.col(names).cast(pl.String).fill_null("?") for names in (["model", "gpus"], ["user", "name", "gpus"]))
    groups = (first.select(pl.concat_str(names, separator="|")) for names in groups)
    stratum, task = (np.unique(group, return_inverse=True)[1].ravel() for group in groups)
    often = np.minimum(np.bincount(task)[task] - 1, OFTEN)
    x = load - load.mean(axis=0)

    def residual(power):
        r = _within(np.log(work_of(log, slow, delay, power)), task)
        return r - x @ np.linalg.lstsq(x, r, rcond=None)[0]

    r = residual(1.0)  # how well the work of a job is known depends on how often its task came: rows are weighed by it
    spread = np.array([r[often == k].var() if (often == k).sum() > 20 else r.var() for k in range(OFTEN + 1)])[often]
    weight = 1 / spread
    root = 1 / np.sqrt(spread)
    z = slow[start]
    z = z - (np.bincount(stratum, weight * z) / np.bincount(stratum, weight))[stratum]
    z = z - x @ np.linalg.lstsq(x * root[:, None], z * root, rcond=None)[0]
    rows = int((slow[start] < np.log(0.99)).sum())
    if rows == 0 or (weight * z**2).sum() < 1e-6:
        return 1.0, 0.0, np.inf, 0
    tests = []
    for power in POWERS:
        r = residual(power)
        r = np.clip(r - np.average(r, weights=weight), -CLIP / root, CLIP / root)
        tests.append((u := weight * z * r).sum() / np.sqrt((np.bincount(task, u) ** 2).sum()))
    inside = np.flatnonzero(np.abs(tests) < CRITICAL)
    best = int(np.argmin(np.abs(tests)))
    inside = inside if len(inside) else np.array([best])
    low = 0.0 if inside[0] == 0 else POWERS[inside[0]]
    high = np.inf if inside[-1] == len(POWERS) - 1 else POWERS[inside[-1]]
    return float(POWERS[best]), float(low), float(high), rows


def _within(y: np.ndarray, group: np.ndarray) -> np.ndarray:
    """What is left of y (n,) less the shrunken mean of the others of its group."""
    r = y - y.mean()
    n = np.bincount(group)
    total = np.bincount(group, r)
    within = ((r - (total / n)[group]) ** 2).sum() / max(1, (n - 1).sum())
    between = max(r.var() - within, 1e-9)
    others = n[group] - 1
    return r - np.where(others > 0, between * (total[group] - r) / (between * others + within), 0.0)
