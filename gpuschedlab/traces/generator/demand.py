"""How users answer to a full cluster: the jobs that they submit depend on the GPUs in demand already."""

from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.traces.generator.attributes import Latents, bucket_of, durations, gpu_counts, quantile
from gpuschedlab.traces.generator.presets import Demand, Marks
from gpuschedlab.traces.generator.submissions import HOUR, WEEK_HOURS, Slots, busyness, memory, read_classes

#: A pull moves z so many times as far as x.
Z_OVER_X = 2.0
#: Largest shift of x.
MOST = 3.0
#: Passes: the second reads latents by the distribution that they have after the first.
PASSES = 2
#: Jobs shorter than this (s) are not held back, and make room for those that were.
SHORT = 600.0
#: Resolution (s) at which ending jobs give back their GPUs here.
TICK = 60.0

_REACH = 6.0
_STEP = 0.02


class Tables(NamedTuple):
    """Durations and GPU counts that latents stand for, on a grid of latents."""

    duration: np.ndarray
    """(buckets, cells) s, by bucket of GPU counts and cell of z."""
    gpus: np.ndarray
    """(cells,) GPUs, by cell of x."""
    bucket: np.ndarray
    """(cells,) int, bucket of those GPU counts."""


class Batches(NamedTuple):
    """Batches of jobs in the order of time."""

    start: np.ndarray
    """(b,) s, first submission of each."""
    first: np.ndarray
    """(b + 1,) int, first job of each; its jobs end at the next one's first."""
    spell: np.ndarray
    """(b,) int, spell of work of each."""


class Aim(NamedTuple):
    """Demand that users aim at, and how much they answer to it."""

    level: np.ndarray
    """(hours,) GPUs, level of demand."""
    before: np.ndarray
    """(hours + 1,) GPUs, demand of the jobs that came before the start."""
    pull: float
    """Shift of latents by one e-fold of demand over its level."""


def follow(
    figures: Marks, pull: float, level: np.ndarray, slots: Slots, spell: np.ndarray, drawn: Latents, rng
) -> tuple[np.ndarray, np.ndarray]:
    """Turn latents into a tuple of arrays, GPU counts and durations (s), with demand near its level."""
    # Batch by batch, in the order of time: with d the GPUs in demand once the batch has come and l their level, the
    # batch's z moves by 2 p, where p = -pull ln(d / l), found by bisection, and its x by the p of its spell's first
    # batch: users choose GPUs once. Then counts and durations go by rank, so that their distributions stay as
    # calibrated.
    first = np.concatenate([[0], np.cumsum(slots.size)])
    batches = Batches(slots.start, first, spell)
    tables = _tables(figures, None, None)
    before = _before(figures, len(level)) * level[0]
    aim = Aim(level, before, pull)
    for _ in range(PASSES):
        shift_x, shift_z = _shifts(batches, drawn, aim, tables)
        moved = Latents(drawn.x + shift_x[slots.batch], drawn.z + shift_z[slots.batch])
        gpus = gpu_counts(figures, moved.x, rng)
        tables = _tables(figures, moved, gpus)
    return gpus, durations(figures, gpus, moved.z, rng)


def usual(figures: Demand, mean: float, hours: int, rng: np.random.Generator) -> np.ndarray:
    """Return an array (hours,): the level of demand (GPUs) drawn for each hour, with the given mean of its weeks."""
    week_number = np.arange(hours) // WEEK_HOURS
    week = np.asarray(figures.week)[week_number % len(figures.week)]
    kind = busyness(week, len(figures.residual))
    latent = memory(figures.memory_hours, figures.memory_weight, hours, rng)
    return mean * week / week.mean() * read_classes(figures.residual, kind, latent, rng)


def _before(figures: Marks, hours: int) -> np.ndarray:
    """Return an array: how much of the demand at the start, left by jobs that came before it, is still there at each hour."""
    # In a steady state that is E[gpus (duration - t)+] / E[gpus duration]. The trace itself starts without those jobs.
    level = (np.arange(2_000) + 0.5) / 2_000
    gpus = np.asarray(figures.gpus)
    share = np.asarray(figures.gpu_share) * gpus
    bucket = bucket_of(figures, gpus)
    weight = np.bincount(bucket, share, minlength=len(figures.duration))
    duration = np.concatenate([quantile(duration_table, level) for duration_table in figures.duration])
    weight = np.repeat(weight, len(level))
    order = np.argsort(duration)
    duration = duration[order]
    weight = weight[order]
    mass = _sums_from(weight)
    work = _sums_from(weight * duration)
    instant = np.arange(hours + 1) * HOUR
    first_longer = np.searchsorted(duration, instant)
    return (work[first_longer] - instant * mass[first_longer]) / work[0]


def _sums_from(values: np.ndarray) -> np.ndarray:
    """Return an array (n + 1,): the sum of the values (n,) from each one on, and 0 at the end."""
    sums = np.cumsum(values[::-1])[::-1]
    return np.concatenate([sums, [0.0]])


def _tables(figures: Marks, moved: Latents | None, gpus: np.ndarray | None) -> Tables:
    """Return the values of latents as `Tables`: by the normal distribution, or by that of latents that are given.

    These are `moved`, of jobs with `gpus`.
    """
    from scipy.special import ndtr

    grid = np.arange(-_REACH, _REACH + _STEP / 2, _STEP)
    buckets = range(len(figures.duration))
    below_x = ndtr(grid)
    below_z = [below_x for _ in buckets]
    if moved is not None:
        bucket = bucket_of(figures, gpus)
        below_x = _share_below(moved.x, grid)
        below_z = [_share_below(moved.z[bucket == k], grid) for k in buckets]
    duration = np.stack([quantile(figures.duration[k], below_z[k]) for k in buckets])
    share = np.cumsum(figures.gpu_share)
    rank = np.searchsorted(share / share[-1], below_x)
    rank = np.minimum(rank, len(share) - 1)
    gpus_of_x = np.asarray(figures.gpus)[rank]
    return Tables(duration, gpus_of_x, bucket_of(figures, gpus_of_x))


def _share_below(values: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Return an array: the share of the values below each point of a grid; within (0, 1)."""
    values_below = np.searchsorted(np.sort(values), grid)
    return (values_below + 0.5) / (len(values) + 1)


@njit
def _cell(value):
    return int(min(max((value + 6.0) / 0.02 + 0.5, 0.0), 600.0))


@njit
def _duration(tables, cell, z):
    """Return the duration (s) of a job whose x is in a cell, by its z."""
    bucket = tables.bucket[cell]
    return tables.duration[bucket, _cell(z)]


@njit
def _added(jobs, shift_x, shift_z, tables):
    """Return the GPUs (float) that a batch of jobs adds to the demand of an hour, if its latents are shifted."""
    total = 0.0
    for j in range(len(jobs.x)):
        cell = _cell(jobs.x[j] + shift_x)
        hours = _duration(tables, cell, jobs.z[j] + shift_z) / HOUR
        total += tables.gpus[cell] * min(hours, 1.0)
    return total


@njit
def _answer(jobs, spell_shift, pull, demand, target, tables):
    """Find p of one batch, and return it (float); x moves by the shift of its spell, or by p if that is nan."""
    low = -MOST
    high = MOST
    for _ in range(9):
        p = 0.5 * (low + high)
        shift_x = spell_shift
        if np.isnan(spell_shift):
            shift_x = p
        more = _added(jobs, shift_x, Z_OVER_X * p, tables)
        excess = max(demand + more, 0.02 * target) / target
        if -pull * np.log(excess) > p:
            low = p
        else:
            high = p
    return 0.5 * (low + high)


@njit
def _shifts(batches, drawn, aim, tables):
    """Return two arrays, the shifts of x and z of each batch; demand counts every job from its submission on."""
    start = batches.start
    before = aim.before
    hours = len(aim.level)
    ticks = int(hours * HOUR / TICK) + 2
    ending = np.zeros(ticks)
    for h in range(hours):
        end = int((h + 1) * HOUR / TICK)
        ending[end] += before[h] - before[h + 1]
    of_spell = np.full(batches.spell.max() + 1, np.nan)
    shift_x = np.empty(len(start))
    shift_z = np.empty(len(start))
    demand = before[0]
    clock = 0
    for b in range(len(start)):
        tick = int(start[b] / TICK)
        while clock < tick:
            clock += 1
            demand -= ending[clock]
        hour = min(int(start[b] / HOUR), hours - 1)
        spell = batches.spell[b]
        jobs_of_batch = slice(batches.first[b], batches.first[b + 1])
        jobs = Latents(drawn.x[jobs_of_batch], drawn.z[jobs_of_batch])
        p = _answer(jobs, of_spell[spell], aim.pull, demand, aim.level[hour], tables)
        if np.isnan(of_spell[spell]):
            of_spell[spell] = p
        shift_x[b] = of_spell[spell]
        shift_z[b] = Z_OVER_X * p
        for j in range(len(jobs.x)):
            cell = _cell(jobs.x[j] + shift_x[b])
            duration = _duration(tables, cell, jobs.z[j] + shift_z[b])
            end = tick + 1 + int(duration / TICK)
            demand += tables.gpus[cell]
            if end < ticks:
                ending[end] += tables.gpus[cell]
    return shift_x, shift_z


@njit
def hold(submit, gpus, duration, ceiling):
    """Hold long jobs back while demand would exceed a ceiling; return an array (n,), the order in which jobs then come."""
    # A job that is held changes places with the first short one that comes when there is room for it, first held first
    # out; times of submission stay as they are.
    n = len(submit)
    order = np.arange(n)
    waiting = np.empty(n, np.int64)
    head = 0
    tail = 0
    ticks = int(submit[n - 1] / TICK) + 2
    ending = np.zeros(ticks)
    demand = 0.0
    clock = 0
    for i in range(n):
        tick = int(submit[i] / TICK)
        while clock < tick:
            clock += 1
            demand -= ending[clock]
        job = i
        if duration[i] > SHORT:
            if demand + gpus[i] > ceiling:
                waiting[tail] = i
                tail += 1
                continue
        elif head < tail and demand + gpus[waiting[head]] <= ceiling:
            job = waiting[head]
            head += 1
            order[i] = job
            order[job] = i
        else:
            continue
        demand += gpus[job]
        end = tick + 1 + int(duration[job] / TICK)
        if end < ticks:
            ending[end] += gpus[job]
    return order
