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
    """Return the measured demands of jobs as `Marks`; `surplus` (hours,) is the normal score of each hour's jobs over expectation."""
    low = _buckets(gpus)
    bucket = np.searchsorted(low, gpus, side="right") - 1
    gpu_counts, jobs_of_count = np.unique(gpus, return_counts=True)
    hour = np.minimum((submit // HOUR).astype(np.int64), len(surplus) - 1)
    cause = np.stack([score(np.log(size)[batch]), score(surplus[hour])], axis=1)
    x, shrink = _middle_scores(gpus)
    z = scores_within(duration, bucket)
    x_slopes, week_x = _explain(x, shrink, cause, hour // WEEK_HOURS)
    z_slopes, week_z = _explain(z, 1.0, cause, hour // WEEK_HOURS)
    z = z - week_z[hour // WEEK_HOURS]
    many = size > 1
    products = np.bincount(batch, z) ** 2 - np.bincount(batch, z**2)
    mean_product = products[many] / (size - 1)[many]
    covariance = mean_product.sum() / max(size[many].sum(), 1)
    inside = float(np.clip(covariance / np.mean(z**2), 0.0, 0.95))
    near = batch_correlations(gpus, z, batch, size)
    new = recurrence(near[0], RECENCY)
    same = same_spell(new, RECENCY)  # the correlation is the spell's share of z, times the chance of the same spell
    share_of_spell = np.clip(near[1] @ same / (same @ same), 0.0, 1.0)
    spell_share = min(float(share_of_spell), MOST_OF_BATCH * inside)
    x_size, x_residual, z_size, z_residual = rounded([*x_slopes, *z_slopes])
    x_spell, z_spell, z_batch = rounded([X_SPELL, spell_share, inside - spell_share])
    tables = tuple(_table(duration[bucket == k]) for k in range(len(low)))
    return Marks(
        gpus=tuple(gpu_counts.tolist()),
        gpu_share=rounded(jobs_of_count / len(gpus), 7),
        bucket_low=tuple(low.tolist()),
        duration=tables,
        x_size=x_size,
        x_residual=x_residual,
        z_size=z_size,
        z_residual=z_residual,
        x_spell=x_spell,
        z_spell=z_spell,
        z_batch=z_batch,
        new_spell=new,
        recency=RECENCY,
        week_x=rounded(week_x),
        week_z=rounded(week_z),
    )


def _buckets(gpus: np.ndarray) -> np.ndarray:
    """Return an array of the lower ends of the buckets with enough jobs; others join the one below."""
    bucket_place = np.searchsorted(BUCKETS, gpus, side="right") - 1
    jobs_of_bucket = np.bincount(bucket_place, minlength=len(BUCKETS))
    filled = [low for low, jobs in zip(BUCKETS, jobs_of_bucket) if jobs >= LEAST]
    return np.array([0.0, *filled[1:]])


def _table(duration: np.ndarray) -> tuple[float, ...]:
    points = int(np.clip(len(duration) // 3, 3, POINTS))
    quantiles = np.quantile(np.maximum(duration, 1.0), levels(points))
    return rounded(quantiles, 5)


def _middle_scores(values: np.ndarray) -> tuple[np.ndarray, float]:
    """Return a tuple: array E[latent | value] for values that are steps of a standard normal latent, and the variance of that."""
    from scipy.special import ndtri

    value_place, jobs_of_value = np.unique(values, return_inverse=True, return_counts=True)[1:]
    below = np.concatenate([[0], np.cumsum(jobs_of_value)])
    edge = ndtri(below / len(values))
    density = np.exp(-0.5 * edge**2) / np.sqrt(2 * np.pi)
    middle = -np.diff(density) / (jobs_of_value / len(values))
    scores = middle[value_place]
    variance = float(np.mean(scores**2))
    return scores, max(variance, 1e-9)


def _explain(y: np.ndarray, shrink: float, cause: np.ndarray, week: np.ndarray):
    """Regress a latent on causes, then on weeks; return two arrays: slopes (2,) and means of the weeks."""
    # Scores that are means given a step vary less than the latent (`shrink` is their variance); slopes are of the
    # latent.
    slopes = np.linalg.lstsq(cause, y, rcond=None)[0] / shrink
    unexplained = y - shrink * (cause @ slopes)
    jobs = np.maximum(np.bincount(week), 1)
    means = np.bincount(week, unexplained) / jobs / shrink
    return np.clip(slopes, -0.9, 0.9), means


def batch_correlations(gpus: np.ndarray, z: np.ndarray, batch: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return an array (2, lags) of correlations of batches LAGS apart: of the logarithm of GPU counts, and of the means of z."""
    first_jobs = np.unique(batch, return_index=True)[1]
    log_gpus = np.log2(gpus[first_jobs])
    deviation = log_gpus - log_gpus.mean()
    mean_z = np.bincount(batch, z) / size
    variance = np.mean(z**2)
    of_gpus = [_near(deviation, lag) for lag in LAGS]
    of_z = [_near(mean_z, lag, variance) for lag in LAGS]
    return np.column_stack([of_gpus, of_z]).T


def _near(values: np.ndarray, lag: int, variance: float | None = None) -> float:
    if lag >= len(values) // 2:
        return 0.0
    variance = np.mean(values**2) if variance is None else variance
    covariance = np.mean(values[lag:] * values[:-lag])
    return float(covariance / max(variance, 1e-9))


def recurrence(near: np.ndarray, recency: float) -> float:
    """Return the share of batches with a new spell, a float. For it P(same spell | lag) comes next to the correlation of GPU counts."""

    def squared_error(new: float) -> float:
        error = near - X_SPELL * same_spell(new, recency)
        return float(np.sum(error**2))

    return min(NEW_SPELLS, key=squared_error)


@cache
def same_spell(new: float, recency: float) -> np.ndarray:
    """Return an array of P(same spell) of batches LAGS apart."""
    spell = spells(new, recency, 40_000, np.random.default_rng(0))
    chances = [np.mean(spell[lag:] == spell[:-lag]) for lag in LAGS]
    return np.array(chances)
