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
    waiting = np.empty(S.scalar[0].waiting, np.int64)
    put_waiting(S, waiting, 0)
    return ascending(waiting)


@njit(types.float64(STATE))
def next_instant(S):
    """Return the time of the next event (s)."""
    return next_time(S)


@njit(types.int64[:, ::1](STATE, INDEX))
def room_for(S, jobs):
    """Return an array (2, n): most free slots of a pool that each job may use, and most that the placement rule would give it.

    The latter are at most those requested.
    """
    free_and_placeable = np.zeros((2, jobs.shape[0]), np.int64)
    firsts = np.empty(jobs.shape[0], np.int64)  # of each class of jobs
    classes = 0
    for i in range(jobs.shape[0]):
        j = jobs[i]
        m = 0
        while m < classes and S.body[jobs[firsts[m]]].cls != S.body[j].cls:
            m += 1
        if m < classes:
            free_and_placeable[:, i] = free_and_placeable[:, firsts[m]]
            continue
        firsts[m] = i
        classes += 1
        for p in range(S.pools.shape[0]):
            if not is_eligible(S, j, p):
                continue
            slots = S.body[j].slots
            while slots > free_and_placeable[1, i] and find_place(S, j, slots, p) == 0:
                slots -= SLOTS
            free_and_placeable[0, i] = max(free_and_placeable[0, i], S.pools[p].free)
            free_and_placeable[1, i] = max(free_and_placeable[1, i], slots)
    return free_and_placeable


@njit(types.int64[::1](STATE, INDEX))
def held_by(S, jobs):
    """Return an array of the first promise of the last plan beside which each job does not fit now.

    -1: it fits beside all, -2: a window comes.
    """
    first_promise = np.full(jobs.shape[0], -1, np.int64)
    free_by_time(S)
    for i in range(-1, S.scalar[0].reservations):
        if i >= 0:
            book_promise(S, S.reservation[i], 1)
        for m in range(jobs.shape[0]):
            if first_promise[m] == -1:
                show(S, -1, S.scalar[0].now, end_of(S, jobs[m], S.scalar[0].now))
                if not can_place(S, jobs[m]):
                    first_promise[m] = i if i >= 0 else -2
                hide(S)
    return first_promise


@njit(types.float64[::1](STATE, INDEX))
def keys_now(S, jobs):
    """Return an array of keys of jobs at this instant; sums brought up to date for it are put back, so that no sum is split."""
    present_keys = np.empty(jobs.shape[0])
    for i in range(jobs.shape[0]):
        j = jobs[i]
        job = S.job[j : j + 1].copy()
        body_before = S.body[j : j + 1].copy()
        on = S.seconds_on[j].copy()
        refresh(S, j)
        present_keys[i] = S.key(S.scalar[0].now, S.job[j], S.knobs)
        S.job[j] = job[0]
        S.body[j] = body_before[0]
        S.seconds_on[j] = on
    return present_keys


@njit(types.float64[:, ::1](STATE, INDEX, types.float64[::1], INDEX, types.float64[::1]))
def standing(S, jobs, keys, others, theirs):
    """Return an array (6, n): number, first and slots of others that go before each job, and slots of later ones.

    The last two are slots of leased ones, and until when.
    """
    order_standing = np.zeros((6, jobs.shape[0]))
    order_standing[1] = -1.0
    order_standing[5] = np.inf
    for i in range(jobs.shape[0]):
        j = jobs[i]
        first_before = -1
        for m in range(others.shape[0]):
            other_job = others[m]
            body_before = S.body[other_job]
            if (theirs[m], body_before.since, other_job) < (keys[i], S.body[j].since, j):
                order_standing[0, i] += 1.0
                order_standing[2, i] += body_before.got
                if first_before < 0 or (theirs[m], body_before.since, other_job) < (
                    theirs[first_before],
                    S.body[others[first_before]].since,
                    others[first_before],
                ):
                    first_before = m
                    order_standing[1, i] = other_job
            elif body_before.ranked == 0:
                order_standing[4, i] += body_before.got
                order_standing[5, i] = min(order_standing[5, i], body_before.lease)
            else:
                order_standing[3, i] += body_before.got
    return order_standing
