"""Compiled plans: waiting jobs, in order, start now or are promised the first instant at which they fit; others start beside that.

A promise is nodes with the GPUs that it takes on each, from an instant to an end (`room_ahead`). So many stand as the plan is deep: none
is greedy backfill, one is EASY, one for each job is conservative backfill.
"""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.placement import BUDDY, find_cell
from gpuschedlab.sim.engine.backfill import ANY, close_behind, fill, open_classes, start_on
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
from gpuschedlab.sim.engine.jobs.rank import order_of, total
from gpuschedlab.sim.engine.jobs.state import DECISION
from gpuschedlab.sim.engine.room_ahead import (
    any_window,
    book_held,
    earliest,
    end_of,
    free_by_time,
    hide,
    last_end,
    least_room,
    nodes_from,
    promise,
    show,
)


@njit(inline="never")
def look(S):
    """Note on which pools there is room for jobs of each class; return for how many classes some have any."""
    classes_able = 0
    for c in range(S.cls.shape[0]):
        k = S.cls[c]
        k.pools = 0
        for p in range(S.pools.shape[0]):
            has = k.open == 1 and S.pools[p].free >= k.slots and is_eligible(S, S.heap[k.first], p)
            if has and find_place(S, S.heap[k.first], k.slots, p) > 0:
                k.pools |= 1 << p
        classes_able += k.pools != 0
    return classes_able


@njit(inline="never")
def narrow(S):
    """Leave out the pools that have become too full for a class; return of how many classes jobs may still be placed."""
    classes_able = 0
    for c in range(S.cls.shape[0]):
        k = S.cls[c]
        for p in range(S.pools.shape[0]):
            if S.pools[p].free < k.slots:
                k.pools &= ~(1 << p)
        classes_able += k.open == 1 and left_of(k) > 0 and k.pools != 0
    return classes_able


@njit(inline="never")
def fits_beside(S, j, starts):
    """Whether there are nodes on which waiting job j delays none that is promised a start; it starts there, if it is to."""
    estimated_end = end_of(S, j, S.scalar[0].now)
    k = S.cls[S.body[j].cls]
    for n in range(S.pools.shape[0]):
        p = nth_pool(S, j, n)
        if k.pools >> p & 1 == 0 or estimated_end > S.until[S.body[j].cls, p]:
            continue
        show(S, -1, S.scalar[0].now, estimated_end)
        node_count = int(start_on(S, j, p)) if starts else find_place(S, j, S.body[j].slots, p)
        hide(S)
        if node_count > 0 and starts:
            book_held(S, S.body[j].head, S.scalar[0].now, estimated_end, 1)
        elif node_count > 0:
            S.line["seat"][:] = 0
            for i in range(node_count):
                S.line[S.place_node[i]].seat = 1
        if node_count > 0:
            return True
        S.until[S.body[j].cls, p] = np.nextafter(
            estimated_end, -np.inf
        )  # nor can another of its demand that ends no sooner
    return False


@njit
def deep(S, j):
    """Whether on nodes that job j may use stand as many reservations as the plan is deep."""
    standing_promises = S.scalar[0].reservations
    if S.known.shape[0] > 1:
        standing_promises = 0
        for i in range(S.scalar[0].reservations):
            standing_promises += is_eligible(S, j, S.reservation[i].pool)
    return standing_promises >= S.rule[0].depth


@njit(inline="never")
def all_deep(S):
    """Whether as many reservations as the plan is deep stand on nodes of the jobs of each open class."""
    if S.known.shape[0] == 1 or S.rule[0].depth == np.inf:
        return S.scalar[0].reservations >= S.rule[0].depth
    shallow = 0
    for c in range(S.cls.shape[0]):
        shallow += S.cls[c].open == 1 and left_of(S.cls[c]) > 0 and not deep(S, S.heap[S.cls[c].head])
    return shallow == 0


@njit(inline="never")
def book_promise(S, w, sign):
    """Take the GPUs of a reservation (1), or give them back (-1)."""
    e = w.head
    estimated_end = end_of(S, w.job, w.start)
    while e >= 0:
        entry = S.promised[e]
        slots = S.nodes[entry.node].size if S.rule[0].whole == 1 else entry.slots
        promise(S, entry.node, w.start, estimated_end, sign * slots, entry.mask)
        e = entry.next


@njit(inline="never")
def forget(S, w):
    """Give the entries of a reservation back."""
    while w.head >= 0:
        e = w.head
        w.head = S.promised[e].next
        S.promised[e].next = S.scalar[0].free_promise
        S.scalar[0].free_promise = e


@njit(inline="never")
def forget_all(S):
    """Forget every reservation."""
    for i in range(S.scalar[0].reservations):
        forget(S, S.reservation[i])
    S.scalar[0].reservations = 0


@njit(inline="never")
def reserve(S, j):
    """Reserve the first start at which job j fits, if within the window; return whether it ever fits on nodes that are up."""
    sc = S.scalar[0]
    pool = -1
    first_start = np.inf
    for n in range(S.pools.shape[0]):
        p = nth_pool(S, j, n)
        if is_eligible(S, j, p):
            pool_start = earliest(S, j, p, first_start)
            if pool_start < first_start:
                pool = p
                first_start = pool_start
    if pool >= 0 and first_start - sc.now <= S.rule[0].window:
        promise = S.reservation[sc.reservations]
        promise.start = first_start
        promise.job = j
        promise.pool = pool
        promise.head = -1
        for i in range(nodes_from(S, j, pool, first_start)):
            e = sc.free_promise
            sc.free_promise = S.promised[e].next
            entry = S.promised[e]
            n = S.place_node[i]
            slots = S.place_slots[i]
            entry.next = promise.head
            entry.node = n
            entry.slots = slots
            entry.mask = 0
            if S.rule[0].placement == BUDDY:
                entry.mask = find_cell(
                    least_room(S, n, first_start, end_of(S, j, first_start))[1], S.nodes[n].size, slots
                )
            promise.head = e
        book_promise(S, promise, 1)
        sc.reservations += 1
    return pool >= 0


@njit(inline="never")
def sort_reservations(S):
    """Put reservations in order of their starts."""
    unsorted_reservations = S.reservation[: S.scalar[0].reservations].copy()
    start_order = order_of(unsorted_reservations["start"])
    for i in range(len(start_order)):
        S.reservation[i] = unsorted_reservations[start_order[i]]


@njit(inline="never")
def keep_reservations(S):
    """Start the jobs whose reservations fall due, and reserve no later start for the others; return how many these are.

    They are taken from the queue.
    """
    sc = S.scalar[0]
    had = sc.reservations
    for i in range(had):
        promise = S.reservation[i]
        promise.start = max(promise.start, sc.now)
        book_promise(S, promise, 1)
    sc.reservations = 0
    for i in range(had):
        promise = S.reservation[i]
        j = promise.job
        promises_before = sc.reservations
        book_promise(S, promise, -1)
        forget(S, promise)
        S.until[S.body[j].cls] = np.inf  # what was promised to it may be given to it
        if not fits_beside(S, j, True):
            reserve(S, j)
            if sc.reservations > promises_before:
                drop_waiting(S, j)
                S.marked[promises_before] = j
    S.until[:] = np.inf
    return sc.reservations


@njit(inline="never")
def walk(S, left, strict):
    """Let so many jobs start or be promised a start, in order; return how many more (float) may be looked at; 0: none starts."""
    # Strictly, none passes one that does not start.
    sc = S.scalar[0]
    r = S.rule[0]
    n = queue_classes(S, ANY)
    classes_able = narrow(S)
    waiting_beside = -1
    seats = 0
    while n > 0 and left > 0 and (classes_able > 0 or r.keep == 1) and (left < np.inf or not all_deep(S)):
        j = first_queued(S, n)
        stood = sc.reservations
        k = S.cls[S.body[j].cls]
        started = fits_beside(S, j, True)
        if strict and not started:
            k.open = 0
            close_behind(S, j)
        elif not started:
            k.head += 1
            if not deep(S, j) and sc.now - S.job[j].submit >= r.min_age and not reserve(S, j):
                # Nobody knows when nodes are repaired: no job waits for one that needs them.
                k.open = 0
        if started or k.open == 0:
            classes_able = narrow(S)
        n = requeue(S, n)
        left -= 1
        # What is promised may leave no room for anybody already.
        changed = (started or sc.reservations > stood) and r.keep == 0 and (left < np.inf or not all_deep(S))
        lost = (
            waiting_beside < 0
            or waiting_beside == j
            or (changed and total(S.line["seat"]) < seats and not fits_beside(S, waiting_beside, False))
        )
        if changed and lost:
            waiting_beside = next_beside(S, False)
            classes_able = 0 if waiting_beside < 0 else classes_able
        seats = total(S.line["seat"]) if changed else seats
    return left if classes_able > 0 else 0.0


@njit(inline="never")
def first_within(S, some):
    """Return the index of the first waiting job of the open classes that may end in time to start beside all that is promised.

    Return any if some will do; -1: none.
    """
    first_job = -1
    for c in range(S.cls.shape[0]):
        k = S.cls[c]
        latest_end = -np.inf
        for p in range(S.pools.shape[0]):
            if k.open == 1 and k.pools >> p & 1 and left_of(k) > 0:
                latest_end = max(latest_end, min(S.until[c, p], last_end(S, S.heap[k.head], p)))
        i = k.head
        line_end = k.first + k.count if latest_end > -np.inf else k.head
        while i < line_end and (first_job < 0 or ahead(S.body, S.heap[i], first_job)):
            ends = end_of(S, S.heap[i], S.scalar[0].now)
            if ends <= latest_end:
                first_job = S.heap[i]
                if some:
                    return first_job
            i += 1
    return first_job


@njit(inline="never")
def next_beside(S, starts):
    """Return the index of the first waiting job of the open classes that starts, or could, beside all promised; -1: none."""
    j = first_within(S, not starts)
    while j >= 0 and not fits_beside(S, j, starts):
        j = first_within(S, not starts)
    return j


@njit(inline="never")
def plan(S):
    """Start waiting jobs as the plan allows, made anew or with the promises that it keeps."""
    sc = S.scalar[0]
    r = S.rule[0]
    jobs_to_look_at = r.tested
    windows = any_window(S)
    between = r.every > 0 and on_grid(sc.now, r.every) > sc.now
    if r.keep == 0:
        forget_all(S)
    if not windows and r.keep == 0:
        waited = sc.waiting
        fill(S)
        jobs_to_look_at = max(0.0, jobs_to_look_at - (waited - sc.waiting))
    elif windows:  # neither do all of a demand fit or none, nor is the order strict
        jobs_to_look_at = min(jobs_to_look_at, float(sc.waiting))
    if open_classes(S) == 0 or (between and not windows):
        return
    if look(S) == 0 and r.keep == 0:
        return
    free_by_time(S)
    kept_reservations = keep_reservations(S) if r.keep == 1 else 0
    jobs_to_look_at = walk(S, jobs_to_look_at - kept_reservations, between)
    while jobs_to_look_at == np.inf and next_beside(S, True) >= 0:
        narrow(S)
    if r.keep == 1:
        sort_reservations(S)
    for i in range(kept_reservations):
        push_waiting(S, S.marked[i])


@njit(DECISION.signature)
def decide_by_plan(S):
    """Decide by `plan`, and return 0."""
    plan(S)
    return 0
