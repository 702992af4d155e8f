"""Slurm's own rule, compiled: the main loop, and the pass of backfill beside promises that hold their nodes whole.

It is what slurmctld 22.05 does (select/cons_tres, sched/backfill), decision by decision: `data/slurm/`.
"""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.node_index import charge, charge_typed, has_room
from gpuschedlab.papers.clusters.schedulers.slurm_nodes import (
    GPU,
    Held,
    choose,
    choose_after,
    earliest,
    end_of_group,
    room_for,
    suffice,
)


@njit
def start(held, end, out, k, each, slots):
    """Let a job run on the k chosen nodes until an instant; the last of them gives what is left."""
    r = held.count[0]
    at = held.first[held.count[0]]
    left = slots
    for i in range(k):
        held.node[at + i] = out[i]
        held.slots[at + i] = min(left, each if each < slots or k == 1 else held.room[out[i]])
        held.room[out[i]] -= held.slots[at + i]
        left -= held.slots[at + i]
    held.first[r + 1] = at + k
    sort_in(held, end)


@njit
def take_quotas(claims, q, held, spare):
    """Take from the quotas what the q-th waiting job claims, which has just started."""
    charge(claims, q, spare)
    last = held.count[0] - 1
    for c in range(held.first[last], held.first[last + 1]):
        charge_typed(claims, q, held.types[held.node[c]], held.slots[c], spare)


@njit
def sort_in(held, end):
    """One job more runs until an instant."""
    r = i = held.count[0]
    while i > 0 and held.ends[held.order[i - 1]] > end:
        held.order[i] = held.order[i - 1]
        i -= 1
    held.order[i] = r
    held.ends[r] = end
    held.count[0] = r + 1


@njit
def next_promise(held, opens, past):
    """Return the instant at which the next promise begins or ends, or inf if none does: `opens` have begun, `past` have ended."""
    later = np.inf
    if opens < held.count[1]:
        later = held.begin[held.by_begin[opens]]
    if past < held.count[1]:
        later = min(later, held.end[held.by_end[past]])
    return later


@njit
def group_end(now, held, near, after, epoch):
    """Return the place of the last end of the first group that ends at an instant or later, and when; -1 and inf if none does."""
    i = end_of_group(held.ends, held.order, held.count[0], held.first, held.node, near, after, epoch)
    if i < 0:
        return i, np.inf
    end = held.ends[held.order[i]]
    if end > now:
        return i, end
    return i, now + 1.0


@njit(inline="never")
def attempt(now, held, ask, each, wide, nodes, reach, rule, epoch, reserves, out):
    """Instant at which a job starts beside all promises, and on how many nodes; if it is later, they are promised.

    Until the next promise begins or ends, nodes without one to the job's end are usable, and enough have room from `need`. Slurm
    follows the ends of jobs on all nodes of the partition (`near`), of whatever GPU type.
    """
    at = now
    need = -np.inf
    total = held.count[1]
    found = room_for(held, each)
    taken = np.zeros(nodes.shape[0], np.int64)
    usable = nodes.copy()
    near = reach.copy()
    into = 0
    opens = 0
    past = 0
    free = usable.sum()
    while at <= now + rule.window and at < np.inf:
        while into < total and held.begin[held.by_begin[into]] <= at + ask.estimate:
            n = held.promised[held.by_begin[into]]
            free -= usable[n]
            taken[n] = taken[n] + 1
            usable[n] = False
            near[n] = False
            into = into + 1
        while opens < total and held.begin[held.by_begin[opens]] <= at:
            opens += 1
        while past < total and held.end[held.by_end[past]] <= at:
            n = held.promised[held.by_end[past]]
            taken[n] = taken[n] - 1
            past = past + 1
            if taken[n] == 0:
                near[n] = reach[n]
            if taken[n] == 0 and nodes[n]:
                usable[n] = True
                free = free + 1
                need = min(need, found[n])
        later = next_promise(held, opens, past)
        if wide > 0 and free >= wide and need <= later:
            need = earliest(found, usable, wide)
        if free < wide or need > later or need == np.inf:
            at = later
            continue
        begin = now
        k = 0
        if need == -np.inf:
            k = choose(held.room, usable, each, wide, held.count[3] == 1, out)
        if k > 0 and at == now:
            return now, k
        after = need
        while k == 0 and begin <= later and begin < np.inf:
            i, begin = group_end(now, held, near, after, epoch)
            if begin <= later and begin < np.inf:
                k = choose_after(held, i, usable, each, wide, out)
                after = np.nextafter(held.ends[held.order[i]], np.inf)
        begin = max(begin, at)
        if not reserves or now + rule.window < begin <= later:
            return np.inf, 0
        if begin > later or k == 0:
            at = later
            continue
        if hold(held, now, begin, ask.estimate, k, rule, epoch, out):
            return begin, k
        at = later if begin == at else begin  # times round: what overlaps now may do so again
    return np.inf, 0


@njit(inline="never")
def hold(held, now, begin, estimate, k, rule, epoch, out):
    """Promise the k chosen nodes from an instant, in whole slots, if no other promise overlaps; whether it was done."""
    unit = max(rule.resolution, 1e-9)
    end = np.floor((begin + estimate + epoch) / unit + 1e-9) * unit - epoch
    begin = np.floor((begin + epoch) / unit + 1e-9) * unit - epoch
    for i in range(held.count[1]):
        for m in range(k):
            if held.promised[i] == out[m] and held.end[i] > begin and held.begin[i] < end:
                return False
    for m in range(k):
        promise(held, out[m], max(begin, now), max(end, begin + unit))
    return True


@njit
def promise(held, node, begin, end):
    """Promise a node."""
    i = j = k = held.count[1]
    held.promised[i] = node
    held.begin[i] = begin
    held.end[i] = end
    held.count[1] = i + 1
    held.until[node] = min(held.until[node], begin)
    while j > 0 and held.begin[held.by_begin[j - 1]] > begin:
        held.by_begin[j] = held.by_begin[j - 1]
        j -= 1
    while k > 0 and held.end[held.by_end[k - 1]] > end:
        held.by_end[k] = held.by_end[k - 1]
        k -= 1
    held.by_begin[j] = held.by_end[k] = i


@njit(inline="never")
def share(nodes, ask, usable, part):
    """Nodes of a waiting job, as asked or the fewest with equal parts of whole GPUs, and slots on each; else 0, all slots."""
    if part[1] == 0:
        part[1] = ask.slots
        unit = GPU if ask.slots >= GPU else 1
        never = np.full(nodes.shape[0], np.inf)
        for wide in range(max(ask.asked, 1), (ask.asked or nodes.shape[0]) + 1):
            each = -(-ask.slots // (wide * unit)) * unit
            if suffice(nodes["size"], usable, never, 0.0, each, wide):
                part[0] = wide
                part[1] = each
                break
    return part[0], part[1]


@njit(inline="never")
def who_has(now, nodes, runs, cells, windows, queue, gres):
    """Who has which nodes, with room for what waits; outages that are announced are promises."""
    n = runs.shape[0] - 1
    k = cells.shape[0]
    w = windows.shape[0]
    most = np.minimum(nodes.shape[0], np.maximum(queue["asked"], -(-queue["slots"] // GPU))).sum()
    r = n + queue.shape[0]
    whole = np.empty((7, r + k + most + w + 1), np.int64)
    times = np.empty((3, r + w + most))
    lasts = np.full(nodes.shape[0], np.inf)
    rooms = np.empty((8, nodes.shape[0] + 1))
    first = whole[1]
    node = whole[2]
    slots = whole[3]
    room = nodes["free"].astype(np.int64)
    held = Held(
        np.zeros(4, np.int64),
        whole[0],
        times[0],
        first,
        node,
        slots,
        room,
        nodes["type"],
        whole[4],
        times[1],
        times[2],
        whole[5],
        whole[6],
        lasts,
        rooms,
    )
    held.count[3] = gres
    first[: n + 1] = runs["first"]
    node[:k] = cells["node"]
    slots[:k] = cells["slots"]
    held.ends[:n] = runs["end"][:n]
    held.order[:n] = np.argsort(runs["end"][:n], kind="mergesort")
    held.count[0] = n
    for i in range(w):
        if windows[i].announced <= now < windows[i].end:
            promise(held, windows[i].node, max(windows[i].start, now), windows[i].end)
    return held


@njit(inline="never")
def backfill(now, held, nodes, queue, part, allowed, reach, rule, depth, epoch, started, out, claims, spare):
    """Start or promise, in order, as long as any job may still start beside the promises; the first promise (s).

    A job whose owner has reached a limit starts in no way, and is promised nothing.
    """
    first = np.inf
    last = -1
    promised = 0
    tested = 0.0
    q = -1
    while tested < rule.tested and last < queue.shape[0] - 1:
        last += 1
        tested += started[last] < 0
    while q < last:
        q += 1
        a = queue[q]
        while last >= q and (
            started[last] >= 0
            or not has_room(claims, last, spare)
            or not may_start(now, held, nodes, queue[last], part[last], allowed)
        ):
            last -= 1
        reserves = promised < depth and now - a.submit >= rule.min_age
        if (
            q <= last
            and started[q] < 0
            and has_room(claims, q, spare)
            and (reserves or may_start(now, held, nodes, a, part[q], allowed))
        ):
            wide, each = share(nodes, a, allowed[a.kind], part[q])
            begin, k = attempt(now, held, a, each, wide, allowed[a.kind], reach[a.kind], rule, epoch, reserves, out)
            if k > 0 and begin <= now:
                started[q] = held.count[0]
                held.count[2] = 0
                start(held, now + a.estimate, out, k, each, a.slots)
                take_quotas(claims, q, held, spare)
            elif k > 0:
                first = min(first, begin)
                promised = promised + 1
    return first


@njit(inline="never")
def may_start(now, held, nodes, ask, part, allowed):
    """Whether a job fits now, beside the promises so far."""
    wide, each = share(nodes, ask, allowed[ask.kind], part)
    end = now + ask.estimate
    return suffice(held.room, allowed[ask.kind], held.until, end, each if wide else GPU, wide)


@njit(inline="never")
def plan(now, nodes, runs, queue, windows, rule, cells, allowed, reach, wake, claims, spare, epoch, way, gres):
    """Answer of `gpuschedlab.Ordered.planner`; way: whether later jobs pass never (0), beside promises, or freely (2).

    `gres`: whether jobs ask for GPUs as GRES (`choose`).
    What jobs that start claim is taken from what is left of the quotas.
    """
    part = np.zeros((queue.shape[0], 2), np.int64)
    out = np.empty(nodes.shape[0], np.int64)
    held = who_has(now, nodes, runs, cells, windows, queue, gres)
    started = np.full(queue.shape[0], -1)
    barred = np.zeros(nodes.shape[0], np.bool_)
    # The main loop: a job that does not fit keeps its nodes from all after it; one at a limit does not.
    for q in range(queue.shape[0]):
        if not has_room(claims, q, spare):
            continue
        a = queue[q]
        wide, each = share(nodes, a, allowed[a.kind], part[q])
        usable = allowed[a.kind] & ~barred
        for i in range(held.count[1]):
            usable[held.promised[i]] &= held.begin[i] >= now + a.estimate
        k = choose(held.room, usable, each, wide, held.count[3] == 1, out)
        if k > 0:
            started[q] = held.count[0]
            start(held, now + a.estimate, out, k, each, a.slots)
            take_quotas(claims, q, held, spare)
        else:
            barred |= reach[a.kind]
            if barred.all():
                break
    between = rule.every > 0 and np.ceil(now / rule.every - 1e-9) * rule.every > now
    wake[0] = now if between else np.inf
    if way > 0 and not between:
        depth = 0.0 if way == 2 else rule.depth
        wake[0] = backfill(
            now, held, nodes, queue, part, allowed, reach, rule, depth, epoch, started, out, claims, spare
        )
    first = held.first[runs.shape[0] - 1]
    k = 0
    answer = np.empty(held.first[held.count[0]] - first, cells.dtype)
    for q in np.flatnonzero(started >= 0):
        for c in range(held.first[started[q]], held.first[started[q] + 1]):
            answer[k].answer = q
            answer[k].node = held.node[c]
            answer[k].slots = held.slots[c]
            k += 1
    return answer
