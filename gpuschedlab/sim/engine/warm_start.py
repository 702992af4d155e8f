"""Compiled warm start: jobs that already run when a simulation begins, and queues sorted anew after a change of policy."""

from numba import types

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.sim.engine.backfill import try_start
from gpuschedlab.sim.engine.jobs.accounting import drift_key, find_speed, set_rate, wake
from gpuschedlab.sim.engine.jobs.lifecycle import (
    begin_wait,
    count_host,
    enter_running,
    hold,
    place_in_queue,
    preempt,
    start,
)
from gpuschedlab.sim.engine.jobs.logs import INDEX, log_stretch, log_tick
from gpuschedlab.sim.engine.jobs.profiling import enlarge_profilers, stay_end
from gpuschedlab.sim.engine.jobs.queues import drop_waiting, push_waiting
from gpuschedlab.sim.engine.jobs.records import RUNNING, WAITING
from gpuschedlab.sim.engine.jobs.state import STATE


@njit(types.int64(STATE))
def admit(S):
    """Let the first arrivals in, all of them waiting; return how many."""
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
    """Start jobs that ran again, without delay, and give profilers the nodes left empty; return how many did not fit."""
    not_seated = 0
    for i in range(running.shape[0]):
        j = running[i]
        if S.job[j].state == RUNNING:
            continue
        if try_start(S, j):
            _resume(S, j)
        else:
            not_seated += 1
    enlarge_profilers(S)
    return not_seated


@njit
def _resume(S, j):
    """Job j, which has just been placed, runs on without delay."""
    S.body[j].pause = S.body[j].began = 0.0
    S.body[j].fresh = 0
    S.body[j].finish = S.body[j].last + max(0.0, S.body[j].goal - S.job[j].progress) / S.body[j].rate
    wake(S, j)


@njit(types.int64(STATE, INDEX, INDEX, INDEX))
def seat_on(S, running, first, nodes):
    """Start jobs that ran again on nodes that are named, job by job from `first`; return how many did not fit there.

    A job takes the free GPUs of its nodes in their order, and leaves a GPU for each of those that follow.
    """
    not_seated = 0
    for i in range(running.shape[0]):
        j = running[i]
        wide = first[i + 1] - first[i]
        slots_left = S.body[j].slots
        type_ = S.nodes[nodes[first[i]]].type
        job_fits = True
        for k in range(wide):
            node = S.nodes[nodes[first[i] + k]]
            slots = min(node.free, slots_left - SLOTS * (wide - 1 - k))
            job_fits = job_fits and slots > 0 and node.down == 0 and (node.type == type_ or S.rule[0].across == 1)
            S.place_node[k] = nodes[first[i] + k]
            S.place_slots[k] = slots
            slots_left -= slots
        if not job_fits or slots_left > 0:
            not_seated += 1
            continue
        drop_waiting(S, j)
        hold(S, j, wide, S.place_node, S.place_slots)
        start(S, j, type_, S.body[j].slots)
        _resume(S, j)
    return not_seated


@njit(types.int64(STATE))
def stop_misfits(S):
    """Stop jobs that are profiled on GPUs on which they could not run, as no one asks for their profile; return how many."""
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
    """Put every active job of a state whose queues are empty back into them, by the present policy's keys.

    Return the number of running jobs.
    """
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
