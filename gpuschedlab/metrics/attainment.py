"""Deadlines kept and missed."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.metrics.columns import reading


class _Judged(NamedTuple):
    """SLO jobs: deadlines `met`, and the `reward` of each (k, F); `known`: whether a verdict is possible by the first and last; `rows`."""

    rows: np.ndarray
    met: np.ndarray
    reward: np.ndarray
    known: tuple[np.ndarray, np.ndarray]


def _judge(run, censored: bool) -> _Judged:
    """Judge the SLO jobs of a run, as `_Judged`."""
    run = reading(run)
    jobs = run["jobs"]
    deadlines, reward = jobs.worth
    has_slo = run.counted & np.isfinite(deadlines[:, 0])
    if "kind" in jobs:
        has_slo &= jobs["kind"] != "best_effort"
    if not censored and "censored" in jobs:
        has_slo &= ~jobs["censored"]
    submission = jobs["submit"][has_slo]
    completion = jobs["end"][has_slo]
    due_times = submission[:, None] + deadlines[has_slo]
    completion = np.where(np.isnan(completion), np.inf, completion)
    first_deadline = due_times[:, 0]
    last_deadline = np.where(np.isfinite(due_times), due_times, -np.inf).max(axis=1)
    # The job has ended, or its deadline has passed.
    stopped_at = run.window[1]
    known_first = np.isfinite(completion) | (first_deadline < stopped_at)
    known_last = np.isfinite(completion) | (last_deadline < stopped_at)
    # A rounding error in the last bit of a sum is no violation.
    return _Judged(
        np.flatnonzero(has_slo),
        completion[:, None] <= due_times + 1e-9 * due_times,
        reward[has_slo],
        (known_first, known_last),
    )


def has_deadline(run, censored: bool = False) -> np.ndarray:
    """Return an array (n,) of bools: whether a job counts, has a deadline and is not best-effort."""
    eligible = np.zeros(len(reading(run)["jobs"]["end"]), bool)
    eligible[_judge(run, censored).rows] = True
    return eligible


def late(run, censored: bool = False) -> np.ndarray:
    """Return an array (n,): 1 if a job ended after its first deadline, 0 if not, nan if that is not known or it has none."""
    slo = _judge(run, censored)
    job_is_late = np.full(len(reading(run)["jobs"]["end"]), np.nan)
    job_is_late[slo.rows[slo.known[0]]] = ~slo.met[slo.known[0], 0]
    return job_is_late


def slo_attainment(run, censored: bool = False) -> float:
    """Share of SLO jobs (with a deadline, and not best-effort) that ended in time; nan without such jobs.

    In time is by the deadline, the first if a job has several: a job that ends by a later, soft one has
    violated its deadline, and its later earnings count in `slo_violation` only. The artifact of Chronus counts
    so, too (its column `gt_miss_ddl`). An unfinished job has missed a deadline that had passed when the run
    stopped, and is left out when it had not.

    Parameters
    ----------
    run : Run
        Its jobs may have `deadline` (s since submission), `deadlines` and `kind`.
    censored : bool
        As in `measured`.
    """
    slo = _judge(run, censored)
    met = slo.met[slo.known[0], 0]
    if not len(met):
        return float("nan")
    return float(met.mean())


def slo_violation(run, censored: bool = False) -> float:
    """Weighted SLO violation rate, 1 - mean(W(j) / 100): W is the value of a job at its end by its value table.

    The table is a step function: W is the reward (0 to 100) of the first deadline by which the job ended, and 0
    after the last. With a single deadline it is the job's `reward` (100 if null). An unfinished job earns 0 if
    its last deadline had passed when the run stopped, and is left out when it had not. Equation 5.15 of UniSched as
    printed is the mean of W / 100, which grows as deadlines are kept: the violation rate that its evaluation
    reports is one minus that, as in the artifact of Chronus (`miss_ddl`).

    Parameters
    ----------
    run : Run
        Its jobs may have `deadline` (s since submission) and `reward`, or `deadlines` and `rewards`, and `kind`.
    censored : bool
        As in `measured`.

    Returns
    -------
    float
        0 to 1; nan without SLO jobs.

    References
    ----------
    Gao, PhD thesis, NTU 2025, sections 5.3.3.2 and 5.4.3, equation 5.15.
    """
    slo = _judge(run, censored)
    step = slo.met.argmax(axis=1)
    reward = slo.reward[np.arange(len(step)), step]
    earned = np.where(slo.met.any(axis=1), reward, 0.0)[slo.known[1]]
    if not len(earned):
        return float("nan")
    return 1.0 - float(np.mean(earned / 100.0))
