"""Compiled: the running jobs that a queue evicts so that one of its jobs fits.

Arrays are those of `cohorts`.
"""

from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import bare, njit
from gpuschedlab.papers.clusters.queues.cohorts import (
    ANY,
    NEVER,
    NEWER,
    fits,
    give_back,
    share,
    share_after,
    take,
)


class Trial(NamedTuple):
    """GPUs in use and free once some jobs are evicted."""

    used: np.ndarray  # (Q, T) GPUs that the queue's jobs hold
    free: np.ndarray  # (T,) GPUs that no job holds
    evicted: np.ndarray  # (n,) whether the job is evicted


class Search(NamedTuple):
    """Jobs that a search may evict."""

    others: bool  # whether jobs of other queues, too
    any_priority: bool  # whether those of other queues may have any priority, or only one below the next
    below: float  # priority; once a job of another queue that is not below it is evicted, the queue may not borrow
    may_borrow: bool  # whether the queue may go beyond nominal


@njit
def targets(i, t, jobs, quotas, rules, pool):
    """Return an array of the jobs to evict so that one fits on a type, as few as their order allows; empty if that is not enough.

    Jobs of other queues go first, for a queue that stays within nominal; own ones may go so that it borrows. A queue that evicts within
    its cohort while it borrows (borrowWithinCohort) does so of priorities below its own and its threshold.
    """
    q = jobs.queue[i]
    if rules.fair:
        return cleared(i, t, jobs, quotas, rules, pool, Search(True, True, np.inf, True))
    under = pool.used[q, t] < quotas.nominal[q, t]
    evicts_others = may_evict_others(i, t, jobs, quotas, rules, pool.used)
    if evicts_others and rules.borrow_within[q] != NEVER:
        below = min(jobs.priority[i], rules.threshold[q] + 1.0)
        return cleared(i, t, jobs, quotas, rules, pool, Search(True, under, below, True))
    if evicts_others and under:
        evicted = cleared(i, t, jobs, quotas, rules, pool, Search(True, True, np.inf, False))
        if len(evicted):
            return evicted
    return cleared(i, t, jobs, quotas, rules, pool, Search(False, True, np.inf, True))


@bare()
def may_evict_others(i, t, jobs, quotas, rules, used):
    """Return whether job i may evict any job of another queue from a type."""
    evicts_others = False
    for k in range(len(jobs.queue)):
        if jobs.queue[k] != jobs.queue[i] and evictable(i, k, t, jobs, quotas, rules, used):
            evicts_others = True
            break
    return evicts_others


@bare()
def evictable(i, k, t, jobs, quotas, rules, used):
    """Return whether job i may evict job k from a type: one of its own queue, or of a queue of its cohort that borrows."""
    q = jobs.queue[i]
    loser = jobs.queue[k]
    if jobs.kind[k] != t or quotas.cohort[loser] != quotas.cohort[q]:
        return False
    rule = rules.within[q]
    if loser != q:
        if used[loser, t] <= quotas.nominal[loser, t]:
            return False
        rule = rules.reclaim[q]
    if rule in (NEVER, ANY):
        return rule == ANY
    if jobs.priority[k] < jobs.priority[i]:
        return True
    newer = jobs.priority[k] == jobs.priority[i] and jobs.since[k] > jobs.since[i]
    return rule == NEWER and newer


@njit
def cleared(i, t, jobs, quotas, rules, pool, search):
    """Return an array of the jobs to evict so that job i fits, of those that a search may; empty if it does not fit without all.

    Jobs are evicted one by one until it fits; then those that are not needed get their GPUs again, the last first.
    """
    trial = Trial(pool.used.copy(), pool.free.copy(), np.zeros(len(jobs.queue), np.bool_))
    may_borrow = search.may_borrow
    victims = np.zeros(len(jobs.queue), np.int64)
    victim_count = 0
    while not fits(i, t, jobs, quotas, trial, may_borrow):
        victim = next_victim(i, t, jobs, quotas, rules, trial, search)
        if victim < 0:
            return victims[:0]
        if jobs.queue[victim] != jobs.queue[i] and not jobs.priority[victim] < search.below:
            may_borrow = False
        give_back(jobs, trial, victim, t)
        trial.evicted[victim] = True
        victims[victim_count] = victim
        victim_count += 1
    for k in victims[:victim_count][::-1]:
        take(jobs, trial, k, t)
        if fits(i, t, jobs, quotas, trial, may_borrow):
            trial.evicted[k] = False
        else:
            give_back(jobs, trial, k, t)
    return np.flatnonzero(trial.evicted)


@bare()
def next_victim(i, t, jobs, quotas, rules, trial, search):
    """Return the job (an index) to evict next for job i; -1 if there is none.

    Other queues' jobs come before own ones, then lower priorities, then those admitted last. In fair sharing jobs of the queue with the
    greatest share come first, as long as that share stays above the one that the queue of job i gets.
    """
    q = jobs.queue[i]
    gained = 0.0
    if rules.fair:
        gained = share_after(quotas, trial.used, q, t, jobs.gpus[i])
    victim = -1
    least = (0.0, 0.0, 0.0, 0.0, 0.0)
    for k in range(len(jobs.queue)):
        if trial.evicted[k] or not evictable(i, k, t, jobs, quotas, rules, trial.used):
            continue
        loser = jobs.queue[k]
        lost = 0.0
        goes_last = 1.0
        if loser != q:
            goes_last = 0.0
            if not search.others or not (search.any_priority or jobs.priority[k] < search.below):
                continue
            if rules.fair:
                lost = share(quotas, trial.used, loser)
                if gained > share_after(quotas, trial.used, loser, t, -jobs.gpus[k]):
                    continue
        rank = (-lost, goes_last, jobs.priority[k], -jobs.admitted[k], -float(k))
        if victim < 0 or rank < least:
            victim = k
            least = rank
    return victim
