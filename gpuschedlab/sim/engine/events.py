"""The compiled loop: from event to event, in order of (time, kind, job), with a decision if one is due.

Kinds at one instant, in order: completions and other timers, outages, a look at the standing of accounts, arrivals, then the decision.
"""

from numba import types

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.node_index import count_node
from gpuschedlab.sim.engine.backfill import can_place, fill, first_waiting, open_classes
from gpuschedlab.sim.engine.due import after_decision, schedule_decision
from gpuschedlab.sim.engine.jobs.accounting import lease_end, move_clock, refresh, renew_key, set_rate, wake
from gpuschedlab.sim.engine.jobs.charges import stand
from gpuschedlab.sim.engine.jobs.lifecycle import begin_wait, conclude, contest, end_stay, lose
from gpuschedlab.sim.engine.jobs.logs import log_tick
from gpuschedlab.sim.engine.jobs.profiling import enlarge_profilers
from gpuschedlab.sim.engine.jobs.queues import ahead, drop_waiting, moved_waiting, push_waiting
from gpuschedlab.sim.engine.jobs.rank import clear_rank, moved_rank, place_in_rank
from gpuschedlab.sim.engine.jobs.records import GREEDY, PLAN, RUNNING, STILL
from gpuschedlab.sim.engine.jobs.state import STATE
from gpuschedlab.sim.engine.preemption import nothing_to_give, rekey

ENDED, FULL, DECIDE, FAULT, PAUSED = range(5)
TURNS = 10_000
"""Instants after which compiled code returns to Python, which alone serves signals and sees whether anything progresses."""
ROUNDING = 1e-9
"""Share of its duration below which the remaining time of a job is a rounding error."""
INSTANT = 1e-12
"""Share of the time within which timers fire at one instant."""


@njit
def stands(S):
    """Whether a preemptive decision hangs on the order alone: no key drifts, and no lease must end first."""
    r = S.rule[0]
    return r.preemptive == 1 and r.moving == STILL and r.lease == 0


@njit
def leads(S, j):
    """Whether running job j goes before all that wait, and a decision would start and stop no job."""
    # As long as that is so, its key may change without a decision: all before the first waiting job stay, in whatever order.
    sc = S.scalar[0]
    if sc.dirty == 1 or not stands(S):
        return False
    return sc.waiting == 0 or (sc.head >= 0 and ahead(S.body, j, sc.head))


@njit
def ends_now(S, j):
    """Whether the segment or work of job j, if it runs, ends at this instant, but for rounding."""
    # What ends at the same instant in exact arithmetic would otherwise end an ulp apart, with a decision in between.
    b = S.body[j]
    return S.job[j].state == RUNNING and b.rate > 0 and b.finish - S.scalar[0].now <= ROUNDING * b.work / b.rate


@njit(inline="never")
def fire_timer(S, j):
    """The timer of job j fires: its segment, work, limit, stay or patience ends, or its key changes."""
    job = S.job[j]
    b = S.body[j]
    sc = S.scalar[0]
    refresh(S, j)
    if job.state == RUNNING:
        if ends_now(S, j):
            job.progress = b.goal
            if b.goal >= b.work:
                conclude(S, j)
                return
            b.segment += 1
            set_rate(S, j)
        if job.started + b.limit <= sc.now:
            b.timed_out = 1
            conclude(S, j)
            return
        if b.leaves <= sc.now:
            end_stay(S, j)
            return
        # Its place is looked up by the old key, under which it stands there.
        led = leads(S, j)
        rank_place = place_in_rank(S, j, 0, sc.ranked)
        renew_key(S, j)
        if b.ranked == 1:
            moved_rank(S, rank_place)
        else:
            contest(S, j)
        if led and leads(S, j):
            wake(S, j)
            return
    else:
        relaxed = S.cls[b.cls].relaxed
        if relaxed != b.cls and job.waiting_since + S.rule[0].patience <= sc.now:
            drop_waiting(S, j)
            b.cls = relaxed
            push_waiting(S, j)
            sc.exhausted = 0
        renew_key(S, j)
        moved_waiting(S, j)
    sc.dirty = 1
    wake(S, j)


@njit(inline="never")
def arrive(S, j):
    """Job j is submitted."""
    sc = S.scalar[0]
    S.body[j].last = sc.now
    S.body[j].contention0 = sc.contention
    sc.arrived += 1
    sc.demanded += S.body[j].slots
    sc.dirty = 1
    begin_wait(S, j)
    if S.cls[S.body[j].cls].count == 1 and can_place(S, j):  # a class that waited already could not be placed
        sc.exhausted = 0


@njit(inline="never")
def on_node(S, j, n):
    """Whether running job j holds GPUs of node n, by itself or as a guest."""
    b = S.body[j]
    e = S.body[b.partner].head if b.guest else b.head
    while e >= 0:
        if S.entry[e].node == n:
            return True
        e = S.entry[e].next
    return False


@njit(inline="never")
def change_node(S, n, delta):
    """Node n goes down (delta 1) or comes back (-1); overlapping outages count."""
    sc = S.scalar[0]
    nd = S.nodes[n]
    if delta > 0 and nd.down == 0:
        i = 0
        while i < sc.running:
            if on_node(S, S.running[i], n):
                # The last of the list takes the place of one that leaves, and a partner may leave, too: from the beginning again.
                lose(S, S.running[i])
                i = 0
            else:
                i += 1
        count_node(S.nodes, S.count, S.member, n, -1)
        S.pools[nd.pool].free -= nd.free
        S.pools[nd.pool].size -= nd.size
        sc.capacity -= nd.size
    nd.down += delta
    if nd.down == 0:
        sc.exhausted = 0
        count_node(S.nodes, S.count, S.member, n, 1)
        S.pools[nd.pool].free += nd.free
        S.pools[nd.pool].size += nd.size
        sc.capacity += nd.size
    sc.dirty = 1


@njit(inline="never")
def decide(S):
    """Let the order decide which jobs run now; leases that ended are renewed for the jobs that stay."""
    sc = S.scalar[0]
    r = S.rule[0]
    sc.dirty = 0
    if r.profile > 0:
        enlarge_profilers(S)
    if r.preemptive == 1 and sc.demanded <= sc.capacity:
        fill(S)  # room for all: no order matters, unless nodes are too fragmented
    hangs = sc.waiting > 0 and (r.keep == 1 or not nothing_to_give(S))
    if hangs and r.moving != STILL:
        rekey(S)  # keys that drift are brought up to date only where a decision hangs on them
    if hangs:
        # `keys.decision_of` gives its address: it is as large as the rest of the loop, and a policy needs one kind at most.
        if r.preemptive == 1 or r.planned == 1 or r.backfill == PLAN:
            S.decision(S)
        else:
            fill(S)
    if r.lease > 0:
        for i in range(sc.ranked):
            S.body[S.rank[i]].lease = lease_end(S)
            wake(S, S.rank[i])
        clear_rank(S)
    sc.exhausted = 1 if r.backfill == GREEDY and r.sharing == 0 else 0
    sc.head = -1
    if sc.dirty == 0 and stands(S) and open_classes(S) > 0:
        sc.head = first_waiting(S)
    sc.dirty = 0


@njit(inline="never")
def latest_timer(S, limit):
    """Return the time (s) of the latest timer up to a limit, of which the first is within it."""
    stack = S.victims
    latest = S.body[S.timers[0]].timer
    n = 1
    stack[0] = 0
    while n > 0:
        n -= 1
        i = stack[n]
        latest = max(latest, S.body[S.timers[i]].timer)
        for child in range(2 * i + 1, min(2 * i + 3, S.scalar[0].timers)):
            if S.body[S.timers[child]].timer <= limit:
                stack[n] = child
                n += 1
    return latest


@njit(inline="never")
def next_time(S):
    """Return the time of the next event (s), inf: none."""
    # Timers that coincide but for rounding fire at one instant: that of an arrival, outage or decision beside them, which is
    # exact, and otherwise that of the last of them.
    sc = S.scalar[0]
    event_time = sc.decide_at
    if sc.arrived < S.job.shape[0]:
        event_time = min(event_time, S.job[sc.arrived].submit)
    if sc.outage < S.outage.shape[0] and sc.done < S.job.shape[0]:
        event_time = min(event_time, S.outage[sc.outage].time)
    if sc.stand_at < event_time and sc.done < S.job.shape[0]:
        event_time = max(sc.stand_at, sc.now)
    if sc.timers == 0 or S.body[S.timers[0]].timer > event_time:
        return event_time
    first_timer = S.body[S.timers[0]].timer
    limit = first_timer * (1 + INSTANT)
    if first_timer < 0:  # among warm jobs the clock counts up to 0
        limit = first_timer * (1 - INSTANT)
    return event_time if event_time <= limit else latest_timer(S, limit)


@njit(inline="never")
def process_events(S):
    """Process all events of this instant, but the decision; return whether the logs have room for more."""
    sc = S.scalar[0]
    while sc.timers > 0 and (S.body[S.timers[0]].timer <= sc.now or ends_now(S, S.timers[0])):
        if S.stretches.shape[0] - sc.stretches <= 2 * S.entry.shape[0]:
            return False
        fire_timer(S, S.timers[0])
    while sc.outage < S.outage.shape[0] and S.outage[sc.outage].time <= sc.now:
        if S.stretches.shape[0] - sc.stretches <= 2 * S.entry.shape[0]:
            return False
        sc.outage += 1
        change_node(S, S.outage[sc.outage - 1].node, S.outage[sc.outage - 1].delta)
    if sc.stand_at <= sc.now:
        stand(S)
    while sc.arrived < S.job.shape[0] and S.job[sc.arrived].submit <= sc.now:
        arrive(S, sc.arrived)
    return True


@njit(types.int64(STATE, types.float64))
def advance(S, until):
    """Run a state until a time (s) or until Python is needed, and return a code: ENDED, FULL, DECIDE, FAULT or PAUSED.

    FULL: the logs want room. PAUSED: after TURNS.
    """
    sc = S.scalar[0]
    for _ in range(TURNS):
        event_time = next_time(S)
        if event_time > until or event_time > 1e300:
            if until < 1e300:
                move_clock(S, until)
            return ENDED
        if sc.ticks + 2 > S.ticks.shape[0]:
            return FULL
        move_clock(S, event_time)
        if not process_events(S):
            return FULL
        if sc.culprit >= 0:
            return FAULT
        # Nothing that a decision or the log could show has changed, such as a key that moved among jobs that all stay.
        if sc.dirty == 0 and sc.decide_at > event_time:
            continue
        schedule_decision(S)
        if sc.decide_at <= event_time:
            if S.stretches.shape[0] - sc.stretches <= 2 * S.entry.shape[0]:
                return FULL  # the decision stays due: with longer logs, this instant goes on
            if S.rule[0].rounds == 1:
                return DECIDE
            decide(S)
            if sc.culprit >= 0:
                return FAULT
            after_decision(S)
        log_tick(S)
    return PAUSED
