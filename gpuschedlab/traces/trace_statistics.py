"""Statistics of traces: those that `calibrate` follows, `describe` shows and the benchmark compares."""

import numpy as np

#: Jobs of the same GPU count (and virtual cluster) that follow each other within this (s) are one submission batch.
BATCH_GAP = 60.0


def hourly(submit: np.ndarray, hours: int) -> np.ndarray:
    """Return a float array (hours,) of the number of jobs of each hour; later ones count in the last."""
    hour_of_job = np.minimum((submit // 3600).astype(np.int64), hours - 1)
    return np.bincount(hour_of_job, minlength=hours).astype(float)


def fano(counts: np.ndarray) -> float:
    """Return variance over mean: 1 for Poisson arrivals, more when they are over-dispersed."""
    return float(counts.var() / counts.mean()) if counts.any() else 0.0


def autocorrelation(values: np.ndarray, lag: int) -> float:
    """Return the correlation of a series with itself `lag` steps later (0 if it does not vary)."""
    if lag >= len(values):
        return 0.0
    away = values - values.mean()
    power = away @ away
    return float(away[lag:] @ away[:-lag] / power) if power > 0 else 0.0


def demand(submit: np.ndarray, gpus: np.ndarray, duration: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return an array of the GPUs in demand at the given times (s), if no job ever waited.

    Examples
    --------
    >>> demand(np.array([0.0, 5.0]), np.array([1.0, 8.0]), np.array([10.0, 2.0]), np.array([0.0, 6.0, 8.0, 10.0]))
    array([1., 9., 1., 0.])
    """
    end = submit + duration
    order = np.argsort(end, kind="stable")
    gpus_begun = np.concatenate([[0.0], np.cumsum(gpus)])[np.searchsorted(submit, at, side="right")]
    gpus_ended = np.concatenate([[0.0], np.cumsum(gpus[order])])[np.searchsorted(end[order], at, side="right")]
    return gpus_begun - gpus_ended


def batches(submit: np.ndarray, gpus: np.ndarray, vc: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of arrays: each job's submission batch, and the batches' sizes.

    Jobs of a batch have the same GPU count (and virtual cluster), each within BATCH_GAP of the last.
    """
    # Batches are numbered by their first jobs; the second array is the jobs of each.
    kind = np.unique(gpus, return_inverse=True)[1]
    if vc is not None:
        kind = kind * (len(vc) + 1) + np.unique(vc, return_inverse=True)[1]
    order = np.lexsort((submit, kind))
    new = np.ones(len(submit), dtype=bool)
    new[1:] = (np.diff(kind[order]) != 0) | (np.diff(submit[order]) > BATCH_GAP)
    batch = np.empty(len(submit), dtype=np.int64)
    batch[order] = np.cumsum(new) - 1
    first = np.unique(batch, return_index=True)[1]
    batch = ranks(first)[batch]
    return batch, np.bincount(batch)


def scores_within(values: np.ndarray, kind: np.ndarray) -> np.ndarray:
    """Return an array of normal scores within each kind. Ties fall by chance, since an order in time would be a memory."""
    scores = np.empty(len(values))
    chance = np.random.default_rng(0).random(len(values))
    for k in np.unique(kind):
        jobs_of_kind = np.flatnonzero(kind == k)
        jobs_of_kind = jobs_of_kind[np.lexsort((chance[jobs_of_kind], values[jobs_of_kind]))]
        scores[jobs_of_kind] = normal_scores(np.arange(len(jobs_of_kind)))
    return scores


def rounded(values: np.ndarray, digits: int = 4) -> tuple[float, ...]:
    """Return a tuple of the values, rounded to so many significant digits."""
    return tuple(float(f"{v:.{digits}g}") for v in np.asarray(values, dtype=float))


def normal_scores(values: np.ndarray) -> np.ndarray:
    """Return an array of the standard normal quantiles of the values' ranks (ties by position)."""
    from scipy.special import ndtri

    return ndtri((ranks(values) + 0.5) / len(values))


def ranks(values: np.ndarray) -> np.ndarray:
    """Return an array: the place of each value among all, from 0 (ties by position)."""
    rank_of_value = np.empty(len(values), dtype=np.int64)
    rank_of_value[np.argsort(values, kind="stable")] = np.arange(len(values))
    return rank_of_value
