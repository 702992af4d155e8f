"""The last figures of a calibration, found by generating: how users answer to demand, how tasks recur, when a cluster is full.

None can be read off a trace without users. All decide how jobs queue: tasks that follow each other closely let wide
jobs come together, so that GPUs are cleared for them once; a cluster that is never overfull queues less.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.traces.arrivals import HOUR
from gpuschedlab.traces.generator import generate
from gpuschedlab.traces.likeness import MOST_OF_BATCH, NEW_TASKS, likeness, share_of_task
from gpuschedlab.traces.marks import bucket_of
from gpuschedlab.traces.measures import batches, demand, scores_within
from gpuschedlab.traces.stored import Calibration

#: Loads at which the queues of generated and real jobs are compared.
LOADS = (0.7, 0.9)
#: What is tried: answers to demand,
PULLS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)
#: recency of tasks, and quantiles of the real demand at which the cluster counts as full.
RECENCIES = (0.7, 1.0, 1.4)
FULL = (0.84, 0.87, 0.9, 0.93, 0.96, 0.99, 1.0)
#: Seeds of the first round, which all enter, and of the second, for the best; none of them is 0.
FIRST, SECOND, KEPT = range(901, 906), range(906, 916), 4
#: The shortest wait (s) that is told from none.
NO_WAIT = 10.0


def tune(figures: Calibration, submit: np.ndarray, gpus: np.ndarray, duration: np.ndarray) -> Calibration:
    """Choose what decides how jobs queue.

    First `pull`, so that demand deviates from its weekly level as much as in the trace. Then `recency` (with `new_task`
    and `z_task`) and `ceiling`, so that jobs wait as long as those of the trace. Waits are those of strict first come, first served on as many GPUs as give the LOADS; what is minimised is the
    larger of the two deviations (absolute log ratio of the medians over seeds). This is simulated moments.

    Parameters
    ----------
    figures : Calibration
        What was measured so far.
    submit, gpus, duration : (n,) float
        The trace's jobs: s (ascending), GPUs, s.

    Returns
    -------
    Calibration
    """
    figures = _pulled(figures, submit, gpus, duration)
    real = waits(submit, gpus, duration, figures.days)
    seen = demand(submit, gpus, duration, (np.arange(round(figures.days * 144)) + 0.5) * 600.0)
    ceilings = np.quantile(seen, FULL) / (figures.gpu_seconds / (figures.days * 24 * HOUR))
    marks = _recurring(figures, submit, gpus, duration)
    tried = [_with(figures, one, float(c)) for one in marks for c in ceilings]
    told = {k: [_log_waits(one, seed) for seed in FIRST] for k, one in enumerate(tried)}
    best = sorted(told, key=lambda k: _miss(told[k], real))[:KEPT]
    for k in best:
        told[k] += [_log_waits(tried[k], seed) for seed in SECOND]
    return tried[min(best, key=lambda k: _miss(told[k], real))]


def _pulled(figures: Calibration, submit, gpus, duration) -> Calibration:
    """Return the figures with the pull for which demand is as restless as in the trace (no ceiling)."""
    target = restlessness(submit, gpus, duration, figures.days)
    figures = _with(figures, figures.marks, 1e9)
    found = []
    for pull in PULLS:
        one = dataclasses.replace(figures, demand=dataclasses.replace(figures.demand, pull=pull))
        found.append(np.median([restlessness(*_columns(one, seed), figures.days) for seed in FIRST]))
    # More pull is less restlessness, but for chance.
    falling = np.minimum.accumulate(found)[::-1]
    pull = float(np.exp(np.interp(target, falling, np.log(PULLS)[::-1])))
    return dataclasses.replace(figures, demand=dataclasses.replace(figures.demand, pull=float(f"{pull:.3g}")))


def restlessness(submit: np.ndarray, gpus: np.ndarray, duration: np.ndarray, days: float) -> float:
    """Return the standard deviation of demand around its means of weeks, over its mean."""
    at = (np.arange(round(days * 144)) + 0.5) * 600.0
    seen = demand(submit, gpus, duration, at)
    week = (at // (7 * 24 * HOUR)).astype(np.int64)
    rest = seen - (np.bincount(week, seen) / np.bincount(week))[week]
    return float(rest.std() / seen.mean())


def waits(submit: np.ndarray, gpus: np.ndarray, duration: np.ndarray, days: float) -> np.ndarray:
    """Return the mean wait (s) of first come, first served at each of LOADS, (2,) float."""
    mean = gpus @ duration / (days * 24 * HOUR)
    sizes = [max(round(mean / load), gpus.max()) for load in LOADS]
    return np.array([fifo_wait(submit, gpus, duration, float(size)) for size in sizes])


def _recurring(figures: Calibration, submit, gpus, duration) -> list:
    """Return the marks for each of RECENCIES, with as many new tasks as make GPU counts recur as in the trace."""
    near, inside = _likeness(figures, submit, gpus, duration), figures.marks.z_task + figures.marks.z_batch
    found = []
    for recency in RECENCIES:
        low, high = 0, len(NEW_TASKS)
        while high - low > 1:  # the more new tasks, the less likeness
            middle = (low + high) // 2
            one = dataclasses.replace(figures.marks, recency=recency, new_task=NEW_TASKS[middle])
            one = dataclasses.replace(figures, marks=one)
            made = np.mean([_likeness(one, *_columns(one, seed))[0].sum() for seed in FIRST[:2]])
            low, high = (middle, high) if made > near[0].sum() else (low, middle)
        new = NEW_TASKS[low]
        share = float(f"{min(share_of_task(near[1], new, recency), MOST_OF_BATCH * inside):.4g}")
        changes = {"recency": recency, "new_task": new, "z_task": share, "z_batch": round(inside - share, 4)}
        found.append(dataclasses.replace(figures.marks, **changes))
    return found


def _likeness(figures: Calibration, submit, gpus, duration) -> np.ndarray:
    batch, size = batches(submit, gpus)
    return likeness(gpus, scores_within(duration, bucket_of(figures.marks, gpus)), batch, size)


def _with(figures: Calibration, marks, ceiling: float) -> Calibration:
    ceiling = float(f"{ceiling:.4g}")
    return dataclasses.replace(figures, marks=marks, demand=dataclasses.replace(figures.demand, ceiling=ceiling))


def _log_waits(figures: Calibration, seed: int) -> np.ndarray:
    return np.log(waits(*_columns(figures, seed), figures.days) + NO_WAIT)


def _columns(figures: Calibration, seed: int) -> list[np.ndarray]:
    made = generate(figures, days=figures.days, jobs=figures.jobs, start=figures.start, rng=seed)
    return [made[name].to_numpy() for name in ("submit", "gpus", "duration")]


def _miss(told: list[np.ndarray], real: np.ndarray) -> float:
    return float(np.max(np.abs(np.median(told, axis=0) - np.log(real + NO_WAIT))))


@njit
def fifo_wait(submit, gpus, duration, capacity):
    """Return the mean wait (s) of jobs that start in the order of their coming, each with all its GPUs.

    Kiefer and Wolfowitz's recursion for jobs of several servers: the GPUs are kept as a heap of (end, GPUs).
    """
    n = len(submit)
    ends, held = np.empty(n), np.empty(n)
    count, free, now, total = 0, capacity, 0.0, 0.0
    for i in range(n):
        now = max(now, submit[i])
        while count > 0 and (ends[0] <= now or free < gpus[i] - 1e-9):
            now = max(now, ends[0])
            free += held[0]
            count -= 1
            end, wide, j = ends[count], held[count], 0
            while 2 * j + 1 < count:
                child = 2 * j + 1
                if child + 1 < count and ends[child + 1] < ends[child]:
                    child += 1
                if ends[child] >= end:
                    break
                ends[j], held[j] = ends[child], held[child]
                j = child
            ends[j], held[j] = end, wide
        total += now - submit[i]
        free -= gpus[i]
        end, j = now + duration[i], count
        count += 1
        while j > 0 and ends[(j - 1) // 2] > end:
            ends[j], held[j] = ends[(j - 1) // 2], held[(j - 1) // 2]
            j = (j - 1) // 2
        ends[j], held[j] = end, gpus[i]
    return total / n
