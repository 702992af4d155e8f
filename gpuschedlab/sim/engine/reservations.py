"""Compiled plans: waiting jobs, in order, start now or are promised the first instant at which they fit; others start beside that.

So many reservations stand as the plan is deep: none is greedy backfill, one is EASY, one for each job is conservative backfill.
"""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.sim.engine.backfill import ANY, close_behind, fill, open_classes, start_on, up_suffices
from gpuschedlab.sim.engine.free_slots import any_window, book, earliest, free_by_time, free_until, set_apart, slot_end
from gpuschedlab.sim.engine.jobs.accounting import find_place, is_eligible, nth_pool, on_grid
from gpuschedlab.sim.engine.jobs.queues import (
    ahead,
    drop_waiting,
    first_queued,
    left_of,
    push_waiting,
    queue_classes,
    requeue,
)


@njit
def end_of(S, j, begin):
    """End (s) of job j, by its estimate, if it starts at an instant."""
    return slot_end(S, begin + S.job[j].estimate)


@njit(inline="never")
def look(S):
    """Note on which pools there is room for jobs of each class; of how many classes some have any."""
    # Where many jobs may be looked at, also whether the placement rule finds nodes: that saves looking at those that it does not.
    able, asked = 0, S.rule[0].depth > 1
    for c in range(S.cls.shape[0]):
        k = S.cls[c]
        k.pools = 0
        for p in range(S.pools.shape[0]):
            has = k.open == 1 and S.pools[p].free >= k.slots and is_eligible(S, S.heap[k.first], p)
            if has and (not asked or find_place(S, S.heap[k.first], k.slots, p) > 0):
                k.pools |= 1 << p
        able += k.pools != 0
    return able


@njit(inline="never")
def narrow(S):
    """Leave out the pools that have become too full for a class; of how many classes some jobs may still be placed."""
    able = 0
    for c in range(S.cls.shape[0]):
        k = S.cls[c]
        for p in range(S.pools.shape[0]):
            if S.pools[p].free < k.slots:
                k.pools &= ~(1 << p)
        able += k.open == 1 and left_of(k) > 0 and k.pools != 0
    return able


@njit(inline="never")
def start_beside(S, j):
    """Start waiting job j, on the first pool on which it delays none that is promised a start, if there is one."""
    slots, end = S.body[j].slots, end_of(S, j, S.scalar[0].now)
    k = S.cls[S.body[j].cls]
    for n in range(S.pools.shape[0]):
        p = nth_pool(S, j, n)
        if k.pools >> p & 1 and end <= free_until(S, p, slots):
            set_apart(S, end, 1)
            started = start_on(S, j, p)
            set_apart(S, end, -1)
            if started:
                book(S, p, S.scalar[0].now, end, slots)
                return True
            if not any_window(S):
                k.pools &= ~(1 << p)  # nor can another of its demand be placed
    return False


@njit
def deep(S, j):
    """Whether on nodes that job j may use stand as many reservations as the plan is deep."""
    stand = S.scalar[0].reservations
    if S.known.shape[0] > 1:
        stand = 0
        for i in range(S.scalar[0].reservations):
            stand += is_eligible(S, j, S.reservation[i].pool)
    return stand >= S.rule[0].depth


@njit(inline="never")
def all_deep(S):
    """Whether that is so for the jobs of all open classes."""
    if S.known.shape[0] == 1 or S.rule[0].depth == np.inf:
        return S.scalar[0].reservations >= S.rule[0].depth
    shallow = 0
    for c in range(S.cls.shape[0]):
        shallow += S.cls[c].open == 1 and left_of(S.cls[c]) > 0 and not deep(S, S.heap[S.cls[c].head])
    return shallow == 0


@njit(inline="never")
def reserve(S, j):
    """Reserve for job j the first start at which it fits, if that is within the window."""
    sc = S.scalar[0]
    slots, pool, begin = S.body[j].slots, -1, np.inf
    for n in range(S.pools.shape[0]):
        p = nth_pool(S, j, n)
        if is_eligible(S, j, p):
            at = earliest(S, p, slots, S.job[j].estimate)
            if at < begin:
                pool, begin = p, at
    if pool >= 0 and begin - sc.now <= S.rule[0].window:
        book(S, pool, begin, end_of(S, j, begin), slots)
        w = S.reservation[sc.reservations]
        w.start, w.job, w.pool = begin, j, pool
        sc.reservations += 1


@njit(inline="never")
def sort_reservations(S):
    """Put reservations in order of their starts; nearly sorted, so by insertion."""
    for i in range(1, S.scalar[0].reservations):
        start, job, pool = S.reservation[i].start, S.reservation[i].job, S.reservation[i].pool
        m = i
        while m > 0 and S.reservation[m - 1].start > start:
            S.reservation[m] = S.reservation[m - 1]
            m -= 1
        S.reservation[m].start, S.reservation[m].job, S.reservation[m].pool = start, job, pool


@njit(inline="never")
def keep_reservations(S):
    """Start the jobs whose reservations fall due, and reserve no later start for the others; how many these are, taken from the queue."""
    sc = S.scalar[0]
    had = sc.reservations
    for i in range(had):
        w = S.reservation[i]
        w.start = max(w.start, sc.now)
        book(S, w.pool, w.start, end_of(S, w.job, w.start), S.body[w.job].slots)
    sc.reservations = 0
    for i in range(had):
        w = S.reservation[i]
        j, stand = w.job, sc.reservations
        book(S, w.pool, w.start, end_of(S, j, w.start), -S.body[j].slots)
        if not start_beside(S, j):
            reserve(S, j)
            if sc.reservations > stand:
                drop_waiting(S, j)
                S.marked[stand] = j
    return sc.reservations


@njit(inline="never")
def walk(S, left, strict):
    """Let so many jobs start or be promised a start, in order; how many more may be looked at, none if no one may start."""
    # Strictly, none passes one that does not start.
    sc, r = S.scalar[0], S.rule[0]
    n, able, some, windows = queue_classes(S, ANY), narrow(S), -1, any_window(S)
    while n > 0 and left > 0 and (able > 0 or r.keep == 1) and (left < np.inf or not all_deep(S)):
        j = first_queued(S, n)
        k = S.cls[S.body[j].cls]
        pools = k.pools
        started = start_beside(S, j)
        if strict and not started:
            k.open = 0
            close_behind(S, j)
        elif not started:
            k.head += 1
            # Nobody knows when nodes are repaired: no job waits for one that needs them.
            if not (windows or up_suffices(S, j)):
                k.open = 0
            elif not deep(S, j) and sc.now - S.job[j].submit >= r.min_age:
                reserve(S, j)
        if started or k.pools != pools or k.open == 0:
            able = narrow(S)
        n = requeue(S, n)
        left -= 1
        # What is promised may leave no room for anybody already.
        if r.keep == 0 and not all_deep(S) and (some < 0 or some == j or not fits(S, some)):
            some = first_beside(S, True)
            able = 0 if some < 0 else able
    return left if able > 0 else 0.0


@njit(inline="never")
def free_untils(S):
    """(C, P) instants (s) until which a demand of each class is free on each pool from now on; inf: for good."""
    until = np.full((S.cls.shape[0], S.pools.shape[0]), np.inf)
    for p in range(S.pools.shape[0]):
        c, k = S.cls.shape[0] - 1, 0  # classes are in order of slots
        while c >= 0 and k < S.steps[p]:
            while c >= 0 and S.room[p, k] < S.cls[c].slots:
                until[c, p] = S.when[p, k]
                c -= 1
            k += 1
    return until


@njit(inline="never")
def fits(S, j):
    """Whether waiting job j may start beside all that is promised, if nodes can be found."""
    k, end, found = S.cls[S.body[j].cls], end_of(S, j, S.scalar[0].now), False
    for p in range(S.pools.shape[0]):
        found = found or (k.open == 1 and k.pools >> p & 1 == 1 and end <= free_until(S, p, k.slots))
    return found


@njit(inline="never")
def first_beside(S, some):
    """First waiting job of the open classes that may start beside all that is promised, or any of them if some will do; -1: none."""
    best, until = -1, free_untils(S)
    for c in range(S.cls.shape[0]):
        k, last = S.cls[c], -np.inf
        for p in range(S.pools.shape[0]):
            if k.open == 1 and k.pools >> p & 1:
                last = max(last, until[c, p])
        i, end = k.head, k.first + k.count if last > -np.inf else k.head
        while i < end and (best < 0 or ahead(S.body, S.heap[i], best)):
            if end_of(S, S.heap[i], S.scalar[0].now) <= last:
                best = S.heap[i]
                if some:
                    return best
            i += 1
    return best


@njit(inline="never")
def plan(S):
    """Start waiting jobs as the plan allows, made anew or with the promises that it keeps."""
    sc, r = S.scalar[0], S.rule[0]
    left, windows = r.tested, any_window(S)
    between = r.every > 0 and on_grid(sc.now, r.every) > sc.now
    if windows:  # neither do all of a demand fit or none, nor is the order strict
        left = min(left, float(sc.waiting))
        sc.reservations = sc.reservations if r.keep == 1 else 0
    elif r.keep == 0:
        waited = sc.waiting
        fill(S)
        left = max(0.0, left - (waited - sc.waiting))
        sc.reservations = 0
    if open_classes(S) == 0 or (between and not windows):
        return
    if look(S) == 0 and r.keep == 0:
        return
    free_by_time(S)
    kept = keep_reservations(S) if r.keep == 1 else 0
    left = walk(S, left - kept, between)
    j = first_beside(S, False) if left == np.inf else -1
    while j >= 0:
        start_beside(S, j)
        narrow(S)
        j = first_beside(S, False)
    if r.keep == 1:
        sort_reservations(S)
    for i in range(kept):
        push_waiting(S, S.marked[i])
