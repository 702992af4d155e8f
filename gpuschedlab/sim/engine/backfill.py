"""Compiled decisions without preemption: which jobs start, which may pass others, which share.

Jobs of equal demand form a class. Within a decision room only shrinks, so once one job of a class cannot be placed
none of it can: only the heads of the open classes are ever compared, and the answer is the same as a walk down the
whole queue.
"""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.node_index import count_sizes, fewest_nodes
from gpuschedlab.cluster.placement import insists
from gpuschedlab.sim.engine.accounting import factor_of, find_place, is_patient, may_use
from gpuschedlab.sim.engine.lifecycle import can_host, hold, join, start
from gpuschedlab.sim.engine.queues import ahead, drop_waiting, first_queued, queue_classes, requeue

STRICT, EASY, GREEDY = range(3)
ANY = 2**31 - 1  # slots, more than any job's


@njit(inline="never")
def open_classes(S):
    """Open every class that has waiting jobs; how many."""
    n = 0
    for c in range(S.cls.shape[0]):
        S.cls[c].open = 1 if S.cls[c].count > 0 else 0
        n += S.cls[c].open
    return n


@njit
def most_free(S):
    """Free slots of the pool that has most."""
    most = 0
    for p in range(S.pools.shape[0]):
        most = max(most, S.pools[p].free)
    return most


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
def can_place(S, j):
    """Whether some pool can place waiting job j now."""
    nodes = 0
    for p in range(S.pools.shape[0]):
        if may_use(S, j, p):
            nodes = max(nodes, find_place(S, j, S.body[j].slots, p))
    return nodes > 0


@njit(inline="never")
def start_on(S, j, pool):
    """Start waiting job j (still in its class) on nodes of a pool that it may use, if they can be found now."""
    slots = S.body[j].slots
    k = find_place(S, j, slots, pool)
    if k > 0:
        drop_waiting(S, j)
        hold(S, j, k, S.place_node, S.place_slots)
        start(S, j, S.pools[pool].type, slots)
    return k > 0


@njit(inline="never")
def try_start(S, j):
    """Start waiting job j (still in its class) if some pool can place it now."""
    p = 0
    while p < S.pools.shape[0] and not (may_use(S, j, p) and start_on(S, j, p)):
        p += 1
    return p < S.pools.shape[0]


@njit(inline="never")
def first_host(S, j, c):
    """First running job of class c, in order, that could take j as a guest, or -1."""
    host = -1
    for i in range(S.scalar[0].running):
        h = S.running[i]
        fits = S.body[h].cls == c and can_host(S, h) and S.known[S.body[j].knows, S.body[h].type] == 1
        if fits and (host < 0 or ahead(S.body, h, host)):
            host = h
    return host


@njit(inline="never")
def find_host(S, j):
    """Running job of the same demand with which j would go best together (sum of relative speeds), or -1."""
    m = S.job[j].model
    host = -1
    most = S.rule[0].share_limit
    if m < 0 or S.job[j].stage == 1:
        return -1
    for c in range(S.cls.shape[0]):
        k = S.cls[c]
        if k.hosts > 0 and k.slots == S.body[j].slots:
            total = factor_of(S.sharing, m, k.model) + factor_of(S.sharing, k.model, m)
            if total > most or (total == most and host < 0):
                h = first_host(S, j, c)
                if h >= 0:
                    host, most = h, total
    return host


@njit(inline="never")
def try_share(S, j):
    """Start waiting job j as the guest of a running one, if a good enough host runs."""
    h = find_host(S, j)
    if h < 0:
        return False
    drop_waiting(S, j)
    join(S, j, h, 0)
    return True


@njit(inline="never")
def fill(S):
    """Start waiting jobs in order while they fit; one that does not closes its class, or (strict) its whole stage."""
    r = S.rule[0]
    if open_classes(S) == 0 or (S.scalar[0].used == S.scalar[0].capacity and r.sharing == 0):
        return
    # Free capacity only shrinks within a decision, so what does not fit now can be skipped under greedy backfill.
    n = queue_classes(S, most_free(S) if r.backfill == GREEDY and r.sharing == 0 else ANY)
    while n > 0:
        j = first_queued(S, n)
        if not try_start(S, j) and (r.sharing == 0 or not try_share(S, j)):
            S.cls[S.body[j].cls].open = 0
            if r.backfill != GREEDY:
                for c in range(S.cls.shape[0]):
                    if S.cls[c].stage == S.job[j].stage:
                        S.cls[c].open = 0
        n = requeue(S, n)


@njit(inline="never")
def up_suffices(S, j):
    """Whether the nodes that are up could hold waiting job j by the placement rule, were they empty."""
    slots, insisting = S.body[j].slots, insists(S.rule[0].placement, is_patient(S, j))
    for p in range(S.pools.shape[0]):
        k = S.pools[p]
        if not may_use(S, j, p) or k.size < slots:
            continue
        if k.size == k.total or not insisting:
            return True
        up = np.empty_like(S.sizes)
        count_sizes(S.nodes, up, True)
        if fewest_nodes(up, p, slots) <= fewest_nodes(S.sizes, p, slots):
            return True
    return False


@njit(inline="never")
def first_reserving(S):
    """First waiting job that has to wait for running ones, -1: none; those that fit and go before it start.

    A job that needs nodes which are down has to wait for a repair. No scheduler knows when that will be, nor may others wait
    for it: nothing is kept for such a job.
    """
    head = first_waiting(S)
    while head >= 0 and not up_suffices(S, head):
        S.cls[S.body[head].cls].open = 0
        head = first_waiting(S)
        while head >= 0 and try_start(S, head):
            head = first_waiting(S)
    return head


@njit(inline="never")
def shadow(S, j):
    """The pool that by the estimates has room for waiting job j first, when (s), and how many more of its slots are free then."""
    n, now = S.scalar[0].running, S.scalar[0].now
    ends = np.empty(n)
    for i in range(n):
        job = S.job[S.running[i]]
        ends[i] = max(now, job.started + job.estimate)
    order = np.argsort(ends)
    pool, until, extra = -1, np.inf, 0
    for p in range(S.pools.shape[0]):
        if not may_use(S, j, p):
            continue
        at, free = now, S.pools[p].free
        for i in order:
            if free >= S.body[j].slots and ends[i] > at:  # all that end by then count, in whatever order they tie
                break
            other = S.body[S.running[i]]
            if other.pool == p and other.guest == 0:
                free += other.got
                at = ends[i]
        if free < S.body[j].slots:
            at = np.inf
        if pool < 0 or at < until:
            pool, until, extra = p, at, free - S.body[j].slots
    return pool, until, extra


@njit(inline="never")
def next_backfill(S, pool, until, extra):
    """First waiting job of the open classes that may start beside what a pool keeps for the head, and where; -1: none.

    On that pool it must end by `until` (s) or need at most `extra` slots.
    """
    best, place = -1, -1
    for c in range(S.cls.shape[0]):
        k = S.cls[c]
        for p in range(S.pools.shape[0]):
            if S.pools[p].free < k.slots:
                k.open &= ~(1 << p)
        count = k.count if k.open != 0 else 0
        if k.slots <= extra or k.open & ~(1 << pool) != 0:  # all may start, the first of them first
            count = min(count, 1)
        for i in range(k.first, k.first + count):
            j = S.heap[i]
            if best >= 0 and not ahead(S.body, j, best):
                continue
            passes = k.slots <= extra or S.scalar[0].now + S.job[j].estimate <= until
            pools = k.open if passes else k.open & ~(1 << pool)
            if pools != 0:
                best, place = j, 0
                while pools >> place & 1 == 0:
                    place += 1
    return best, place


@njit(inline="never")
def easy(S):
    """EASY backfill: later jobs may start if, by the estimates, they do not delay the first one (`first_reserving`)."""
    fill(S)
    if S.scalar[0].used == S.scalar[0].capacity or open_classes(S) == 0:
        return
    head = first_reserving(S)
    if head < 0:
        return
    pool, until, extra = shadow(S, head)
    for c in range(S.cls.shape[0]):  # from here on, a class is open on some pools, a bit each
        k = S.cls[c]
        pools = 0
        for p in range(S.pools.shape[0]):
            if k.open == 1 and k.count > 0 and may_use(S, S.heap[k.first], p):
                pools |= 1 << p
        k.open = pools
    j, p = next_backfill(S, pool, until, extra)
    while j >= 0:
        if not start_on(S, j, p):
            S.cls[S.body[j].cls].open &= ~(1 << p)
        elif p == pool and S.scalar[0].now + S.job[j].estimate > until:
            extra -= S.body[j].slots
        j, p = next_backfill(S, pool, until, extra)
