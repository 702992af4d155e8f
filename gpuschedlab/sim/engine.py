"""The compiled primitives: the clock, what a running job earns, and how it starts, stops and ends.

Each function works on a `State` in place. A job's sums are brought up to date only when somebody looks (`refresh`),
so an event costs what it touches and no more.
"""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.placement import BUDDY, RELAX, SLOTS, cell, find_nodes, free_block
from gpuschedlab.jobs.codes import find_row
from gpuschedlab.sim.heaps import insert_rank, push_waiting, remove_rank, set_timer
from gpuschedlab.sim.state import DONE, RUNNING, WAITING

INF = np.inf


@njit(inline="never")
def move_clock(S, time):
    """Let time pass to `time` (s)."""
    sc = S.scalar[0]
    if time > sc.now:
        up = max(sc.capacity, SLOTS)
        sc.contention += (time - sc.now) * max(1.0, sc.demanded / up)
        sc.now = time


@njit(inline="never")
def refresh(S, j):
    """Bring what job j has waited, held, received and done up to date."""
    job = S.job[j]
    b = S.body[j]
    now = S.scalar[0].now
    dt = now - b.last
    if dt > 0:
        if job.state == RUNNING:
            delay = min(b.pause, dt)
            b.pause -= delay
            b.overhead += delay
            job.progress += b.rate * (dt - delay)
            job.executed += dt
            job.attained += job.held * dt * (0.5 if b.partner >= 0 else 1.0)
            if b.partner >= 0:
                b.shared += dt
            S.seconds_on[j, b.type] += dt
        elif job.state == WAITING:
            job.queued += dt
        b.last = now
    if now > job.submit:
        job.contention = (S.scalar[0].contention - b.contention0) / (now - job.submit)


@njit
def _count_node(S, n, sign):
    S.histogram[S.nodes[n].free // SLOTS] += sign


@njit(inline="never")
def take(S, n, slots):
    """Hold slots of node n (negative: give back)."""
    nd = S.nodes[n]
    if nd.down == 0:
        _count_node(S, n, -1)
        S.pools[nd.pool, 2] -= slots
    nd.free -= slots
    if nd.down == 0:
        _count_node(S, n, 1)
    S.scalar[0].used += slots


@njit(inline="never")
def log_stretch(S, j):
    """Log the stretch of time that ends now for job j, a row a node."""
    b = S.body[j]
    sc = S.scalar[0]
    owner = b.partner if b.guest else j
    e = S.body[owner].head
    while e >= 0 and sc.now > b.stretch:
        row = S.stretches[sc.stretches]
        row.job = j
        row.node = S.entry[e].node
        row.slots = S.entry[e].slots
        row.guest = b.guest
        row.start = b.stretch
        row.end = sc.now
        sc.stretches += 1
        e = S.entry[e].next
    b.stretch = sc.now


@njit(inline="never")
def set_rate(S, j):
    """Look up the speed of running job j and when its segment ends; a missing speed leaves j in scalar.culprit."""
    job = S.job[j]
    b = S.body[j]
    b.rate = 1.0
    b.goal = b.work
    m = job.model
    if m >= 0:
        if b.row < 0:
            counts = S.scratch[7]
            k = 0
            e = S.body[b.partner if b.guest else j].head
            while e >= 0:
                counts[k] = S.entry[e].slots // SLOTS
                k += 1
                e = S.entry[e].next
            gpus = max(1, b.got // SLOTS)
            known = S.type_map[b.type]
            b.row = find_row(S.first, S.code, S.row, m, known, b.nodes, gpus, counts[:k]) if known >= 0 else -1
            if b.row < 0:
                S.scalar[0].culprit = j
                return
        last = S.seg_first[m + 1] - 1
        while S.seg_first[m] + b.segment < last and S.seg_end[S.seg_first[m] + b.segment] < job.progress:
            b.segment += 1
        b.rate = S.rate[b.row + b.segment]
        if S.seg_first[m] + b.segment < last:
            b.goal = min(b.work, S.seg_end[S.seg_first[m] + b.segment])
        if b.partner >= 0:
            b.rate *= S.sharing[m, S.job[b.partner].model]
    left = max(0.0, b.goal - job.progress)
    b.finish = b.last + b.pause + left / b.rate if b.rate > 0 else INF


@njit(inline="never")
def wake(S, j, change, raw):
    """Set the timer of job j: its finish, its lease, a change of its key, the end of its patience or profiling."""
    job = S.job[j]
    b = S.body[j]
    r = S.rule[0]
    now = S.scalar[0].now
    time = change(now, job, raw)
    if time <= now:  # what has changed already does not change again
        time = INF
    if job.state == RUNNING:
        time = min(time, b.finish)
        if b.lease > now:
            time = min(time, b.lease)
        if job.stage == 1:
            time = min(time, job.started + r.profile)
    elif job.stage == 0 and S.cls[b.cls].relaxed != b.cls and r.patience < 1e300:
        time = min(time, job.waiting_since + r.patience)
    set_timer(S, j, time)


@njit
def on_grid(time, interval):
    """First multiple of `interval` at or after `time`, forgiving rounding."""
    return np.ceil(time / interval - 1e-9) * interval


@njit(inline="never")
def renew_key(S, j, fns, raw):
    """Compute the key of job j, which is in no queue; a new value counts from the next decision on."""
    now = S.scalar[0].now
    b = S.body[j]
    key = fns[0](now, S.job[j], raw)
    if key != b.key:
        b.key = key
        b.since = on_grid(now, S.rule[0].interval) if S.rule[0].interval > 0 else now


@njit(inline="never")
def begin_wait(S, j, fns, raw):
    """Put job j among the waiting."""
    job = S.job[j]
    b = S.body[j]
    job.state = WAITING
    job.waiting_since = S.scalar[0].now
    b.cls = b.base
    renew_key(S, j, fns, raw)
    push_waiting(S, j)
    S.scalar[0].waiting += 1
    wake(S, j, fns[1], raw)


@njit(inline="never")
def hold(S, j, k, out_node, out_slots):
    """Give job j the chosen slots, as linked entries in order of node."""
    b = S.body[j]
    sc = S.scalar[0]
    for i in range(1, k):
        node, slots = out_node[i], out_slots[i]
        m = i
        while m > 0 and out_node[m - 1] > node:
            out_node[m], out_slots[m] = out_node[m - 1], out_slots[m - 1]
            m -= 1
        out_node[m], out_slots[m] = node, slots
    for i in range(k - 1, -1, -1):
        e = sc.free_entry
        entry = S.entry[e]
        sc.free_entry = entry.next
        entry.next = b.head
        entry.node = out_node[i]
        entry.slots = out_slots[i]
        entry.mask = 0
        if S.rule[0].placement == BUDDY:
            nd = S.nodes[out_node[i]]
            gpus = (out_slots[i] + SLOTS - 1) // SLOTS
            entry.mask = cell(free_block(nd.mask, gpus, nd.size // SLOTS)[0], gpus)
            nd.mask |= entry.mask
        b.head = e
        take(S, out_node[i], out_slots[i])
    b.nodes = k


@njit(inline="never")
def let_go(S, j):
    """Give back what job j holds and forget its nodes."""
    b = S.body[j]
    while b.head >= 0:
        e = b.head
        entry = S.entry[e]
        if b.lent == 0:
            take(S, entry.node, -entry.slots)
            S.nodes[entry.node].mask &= ~entry.mask
        b.head = entry.next
        entry.next = S.scalar[0].free_entry
        S.scalar[0].free_entry = e
    b.lent = 0


@njit
def can_host(S, j):
    """Whether running job j could take a guest: alone, on one node, not being profiled."""
    b = S.body[j]
    return b.partner < 0 and b.nodes == 1 and S.job[j].stage == 0 and S.job[j].model >= 0


@njit
def count_host(S, j, sign):
    """Count job j as a possible host (1), or no longer (-1)."""
    if S.rule[0].sharing == 1 and can_host(S, j):
        S.cls[S.body[j].cls].hosts += sign


@njit(inline="never")
def start(S, j, type_, slots, fns, raw):
    """Job j, which waits and holds nodes (or joins its partner), runs from now on; its class has forgotten it."""
    job = S.job[j]
    b = S.body[j]
    sc = S.scalar[0]
    refresh(S, j)
    sc.waiting -= 1
    job.state = RUNNING
    job.held = slots / SLOTS
    b.got = slots
    b.type = type_
    b.pool = S.nodes[S.entry[S.body[b.partner if b.guest else j].head].node].pool
    b.pause = b.switch + (b.restart if job.starts > 0 else 0.0)
    job.starts += 1
    job.started = sc.now
    b.stretch = sc.now
    b.safe = job.progress
    b.first = min(b.first, sc.now)
    b.lease = sc.now + S.rule[0].lease
    b.row = -1
    renew_key(S, j, fns, raw)
    insert_rank(S, j)
    count_host(S, j, 1)
    set_rate(S, j)
    wake(S, j, fns[1], raw)


@njit(inline="never")
def part(S, j, fns, raw):
    """End the sharing of job j: its partner keeps the GPUs and runs at its own speed again."""
    b = S.body[j]
    p = b.partner
    if p < 0:
        return
    refresh(S, j)
    refresh(S, p)
    log_stretch(S, j)
    log_stretch(S, p)
    o = S.body[p]
    if not b.guest:
        o.head = b.head
        b.head = -1
        o.guest = 0
    b.guest = 0
    b.partner = -1
    o.partner = -1
    count_host(S, j, 1)
    count_host(S, p, 1)
    set_rate(S, p)
    wake(S, p, fns[1], raw)


@njit(inline="never")
def leave(S, j, fns, raw):
    """Job j stops running, for whatever reason: up to date, logged, off its nodes."""
    refresh(S, j)
    part(S, j, fns, raw)
    log_stretch(S, j)
    count_host(S, j, -1)
    remove_rank(S, j)
    let_go(S, j)
    S.job[j].held = 0.0
    S.body[j].got = 0
    S.body[j].row = -1
    S.scalar[0].dirty = 1


@njit(inline="never")
def preempt(S, j, fns, raw):
    """Suspend job j; it keeps its progress and waits."""
    leave(S, j, fns, raw)
    S.job[j].preemptions += 1
    begin_wait(S, j, fns, raw)


@njit(inline="never")
def complete(S, j, fns, raw):
    """Job j has done its work."""
    refresh(S, j)
    S.job[j].progress = S.body[j].work
    leave(S, j, fns, raw)
    S.job[j].state = DONE
    S.body[j].end = S.scalar[0].now
    S.scalar[0].demanded -= S.body[j].slots
    S.scalar[0].done += 1
    set_timer(S, j, INF)


@njit(inline="never")
def lose(S, j, fns, raw):
    """Job j fails with its node: progress since its last checkpoint is gone, and it waits."""
    refresh(S, j)
    job = S.job[j]
    b = S.body[j]
    undone = job.progress - b.safe
    period = S.rule[0].checkpoint
    if period == 0:
        undone = 0.0
    elif period < 1e300:
        undone = min(undone, b.rate * ((S.scalar[0].now - job.started) % period))
    if undone > 0:
        b.lost += undone / b.rate
        job.progress -= undone
        b.segment = 0
    b.failures += 1
    leave(S, j, fns, raw)
    begin_wait(S, j, fns, raw)


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
def change_node(S, n, delta, fns, raw):
    """Node n goes down (delta 1) or comes back (-1); overlapping outages count."""
    sc = S.scalar[0]
    nd = S.nodes[n]
    if delta > 0 and nd.down == 0:
        i = 0
        while i < sc.running:
            if on_node(S, S.rank[i], n):
                lose(S, S.rank[i], fns, raw)
                i = 0
            else:
                i += 1
        _count_node(S, n, -1)
        S.pools[nd.pool, 2] -= nd.free
        S.pools[nd.pool, 3] -= nd.size
        sc.capacity -= nd.size
    nd.down += delta
    if nd.down == 0:
        _count_node(S, n, 1)
        S.pools[nd.pool, 2] += nd.free
        S.pools[nd.pool, 3] += nd.size
        sc.capacity += nd.size
    sc.dirty = 1


@njit(inline="never")
def find_place(S, j, slots, pool):
    """Choose nodes of a pool for job j by the placement rule, into scratch rows 0 and 1; how many, 0: no fit."""
    if S.pools[pool, 2] < slots:
        return 0
    r = S.rule[0]
    tight = r.placement == RELAX and S.cls[S.body[j].cls].tight == 1
    return find_nodes(S.nodes, pool, slots, r.placement, tight, S.scratch[0], S.scratch[1])


@njit(inline="never")
def log_tick(S):
    """Log the counts that hold from now on; one row an instant."""
    sc = S.scalar[0]
    largest = 64
    while largest > 0 and S.histogram[largest] == 0:
        largest -= 1
    i = sc.ticks - 1
    if i < 0 or S.ticks[i].time < sc.now:
        if i >= 0:
            p = S.ticks[i]
            if (
                p.used == sc.used
                and p.demanded == sc.demanded
                and p.capacity == sc.capacity
                and p.running == sc.running
                and p.waiting == sc.waiting
                and p.largest == largest
            ):
                return
        i += 1
        sc.ticks = i + 1
    t = S.ticks[i]
    t.time = sc.now
    t.used = sc.used
    t.demanded = sc.demanded
    t.capacity = sc.capacity
    t.running = sc.running
    t.waiting = sc.waiting
    t.largest = largest
