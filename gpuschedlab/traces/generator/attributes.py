"""Demands of generated jobs: spells of similar jobs, GPU counts, durations."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.traces.generator.presets import Marks
from gpuschedlab.traces.generator.submissions import WEEK_HOURS, Slots, levels

#: Batches that came before the trace's start, so that its first jobs belong to spells that began earlier, too.
WARM = 2_000
#: Standard deviation of z among the jobs of a batch that are not odd.
JITTER = 0.1


class Latents(NamedTuple):
    """Rank of each job among all by its GPU count (x), and by its duration among jobs of like GPU count (z)."""

    x: np.ndarray
    z: np.ndarray


def spells(new: float, recency: float, batches: int, rng: np.random.Generator) -> np.ndarray:
    """Return an array (batches,): each batch's spell of work, a `new` one or that of a recent batch.

    Chances are `new_spell` and `recency` of `Marks`.
    """
    n = batches + WARM
    batch_number = np.arange(n)
    chance = 1.0 - rng.random(n)
    distance = np.floor(chance ** (-1.0 / recency))
    lag = np.minimum(distance, n).astype(np.int64)
    begins = (rng.random(n) < new) | (lag > batch_number)
    parent = np.where(begins, batch_number, batch_number - lag)
    while True:  # pointer doubling: as many rounds as the longest chain has binary digits
        grand = parent[parent]
        if np.array_equal(grand, parent):
            return np.unique(parent[WARM:], return_inverse=True)[1]
        parent = grand


def score(values: np.ndarray) -> np.ndarray:
    """Return an array of the standardised values (all zero if they do not vary)."""
    spread = values.std() if len(values) else 0.0
    if spread > 0:
        return (values - values.mean()) / spread
    return np.zeros(len(values))


def latents(figures: Marks, slots: Slots, spell: np.ndarray, rng: np.random.Generator) -> Latents:
    """Return the `Latents` of all jobs, drawn for batches that have spells (b,)."""
    batch = slots.batch
    size = score(np.log(slots.size)[batch])
    surplus = score(slots.residual[slots.hour][batch])
    week_of_batch = slots.hour // WEEK_HOURS % len(figures.week_x)
    week = week_of_batch[batch]
    spell_count = int(spell.max()) + 1
    spell_draws = rng.standard_normal((2, spell_count))
    batch_draws = rng.standard_normal((2, len(slots.size)))
    of_spell = spell_draws[:, spell][:, batch]
    of_batch = batch_draws[:, batch]
    x = _part(of_spell[0], figures.x_spell) + _part(of_batch[0], 1 - figures.x_spell)
    inside = max(figures.z_spell + figures.z_batch, 1e-9)
    z = _part(of_spell[1], figures.z_spell / inside) + _part(of_batch[1], figures.z_batch / inside)
    # Some jobs of a batch last as long as any other job, and the rest nearly as long as each other. So it is in the real
    # traces: of two jobs of a batch that follow each other, a quarter last within some per cent of each other, half within
    # 15 % (Philly) to 70 % (PAI), others as long as any two. The correlation within a batch is the chance that neither is odd.
    odd = rng.random(len(z)) > np.sqrt(inside)
    own_latent = rng.standard_normal(len(z))
    near = np.sqrt(1 - JITTER**2) * z + JITTER * own_latent
    z = np.where(odd, own_latent, near)
    x = _part(x, 1 - figures.x_size**2 - figures.x_residual**2)
    z = _part(z, 1 - figures.z_size**2 - figures.z_residual**2)
    week_x = np.asarray(figures.week_x)[week]
    week_z = np.asarray(figures.week_z)[week]
    x += figures.x_size * size + figures.x_residual * surplus + week_x
    z += figures.z_size * size + figures.z_residual * surplus + week_z
    return Latents(x, z)


def _part(values: np.ndarray, share: float) -> np.ndarray:
    return np.sqrt(max(0.0, share)) * values


def gpu_counts(figures: Marks, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return an array of GPU counts: jobs with the highest x have the largest, in the calibrated shares (exact but for rounding)."""
    n = len(x)
    share = np.cumsum(figures.gpu_share)
    jobs_up_to = share / share[-1] * n
    edges = np.floor(jobs_up_to + rng.random()).astype(np.int64)
    edges = np.minimum(edges, n)
    edges[-1] = n
    jobs = np.diff(edges, prepend=0)
    order = np.argsort(x, kind="stable")
    gpus = np.empty(n)
    gpus[order] = np.repeat(np.asarray(figures.gpus), jobs)
    return gpus


def bucket_of(figures: Marks, gpus: np.ndarray) -> np.ndarray:
    """Return an array: each job's bucket of GPU counts."""
    return np.searchsorted(np.asarray(figures.bucket_low), gpus, side="right") - 1


def durations(figures: Marks, gpus: np.ndarray, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return an array of durations (s): the jobs of each bucket have the calibrated distribution, in the order of z."""
    # The levels are stratified, one in each of the n equal parts of (0, 1): a long trace has the calibrated
    # distribution almost exactly.
    bucket = bucket_of(figures, gpus)
    seconds = np.empty(len(gpus))
    for k, duration_table in enumerate(figures.duration):
        jobs_of_bucket = np.flatnonzero(bucket == k)
        job_count = len(jobs_of_bucket)
        level = (np.arange(job_count) + rng.random(job_count)) / max(job_count, 1)
        order = np.argsort(z[jobs_of_bucket], kind="stable")
        seconds[jobs_of_bucket[order]] = quantile(duration_table, level)
    return seconds


def quantile(table: tuple[float, ...], level: np.ndarray) -> np.ndarray:
    """Return an array: a table of durations (s) read at the given probabilities, linear in the logarithm, at least 1 s."""
    log_seconds = np.interp(level, levels(len(table)), np.log(table))
    return np.maximum(1.0, np.exp(log_seconds))


def mean_work(figures: Marks) -> float:
    """Return the mean GPU time of a job (GPU-s)."""
    share = np.asarray(figures.gpu_share) / np.sum(figures.gpu_share)
    level = (np.arange(20_000) + 0.5) / 20_000
    mean = np.array([np.mean(quantile(duration_table, level)) for duration_table in figures.duration])
    gpus = np.asarray(figures.gpus)
    duration = mean[bucket_of(figures, gpus)]
    return float(np.sum(share * gpus * duration))
