"""ElasticFlow's minimum satisfactory shares: the least level of GPUs, slot by slot, that meets each deadline (compiled)."""

from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import njit


class DatedJobs(NamedTuple):
    """Needs of n jobs with deadlines, which run on one of L numbers of GPUs."""

    gpus: np.ndarray  # (n, L) numbers of GPUs, ascending
    seconds: np.ndarray  # (n, L) time for all the work that remains on each, inf: impossible
    setup: np.ndarray  # (n,) seconds that a change of the number costs
    held: np.ndarray  # (n,) GPUs that it has now
    owed: np.ndarray  # (n,) seconds of the last start that are still to pass, if these GPUs stay
    due: np.ndarray  # (n,) seconds until its deadline


@njit
def satisfactory_shares(jobs, free, slot):
    """Plan jobs (`DatedJobs`) in turn, each on the least level at which it ends by its deadline; return a tuple of three.

    At level a, a job has in each slot the largest of its numbers of GPUs that is at most a and still free. `free` (S,) are the GPUs
    free in each slot of `slot` seconds, from which planned GPUs are taken. Returned are the level (n,) of each job (-1: none
    suffices), its level in the first slot, and the seconds after which a planned level first changes (inf: none does before its job
    ends).
    """
    gpus = jobs.gpus
    n, L = gpus.shape
    S = free.shape[0]
    share = np.full(n, -1)
    first = np.full(n, -1)
    turn = np.inf
    plan = np.empty(S, np.int64)
    for i in range(n):
        for top in range(L):
            if not np.isfinite(jobs.seconds[i, top]):
                continue
            last = _fill(jobs, i, top, free, slot, plan)
            if last < 0:
                continue
            share[i] = top
            first[i] = plan[0]
            for s in range(last + 1):
                if plan[s] >= 0:
                    free[s] -= gpus[i, plan[s]]
                if s > 0 and plan[s] != plan[s - 1]:
                    turn = min(turn, s * slot)
            break
    return share, first, turn


@njit
def _fill(jobs, i, top, free, slot, plan):
    """Plan job i at level `top`; return its last slot, an index, or -1 if it does not end by its deadline."""
    gpus = jobs.gpus[i]
    seconds = jobs.seconds[i]
    due = jobs.due[i]
    owed = jobs.owed[i]
    done = 0.0
    before = jobs.held[i]
    for s in range(free.shape[0]):
        if s * slot >= due:
            return -1
        level = -1
        for k in range(top, -1, -1):
            if np.isfinite(seconds[k]) and gpus[k] <= free[s] + 1e-6:
                level = k
                break
        plan[s] = level
        planned = 0.0
        if level >= 0:
            planned = gpus[level]
        if planned > 0 and planned != before:
            owed = jobs.setup[i]
        before = planned
        if level < 0:
            continue
        room = min(slot, due - s * slot)
        spent = min(owed, room)
        owed -= spent
        done += (room - spent) / seconds[level]
        if done >= 1 - 1e-9:
            return s
    return -1
