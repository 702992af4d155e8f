"""The compiled logs, of stretches and of counts, and looks at all jobs that wait or run."""

import numpy as np
from numba import types

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.node_index import LEVELS
from gpuschedlab.sim.engine.jobs.accounting import refresh
from gpuschedlab.sim.engine.jobs.rank import ascending
from gpuschedlab.sim.engine.jobs.state import STATE

INDEX = types.Array(types.int64, 1, "C")


@njit(inline="never")
def log_stretch(S, j):
    """Log the stretch of time that ends now for job j, a row a node."""
    b = S.body[j]
    sc = S.scalar[0]
    owner = b.partner if b.guest else j
    e = S.body[owner].head
    while e >= 0 and sc.now > b.stretch:
        stretch = S.stretches[sc.stretches]
        stretch.job = j
        stretch.node = S.entry[e].node
        stretch.slots = S.entry[e].slots
        stretch.partner = b.partner
        stretch.source = b.source
        stretch.guest = b.guest
        stretch.joint = b.joint
        stretch.idle = b.idle
        stretch.start = b.stretch
        stretch.end = sc.now
        stretch.delay = b.began
        sc.stretches += 1
        e = S.entry[e].next
    if sc.now > b.stretch:
        b.began = -1.0
    b.stretch = sc.now


@njit
def most_free_gpus(S):
    """Return the number of whole free GPUs of the node that has most."""
    most_level = 0
    for p in range(S.pools.shape[0]):
        level = LEVELS - 1
        while level > most_level and S.count[p, level] == 0:
            level -= 1
        most_level = max(most_level, level)
    return most_level


@njit
def counts_of(t):
    """Return a tuple of the counts of a row of the log."""
    return t.used, t.demanded, t.capacity, t.running, t.waiting, t.largest


@njit(inline="never")
def log_tick(S):
    """Log the counts that hold from now on; one row an instant."""
    sc = S.scalar[0]
    tick_counts = (sc.used, sc.demanded, sc.capacity, sc.running, sc.waiting, most_free_gpus(S))
    i = sc.ticks - 1
    if i < 0 or S.ticks[i].time < sc.now:
        # A row holds until the next: where nothing changed, none is needed.
        if i >= 0 and counts_of(S.ticks[i]) == tick_counts:
            return
        i += 1
        sc.ticks = i + 1
    tick = S.ticks[i]
    tick.time = sc.now
    tick.used, tick.demanded, tick.capacity, tick.running, tick.waiting, tick.largest = tick_counts


@njit
def put_waiting(S, out, n):
    """Write all waiting jobs, queue by queue, from a place on; return the place after the last."""
    for c in range(S.cls.shape[0]):
        k = S.cls[c]
        for i in range(k.first, k.first + k.count):
            out[n] = S.heap[i]
            n += 1
    return n


@njit(INDEX(STATE))
def refresh_active(S):
    """Bring all active jobs up to date; return an array of their indices, in order of submission."""
    sc = S.scalar[0]
    active_jobs = np.empty(sc.running + sc.waiting, np.int64)
    for i in range(sc.running):
        active_jobs[i] = S.running[i]
    n = put_waiting(S, active_jobs, sc.running)
    active_jobs = ascending(active_jobs)
    for i in range(n):
        refresh(S, active_jobs[i])
    return active_jobs


@njit(types.int64(STATE))
def log_open(S):
    """Log the stretches of running jobs as if they ended now; return the number of rows in the log."""
    for i in range(S.scalar[0].running):
        log_stretch(S, S.running[i])
    return S.scalar[0].stretches
