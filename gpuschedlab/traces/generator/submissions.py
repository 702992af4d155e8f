"""When generated jobs come: hours, batches within hours, jobs within batches."""

from dataclasses import dataclass

import numpy as np

from gpuschedlab.traces.generator.presets import Arrivals
from gpuschedlab.traces.trace_statistics import normal_scores, ranks

HOUR = 3600.0
WEEK_HOURS = 168
#: How much of what is daily in an hour's surplus is left a day later.
DAILY_KEEP = 0.4


@dataclass(frozen=True)
class Slots:
    """Places for jobs in time, before the jobs themselves are known."""

    submit: np.ndarray  # (n,) s, ascending within a batch
    batch: np.ndarray  # (n,) ascending; batches are in the order of their first jobs
    start: np.ndarray  # (b,) s, of each batch's first submission
    size: np.ndarray  # (b,) jobs of each batch
    residual: np.ndarray  # (hours,) normal score of each hour's surplus over its expectation

    @property
    def hour(self) -> np.ndarray:
        """Array (b,) of int: each batch's hour."""
        return (self.start // HOUR).astype(np.int64)


def place(figures: Arrivals, hours: int, jobs: int, first_hour: int, rng: np.random.Generator) -> Slots:
    """Return `Slots`: `jobs` jobs in `hours` hours, of which the first is `first_hour` of the week (0: Monday 00:00)."""
    # The residuals' ranks come from a sum of autoregressive processes, their values from the measured quantiles, so
    # that the over-dispersion of hourly counts is the calibrated one whatever the memory.
    latent = memory(figures.memory_hours, figures.memory_weight, hours, rng, figures.daily_weight)
    kind = busyness(expected(figures, hours, first_hour), len(figures.residual))
    hourly_jobs = _whole(read_classes(figures.residual, kind, latent, rng), jobs, rng)
    hour, size = _batches(figures, hourly_jobs, rng)
    first, since = _times(figures, hour, size, rng)
    order = np.argsort(first, kind="stable")
    first_drawn = np.concatenate([[0], np.cumsum(size)])[order]
    size = size[order]
    start = first[order]
    batch = np.repeat(np.arange(len(size)), size)
    first_job = np.cumsum(size) - size
    inside = np.arange(jobs) - first_job[batch]
    drawn = first_drawn[batch] + inside
    submit = start[batch] + since[drawn]
    return Slots(submit, batch, start, size, normal_scores(latent))


def expected(figures: Arrivals, hours: int, first_hour: int) -> np.ndarray:
    """Return an array (hours,): each hour's expected arrivals over their mean, week x weekday x hour of day."""
    elapsed = np.arange(hours)
    week_number = elapsed // WEEK_HOURS
    clock = (elapsed + first_hour) % WEEK_HOURS
    week = np.asarray(figures.week)[week_number % len(figures.week)]
    weekday = np.asarray(figures.weekday)[clock // 24]
    hour = np.asarray(figures.hour)[clock % 24]
    level = week * weekday * hour
    return level / level.mean()


def levels(points: int) -> np.ndarray:
    """Return an array of the probabilities at which a table of `points` quantiles stands: closer in both tails."""
    return 0.5 - 0.5 * np.cos(np.linspace(0, np.pi, points))


def busyness(mean: np.ndarray, classes: int) -> np.ndarray:
    """Return an array: each hour's class (0 = quietest) by rank of its expectation. Quiet hours vary more than busy ones."""
    return ranks(mean) * classes // len(mean)


def read_classes(
    tables: tuple[tuple[float, ...], ...], kind: np.ndarray, latent: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return an array: the hours of each class have the quantiles of its table, in the order of the latent (stratified levels)."""
    class_values = np.empty(len(kind))
    for k, class_table in enumerate(tables):
        hours_of_class = np.flatnonzero(kind == k)
        hour_count = len(hours_of_class)
        level = (ranks(latent[hours_of_class]) + rng.random(hour_count)) / max(hour_count, 1)
        class_values[hours_of_class] = np.interp(level, levels(len(class_table)), class_table)
    return class_values


def memory(
    hours: tuple[float, ...], weights: tuple[float, ...], steps: int, rng: np.random.Generator, daily: float = 0.0
) -> np.ndarray:
    """Return an array (steps,): a stationary series of variance 1, a value an hour."""
    # Its autocorrelation is sum(weight exp(-lag / hours)), and daily * DAILY_KEEP ** d more at lags of d whole days.
    from scipy.signal import lfilter

    without_memory = max(0.0, 1.0 - sum(weights) - daily)
    total = np.sqrt(without_memory) * rng.standard_normal(steps)
    for scale, weight in zip(hours, weights):
        keep = np.exp(-1.0 / scale)
        start = rng.standard_normal()
        noise = np.sqrt(1 - keep**2) * rng.standard_normal(steps)
        series = lfilter([1.0], [1.0, -keep], noise, zi=[keep * start])[0]
        total += np.sqrt(weight) * series
    # Ten days before the start suffice: 0.4 ** 10 is 1e-4.
    noise = np.sqrt(1 - DAILY_KEEP**2) * rng.standard_normal(steps + 240)
    daily_series = lfilter([1.0], [1.0, *[0.0] * 23, -DAILY_KEEP], noise)[240:]
    return total + np.sqrt(daily) * daily_series


def _whole(level: np.ndarray, total: int, rng: np.random.Generator) -> np.ndarray:
    """Return an array of levels rounded to whole numbers that sum to `total` (systematic sampling: unbiased, each within 1)."""
    if level.sum() <= 0:
        level = np.ones(len(level))
    edges = np.cumsum(level) * (total / level.sum())
    edges[-1] = total
    whole_edges = np.minimum(np.floor(edges + rng.random()), total)
    return np.diff(whole_edges.astype(np.int64), prepend=0)


def _batches(figures: Arrivals, counts: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of arrays: hour and size of batches, of one job each, and the rest of an hour's jobs by lognormal weights."""
    wanted = figures.batch_scale * np.maximum(counts, 1.0) ** figures.batch_power
    batches_of_hour = np.floor(wanted + rng.random(len(counts))).astype(np.int64)
    batches_of_hour = np.minimum(np.maximum(batches_of_hour, 1), counts)
    hour = np.repeat(np.arange(len(counts)), batches_of_hour)
    weights = np.exp(figures.batch_spread * rng.standard_normal(len(hour)))
    weight_up_to = np.concatenate([[0.0], np.cumsum(weights)])
    ends = np.cumsum(batches_of_hour)
    starts = ends - batches_of_hour
    weight_of_hour = weight_up_to[ends] - weight_up_to[starts]
    before = weight_up_to[starts][hour]
    spare = (counts - batches_of_hour)[hour]
    # Cumulated shares rounded with one random offset an hour: sizes add up to the hour's count exactly.
    share = (weight_up_to[1:] - before) / weight_of_hour[hour]
    offset = rng.random(len(counts))[hour]
    upper = np.floor(share * spare * (1 - 1e-12) + offset)
    has_batches = batches_of_hour > 0
    last = ends[has_batches] - 1
    upper[last] = spare[last]
    lower = np.concatenate([[0.0], upper[:-1]])
    lower[starts[has_batches]] = 0.0
    return hour, 1 + (upper - lower).astype(np.int64)


def _times(
    figures: Arrivals, hour: np.ndarray, size: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of arrays: a uniform moment of its hour for each batch (b,), and the gaps after it (s) of the jobs (n,).

    Gaps are the measured ones, all in the batch's hour.
    """
    batch = np.repeat(np.arange(len(size)), size)
    gap = np.interp(rng.random(len(batch)), levels(len(figures.gap)), figures.gap)
    first = np.cumsum(size) - size
    gap[first] = 0.0
    since = np.cumsum(gap)
    since -= since[first][batch]
    length = since[first + size - 1]
    squeeze = np.minimum(1.0, 0.98 * HOUR / np.maximum(length, 1e-9))
    start = hour * HOUR + rng.random(len(size)) * (HOUR - length * squeeze)
    return start, since * squeeze[batch]
