"""The last figures of a calibration, found by generating: how users answer to demand, how long spells last, when a cluster is full.

None can be read off a trace without users. All decide how jobs queue: spells that follow each other closely let wide
jobs come together, so that GPUs are cleared for them once; a cluster that is never overfull queues less.
"""

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np
import polars as pl

from gpuschedlab.traces.generator.attributes import bucket_of
from gpuschedlab.traces.generator.correlation import NEW_SPELLS, batch_correlations
from gpuschedlab.traces.generator.generate import generate
from gpuschedlab.traces.generator.presets import Calibration, Marks
from gpuschedlab.traces.trace_statistics import batches, demand, rounded, scores_within

#: What is tried: recency of spells, steps of NEW_SPELLS below the measured one, the share of a batch's correlation that is
#: the spell's, answers to demand, and quantiles of the real demand at which the cluster counts as full.
RECENCIES = (0.7, 1.2)
STEPS = (0, 2)
SHARES = (0.0, 0.6)
PULLS = (0.7, 1.0, 1.4, 2.0)
FULL = (0.84, 0.88, 0.94, 1.0)
#: Rounds: how many of the best enter (None: all), and with how many further seeds, from FIRST_SEED on.
ROUNDS = ((None, 2), (32, 4), (8, 18))
FIRST_SEED = 901
#: The shortest wait (s) that counts as one.
NO_WAIT = 10.0

Waits = Callable[[pl.DataFrame, float], np.ndarray]


def tune(figures: Calibration, trace: pl.DataFrame, waits: Waits) -> Calibration:
    """Return the `Calibration` with `recency`, `z_spell`, `pull` and `ceiling` chosen so that jobs wait as long as the trace's."""
    # For each recency, new_spell is that with which GPU counts correlate with earlier batches as in the trace, or
    # somewhat lower: the correlation of all batches says little of the few wide ones. What is minimised over all is the
    # largest deviation of the waits (of their logarithms, over seeds: simulated moments).
    real = np.log(waits(trace, figures.days) + NO_WAIT)
    instants = (np.arange(round(figures.days * 144)) + 0.5) * 600.0
    demanded = demand(*_columns(trace), instants)
    mean_demand = figures.gpu_seconds / (figures.days * 86_400)
    ceilings = np.quantile(demanded, FULL) / mean_demand
    # Without a ceiling the largest demand is a matter of chance.
    ceilings[np.array(FULL) == 1.0] = 100.0
    new = {recency: _new_spells(figures, trace, recency) for recency in RECENCIES}
    spells = sorted({(r, max(new[r] - step, 0), share) for r in RECENCIES for step in STEPS for share in SHARES})
    marks = [_marks(figures.marks, *choice) for choice in spells]
    candidates = []
    for spell_marks, pull, ceiling in itertools.product(marks, PULLS, rounded(ceilings)):
        answer = dataclasses.replace(figures.demand, pull=pull, ceiling=ceiling)
        candidates.append(dataclasses.replace(figures, marks=spell_marks, demand=answer))
    log_waits = [[] for _ in candidates]

    def miss_of(k: int) -> float:
        return _miss(log_waits[k], real) if log_waits[k] else 0.0

    best = range(len(candidates))
    seed = FIRST_SEED
    for survivors, more in ROUNDS:
        best = sorted(best, key=miss_of)[:survivors]
        for k in best:
            log_waits[k] += [_log_waits(candidates[k], waits, s) for s in range(seed, seed + more)]
        seed += more
    return candidates[min(best, key=miss_of)]


def _new_spells(figures: Calibration, trace: pl.DataFrame, recency: float) -> int:
    """Return the index of the entry of NEW_SPELLS that makes GPU counts as alike as in the trace (by bisection)."""
    near = _batch_correlation(figures, trace)
    low = 0
    high = len(NEW_SPELLS)
    while high - low > 1:  # the more new spells, the lower the correlation
        middle = (low + high) // 2
        candidate = dataclasses.replace(figures, marks=_marks(figures.marks, recency, middle, 0.4))
        traces = [_made(candidate, FIRST_SEED + k) for k in range(2)]
        correlation = np.mean([_batch_correlation(candidate, trace) for trace in traces])
        if correlation > near:
            low = middle
        else:
            high = middle
    return low


def _marks(marks: Marks, recency: float, new: int, share: float) -> Marks:
    """Return `Marks` with changed spells, and a changed share of them in the correlation within a batch."""
    inside = marks.z_spell + marks.z_batch
    z_spell = round(share * inside, 4)
    changes = {
        "recency": recency,
        "new_spell": NEW_SPELLS[new],
        "z_spell": z_spell,
        "z_batch": round(inside - z_spell, 4),
    }
    return dataclasses.replace(marks, **changes)


def _batch_correlation(figures: Calibration, trace: pl.DataFrame) -> float:
    """Return how like those of batches before GPU counts are, summed over lags."""
    submit, gpus, duration = _columns(trace)
    batch, size = batches(submit, gpus)
    z = scores_within(duration, bucket_of(figures.marks, gpus))
    of_gpus = batch_correlations(gpus, z, batch, size)[0]
    return float(of_gpus.sum())


def _made(figures: Calibration, seed: int) -> pl.DataFrame:
    return generate(figures, days=figures.days, jobs=figures.jobs, start=figures.start, rng=seed)


def _columns(trace: pl.DataFrame) -> list[np.ndarray]:
    return [trace[trace_column].to_numpy() for trace_column in ("submit", "gpus", "duration")]


def _log_waits(figures: Calibration, waits: Waits, seed: int) -> np.ndarray:
    mean_waits = waits(_made(figures, seed), figures.days)
    return np.log(mean_waits + NO_WAIT)


def _miss(found: list[np.ndarray], real: np.ndarray) -> float:
    """Return the largest deviation: that of the mean, and half a standard deviation more, since one looks at few traces."""
    deviation = np.abs(np.mean(found, axis=0) - real)
    return float(np.max(deviation + 0.5 * np.std(found, axis=0)))
