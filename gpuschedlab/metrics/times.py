"""How long jobs took: completion time, queueing, slowdown, and their tails.

A job counts when it ended (`end` is not null) and its true duration is known (`censored` is not true): the
completion time of any other is unknown, and leaving it out is a choice that the summary shows by counting it
(`unfinished`, `censored`).
"""

from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.metrics.columns import known, known_jobs


class Spread(NamedTuple):
    """Mean and tails of some values; all nan when there are none.

    `count` values; `mean`, `median`, `p90`, `p99` (linear between order statistics) and `max`, in the values'
    unit.
    """

    count: int
    mean: float
    median: float
    p90: float
    p99: float
    max: float


def measured(run, censored: bool = False) -> pl.DataFrame:
    """Keep the jobs with a known completion time.

    Parameters
    ----------
    run : Run or polars.DataFrame
        A run, or its `jobs` frame.
    censored : bool
        Keep censored jobs too, as publications mostly do: their recorded duration is used as the true one,
        which was longer.

    Returns
    -------
    polars.DataFrame
        Rows of `jobs` that ended and, unless `censored`, were not cut off by the log.

    Raises
    ------
    RunError
        The frame has no column `end`.

    Examples
    --------
    >>> jobs = pl.DataFrame({"end": [5.0, None, 9.0], "censored": [False, False, True]})
    >>> measured(jobs).height, measured(jobs, censored=True).height
    (1, 2)
    """
    known_rows = known(run, censored)
    jobs = run
    if not isinstance(run, pl.DataFrame):
        jobs = run.jobs
    return jobs.filter(pl.Series(known_rows))


def jct(run, censored: bool = False) -> np.ndarray:
    """Job completion time, JCT = end - submit, of each measured job (k,), in s.

    Examples
    --------
    >>> jct(pl.DataFrame({"submit": [0.0, 5.0], "end": [10.0, 8.0]})).tolist()
    [10.0, 3.0]
    """
    submit, completion = known_jobs(run, censored, "submit", "end")
    return completion - submit


def queueing(run, censored: bool = False) -> np.ndarray:
    """Time waited without GPUs, JCT - executed, over a job's whole life, of each measured job (k,), in s.

    Waits after a preemption count; seconds of restart while GPUs are held do not (they are `overhead`).
    """
    return known_jobs(run, censored, "queueing")[0]


def slowdown(run, censored: bool = False) -> np.ndarray:
    """Slowdown, JCT / duration, of each measured job (k,): 1 when it ran at once, without interruption, on the GPUs that it requested.

    Elastic jobs, or jobs on faster GPUs than the reference type, can be below 1.

    References
    ----------
    Feitelson and Rudolph, "Metrics and benchmarking for parallel job scheduling", JSSPP 1998, section 3.

    Examples
    --------
    >>> slowdown(pl.DataFrame({"submit": [0.0], "end": [30.0], "duration": [10.0]})).tolist()
    [3.0]
    """
    submit, completion, duration = known_jobs(run, censored, "submit", "end", "duration")
    return (completion - submit) / duration


def bounded_slowdown(run, threshold: float = 10.0, censored: bool = False) -> np.ndarray:
    """Bounded slowdown, max(1, JCT / max(duration, threshold)), of each measured job (k,).

    The threshold keeps jobs of a second from deciding the mean.

    Parameters
    ----------
    run, censored
        As in `measured`.
    threshold : float
        Shortest duration that counts, s, > 0.

    References
    ----------
    Feitelson, Rudolph, Schwiegelshohn, Sevcik and Wong, "Theory and practice in parallel
    job scheduling", JSSPP 1997 (10 s).

    Examples
    --------
    >>> bounded_slowdown(pl.DataFrame({"submit": [0.0, 0.0], "end": [5.0, 40.0], "duration": [1.0, 20.0]})).tolist()
    [1.0, 2.0]
    """
    submit, completion, duration = known_jobs(run, censored, "submit", "end", "duration")
    return np.maximum(1.0, (completion - submit) / np.maximum(duration, threshold))


def spread(values: np.ndarray) -> Spread:
    """Reduce values (k,) to their mean and tails, a `Spread`; nan if there is none.

    Examples
    --------
    >>> spread(np.array([1.0, 2.0, 3.0, 4.0])).median
    2.5
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    if not len(ordered) or np.isnan(ordered[-1]):
        return Spread(len(ordered), *[float("nan")] * 5)
    quantiles = [_quantile(ordered, share) for share in (0.5, 0.9, 0.99)]
    return Spread(len(ordered), float(np.mean(values)), *quantiles, float(ordered[-1]))


def mean_of(values: np.ndarray) -> float:
    """Return the mean of values (k,); nan if there are none."""
    if not len(values):
        return float("nan")
    return float(values.mean())


def _quantile(ordered: np.ndarray, share: float) -> float:
    """Quantile of sorted values, linear between two of them: `numpy.quantile`, without its checks."""
    last_rank = len(ordered) - 1
    rank = share * last_rank
    low = int(rank)
    rank_part = rank % 1
    value_below = float(ordered[low])
    value_above = float(ordered[min(low + 1, last_rank)])
    if rank_part < 0.5:
        return value_below + (value_above - value_below) * rank_part
    return value_above - (value_above - value_below) * (1 - rank_part)
