"""Compiled warm start: jobs that already run when a simulation begins, and queues sorted anew after a change of policy."""

from numba import types

from gpuschedlab._compiled import njit
from gpuschedlab.sim.engine.accounting import drift_key, log_stretch, log_tick, set_rate, wake
from gpuschedlab.sim.engine.apply import INDEX
from gpuschedlab.sim.engine.backfill import try_start
from gpuschedlab.sim.engine.events import KEY, RAW
from gpuschedlab.sim.engine.handle import STATE
from gpuschedlab.sim.engine.lifecycle import begin_wait, count_host, enter_running, place_in_queue
from gpuschedlab.sim.engine.profiling import enlarge_profilers, stay_end
from gpuschedlab.sim.engine.queues import push_waiting
from gpuschedlab.sim.engine.state import RUNNING, WAITING


@njit(types.int64(STATE, KEY, KEY, KEY, RAW))
def admit(S, key, change, gate, raw):
    """Let the first arrivals in, all of them waiting; how many."""
    sc = S.scalar[0]
    for j in range(sc.arrived):
        S.body[j].last = sc.now
        sc.demanded += S.body[j].slots
        begin_wait(S, j, (key, change, gate), raw)
        S.job[j].queued = sc.now - S.job[j].submit - S.job[j].executed
    sc.dirty = 1
    sc.decide_at = sc.now
    return sc.arrived


@njit(types.int64(STATE, KEY, KEY, KEY, RAW, INDEX))
def seat(S, key, change, gate, raw, running):
    """Start jobs that were running again, without delay, and give profilers what is left empty; how many did not fit."""
    fns = (key, change, gate)
    short = 0
    for i in range(running.shape[0]):
        j = running[i]
        if try_start(S, j, fns, raw):
            S.body[j].pause = S.body[j].began = 0.0
            S.body[j].fresh = 0
            S.body[j].finish = S.body[j].last + max(0.0, S.body[j].goal - S.job[j].progress) / S.body[j].rate
            wake(S, j, fns[1], raw)
        else:
            short += 1
    enlarge_profilers(S, fns, raw)
    return short


@njit(types.int64(STATE, KEY, KEY, KEY, RAW))
def reinsert(S, key, change, gate, raw):
    """Put every active job of a state whose queues are empty back into them, by the present policy's keys."""
    sc = S.scalar[0]
    for j in range(sc.arrived):
        state = S.job[j].state
        if state != WAITING and state != RUNNING:
            continue
        b = S.body[j]
        if state == WAITING:
            place_in_queue(S, j)
        drift_key(S, j, (key, change, gate), raw)
        if state == WAITING:
            push_waiting(S, j)
            sc.waiting += 1
        else:
            if b.idle == 1:
                log_stretch(S, j)  # an order knows no such thing; a round says it again
                b.idle = 0
                set_rate(S, j)
            b.leaves = stay_end(S, j, S.job[j].started)
            b.pool = S.nodes[S.entry[S.body[b.partner if b.guest else j].head].node].pool
            enter_running(S, j)
            count_host(S, j, 1)
        wake(S, j, change, raw)
    sc.dirty = 1
    sc.decide_at = sc.now
    log_tick(S)
    return sc.running
