"""Correlation of neighbouring jobs: GPU counts and durations as latents, batches, spells of work."""

from functools import cache

import numpy as np

from gpuschedlab.traces.generator.attributes import score, spells
from gpuschedlab.traces.generator.presets import Marks
from gpuschedlab.traces.generator.submissions import HOUR, WEEK_HOURS, levels
from gpuschedlab.traces.trace_statistics import rounded, scores_within

#: Lower ends of the buckets of GPU counts on which durations are conditional: powers of two.
BUCKETS = (0.0, 1.0, 2.0, 3.0, 5.0, *(2.0**k + 1 for k in range(3, 13)))
#: Fewest jobs of a bucket, and most points of its table of durations.
LEAST = 8
POINTS = 129
#: Lags (in batches) at which correlation is measured. Neighbours differ by construction: one batch has one GPU count.
LAGS = (2, 5, 10, 20, 50, 100, 200, 500)
#: A spell keeps its GPU count, nearly always: the share of x that it has in common.
X_SPELL = 0.99
#: Of the correlation of durations within a batch, the most that a spell's batches have in common.
MOST_OF_BATCH = 0.8
#: What is tried for the share of batches with which a new spell begins.
NEW_SPELLS = (0.01, 0.02, 0.035, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
#: How recent the spells are that batches go on with, unless something is better (`tuning`).
RECENCY = 1.0


def figures_of_marks(submit, gpus, duration, batch, size, surplus) -> Marks:
    """Measure the demands of jobs; `surplus` (hours,) is the normal score of each hour's jobs over their expectation."""
    low = _buckets(gpus)
    bucket = np.searchsorted(low, gpus, side="right") - 1
    values, number = np.unique(gpus, return_counts=True)
    hour = np.minimum((submit // HOUR).astype(np.int64), len(surplus) - 1)
    cause = np.stack([score(np.log(size)[batch]), score(surplus[hour])], axis=1)
    x, shrink = _middle_scores(gpus)
    z = scores_within(duration, bucket)
    x_slopes, week_x = _explain(x, shrink, cause, hour // WEEK_HOURS)
    z_slopes, week_z = _explain(z, 1.0, cause, hour // WEEK_HOURS)
    z = z - week_z[hour // WEEK_HOURS]
    many = size > 1
    product = (np.bincount(batch, z) ** 2 - np.bincount(batch, z**2))[many] / (size - 1)[many]
    inside = float(np.clip(product.sum() / max(size[many].sum(), 1) / np.mean(z**2), 0.0, 0.95))
    near = batch_correlations(gpus, z, batch, size)
    new = recurrence(near[0], RECENCY)
    same = same_spell(new, RECENCY)  # the correlation is the spell's share of z, times the chance of the same spell
    z_spell = min(float(np.clip(near[1] @ same / (same @ same), 0.0, 1.0)), MOST_OF_BATCH * inside)
    return Marks(
        gpus=tuple(values.tolist()),
        gpu_share=rounded(number / len(gpus), 7),
        bucket_low=tuple(low.tolist()),
        duration=tuple(_table(duration[bucket == k]) for k in range(len(low))),
        **dict(zip(("x_size", "x_residual", "z_size", "z_residual"), rounded([*x_slopes, *z_slopes]))),
        **dict(zip(("x_spell", "z_spell", "z_batch"), rounded([X_SPELL, z_spell, inside - z_spell]))),
        new_spell=new,
        recency=RECENCY,
        week_x=rounded(week_x),
        week_z=rounded(week_z),
    )


def _buckets(gpus: np.ndarray) -> np.ndarray:
    """Return the lower ends of the buckets with enough jobs; others join the one below."""
    place = np.searchsorted(BUCKETS, gpus, side="right") - 1
    number = np.bincount(place, minlength=len(BUCKETS))
    found = [b for b, n in zip(BUCKETS, number) if n >= LEAST]
    return np.array([0.0, *found[1:]]) if found else np.array([0.0])


def _table(duration: np.ndarray) -> tuple[float, ...]:
    points = int(np.clip(len(duration) // 3, 3, POINTS))
    return rounded(np.quantile(np.maximum(duration, 1.0), levels(points)), 5)


def _middle_scores(values: np.ndarray) -> tuple[np.ndarray, float]:
    """Return E[latent | value] for values that are steps of a standard normal latent, and the variance of that."""
    from scipy.special import ndtri

    place, number = np.unique(values, return_inverse=True, return_counts=True)[1:]
    edge = ndtri(np.concatenate([[0], np.cumsum(number)]) / len(values))
    density = np.exp(-0.5 * edge**2) / np.sqrt(2 * np.pi)
    middle = -np.diff(density) / (number / len(values))
    return middle[place], max(float(np.mean(middle[place] ** 2)), 1e-9)


def _explain(y: np.ndarray, shrink: float, cause: np.ndarray, week: np.ndarray):
    """Regress a latent on causes, then on weeks: slopes (2,) and means of the weeks."""
    # Scores that are means given a step vary less than the latent (`shrink` is their variance); slopes are of the
    # latent.
    slopes = np.linalg.lstsq(cause, y, rcond=None)[0] / shrink
    rest = y - shrink * (cause @ slopes)
    means = np.bincount(week, rest) / np.maximum(np.bincount(week), 1) / shrink
    return np.clip(slopes, -0.9, 0.9), means


def batch_correlations(gpus: np.ndarray, z: np.ndarray, batch: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return the correlations (2, lags) of batches LAGS apart: of the logarithm of their GPU counts, and of the means of their z."""
    wide = np.log2(gpus[np.unique(batch, return_index=True)[1]])
    mean_z = np.bincount(batch, z) / size
    return np.array([[_near(wide - wide.mean(), k), _near(mean_z, k, np.mean(z**2))] for k in LAGS]).T


def _near(values: np.ndarray, lag: int, variance: float | None = None) -> float:
    if lag >= len(values) // 2:
        return 0.0
    variance = np.mean(values**2) if variance is None else variance
    return float(np.mean(values[lag:] * values[:-lag]) / max(variance, 1e-9))


def recurrence(near: np.ndarray, recency: float) -> float:
    """Find the share of batches with a new spell, for which P(same spell | lag) comes next to the correlation of GPU counts."""
    return min(NEW_SPELLS, key=lambda new: float(np.sum((near - X_SPELL * same_spell(new, recency)) ** 2)))


@cache
def same_spell(new: float, recency: float) -> np.ndarray:
    """Return P(same spell) of batches LAGS apart."""
    spell = spells(new, recency, 40_000, np.random.default_rng(0))
    return np.array([np.mean(spell[k:] == spell[:-k]) for k in LAGS])
