"""Starts beside promises, compiled: the first instant at which a job of Slurm's has room, and the promise of nodes from then on."""

from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import bare, njit
from gpuschedlab.papers.clusters.schedulers.slurm_nodes import (
    PROMISED,
    choose,
    earliest,
    end_of_group,
    room_after,
    room_for,
)


class Request(NamedTuple):
    """Request of a job that a pass of backfill looks at."""

    estimate: float  # s
    wide: int  # nodes; 0: all slots wherever they are
    each: int  # slots on each of these nodes
    nodes: np.ndarray  # (N,) whether it may have a node
    reach: np.ndarray  # (N,) whether a node is of its partition
    reserves: bool  # whether nodes are promised to it if it cannot start now


class Stretch(NamedTuple):
    """Time in which no promise begins or ends."""

    usable: np.ndarray  # (N,) whether a node is without a promise to the job's end
    near: np.ndarray  # (N,) the same of nodes of the partition, of whatever GPU type
    need: float  # s, from which on enough nodes have room; -inf if they have it now
    until: float  # s, at which the next promise begins or ends


@bare()
def next_promise(held, opens, past):
    """Return the instant (s) at which the next promise begins or ends, or inf: `opens` have begun, `past` have ended."""
    later = np.inf
    if opens < held.count[PROMISED]:
        later = held.begin[held.by_begin[opens]]
    if past < held.count[PROMISED]:
        later = min(later, held.end[held.by_end[past]])
    return later


@bare()
def group_end(now, held, near, after, epoch):
    """Return a tuple: place of the last end of the first group that ends at an instant or later, and when (s); or (-1, inf)."""
    i = end_of_group(held, near, after, epoch)
    if i < 0:
        return i, np.inf
    end_of_job = held.ends[held.order[i]]
    if end_of_job > now:
        return i, end_of_job
    return i, now + 1.0


@njit(inline="never")
def start_within(now, held, request, rule, stretch, out):
    """Return a tuple: the instant (s) from which a job has room within a stretch, now or a group's end, and on how many nodes.

    If it has no room in the stretch, return a later instant, or 0 nodes.
    """
    begin = now
    k = 0
    if stretch.need == -np.inf:
        k = choose(held.room, stretch.usable, request.each, request.wide, rule.gres, out)
    after = stretch.need
    while k == 0 and begin <= stretch.until and begin < np.inf:
        i, begin = group_end(now, held, stretch.near, after, rule.epoch)
        if begin <= stretch.until and begin < np.inf:
            k = choose(room_after(held, i), stretch.usable, request.each, request.wide, rule.gres, out)
            after = np.nextafter(held.ends[held.order[i]], np.inf)
    return begin, k


@njit(inline="never")
def attempt(now, held, request, rule, out):
    """Return a tuple: the instant (s) at which a job starts beside all promises, and on how many nodes; inf and 0 if it does not.

    If the instant is later, the nodes are promised. Until the next promise begins or ends, nodes without one to the job's end are usable,
    and enough have room from `need`. Slurm follows the ends of jobs on all nodes of the partition (`near`), of whatever GPU type.
    """
    wide = request.wide
    slots_each = request.each
    nodes = request.nodes
    reach = request.reach
    horizon = now + rule.plan.window
    instant = now
    need = -np.inf
    promise_count = held.count[PROMISED]
    instants = room_for(held, slots_each)
    promised_times = np.zeros(nodes.shape[0], np.int64)
    usable = nodes.copy()
    near = reach.copy()
    into = 0
    opens = 0
    past = 0
    free = usable.sum()
    while instant <= horizon and instant < np.inf:
        while into < promise_count and held.begin[held.by_begin[into]] <= instant + request.estimate:
            n = held.promised[held.by_begin[into]]
            free -= usable[n]
            promised_times[n] = promised_times[n] + 1
            usable[n] = False
            near[n] = False
            into = into + 1
        while opens < promise_count and held.begin[held.by_begin[opens]] <= instant:
            opens += 1
        while past < promise_count and held.end[held.by_end[past]] <= instant:
            n = held.promised[held.by_end[past]]
            promised_times[n] = promised_times[n] - 1
            past = past + 1
            if promised_times[n] == 0:
                near[n] = reach[n]
            if promised_times[n] == 0 and nodes[n]:
                usable[n] = True
                free = free + 1
                need = min(need, instants[n])
        later = next_promise(held, opens, past)
        if wide > 0 and free >= wide and need <= later:
            need = earliest(instants, usable, wide)
        if free < wide or need > later or need == np.inf:
            instant = later
            continue
        begin, k = start_within(now, held, request, rule, Stretch(usable, near, need, later), out)
        if k > 0 and begin == now and instant == now:
            return now, k
        begin = max(begin, instant)
        if not request.reserves or horizon < begin <= later:
            return np.inf, 0
        if begin > later or k == 0:
            instant = later
            continue
        if hold(now, held, begin, request.estimate, rule, out[:k]):
            return begin, k
        if begin == instant:
            instant = later
        else:
            instant = begin  # times round: promises that overlap now may do so again
    return np.inf, 0


@bare(inline="never")
def hold(now, held, begin, estimate, rule, chosen):
    """Promise the chosen nodes from an instant, in whole slots, if no other promise overlaps; return whether it was done."""
    unit = max(rule.plan.resolution, 1e-9)
    end_slot = np.floor((begin + estimate + rule.epoch) / unit + 1e-9)
    begin_slot = np.floor((begin + rule.epoch) / unit + 1e-9)
    end = end_slot * unit - rule.epoch
    begin = begin_slot * unit - rule.epoch
    for i in range(held.count[PROMISED]):
        for node in chosen:
            if held.promised[i] == node and held.end[i] > begin and held.begin[i] < end:
                return False
    for node in chosen:
        promise(held, node, max(begin, now), max(end, begin + unit))
    return True


@bare()
def promise(held, node, begin, end):
    """Promise a node."""
    promised = held.count[PROMISED]
    held.promised[promised] = node
    held.begin[promised] = begin
    held.end[promised] = end
    held.count[PROMISED] = promised + 1
    held.until[node] = min(held.until[node], begin)
    promise_place = promised
    while promise_place > 0 and held.begin[held.by_begin[promise_place - 1]] > begin:
        held.by_begin[promise_place] = held.by_begin[promise_place - 1]
        promise_place -= 1
    held.by_begin[promise_place] = promised
    promise_place = promised
    while promise_place > 0 and held.end[held.by_end[promise_place - 1]] > end:
        held.by_end[promise_place] = held.by_end[promise_place - 1]
        promise_place -= 1
    held.by_end[promise_place] = promised
