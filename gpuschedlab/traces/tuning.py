"""The last figures of a calibration, found by generating: how users answer to demand, how long spells last, when a cluster is full.

None can be read off a trace without users. All decide how jobs queue: spells that follow each other closely let wide
jobs come together, so that GPUs are cleared for them once; a cluster that is never overfull queues less.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import polars as pl

from gpuschedlab.traces.generator import generate
from gpuschedlab.traces.likeness import MOST_OF_BATCH, NEW_SPELLS, likeness
from gpuschedlab.traces.marks import bucket_of
from gpuschedlab.traces.measures import batches, demand, scores_within
from gpuschedlab.traces.stored import Calibration

#: What is tried: recency of spells, answers to demand, and quantiles of the real demand at which the cluster counts as full.
RECENCIES = (0.5, 1.0, 1.7)
PULLS = (0.8, 1.2, 1.8, 2.6)
FULL = (0.84, 0.88, 0.92, 0.96, 1.0)
#: Seeds of the first round, which all enter, and of the second, for the best.
FIRST, SECOND, KEPT = range(901, 905), range(905, 925), 6
#: The shortest wait (s) that is told from none.
NO_WAIT = 10.0

Waits = Callable[[pl.DataFrame, float], np.ndarray]


def tune(figures: Calibration, trace: pl.DataFrame, waits: Waits) -> Calibration:
    """Choose `recency`, `pull` and `ceiling` (with `new_spell` and `z_spell`) so that jobs wait as long as the trace's.

    For each recency and pull, new_spell and z_spell are those with which GPU counts and durations are about as like those
    of batches before as in the trace. What is minimised over all is the largest deviation of the waits (of their mean
    logarithm over seeds): simulated moments.

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
    alike = [_alike(figures, trace, recency, pull) for recency in RECENCIES for pull in PULLS]
    tried = [_with(one, ceiling=float(f"{c:.4g}")) for one in alike for c in ceilings]
    told = {k: [_log_waits(one, waits, seed) for seed in FIRST] for k, one in enumerate(tried)}
    best = sorted(told, key=lambda k: _miss(told[k], real))[:KEPT]
    for k in best:
        told[k] += [_log_waits(tried[k], waits, seed) for seed in SECOND]
    return tried[min(best, key=lambda k: _miss(told[k], real))]


def _alike(figures: Calibration, trace: pl.DataFrame, recency: float, pull: float) -> Calibration:
    """Find how many spells are new (by bisection), and how much of z is theirs (between none and most)."""
    near, inside = _likeness(figures, trace).sum(axis=1), figures.marks.z_spell + figures.marks.z_batch

    def made(new: float, share: float) -> tuple[Calibration, np.ndarray]:
        z_spell = float(f"{share * inside:.4g}")
        marks = {"recency": recency, "new_spell": new, "z_spell": z_spell, "z_batch": round(inside - z_spell, 4)}
        one = _with(dataclasses.replace(figures, marks=dataclasses.replace(figures.marks, **marks)), pull=pull)
        return one, np.mean([_likeness(one, _made(one, seed)).sum(axis=1) for seed in FIRST[:2]], axis=0)

    low, high = 0, len(NEW_SPELLS)
    while high - low > 1:  # the more new spells, the less likeness
        middle = (low + high) // 2
        low, high = (middle, high) if made(NEW_SPELLS[middle], 0.4)[1][0] > near[0] else (low, middle)
    none, most = (made(NEW_SPELLS[low], share)[1][1] for share in (0.0, MOST_OF_BATCH))
    share = np.clip((near[1] - none) / max(most - none, 1e-9), 0.0, 1.0) * MOST_OF_BATCH
    return made(NEW_SPELLS[low], float(share))[0]


def _likeness(figures: Calibration, trace: pl.DataFrame) -> np.ndarray:
    submit, gpus, duration = _columns(trace)
    batch, size = batches(submit, gpus)
    return likeness(gpus, scores_within(duration, bucket_of(figures.marks, gpus)), batch, size)


def _with(figures: Calibration, **changes: float) -> Calibration:
    return dataclasses.replace(figures, demand=dataclasses.replace(figures.demand, **changes))


def _made(figures: Calibration, seed: int) -> pl.DataFrame:
    return generate(figures, days=figures.days, jobs=figures.jobs, start=figures.start, rng=seed)


def _columns(trace: pl.DataFrame) -> list[np.ndarray]:
    return [trace[name].to_numpy() for name in ("submit", "gpus", "duration")]


def _log_waits(figures: Calibration, waits: Waits, seed: int) -> np.ndarray:
    return np.log(waits(_made(figures, seed), figures.days) + NO_WAIT)


def _miss(told: list[np.ndarray], real: np.ndarray) -> float:
    return float(np.max(np.abs(np.mean(told, axis=0) - real)))
