"""What generated jobs ask for: tasks that recur, GPU counts, durations."""

from __future__ import annotations

import numpy as np

from gpuschedlab.traces.arrivals import WEEK_HOURS, Slots, levels
from gpuschedlab.traces.presets import Marks

#: Batches that came before the trace's start, so that its first jobs repeat tasks too.
WARM = 2_000


def tasks(new: float, recency: float, batches: int, rng: np.random.Generator) -> np.ndarray:
    """Return each batch's task (0, 1, ... in the order of first use, with gaps): a chain of repeats of recent batches."""
    n = batches + WARM
    lag = np.floor(rng.random(n) ** (-1.0 / recency)) if recency > 0 else np.ones(n)
    own = np.arange(n)
    parent = own - np.minimum(lag, n).astype(np.int64)
    fresh = (rng.random(n) < new) | (parent < 0)
    parent[fresh] = own[fresh]
    while True:  # pointer doubling: log2(longest chain) rounds
        grand = parent[parent]
        if np.array_equal(grand, parent):
            return parent[WARM:]
        parent = grand


def score(values: np.ndarray) -> np.ndarray:
    """Standardise values (all zero where they do not vary)."""
    spread = values.std()
    return (values - values.mean()) / spread if spread > 0 else np.zeros(len(values))


def latents(figures: Marks, slots: Slots, task: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the latents x (n,) of the GPU counts and z (n,) of the durations."""
    size = score(np.log(slots.size)[slots.batch])
    surplus = score(slots.residual[slots.hour][slots.batch])
    week = (slots.hour // WEEK_HOURS % len(figures.week_x))[slots.batch]
    of_task = rng.standard_normal((2, int(task.max()) + 1 if len(task) else 0))
    of_batch = rng.standard_normal((2, len(slots.size)))
    own = rng.standard_normal(len(slots.batch))
    x = _mix(of_task[0][task][slots.batch], figures.x_task) + _mix(of_batch[0][slots.batch], 1 - figures.x_task)
    z = _mix(of_task[1][task][slots.batch], figures.z_task) + _mix(of_batch[1][slots.batch], figures.z_batch)
    z += _mix(own, 1 - figures.z_task - figures.z_batch)
    x_rest = np.sqrt(max(0.0, 1 - figures.x_size**2 - figures.x_residual**2))
    z_rest = np.sqrt(max(0.0, 1 - figures.z_size**2 - figures.z_residual**2))
    x = x_rest * x + figures.x_size * size + figures.x_residual * surplus + np.asarray(figures.week_x)[week]
    z = z_rest * z + figures.z_size * size + figures.z_residual * surplus
    return x, z


def _mix(values: np.ndarray, share: float) -> np.ndarray:
    return np.sqrt(max(0.0, share)) * values


def gpu_counts(figures: Marks, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Give the jobs with the highest x the largest GPU counts, in the calibrated shares (exact but for rounding)."""
    n = len(x)
    edges = np.floor(np.cumsum(figures.gpu_share) / np.sum(figures.gpu_share) * n + rng.random()).astype(np.int64)
    edges[-1] = n
    number = np.diff(np.concatenate([[0], np.minimum(edges, n)]))
    gpus = np.empty(n)
    gpus[np.argsort(x, kind="stable")] = np.repeat(np.asarray(figures.gpus), number)
    return gpus


def bucket_of(figures: Marks, gpus: np.ndarray) -> np.ndarray:
    """Return each job's bucket of GPU counts."""
    return np.searchsorted(np.asarray(figures.bucket_low), gpus, side="right") - 1


def durations(figures: Marks, gpus: np.ndarray, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Give the jobs of each bucket the calibrated distribution of durations (s), in the order of z.

    The levels are stratified, one in each of the n equal parts of (0, 1): a long trace has the calibrated distribution
    almost exactly.
    """
    bucket = bucket_of(figures, gpus)
    order = np.lexsort((z, bucket))
    number = np.bincount(bucket, minlength=len(figures.duration))
    found = np.empty(len(gpus))
    first = 0
    for table, n in zip(figures.duration, number):
        level = (np.arange(n) + rng.random(n)) / max(n, 1)
        found[order[first : first + n]] = quantile(table, level)
        first += n
    return found


def quantile(table: tuple[float, ...], level: np.ndarray) -> np.ndarray:
    """Read a table of durations (s) at the given probabilities: linear in the logarithm, whole seconds from 1 up."""
    value = np.exp(np.interp(level, levels(len(table)), np.log(table)))
    return np.maximum(1.0, np.rint(value))


def restrain(figures: Marks, slots: Slots, x: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower x and z in hours in which more GPUs are in demand than usual in that week, and raise it where fewer are."""
    hours = len(slots.residual)
    table, wide = _lookup(figures)
    usual = np.asarray(figures.week_z)[np.arange(hours) // WEEK_HOURS % len(figures.week_z)]
    ends = np.searchsorted(slots.hour[slots.batch], np.arange(1, hours + 1))
    released = np.zeros(hours + 1)
    demand = 0.0
    z = z.copy(); x = x.copy()
    first = 0
    for h in range(hours):
        last = ends[h]
        demand -= released[h]
        own = slice(first, last)
        pull = 0.0
        for _ in range(3):
            gpus = wide[_index(x[own] + figures.restraint_x * pull)]
            held = np.minimum(table[bucket_of(figures, gpus), _index(z[own] + figures.restraint * pull)], hours - h)
            added = gpus @ np.minimum(held, 1.0)
            new = -np.log(max(demand + added, 0.05 * usual[h]) / usual[h])
            pull = min(max(0.5*(pull+new), -3.0), 3.0)
        z[own] += figures.restraint * pull
        x[own] += figures.restraint_x * pull
        gpus = wide[_index(x[own])]
        whole = np.floor(table[bucket_of(figures, gpus), _index(z[own])] + 0.5).astype(np.int64)
        stay = whole > 0
        demand += gpus[stay].sum()
        np.add.at(released, np.minimum(h + whole[stay], hours), gpus[stay])
        first = last
    return x, z


def _lookup(figures: Marks) -> np.ndarray:
    """Return durations (h) by bucket and by z from -5 to 5 in steps of 0.02."""
    from scipy.special import ndtr

    at = ndtr(np.linspace(-5, 5, 501))
    cum = np.cumsum(figures.gpu_share); 
    wide = np.asarray(figures.gpus)[np.minimum(np.searchsorted(cum/cum[-1], at), len(cum) - 1)]
    return np.stack([quantile(row, at) for row in figures.duration]) / 3600.0, wide


def _index(z):
    return np.clip(np.rint((z + 5) * 50), 0, 500).astype(np.int64)
