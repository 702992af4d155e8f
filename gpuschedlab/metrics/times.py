"""How long jobs took: completion time, queueing, slowdown, and their tails.

A job counts when it ended (`end` is not null) and its true duration is known (`censored` is not true): the
completion time of any other is unknown, and leaving it out is a choice that the summary shows by counting it
(`unfinished`, `censored`).
"""

from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.errors import RunError


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
    jobs = run if isinstance(run, pl.DataFrame) else run.jobs
    if "end" not in jobs.columns:
        raise RunError(
            f"metrics: found a frame with columns {jobs.columns}; expected a Run or its jobs frame, with column 'end'. "
            "Pass the result of simulate()."
        )
    known = pl.col("end").is_not_null()
    if not censored and "censored" in jobs.columns:
        known &= ~pl.col("censored").fill_null(False)
    return jobs.filter(known)


def jct(run, censored: bool = False) -> np.ndarray:
    """Job completion time, JCT = end - submit, of each measured job (k,), in s.

    Examples
    --------
    >>> jct(pl.DataFrame({"submit": [0.0, 5.0], "end": [10.0, 8.0]})).tolist()
    [10.0, 3.0]
    """
    jobs = measured(run, censored)
    return (jobs["end"] - jobs["submit"]).to_numpy()


def queueing(run, censored: bool = False) -> np.ndarray:
    """Time waited without GPUs, JCT - executed, over a job's whole life, of each measured job (k,), in s.

    Waits after a preemption count; seconds of restart while GPUs are held do not (they are `overhead`).
    """
    return measured(run, censored)["queueing"].to_numpy()


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
    jobs = measured(run, censored)
    return ((jobs["end"] - jobs["submit"]) / jobs["duration"]).to_numpy()


def bounded_slowdown(run, threshold: float = 10.0, censored: bool = False) -> np.ndarray:
    """Bounded slowdown, max(1, JCT / max(duration, threshold)), of each measured job (k,).

    The threshold keeps jobs of a second from deciding the mean.

    Parameters
    ----------
    run : Run or polars.DataFrame
        A run, or its `jobs` frame.
    threshold : float
        Shortest duration that counts, s, > 0.
    censored : bool
        As in `measured`.

    Returns
    -------
    numpy.ndarray
        (k,), each at least 1.

    References
    ----------
    Feitelson, Rudolph, Schwiegelshohn, Sevcik and Wong, "Theory and practice in parallel
    job scheduling", JSSPP 1997 (10 s).

    Examples
    --------
    >>> bounded_slowdown(pl.DataFrame({"submit": [0.0, 0.0], "end": [5.0, 40.0], "duration": [1.0, 20.0]})).tolist()
    [1.0, 2.0]
    """
    jobs = measured(run, censored)
    longest = np.maximum(jobs["duration"].to_numpy(), threshold)
    return np.maximum(1.0, (jobs["end"] - jobs["submit"]).to_numpy() / longest)


def spread(values: np.ndarray) -> Spread:
    """Reduce values (k,) to their mean and tails.

    Examples
    --------
    >>> spread(np.array([1.0, 2.0, 3.0, 4.0])).median
    2.5
    """
    values = np.asarray(values, dtype=float)
    if not len(values):
        return Spread(0, *[float("nan")] * 5)
    median, p90, p99 = np.percentile(values, [50, 90, 99])
    return Spread(len(values), float(values.mean()), float(median), float(p90), float(p99), float(values.max()))
