"""The last figures of a calibration, found by generating: how users answer to demand, how long spells last, when a cluster is full.

None can be read off a trace without users. All decide how jobs queue: spells that follow each other closely let wide
jobs come together, so that GPUs are cleared for them once; a cluster that is never overfull queues less.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np
import polars as pl

from gpuschedlab.traces.generator import generate
from gpuschedlab.traces.likeness import MOST_OF_BATCH, NEW_SPELLS, likeness, share_of_spell
from gpuschedlab.traces.marks import bucket_of
from gpuschedlab.traces.measures import batches, demand, scores_within
from gpuschedlab.traces.stored import Calibration, Marks

#: What is tried: answers to demand, recency of spells, and quantiles of the real demand at which the cluster counts as full.
PULLS = (0.5, 0.7, 1.0, 1.4, 2.0)
RECENCIES = (0.3, 0.7, 1.4)
FULL = (0.86, 0.89, 0.92, 0.96, 1.0)
#: Seeds of the first round, which all enter, and of the second, for the best.
FIRST, SECOND, KEPT = range(901, 905), range(905, 917), 6
#: The shortest wait (s) that is told from none.
NO_WAIT = 10.0

Waits = Callable[[pl.DataFrame, float], np.ndarray]


def tune(figures: Calibration, trace: pl.DataFrame, waits: Waits) -> Calibration:
    """Choose `pull`, `recency` (with `new_spell` and `z_spell`) and `ceiling` so that jobs wait as long as the trace's.

    What is minimised is the largest deviation of the waits (absolute log ratio, of medians over seeds): simulated moments.

    Parameters
    ----------
    figures : Calibration
        What was measured so far.
    trace : polars.DataFrame
        The trace.
    waits : callable
        (trace, days) -> mean waits (s) under some policies and loads.

    Returns
    -------
    Calibration
    """
    real = np.log(waits(trace, figures.days) + NO_WAIT)
    seen = demand(*_columns(trace), (np.arange(round(figures.days * 144)) + 0.5) * 600.0)
    ceilings = np.quantile(seen, FULL) / (figures.gpu_seconds / (figures.days * 86_400))
    # Without a ceiling the largest demand is a matter of chance.
    ceilings[np.array(FULL) == 1.0] = 100.0
    marks = [_recurring(figures, trace, recency) for recency in RECENCIES]
    tried = [_with(figures, *choice) for choice in itertools.product(marks, PULLS, ceilings.tolist())]
    told = {k: [_log_waits(one, waits, seed) for seed in FIRST] for k, one in enumerate(tried)}
    best = sorted(told, key=lambda k: _miss(told[k], real))[:KEPT]
    for k in best:
        told[k] += [_log_waits(tried[k], waits, seed) for seed in SECOND]
    return tried[min(best, key=lambda k: _miss(told[k], real))]


def _recurring(figures: Calibration, trace: pl.DataFrame, recency: float) -> Marks:
    """Return the marks with as many new spells as make GPU counts recur as in the trace (by bisection)."""
    near = _likeness(figures, trace)
    inside = figures.marks.z_spell + figures.marks.z_batch
    low, high = 0, len(NEW_SPELLS)
    while high - low > 1:  # the more new spells, the less likeness
        middle = (low + high) // 2
        one = dataclasses.replace(figures.marks, recency=recency, new_spell=NEW_SPELLS[middle])
        one = dataclasses.replace(figures, marks=one)
        made = np.mean([_likeness(one, _made(one, seed))[0].sum() for seed in FIRST[:2]])
        low, high = (middle, high) if made > near[0].sum() else (low, middle)
    new = NEW_SPELLS[low]
    share = float(f"{min(share_of_spell(near[1], new, recency), MOST_OF_BATCH * inside):.4g}")
    changes = {"recency": recency, "new_spell": new, "z_spell": share, "z_batch": round(inside - share, 4)}
    return dataclasses.replace(figures.marks, **changes)


def _likeness(figures: Calibration, trace: pl.DataFrame) -> np.ndarray:
    submit, gpus, duration = _columns(trace)
    batch, size = batches(submit, gpus)
    return likeness(gpus, scores_within(duration, bucket_of(figures.marks, gpus)), batch, size)


def _with(figures: Calibration, marks: Marks, pull: float, ceiling: float) -> Calibration:
    level = dataclasses.replace(figures.demand, pull=pull, ceiling=float(f"{ceiling:.4g}"))
    return dataclasses.replace(figures, marks=marks, demand=level)


def _made(figures: Calibration, seed: int) -> pl.DataFrame:
    return generate(figures, days=figures.days, jobs=figures.jobs, start=figures.start, rng=seed)


def _columns(trace: pl.DataFrame) -> list[np.ndarray]:
    return [trace[name].to_numpy() for name in ("submit", "gpus", "duration")]


def _log_waits(figures: Calibration, waits: Waits, seed: int) -> np.ndarray:
    return np.log(waits(_made(figures, seed), figures.days) + NO_WAIT)


def _miss(told: list[np.ndarray], real: np.ndarray) -> float:
    return float(np.max(np.abs(np.median(told, axis=0) - real)))
