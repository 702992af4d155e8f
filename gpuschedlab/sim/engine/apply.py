"""Compiled application of a round's allocation: who stops, who stays, and where the others go."""

import numpy as np
from numba import types

from gpuschedlab._compiled import njit
from gpuschedlab.sim.engine.accounting import find_place, log_stretch, log_tick, refresh, set_rate, wake
from gpuschedlab.sim.engine.events import KEY, RAW, after_decision
from gpuschedlab.sim.engine.handle import STATE
from gpuschedlab.sim.engine.lifecycle import begin_wait, hold, leave, let_go, start
from gpuschedlab.sim.engine.preemption import lend
from gpuschedlab.sim.engine.queues import drop_waiting
from gpuschedlab.sim.engine.state import RUNNING, WAITING

INDEX = types.Array(types.int64, 1, "C")


@njit(INDEX(STATE))
def refresh_active(S):
    """Bring all active jobs up to date; their indices, in order of submission."""
    sc = S.scalar[0]
    out = np.empty(sc.running + sc.waiting, np.int64)
    n = 0
    for i in range(sc.running):
        out[n] = S.rank[i]
        n += 1
    for c in range(S.cls.shape[0]):
        k = S.cls[c]
        for i in range(k.first, k.first + k.count):
            out[n] = S.heap[i]
            n += 1
    out.sort()
    for i in range(n):
        refresh(S, out[i])
    return out


@njit(types.int64(STATE))
def log_open(S):
    """Log the stretches of running jobs as if they ended now; rows in the log."""
    for i in range(S.scalar[0].running):
        log_stretch(S, S.rank[i])
    return S.scalar[0].stretches


@njit
def _begin(S, j, type_, slots, fns, raw):
    """Start waiting job j on the nodes it holds."""
    drop_waiting(S, j)
    start(S, j, type_, slots, fns, raw)


@njit
def _place_new(S, order, wanted, pool, type_, need, fns, raw):
    """Try to place all new jobs of a type beside those that stay, largest first; all or nothing."""
    for i in range(wanted):
        j = order[i]
        k = find_place(S, j, need[j], pool)
        if k == 0:
            for m in range(i):
                let_go(S, order[m])
            return False
        hold(S, j, k, S.place_node, S.place_slots)
    for i in range(wanted):
        _begin(S, order[i], type_, need[order[i]], fns, raw)
    return True


@njit
def _move(S, j, pool, fns, raw):
    """Move running job j, whose nodes are lent, to other nodes of the pool at no cost; False: there are none."""
    refresh(S, j)
    log_stretch(S, j)
    let_go(S, j)
    k = find_place(S, j, S.body[j].got, pool)
    if k == 0:
        return False
    hold(S, j, k, S.place_node, S.place_slots)
    S.body[j].row = -1
    set_rate(S, j)
    wake(S, j, fns[1], raw)
    return True


@njit
def _repack(S, order, count, pool, type_, need, fns, raw):
    """Place all jobs of a type anew, largest first; one whose old nodes are free stays. How many found no place."""
    for i in range(count):
        if S.job[order[i]].state == RUNNING:
            lend(S, order[i], 1)
    short = 0
    for i in range(count):
        j = order[i]
        if S.job[j].state == RUNNING:
            if lend(S, j, -1):
                continue
            S.body[j].lent = 1
            if S.rule[0].free_moves == 1 and _move(S, j, pool, fns, raw):
                continue
            leave(S, j, fns, raw)
            begin_wait(S, j, fns, raw)
        k = find_place(S, j, need[j], pool)
        if k > 0:
            hold(S, j, k, S.place_node, S.place_slots)
            _begin(S, j, type_, need[j], fns, raw)
        else:
            short += 1
    return short


@njit(types.int64(STATE, KEY, KEY, KEY, RAW, INDEX, INDEX, INDEX))
def apply_allocation(S, key, change, gate, raw, index, gpu_type, slots):
    """Put a round's answer into force at this instant; how many jobs found no place (fragmentation)."""
    fns = (key, change, gate)
    need = np.zeros(S.job.shape[0], np.int64)
    was = np.zeros(index.shape[0], np.int64)
    for i in range(index.shape[0]):
        j = index[i]
        need[j] = slots[i]
        was[i] = S.job[j].state
        if was[i] == RUNNING and (slots[i] != S.body[j].got or gpu_type[i] != S.body[j].type):
            leave(S, j, fns, raw)
            begin_wait(S, j, fns, raw)
    short = 0
    for p in range(S.pools.shape[0]):
        mine = np.flatnonzero((slots > 0) & (gpu_type == S.pools[p].type))
        order = index[mine[np.argsort(-slots[mine], kind="mergesort")]]
        new = order[np.array([S.job[j].state == WAITING for j in order], dtype=np.bool_)]
        if not _place_new(S, new, new.shape[0], p, S.pools[p].type, need, fns, raw):
            short += _repack(S, order, order.shape[0], p, S.pools[p].type, need, fns, raw)
    for i in range(index.shape[0]):
        if was[i] == RUNNING and S.job[index[i]].state == WAITING:
            S.job[index[i]].preemptions += 1
    S.scalar[0].dirty = 0
    after_decision(S)
    log_tick(S)
    return short
