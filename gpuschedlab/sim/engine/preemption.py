"""Compiled preemptive decisions: keys that drift, and which jobs are preempted."""

from gpuschedlab._compiled import njit
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
from gpuschedlab.sim.engine.gate import apply_gate
from gpuschedlab.sim.engine.jobs.accounting import drift_key, is_eligible, nth_pool, refresh, take
from gpuschedlab.sim.engine.jobs.lifecycle import preempt
from gpuschedlab.sim.engine.jobs.queues import (
    ahead,
    drop_waiting,
    first_queued,
    heaped,
    push_waiting,
    queue_classes,
    requeue,
)
from gpuschedlab.sim.engine.jobs.rank import most, place_in_rank, sort_rank, total
from gpuschedlab.sim.engine.jobs.records import ALL, FALLING
from gpuschedlab.sim.engine.jobs.state import DECISION


@njit(inline="never")
def rekey(S):
    """Bring drifting keys up to date: those of jobs that may be preempted, and of waiting ones if theirs drift, too."""
    moving = S.rule[0].moving
    sc = S.scalar[0]
    rank_place = 0
    if moving == FALLING and S.rule[0].fraction == 1:  # jobs before the first waiting one only move forward
        open_classes(S)
        rank_place = place_in_rank(S, first_waiting(S), 0, sc.ranked)
    for i in range(rank_place, sc.ranked):
        refresh(S, S.rank[i])
    if moving == ALL:
        for c in range(S.cls.shape[0]):
            k = S.cls[c]
            for i in range(k.first, k.first + k.count):
                j = S.heap[i]
                refresh(S, j)
                drift_key(S, j)
    for i in range(rank_place, sc.ranked):
        drift_key(S, S.rank[i])
    if S.rule[0].fraction < 1:
        apply_gate(S)
    if moving == ALL:
        for c in range(S.cls.shape[0]):
            heaped(S, c)
    sort_rank(S, rank_place)


@njit(inline="never")
def choose(S, at, room, chosen, keep):
    """Walk the jobs behind place `at` of the rank, and those waiting, in order while room lasts; return how many are picked."""
    # Marks running jobs to keep, takes waiting ones out of their classes; how many it took.
    sc = S.scalar[0]
    picked = 0
    for i in range(at, sc.ranked):
        b = S.body[S.rank[i]]
        # Two that share their GPUs stay: to take one away frees nothing.
        keep[i] = 1 if b.partner >= 0 else 0
        if keep[i] == 0:
            room[b.pool] += b.got
    greedy = S.rule[0].backfill == GREEDY
    n = queue_classes(S, most(room) if greedy else ANY)
    slots_left = total(room)
    i = at
    while slots_left > 0:
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
                slots_left -= b.got
                keep[i] = 1
            i += 1
            continue
        fits = False
        for turn in range(room.shape[0]):
            p = nth_pool(S, j, turn)
            if is_eligible(S, j, p) and room[p] >= S.body[j].slots:
                room[p] -= S.body[j].slots
                slots_left -= S.body[j].slots
                fits = True
                break
        if fits:
            drop_waiting(S, j)
            chosen[picked] = j
            picked += 1
        else:
            S.cls[S.body[j].cls].open = 0
            if not greedy:
                close_behind(S, j)
        n = requeue(S, n)
    return picked


@njit(inline="never")
def none_fits(S):
    """Whether no pool has as many free slots as any waiting job wants, or all pools together if jobs may hold several types."""
    least_slots = ANY
    for c in range(S.cls.shape[0]):
        if S.cls[c].count > 0:
            least_slots = min(least_slots, S.cls[c].slots)
    if S.rule[0].across == 1:
        return least_slots > S.pools["free"].sum()
    return least_slots > most_free(S)


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
    """Take the GPUs that running job j vacated again and return True; False, and none is taken, if others hold some of them."""
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
    rank_place = place_in_rank(S, first_waiting(S), 0, S.scalar[0].ranked)  # all before the first waiting job stay
    free_slots = S.pools["free"].copy()
    chosen = S.chosen
    keep = S.marked
    picked = choose(S, rank_place, free_slots, chosen, keep)
    victims = S.victims
    n = 0
    for i in range(rank_place, S.scalar[0].ranked):
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


@njit(DECISION.signature)
def decide_by_preemption(S):
    """Decide by `reorder`, and return 0."""
    reorder(S)
    return 0
