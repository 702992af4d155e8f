"""Compiled decisions of ordered policies: who starts, who is suspended, who shares.

Jobs of equal demand form a class. Within a decision room only shrinks, so once one job of a class cannot be placed
none of it can: only the heads of the open classes are ever compared, and the answer is the same as a walk down the
whole queue.
"""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.sim.engine import (
    can_host,
    count_host,
    find_place,
    hold,
    log_stretch,
    preempt,
    refresh,
    set_rate,
    start,
    take,
    wake,
)
from gpuschedlab.sim.heaps import ahead, drop_waiting, moved_waiting, place_in_rank, push_waiting, sort_rank

STRICT, EASY, GREEDY = range(3)


@njit(inline="never")
def open_classes(S):
    """Open every class that has waiting jobs; how many."""
    n = 0
    for c in range(S.cls.shape[0]):
        S.cls[c].open = 1 if S.cls[c].count > 0 else 0
        n += S.cls[c].open
    return n


@njit(inline="never")
def first_waiting(S):
    """Head of the open classes that goes first, or -1."""
    best = -1
    for c in range(S.cls.shape[0]):
        k = S.cls[c]
        if k.open == 1 and k.count > 0:
            j = S.heap[k.first]
            if best < 0 or ahead(S.body, j, best):
                best = j
    return best


@njit(inline="never")
def try_start(S, j, fns, raw):
    """Start waiting job j (still in its class) if some pool can place it now."""
    slots = S.body[j].slots
    for p in range(S.pools.shape[0]):
        if S.pools[p, 1] != S.job[j].stage:
            continue
        k = find_place(S, j, slots, p)
        if k > 0:
            drop_waiting(S, j)
            hold(S, j, k, S.scratch[0], S.scratch[1])
            start(S, j, S.pools[p, 0], slots, fns, raw)
            return True
    return False


@njit(inline="never")
def find_host(S, j):
    """Running job of the same demand with which j would go best together (sum of relative speeds), or -1."""
    m = S.job[j].model
    best = -1
    most = S.rule[0].share_limit
    if m < 0 or S.job[j].stage == 1:
        return -1
    for c in range(S.cls.shape[0]):
        k = S.cls[c]
        if k.hosts > 0 and k.slots == S.body[j].slots:
            total = S.sharing[m, k.model] + S.sharing[k.model, m]
            if total > most or (total == most and best < 0):
                best = c
                most = total
    if best < 0:
        return -1
    for i in range(S.scalar[0].running):
        h = S.rank[i]
        if S.body[h].cls == best and can_host(S, h):
            return h
    return -1


@njit(inline="never")
def try_share(S, j, fns, raw):
    """Start waiting job j as the guest of a running one, if a good enough host runs."""
    h = find_host(S, j)
    if h < 0:
        return False
    drop_waiting(S, j)
    refresh(S, h)
    log_stretch(S, h)
    count_host(S, h, -1)
    o = S.body[h]
    b = S.body[j]
    b.partner = h
    b.guest = 1
    b.nodes = o.nodes
    o.partner = j
    start(S, j, o.type, b.slots, fns, raw)
    set_rate(S, h)
    wake(S, h, fns[1], raw)
    return True


@njit(inline="never")
def fill(S, fns, raw):
    """Start waiting jobs in order while they fit; one that does not closes its class, or (strict) its whole stage."""
    r = S.rule[0]
    if open_classes(S) == 0 or (S.scalar[0].used == S.scalar[0].capacity and r.sharing == 0):
        return
    while True:
        j = first_waiting(S)
        if j < 0:
            return
        if try_start(S, j, fns, raw) or (r.sharing == 1 and try_share(S, j, fns, raw)):
            continue
        S.cls[S.body[j].cls].open = 0
        if r.backfill != GREEDY:
            for c in range(S.cls.shape[0]):
                if S.cls[c].stage == S.job[j].stage:
                    S.cls[c].open = 0


@njit(inline="never")
def shadow(S, need):
    """When, by the estimates, `need` slots will be free, and how many more are free then."""
    n = S.scalar[0].running
    now = S.scalar[0].now
    ends = np.empty(n)
    for i in range(n):
        job = S.job[S.rank[i]]
        ends[i] = max(now, job.started + job.estimate)
    order = np.argsort(ends)
    free = S.scalar[0].capacity - S.scalar[0].used
    for i in range(n):
        if free >= need and ends[order[i]] > now:  # all that end by then count, in whatever order they tie
            break
        free += S.body[S.rank[order[i]]].got
        now = ends[order[i]]
    return now, free - need


@njit(inline="never")
def next_backfill(S, until, extra):
    """First waiting job of the open classes that ends by `until` (s) or needs at most `extra` slots, or -1."""
    best = -1
    for c in range(S.cls.shape[0]):
        k = S.cls[c]
        if k.open == 0 or S.pools[:, 2].max() < k.slots:
            continue
        for i in range(k.first, k.first + k.count):
            j = S.heap[i]
            if (k.slots <= extra or S.scalar[0].now + S.job[j].estimate <= until) and (
                best < 0 or ahead(S.body, j, best)
            ):
                best = j
    return best


@njit(inline="never")
def easy(S, fns, raw):
    """EASY backfill: later jobs may start if, by the estimates, they do not delay the first one."""
    fill(S, fns, raw)
    if S.scalar[0].used == S.scalar[0].capacity or open_classes(S) == 0:
        return
    head = first_waiting(S)
    until, extra = shadow(S, S.body[head].slots)
    j = next_backfill(S, until, extra)
    while j >= 0:
        if j == head or not try_start(S, j, fns, raw):
            S.cls[S.body[j].cls].open = 0
        elif S.scalar[0].now + S.job[j].estimate > until:
            extra -= S.body[j].slots
        j = next_backfill(S, until, extra)


@njit(inline="never")
def rekey(S, fns, raw):
    """Bring drifting keys up to date: running jobs', and waiting ones' where theirs drift, too."""
    now = S.scalar[0].now
    moving = S.rule[0].moving
    for i in range(S.scalar[0].running):
        refresh(S, S.rank[i])
    if moving == 2:
        for c in range(S.cls.shape[0]):
            k = S.cls[c]
            for i in range(k.first, k.first + k.count):
                j = S.heap[i]
                refresh(S, j)
                S.body[j].key = fns[0](now, S.job[j], raw)
    for i in range(S.scalar[0].running):
        j = S.rank[i]
        S.body[j].key = fns[0](now, S.job[j], raw)
    if S.rule[0].fraction < 1:
        gate(S, fns, raw)
    if moving == 2:
        for c in range(S.cls.shape[0]):
            k = S.cls[c]
            for i in range(k.first + k.count - 1, k.first - 1, -1):
                moved_waiting(S, S.heap[i])
    sort_rank(S)


@njit(inline="never")
def gate(S, fns, raw):
    """Let a fraction of the competing jobs, lowest gate value first, go before the others: their keys grow by 1e12."""
    n = 0
    who = S.scratch[3]
    for i in range(S.scalar[0].running):
        if S.body[S.rank[i]].lease <= S.scalar[0].now:  # a lease under way is not contested
            who[n] = S.rank[i]
            n += 1
    for c in range(S.cls.shape[0]):
        k = S.cls[c]
        for i in range(k.first, k.first + k.count):
            who[n] = S.heap[i]
            n += 1
    values = np.empty(n)
    for i in range(n):
        values[i] = fns[2](S.scalar[0].now, S.job[who[i]], raw)
    order = np.argsort(values, kind="mergesort")
    passed = max(1, int(np.ceil(S.rule[0].fraction * n)))
    for i in range(passed, n):
        S.body[who[order[i]]].key += 1e12


@njit(inline="never")
def choose(S, at, room, chosen, keep):
    """Walk the jobs behind place `at` of the rank, and the waiting ones, in order while room lasts.

    Marks running jobs to keep, takes waiting ones out of their classes; how many it took.
    """
    sc = S.scalar[0]
    picked = 0
    for i in range(at, sc.running):
        b = S.body[S.rank[i]]
        keep[i] = 1 if b.lease > sc.now or b.partner >= 0 else 0  # leases under way are not contested
        if keep[i] == 0:
            room[b.pool] += b.got
    i = at
    while True:
        while i < sc.running and keep[i] == 1:
            i += 1
        j = first_waiting(S)
        r = S.rank[i] if i < sc.running else -1
        if j < 0 and r < 0:
            return picked
        if r >= 0 and (j < 0 or ahead(S.body, r, j)):
            b = S.body[r]
            if room[b.pool] >= b.got:
                room[b.pool] -= b.got
                keep[i] = 1
            i += 1
            continue
        fits = False
        for p in range(room.shape[0]):
            if S.pools[p, 1] == S.job[j].stage and room[p] >= S.body[j].slots:
                room[p] -= S.body[j].slots
                fits = True
                break
        if fits:
            drop_waiting(S, j)
            chosen[picked] = j
            picked += 1
        elif S.rule[0].backfill == GREEDY:
            S.cls[S.body[j].cls].open = 0
        else:
            open_none(S)


@njit(inline="never")
def open_none(S):
    """Close every class."""
    for c in range(S.cls.shape[0]):
        S.cls[c].open = 0


@njit(inline="never")
def settled(S):
    """Whether the order cannot change who runs: nobody waits, or all waiting go after all running and none fits."""
    sc = S.scalar[0]
    if open_classes(S) == 0:
        return True
    if sc.running == 0:
        return False
    free = S.pools[:, 2].max()
    for c in range(S.cls.shape[0]):
        k = S.cls[c]
        if k.count > 0 and (k.slots <= free or ahead(S.body, S.heap[k.first], S.rank[sc.running - 1])):
            return False
    return True


@njit(inline="never")
def lend(S, j, sign):
    """Give back (1) or retake (-1) the nodes of running job j without forgetting them; False: some are in use."""
    e = S.body[j].head
    if sign < 0:
        while e >= 0:
            n = S.nodes[S.entry[e].node]
            if n.free < S.entry[e].slots or n.mask & S.entry[e].mask:
                return False
            e = S.entry[e].next
        e = S.body[j].head
    while e >= 0:
        entry = S.entry[e]
        take(S, entry.node, -sign * entry.slots)
        if sign > 0:
            S.nodes[entry.node].mask &= ~entry.mask
        else:
            S.nodes[entry.node].mask |= entry.mask
        e = entry.next
    return True


@njit(inline="never")
def reorder(S, fns, raw):
    """Preemptive decision: the first jobs in order that fit run; one whose GPUs nobody took stays after all."""
    if settled(S):
        return
    at = place_in_rank(S, first_waiting(S), 0, S.scalar[0].running)  # all before the first waiting job stay
    room = S.pools[:, 2].copy()
    chosen = S.scratch[2]
    keep = S.scratch[3]
    picked = choose(S, at, room, chosen, keep)
    victims = S.scratch[4]
    n = 0
    for i in range(at, S.scalar[0].running):
        if keep[i] == 0:
            victims[n] = S.rank[i]
            lend(S, S.rank[i], 1)
            n += 1
    open_classes(S)
    for i in range(picked):
        push_waiting(S, chosen[i])
    for i in range(picked):
        try_start(S, chosen[i], fns, raw)
    for i in range(n):
        if not lend(S, victims[i], -1):
            S.body[victims[i]].lent = 1
            preempt(S, victims[i], fns, raw)
    fill(S, fns, raw)
