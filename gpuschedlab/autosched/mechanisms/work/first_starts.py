"""Cost of every start, from first attempts: none completes before it is over, and short jobs pile up behind it."""

import itertools
from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.autosched.mechanisms.work.pace import lengths

SCALES = np.geomspace(3.0, 30_000.0, 14)
SHAPES = (0.4, 0.6, 0.8, 1.0, 1.3, 1.7)
"""Of the run times of jobs: seconds and powers of Burr's law, whose third parameter is the best one."""
PLACES = np.concatenate([[0.0], 1 - np.geomspace(1.0, 1e-4, 40)[1:], [1 - 1e-6]])
"""Costs that are tried, as parts of the earliest completion."""
LEAST = 30.0
"""Earliest completion (s) below which starts are taken to cost nothing that matters."""
SHORTEST = 1.0
SHORT = 60.0
"""Work (s) that the shortest job is taken to have, and that it may have: the interval is as wide."""
FEWEST = 20
SURE = 5.0
"""Completed first attempts; how much more likely, in logarithms, a cost must make the log than none, and than a log without short jobs."""


class FirstStart(NamedTuple):
    """Cost (s) of every start and the ends of its 95 % interval, completed first attempts, and whether the log shows it."""

    value: float
    low: float
    high: float
    rows: int
    seen: bool
    earliest: float


def first_start_of(log: pl.DataFrame) -> FirstStart:
    """Return the `FirstStart` of a log: the cost of every start (s), with its interval.

    It is not seen if the log is as likely without it, or without it and with short jobs left out.
    """
    first_attempts = log.filter(attempt=0)
    length = np.maximum(lengths(first_attempts), 1e-3)
    completed = (first_attempts["why"] == "done") & (first_attempts["status"] == "completed")
    is_completed = completed.to_numpy()
    completed_count = int(is_completed.sum())
    if completed_count < FEWEST:
        return FirstStart(0.0, 0.0, np.inf, completed_count, False, np.inf)
    earliest = float(length[is_completed].min())
    if earliest < LEAST:
        return FirstStart(0.0, 0.0, earliest, completed_count, False, earliest)
    costs = earliest * PLACES
    likely = np.array([_best(length - cost, is_completed, 0.0) for cost in costs])
    cut = _best(length, is_completed, earliest)
    without_cost = max(likely[0], cut)
    # Of each cost the probability, by the width of its cell.
    weight = np.exp(likely - likely.max()) * np.gradient(costs)
    posterior_share = np.cumsum(weight) / weight.sum()
    value, low = np.interp([0.5, 0.025], posterior_share, costs)
    value = float(max(value - SHORTEST, 0.0))
    low = float(max(low - SHORT, 0.0))
    return FirstStart(value, low, earliest, completed_count, bool(likely.max() > without_cost + SURE), earliest)


def _best(seconds: np.ndarray, is_completed: np.ndarray, least_seconds: float) -> float:
    """Highest logarithm of the likelihood of run times (n,) under Burr's law, those below `least_seconds` left out."""
    return max(
        _log_likelihood(seconds, is_completed, scale, shape, least_seconds)
        for scale, shape in itertools.product(SCALES, SHAPES)
    )


def _log_likelihood(
    seconds: np.ndarray, is_completed: np.ndarray, scale: float, shape: float, least_seconds: float
) -> float:
    """Of run times (n,) whose survival is (1 + (t / scale)^shape)^-k, k at its best; those that did not complete are censored."""
    is_counted = seconds > 0  # a first attempt that was stopped earlier says nothing
    t = np.maximum(seconds[is_counted], 1e-3)
    ended = is_completed[is_counted]
    time_ratio = (t / scale) ** shape
    alive = np.log1p(time_ratio)
    alive_at_least = np.log1p((least_seconds / scale) ** shape)
    passed = np.maximum(alive - alive_at_least, 0.0).sum()
    k = ended.sum() / max(passed, 1e-12)
    density = np.log(k * shape * time_ratio / t) - alive
    return float(density[ended].sum() - k * passed)
