"""When generated jobs come: hours, batches within hours, jobs within batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter
from scipy.special import ndtri

from gpuschedlab.traces.presets import Arrivals

HOUR = 3600.0
WEEK_HOURS = 168


@dataclass(frozen=True)
class Slots:
    """Places for jobs in time, before it is known what the jobs are.

    Parameters
    ----------
    submit : (n,) float
        Submission times (s), ascending within a batch, batches in the order of their first jobs.
    batch : (n,) int
        Which batch, ascending.
    hour : (b,) int
        Each batch's hour.
    size : (b,) int
        Each batch's jobs.
    residual : (hours,) float
        Normal score of each hour's surplus over its expectation.
    """

    submit: np.ndarray
    batch: np.ndarray
    hour: np.ndarray
    size: np.ndarray
    residual: np.ndarray


def place(figures: Arrivals, hours: int, jobs: int, first_hour: int, rng: np.random.Generator) -> Slots:
    """Place `jobs` jobs in `hours` hours.

    The residuals' ranks come from a sum of autoregressive processes, their values from the measured quantiles, so
    that the over-dispersion of hourly counts is the calibrated one whatever the memory.

    Parameters
    ----------
    figures : Arrivals
        What to follow.
    hours, jobs : int
        How many, at least 1.
    first_hour : int
        Hour of the week (0 = Monday 00:00) of the first hour.
    rng : numpy.random.Generator
        Source of randomness.
    """
    latent = memory(figures.memory_hours, figures.memory_weight, hours, rng)
    mean = expected(figures, hours, first_hour)
    order = np.argsort(np.argsort(latent, kind="stable"), kind="stable")
    counts = _whole(_ratios(figures, mean, latent, rng), jobs, rng)
    hour, size = _batches(figures, counts, rng)
    batch = np.repeat(np.arange(len(size)), size)
    submit = _times(figures, hour, size, batch, rng)
    return Slots(submit, batch, hour, size, ndtri((order + 0.5) / hours))


def expected(figures: Arrivals, hours: int, first_hour: int) -> np.ndarray:
    """Return the expected arrivals of each hour, up to a factor: week x weekday x hour of day (mean 1)."""
    at = np.arange(hours)
    week = np.asarray(figures.week)[(at // WEEK_HOURS) % len(figures.week)]
    clock = (at + first_hour) % WEEK_HOURS
    level = week * np.asarray(figures.weekday)[clock // 24] * np.asarray(figures.hour)[clock % 24]
    return level / level.mean()


def busyness(mean: np.ndarray, classes: int) -> np.ndarray:
    """Return each hour's class (0 = quietest) by rank of its expectation: quiet hours vary more than busy ones."""
    order = np.argsort(np.argsort(mean, kind="stable"), kind="stable")
    return order * classes // len(mean)


def _ratios(figures: Arrivals, mean: np.ndarray, latent: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Give each class of hours its quantiles of (jobs / expectation), in the order of the latent."""
    kind = busyness(mean, len(figures.residual))
    ratio = np.empty(len(mean))
    for k, table in enumerate(figures.residual):
        own = np.flatnonzero(kind == k)
        level = (np.argsort(np.argsort(latent[own], kind="stable")) + rng.random(len(own))) / max(len(own), 1)
        ratio[own] = np.interp(level, levels(len(table)), table)
    return ratio


def memory(
    hours: tuple[float, ...], weights: tuple[float, ...], steps: int, rng: np.random.Generator
) -> np.ndarray:
    """Return a stationary series of variance 1 and autocorrelation sum(weight exp(-lag / hours)), one value an hour."""
    total = np.sqrt(max(0.0, 1.0 - sum(weights))) * rng.standard_normal(steps)
    for scale, weight in zip(hours, weights):
        keep = np.exp(-1.0 / scale)
        start = rng.standard_normal()
        noise = np.sqrt(1 - keep**2) * rng.standard_normal(steps)
        total += np.sqrt(weight) * lfilter([1.0], [1.0, -keep], noise, zi=[keep * start])[0]
    return total


def _whole(level: np.ndarray, total: int, rng: np.random.Generator) -> np.ndarray:
    """Round a level in each hour to whole numbers that sum to `total` (systematic sampling: unbiased, each within 1)."""
    edges = np.concatenate([[0.0], np.cumsum(level)]) * (total / level.sum())
    edges[-1] = total
    return np.diff(np.floor(edges + rng.random()).astype(np.int64))


def levels(points: int) -> np.ndarray:
    """Return the probabilities at which a table of `points` quantiles stands: closer in both tails.

    Examples
    --------
    >>> levels(5).round(3)
    array([0.   , 0.146, 0.5  , 0.854, 1.   ])
    """
    return 0.5 - 0.5 * np.cos(np.linspace(0, np.pi, points))


def _batches(figures: Arrivals, counts: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Divide each hour's jobs among its batches: one job each, and the rest by lognormal weights."""
    wanted = figures.batch_scale * np.maximum(counts, 1.0) ** figures.batch_power
    number = np.clip(np.floor(wanted + rng.random(len(counts))).astype(np.int64), 1, None)
    number = np.minimum(number, counts)
    hour = np.repeat(np.arange(len(counts)), number)
    weight = np.exp(figures.batch_spread * rng.standard_normal(len(hour)))
    ends = np.cumsum(number)
    shares = np.cumsum(weight)
    before = np.concatenate([[0.0], shares])[ends - number]
    whole = (np.concatenate([[0.0], shares])[ends] - before)[hour]
    spare = (counts - number)[hour]
    # Cumulated shares rounded with one random offset an hour: sizes add up to the hour's count exactly.
    offset = rng.random(len(counts))[hour]
    upper = np.floor((shares - before[hour]) / whole * spare * (1 - 1e-12) + offset)
    last = np.zeros(len(hour), dtype=bool)
    last[ends[number > 0] - 1] = True
    upper[last] = spare[last]
    lower = np.concatenate([[0.0], upper[:-1]])
    lower[(ends - number)[number > 0]] = 0.0
    return hour, 1 + (upper - lower).astype(np.int64)


def _times(
    figures: Arrivals, hour: np.ndarray, size: np.ndarray, batch: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Give batches a uniform moment of their hour, and jobs of a batch the measured gaps; nothing leaves its hour."""
    table = np.asarray(figures.gap)
    gap = np.interp(rng.random(len(batch)), np.linspace(0, 1, len(table)), table)
    first = np.cumsum(size) - size
    gap[first] = 0.0
    since = np.cumsum(gap)
    since -= since[first][batch]
    length = since[first + size - 1]
    squeeze = np.minimum(1.0, 0.98 * HOUR / np.maximum(length, 1e-9))
    start = rng.random(len(size)) * (HOUR - length * squeeze)
    return hour[batch] * HOUR + start[batch] + since * squeeze[batch]
