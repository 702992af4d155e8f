"""How users answer to a full cluster: what they submit depends on the GPUs in demand already."""

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


def follow(
    figures: Marks, pull: float, level: np.ndarray, slots: Slots, spell: np.ndarray, drawn: Latents, rng
) -> tuple[np.ndarray, np.ndarray]:
    """Turn latents into GPU counts and durations, with demand near its level."""
    # Batch by batch, in the order of time: with d the GPUs in demand once the batch has come and l their level, the
    # batch's z moves by 2 p, where p = -pull ln(d / l), found by bisection, and its x by the p of its spell's first
    # batch: users choose GPUs once. Then counts and durations go by rank, so that their distributions stay as
    # calibrated.
    first = np.concatenate([[0], np.cumsum(slots.size)])
    held, wide, bucket = _tables(figures, None, None)
    before = _before(figures, len(level)) * level[0]
    for _ in range(PASSES):
        of_x, of_z = _shifts(slots.start, first, spell, drawn.x, drawn.z, pull, level, held, wide, bucket, before)
        moved = Latents(drawn.x + of_x[slots.batch], drawn.z + of_z[slots.batch])
        gpus = gpu_counts(figures, moved.x, rng)
        held, wide, bucket = _tables(figures, moved, gpus)
    return gpus, durations(figures, gpus, moved.z, rng)


def usual(figures: Demand, mean: float, hours: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the level of demand (GPUs) in each hour, with the given mean of its weeks."""
    week = np.asarray(figures.week)[np.arange(hours) // WEEK_HOURS % len(figures.week)]
    kind = busyness(week, len(figures.residual))
    latent = memory(figures.memory_hours, figures.memory_weight, hours, rng)
    return mean * week / week.mean() * read_classes(figures.residual, kind, latent, rng)


def _before(figures: Marks, hours: int) -> np.ndarray:
    """Return how much of the demand at the start, left by jobs that came before it, is still there at each hour."""
    # In a steady state that is E[gpus (duration - t)+] / E[gpus duration]. The trace itself starts without those jobs.
    level = (np.arange(2_000) + 0.5) / 2_000
    share = np.asarray(figures.gpu_share) * np.asarray(figures.gpus)
    weight = np.bincount(bucket_of(figures, np.asarray(figures.gpus)), share, minlength=len(figures.duration))
    duration = np.concatenate([quantile(table, level) for table in figures.duration])
    weight = np.repeat(weight, len(level))
    order = np.argsort(duration)
    duration = duration[order]
    weight = weight[order]
    mass = np.concatenate([np.cumsum(weight[::-1])[::-1], [0.0]])
    work = np.concatenate([np.cumsum((weight * duration)[::-1])[::-1], [0.0]])
    at = np.arange(hours + 1) * HOUR
    place = np.searchsorted(duration, at)
    return (work[place] - at * mass[place]) / work[0]


def _tables(figures: Marks, moved: Latents | None, gpus: np.ndarray | None) -> tuple[np.ndarray, ...]:
    """Return, on a grid of latents, durations (s) by bucket, and GPU counts with their buckets."""
    from scipy.special import ndtr

    grid = np.arange(-_REACH, _REACH + _STEP / 2, _STEP)
    below = [ndtr(grid)] * (1 + len(figures.duration))
    if moved is not None:
        kind = bucket_of(figures, gpus)
        parts = [moved.x] + [moved.z[kind == k] for k in range(len(figures.duration))]
        below = [(np.searchsorted(np.sort(v), grid) + 0.5) / (len(v) + 1) for v in parts]
    held = np.stack([quantile(table, b) for table, b in zip(figures.duration, below[1:])])
    share = np.cumsum(figures.gpu_share)
    place = np.minimum(np.searchsorted(share / share[-1], below[0]), len(share) - 1)
    wide = np.asarray(figures.gpus)[place]
    return held, wide, bucket_of(figures, wide)


@njit
def _cell(value):
    return int(min(max((value + 6.0) / 0.02 + 0.5, 0.0), 600.0))


@njit
def _added(x, z, first, last, of_x, of_z, held, wide, bucket):
    """GPUs that a batch adds to the demand of an hour."""
    total = 0.0
    for j in range(first, last):
        i = _cell(x[j] + of_x)
        total += wide[i] * min(held[bucket[i], _cell(z[j] + of_z)] / HOUR, 1.0)
    return total


@njit
def _answer(x, z, first, last, of_x, pull, demand, target, held, wide, bucket):
    """Find p of one batch, given of_x or (where that is nan) with it."""
    low = -MOST
    high = MOST
    for _ in range(9):
        p = 0.5 * (low + high)
        more = _added(x, z, first, last, p if np.isnan(of_x) else of_x, Z_OVER_X * p, held, wide, bucket)
        if -pull * np.log(max(demand + more, 0.02 * target) / target) > p:
            low = p
        else:
            high = p
    return 0.5 * (low + high)


@njit
def _shifts(start, first, spell, x, z, pull, level, held, wide, bucket, before):
    """Shifts of x and z of each batch; demand counts every job from its submission on."""
    hours = len(level)
    ticks = int(hours * HOUR / TICK) + 2
    ending = np.zeros(ticks)
    for h in range(hours):
        ending[int((h + 1) * HOUR / TICK)] += before[h] - before[h + 1]
    chosen = np.full(spell.max() + 1, np.nan)
    of_x = np.empty(len(start))
    of_z = np.empty(len(start))
    demand = before[0]
    now = 0
    for b in range(len(start)):
        tick = int(start[b] / TICK)
        while now < tick:
            now += 1
            demand -= ending[now]
        target = level[min(int(start[b] / HOUR), hours - 1)]
        old = chosen[spell[b]]
        p = _answer(x, z, first[b], first[b + 1], old, pull, demand, target, held, wide, bucket)
        if np.isnan(old):
            chosen[spell[b]] = p
        of_x[b] = chosen[spell[b]]
        of_z[b] = Z_OVER_X * p
        for j in range(first[b], first[b + 1]):
            i = _cell(x[j] + of_x[b])
            end = tick + 1 + int(held[bucket[i], _cell(z[j] + of_z[b])] / TICK)
            demand += wide[i]
            if end < ticks:
                ending[end] += wide[i]
    return of_x, of_z


@njit
def hold(submit, gpus, duration, ceiling):
    """Hold long jobs back while demand would exceed a ceiling, and let them come when it does not."""
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
    now = 0
    for i in range(n):
        tick = int(submit[i] / TICK)
        while now < tick:
            now += 1
            demand -= ending[now]
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
