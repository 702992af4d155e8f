"""Compiled looks at a state for the log of decisions: nothing that is read changes it."""

import numpy as np
from numba import types

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.sim.engine.backfill import can_place
from gpuschedlab.sim.engine.events import next_time
from gpuschedlab.sim.engine.jobs.accounting import find_place, is_eligible, refresh
from gpuschedlab.sim.engine.jobs.logs import INDEX, put_waiting
from gpuschedlab.sim.engine.jobs.rank import ascending
from gpuschedlab.sim.engine.jobs.state import STATE
from gpuschedlab.sim.engine.reservations import book_promise
from gpuschedlab.sim.engine.room_ahead import end_of, free_by_time, hide, show


@njit(INDEX(STATE))
def waiting_jobs(S):
    """Return an array of the waiting jobs, in order of submission."""
    out = np.empty(S.scalar[0].waiting, np.int64)
    put_waiting(S, out, 0)
    return ascending(out)


@njit(types.float64(STATE))
def next_instant(S):
    """Return the time of the next event (s)."""
    return next_time(S)


@njit(types.int64[:, ::1](STATE, INDEX))
def room_for(S, jobs):
    """Return an array of most free slots of a pool that each job may use, and most that the placement rule would give it.

    The latter are at most those requested.
    """
    out = np.zeros((2, jobs.shape[0]), np.int64)
    firsts = np.empty(jobs.shape[0], np.int64)  # of each class of jobs
    classes = 0
    for i in range(jobs.shape[0]):
        j = jobs[i]
        m = 0
        while m < classes and S.body[jobs[firsts[m]]].cls != S.body[j].cls:
            m += 1
        if m < classes:
            out[:, i] = out[:, firsts[m]]
            continue
        firsts[m] = i
        classes += 1
        for p in range(S.pools.shape[0]):
            if not is_eligible(S, j, p):
                continue
            slots = S.body[j].slots
            while slots > out[1, i] and find_place(S, j, slots, p) == 0:
                slots -= SLOTS
            out[0, i] = max(out[0, i], S.pools[p].free)
            out[1, i] = max(out[1, i], slots)
    return out


@njit(types.int64[::1](STATE, INDEX))
def held_by(S, jobs):
    """Return an array of the first promise of the last plan beside which each job does not fit now.

    -1: it fits beside all, -2: a window comes.
    """
    out = np.full(jobs.shape[0], -1, np.int64)
    free_by_time(S)
    for i in range(-1, S.scalar[0].reservations):
        if i >= 0:
            book_promise(S, S.reservation[i], 1)
        for m in range(jobs.shape[0]):
            if out[m] == -1:
                show(S, -1, S.scalar[0].now, end_of(S, jobs[m], S.scalar[0].now))
                if not can_place(S, jobs[m]):
                    out[m] = i if i >= 0 else -2
                hide(S)
    return out


@njit(types.float64[::1](STATE, INDEX))
def keys_now(S, jobs):
    """Return an array of keys of jobs at this instant; sums brought up to date for it are put back, so that no sum is split."""
    out = np.empty(jobs.shape[0])
    for i in range(jobs.shape[0]):
        j = jobs[i]
        job = S.job[j : j + 1].copy()
        body = S.body[j : j + 1].copy()
        on = S.seconds_on[j].copy()
        refresh(S, j)
        out[i] = S.key(S.scalar[0].now, S.job[j], S.knobs)
        S.job[j] = job[0]
        S.body[j] = body[0]
        S.seconds_on[j] = on
    return out


@njit(types.float64[:, ::1](STATE, INDEX, types.float64[::1], INDEX, types.float64[::1]))
def standing(S, jobs, keys, others, theirs):
    """Return an array (6, n): number, first and slots of others that go before each job, and slots of later ones.

    The last two are slots of leased ones, and until when.
    """
    out = np.zeros((6, jobs.shape[0]))
    out[1] = -1.0
    out[5] = np.inf
    for i in range(jobs.shape[0]):
        j = jobs[i]
        first = -1
        for m in range(others.shape[0]):
            k = others[m]
            other = S.body[k]
            if (theirs[m], other.since, k) < (keys[i], S.body[j].since, j):
                out[0, i] += 1.0
                out[2, i] += other.got
                if first < 0 or (theirs[m], other.since, k) < (
                    theirs[first],
                    S.body[others[first]].since,
                    others[first],
                ):
                    first = m
                    out[1, i] = k
            elif other.ranked == 0:
                out[4, i] += other.got
                out[5, i] = min(out[5, i], other.lease)
            else:
                out[3, i] += other.got
    return out
