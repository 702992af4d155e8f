"""Deadlines kept and missed."""

from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.metrics.usage import timeline_of


class _Judged(NamedTuple):
    """SLO jobs on which a verdict is possible: `met` (k,) bool and `reward` (k,), 0 to 100."""

    met: np.ndarray
    reward: np.ndarray


def _judge(run, censored: bool) -> _Judged:
    """Verdict on each SLO job.

    A job that is unfinished when the run stops has missed a deadline that has passed, and is left out when it
    has not.
    """
    jobs = run.jobs
    if "deadline" not in jobs.columns:
        return _Judged(np.zeros(0, bool), np.zeros(0))
    wanted = pl.col("deadline").is_not_null() & pl.col("deadline").is_finite()
    if "kind" in jobs.columns:
        wanted &= pl.col("kind").fill_null("strict") != "best_effort"
    if not censored and "censored" in jobs.columns:
        wanted &= ~pl.col("censored").fill_null(False)
    stop = timeline_of(run)["time"].max() or 0.0
    due = pl.col("submit") + pl.col("deadline")
    # A rounding error in the last bit of a sum of times is no violation.
    in_time = pl.col("end") <= due + 1e-9 * due
    reward = pl.col("reward").fill_null(100.0) if "reward" in jobs.columns else pl.lit(100.0)
    judged = jobs.filter(wanted & (pl.col("end").is_not_null() | (due < stop)))
    verdict = judged.select(in_time.fill_null(False).alias("met"), reward.alias("reward"))
    return _Judged(verdict["met"].to_numpy(), verdict["reward"].to_numpy())


def slo_attainment(run, censored: bool = False) -> float:
    """Share of SLO jobs (with a deadline, and not best-effort) that ended in time; nan without such jobs.

    Parameters
    ----------
    run : Run
        Its jobs may have `deadline` (s since submission) and `kind`.
    censored : bool
        As in `measured`.
    """
    met = _judge(run, censored).met
    return float(met.mean()) if len(met) else float("nan")


def slo_violation(run, censored: bool = False) -> float:
    """Weighted SLO violation rate, 1 - mean(W(j) / 100): W is a job's reward when it ended in time, otherwise 0.

    The reward (column `reward`, 0 to 100; 100 where null) is what the job still earns by its deadline. Equation
    5.15 of UniSched as printed is the mean of W / 100, which grows as deadlines are kept: the violation rate
    that its evaluation reports is one minus that.

    Parameters
    ----------
    run : Run
        Its jobs may have `deadline` (s since submission), `kind` and `reward`.
    censored : bool
        As in `measured`.

    Returns
    -------
    float
        0 to 1; nan without SLO jobs.

    References
    ----------
    Gao, PhD thesis, NTU 2025, section 5.4.3, equation 5.15.
    """
    met, reward = _judge(run, censored)
    return 1.0 - float(np.mean(met * reward / 100.0)) if len(met) else float("nan")
