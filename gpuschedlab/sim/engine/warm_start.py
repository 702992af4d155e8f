"""Compiled warm start: jobs that already run when a simulation begins, and queues sorted anew after a change of policy."""

from numba import types

from gpuschedlab._compiled import njit
from gpuschedlab.sim.engine.backfill import try_start
from gpuschedlab.sim.engine.jobs.accounting import drift_key, find_speed, set_rate, wake
from gpuschedlab.sim.engine.jobs.lifecycle import begin_wait, count_host, enter_running, place_in_queue, preempt
from gpuschedlab.sim.engine.jobs.logs import INDEX, log_stretch, log_tick
from gpuschedlab.sim.engine.jobs.profiling import enlarge_profilers, stay_end
from gpuschedlab.sim.engine.jobs.queues import push_waiting
from gpuschedlab.sim.engine.jobs.records import RUNNING, WAITING
from gpuschedlab.sim.engine.jobs.state import STATE


@njit(types.int64(STATE))
def admit(S):
    """Let the first arrivals in, all of them waiting; how many."""
    sc = S.scalar[0]
    for j in range(sc.arrived):
        S.body[j].last = sc.now
        sc.demanded += S.body[j].slots
        begin_wait(S, j)
        S.job[j].queued = sc.now - S.job[j].submit - S.job[j].executed
    sc.dirty = 1
    sc.decide_at = sc.now
    return sc.arrived


@njit(types.int64(STATE, INDEX))
def seat(S, running):
    """Start jobs that were running again, without delay, and give profilers what is left empty; how many did not fit."""
    short = 0
    for i in range(running.shape[0]):
        j = running[i]
        if try_start(S, j):
            S.body[j].pause = S.body[j].began = 0.0
            S.body[j].fresh = 0
            S.body[j].finish = S.body[j].last + max(0.0, S.body[j].goal - S.job[j].progress) / S.body[j].rate
            wake(S, j)
        else:
            short += 1
    enlarge_profilers(S)
    return short


@njit(types.int64(STATE))
def stop_misfits(S):
    """Stop jobs that are profiled on GPUs on which they could not run, as nobody asks for their profile any more; how many."""
    stopped = 0
    for j in range(S.scalar[0].arrived):
        b = S.body[j]
        profiled = S.job[j].state == RUNNING and b.idle == 1
        if profiled and (b.got != b.slots if S.job[j].model < 0 else find_speed(S, j) < 0):
            preempt(S, j)
            stopped += 1
    return stopped


@njit(types.int64(STATE))
def reinsert(S):
    """Put every active job of a state whose queues are empty back into them, by the present policy's keys."""
    sc = S.scalar[0]
    for j in range(sc.arrived):
        state = S.job[j].state
        if state != WAITING and state != RUNNING:
            continue
        b = S.body[j]
        if state == WAITING:
            b.idle = 0
            place_in_queue(S, j)
        drift_key(S, j)
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
        wake(S, j)
    sc.dirty = 1
    sc.decide_at = sc.now
    log_tick(S)
    return sc.running
