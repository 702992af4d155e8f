"""Compiled preemptive decisions: keys that drift, the gate, and which jobs are preempted."""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.sim.engine.accounting import blame, drift_key, may_use, nth_pool, refresh, refresh_waiting, take
from gpuschedlab.sim.engine.backfill import (
    ANY,
    GREEDY,
    close_behind,
    fill,
    first_waiting,
    most_free,
    open_classes,
    try_start,
)
from gpuschedlab.sim.engine.lifecycle import preempt
from gpuschedlab.sim.engine.queues import (
    ahead,
    drop_waiting,
    first_queued,
    heaped,
    moved_waiting,
    place_in_rank,
    push_waiting,
    queue_classes,
    requeue,
    sort_rank,
)
from gpuschedlab.sim.engine.records import ALL, BAD_GATE, FALLING, WAITING

STEPS = 8
"""Steps from a guess up to which a place in an order is looked for by steps."""
BEHIND = 1e12
"""What is added to the key of a job that the gate holds back."""


@njit(inline="never")
def rekey(S):
    """Bring drifting keys up to date: those of jobs that may be preempted, and of waiting ones where theirs drift, too."""
    moving = S.rule[0].moving
    sc = S.scalar[0]
    at = 0
    if moving == FALLING and S.rule[0].fraction == 1:  # jobs before the first waiting one only move forward
        open_classes(S)
        at = place_in_rank(S, first_waiting(S), 0, sc.ranked)
    for i in range(at, sc.ranked):
        refresh(S, S.rank[i])
    if moving == ALL:
        for c in range(S.cls.shape[0]):
            k = S.cls[c]
            for i in range(k.first, k.first + k.count):
                j = S.heap[i]
                refresh(S, j)
                drift_key(S, j)
    for i in range(at, sc.ranked):
        drift_key(S, S.rank[i])
    if S.rule[0].fraction < 1:
        apply_gate(S)
    if moving == ALL:
        for c in range(S.cls.shape[0]):
            k = S.cls[c]
            heaped(S, c)
    sort_rank(S, at)


@njit(inline="never")
def gate_values(S, values):
    """Fill in the gate values of the jobs that compete: those that may be preempted, then all that wait; False: one is NaN.

    `marked` lists them, and `victims` has which of them the gate holds back so far.
    """
    now, integral, gate, knobs = S.scalar[0].now, S.scalar[0].contention, S.gate, S.knobs
    job, body, heap = S.job, S.body, S.heap  # once: most of what a gate costs is here
    marked, held = S.marked, S.victims
    n = 0
    for i in range(S.scalar[0].ranked):
        j = S.rank[i]
        refresh(S, j)
        marked[n], held[n] = j, body[j].gated
        values[n] = gate(now, job[j], knobs)
        n += 1
    for c in range(S.cls.shape[0]):
        first = S.cls[c].first
        for i in range(first, first + S.cls[c].count):
            j = heap[i]
            refresh_waiting(job[j], body[j], now, integral)
            marked[n], held[n] = j, body[j].gated
            values[n] = gate(now, job[j], knobs)
            n += 1
    wrong = 0
    for i in range(n):
        wrong += np.isnan(values[i])
    if wrong > 0:
        blame(S, marked[np.isnan(values).argmax()], BAD_GATE)
    return wrong == 0


@njit
def hold_back(S, j, held):
    """Let job j go behind all that pass the gate (1), or no longer (0)."""
    drift_key(S, j)
    if held == 1:
        S.body[j].key += BEHIND
        S.body[j].gated = 1
    if S.job[j].state == WAITING and S.rule[0].moving != ALL:
        moved_waiting(S, j)


@njit
def below(values, limit):
    """How many values are below a limit."""
    n = 0
    for i in range(values.shape[0]):
        n += values[i] < limit
    return n


@njit
def next_above(values, limit):
    """Smallest value above a limit."""
    found = np.inf
    for i in range(values.shape[0]):
        found = min(found, values[i] if values[i] > limit else np.inf)
    return found


@njit
def next_below(values, limit):
    """Largest value below a limit."""
    found = -np.inf
    for i in range(values.shape[0]):
        found = max(found, values[i] if values[i] < limit else -np.inf)
    return found


@njit(inline="never")
def select(a, k):
    """The k-th value of a, from 0, which is moved about. Quickselect (Hoare, 1961): np.partition takes ten seconds to compile."""
    low, high = 0, a.size - 1
    while low < high:
        pivot, i, j = a[(low + high) // 2], low, high
        while i <= j:
            while a[i] < pivot:
                i += 1
            while a[j] > pivot:
                j -= 1
            if i <= j:
                a[i], a[j] = a[j], a[i]
                i, j = i + 1, j - 1
        if j < k < i:
            break
        low, high = (low, j) if k <= j else (i, high)
    return a[k]


@njit(inline="never")
def smallest(values, k, guess):
    """The k-th smallest of n values: a few steps from a guess that is near, such as that of the last decision."""
    first = below(values, guess)  # the guess, were it one of them, would be at place first + 1
    if abs(first + 1 - k) > STEPS:
        return select(values.copy(), k - 1)
    if first >= k:
        while first >= k:
            guess = next_below(values, guess)
            first = below(values, guess)
        return guess
    upto = first + (values == guess).sum()
    while upto < k:
        guess = next_above(values, guess)
        upto += (values == guess).sum()
    return guess


@njit(inline="never")
def apply_gate(S):
    """Let a fraction of the competing jobs, those with the lowest gate values, go before the others."""
    n = S.scalar[0].ranked + S.scalar[0].waiting
    values = np.empty(n)
    if not gate_values(S, values):
        return
    passed = max(1, int(np.ceil(S.rule[0].fraction * n)))
    last = smallest(values, passed, S.scalar[0].gate)
    S.scalar[0].gate = last
    equal = passed - below(values, last)  # of the jobs exactly at the gate, so many pass
    marked, held = S.marked, S.victims
    for i in range(n):
        back = 1 if values[i] >= last else 0
        if values[i] == last and equal > 0:
            equal -= 1
            back = 0
        if held[i] != back:
            hold_back(S, marked[i], back)


@njit(inline="never")
def choose(S, at, room, chosen, keep):
    """Walk the jobs behind place `at` of the rank, and the waiting ones, in order while room lasts.

    Marks running jobs to keep, takes waiting ones out of their classes; how many it took.
    """
    sc = S.scalar[0]
    picked = 0
    for i in range(at, sc.ranked):
        b = S.body[S.rank[i]]
        # Two that share their GPUs stay: to take one away frees nothing.
        keep[i] = 1 if b.partner >= 0 else 0
        if keep[i] == 0:
            room[b.pool] += b.got
    greedy = S.rule[0].backfill == GREEDY
    n = queue_classes(S, room.max() if greedy else ANY)
    left = room.sum()
    i = at
    while left > 0:
        while i < sc.ranked and keep[i] == 1:
            i += 1
        j = first_queued(S, n)
        r = S.rank[i] if i < sc.ranked else -1
        if j < 0 and r < 0:
            break
        if r >= 0 and (j < 0 or ahead(S.body, r, j)):
            b = S.body[r]
            if room[b.pool] >= b.got:
                room[b.pool] -= b.got
                left -= b.got
                keep[i] = 1
            i += 1
            continue
        fits = False
        for turn in range(room.shape[0]):
            p = nth_pool(S, j, turn)
            if may_use(S, j, p) and room[p] >= S.body[j].slots:
                room[p] -= S.body[j].slots
                left -= S.body[j].slots
                fits = True
                break
        if fits:
            drop_waiting(S, j)
            chosen[picked] = j
            picked += 1
        elif greedy:
            S.cls[S.body[j].cls].open = 0
        else:
            S.cls[S.body[j].cls].open = 0
            close_behind(S, j)
        n = requeue(S, n)
    return picked


@njit(inline="never")
def none_fits(S):
    """Whether no pool has as many free slots as any waiting job wants."""
    least = ANY
    for c in range(S.cls.shape[0]):
        if S.cls[c].count > 0:
            least = min(least, S.cls[c].slots)
    return least > most_free(S)


@njit
def nothing_to_give(S):
    """Whether no running job may be preempted and no waiting one can be placed or may share."""
    sc = S.scalar[0]
    return sc.ranked == 0 and S.rule[0].sharing == 0 and (sc.exhausted == 1 or none_fits(S))


@njit(inline="never")
def settled(S):
    """Whether the order cannot change which jobs run: none waits, or none fits and all go after those that run."""
    sc = S.scalar[0]
    if open_classes(S) == 0:
        return True
    if S.rule[0].sharing == 1 or not none_fits(S):
        return False
    for c in range(S.cls.shape[0]):
        k = S.cls[c]
        if k.count > 0 and sc.ranked > 0 and ahead(S.body, S.heap[k.first], S.rank[sc.ranked - 1]):
            return False
    return True


@njit(inline="never")
def vacate(S, j):
    """Free the GPUs of running job j for the rest of a decision; it remembers them (`reclaim`)."""
    e = S.body[j].head
    while e >= 0:
        entry = S.entry[e]
        take(S, entry.node, -entry.slots)
        S.nodes[entry.node].mask &= ~entry.mask
        e = entry.next


@njit(inline="never")
def reclaim(S, j):
    """Take the GPUs that running job j vacated again; False, and nothing is taken: others hold some of them."""
    e = S.body[j].head
    while e >= 0:
        n = S.nodes[S.entry[e].node]
        if n.free < S.entry[e].slots or n.mask & S.entry[e].mask:
            return False
        e = S.entry[e].next
    e = S.body[j].head
    while e >= 0:
        entry = S.entry[e]
        take(S, entry.node, entry.slots)
        S.nodes[entry.node].mask |= entry.mask
        e = entry.next
    return True


@njit(inline="never")
def reorder(S):
    """Preemptive decision: the first jobs in order that fit run; one whose GPUs no other took stays after all."""
    if settled(S):
        return
    at = place_in_rank(S, first_waiting(S), 0, S.scalar[0].ranked)  # all before the first waiting job stay
    room = S.pools["free"].copy()
    chosen = S.chosen
    keep = S.marked
    picked = choose(S, at, room, chosen, keep)
    victims = S.victims
    n = 0
    for i in range(at, S.scalar[0].ranked):
        if keep[i] == 0:
            victims[n] = S.rank[i]
            vacate(S, S.rank[i])
            n += 1
    open_classes(S)
    for i in range(picked):
        push_waiting(S, chosen[i])
    # They were counted in by slots alone; fragments or the placement rule may still leave one out.
    for i in range(picked):
        try_start(S, chosen[i])
    for i in range(n):
        if not reclaim(S, victims[i]):
            S.body[victims[i]].vacated = 1
            preempt(S, victims[i])
    fill(S)
