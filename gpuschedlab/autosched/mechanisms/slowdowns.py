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
    """Return `Speeds` whose slowdown by placement is a power of the believed one; speeds of GPU types stay."""
    rate = speeds.rate.copy()
    for model in np.flatnonzero(speeds.relative):
        of_model = slice(speeds.first[model], speeds.first[model + 1])
        code = speeds.code[of_model]
        row = speeds.row[of_model]
        base_code = config_codes(code >> 40, ANY, ANY)  # of the GPU type alone
        base = np.searchsorted(code, base_code)
        nearest = code[np.minimum(base, len(code) - 1)]
        has_base = (code >= 0) & (nearest == base_code)
        base_rate = speeds.rate[row[base[has_base]]]
        slowdown = speeds.rate[row[has_base]] / base_rate
        rate[row[has_base]] = base_rate * slowdown**power
    return replace(speeds, rate=rate)


def slowdowns(log: pl.DataFrame, speeds: Speeds | None) -> np.ndarray:
    """Return an array (n,): log of the believed speed of each attempt's placement, against the same GPUs on the fewest nodes."""
    logarithm = np.zeros(log.height)
    if speeds is None:
        return logarithm
    model = speeds.model_codes(log["model"])
    nodes = log["nodes"].to_numpy()
    gpus = log["gpus"].to_numpy()
    placed_attempts = np.flatnonzero((model >= 0) & (gpus >= 1))
    placements = np.column_stack([nodes, gpus])[placed_attempts].astype(int)
    cells, cell_of_attempt, *_ = distinct_rows(placements)
    if not len(placed_attempts):
        return logarithm
    zero = np.zeros(len(cells), int)
    progress = np.zeros(len(speeds.models))
    models = np.arange(len(speeds.models))
    rates = speeds.rates(models, progress, zero, *cells.T)
    anywhere = np.array([ANY])
    fewest_nodes_rates = speeds.rates(models, progress, zero[:1], anywhere, anywhere)
    logarithm[placed_attempts] = np.log(rates / fewest_nodes_rates)[model[placed_attempts], cell_of_attempt]
    is_relative = speeds.relative[np.maximum(model, 0)]
    return np.where(np.isfinite(logarithm) & is_relative, logarithm, 0.0)


def power_of(log: pl.DataFrame, slow: np.ndarray, pace: Pace, load: np.ndarray) -> tuple[float, float, float, int]:
    """Return a tuple: power of the slowdown, both ends of its 95 % interval, and number of rows behind it.

    It is (1, 0, inf, 0) if no job was spread.

    At the true power the work that the log implies does not depend on the first placement, with model, size, load and task
    held fixed.
    """
    return power_range(residuals_of(log, load), slow, pace, POWERS)
