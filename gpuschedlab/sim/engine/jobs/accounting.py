"""The compiled primitives: the clock, the progress of a job and its checkpoints, and when something about it changes next.

Each function works on a `State` in place. A job's sums are brought up to date only when they are read (`refresh`),
so the cost of an event is that of the jobs it touches.
"""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.node_index import SLOTS, NodeIndex, hold
from gpuschedlab.cluster.placement import RELAX, find_even, find_nodes
from gpuschedlab.sim.engine.jobs.queues import set_timer
from gpuschedlab.sim.engine.jobs.records import BAD_CHANGE, BAD_KEY, NO_PAIR, NO_SPEED, RUNNING, WAITING
from gpuschedlab.speeds.codes import RateRows, find_row

INF = np.inf


@njit(inline="never")
def move_clock(S, time):
    """Let time pass to `time` (s)."""
    sc = S.scalar[0]
    if time > sc.now:
        if sc.capacity > 0:
            sc.contention += (time - sc.now) * sc.demanded / sc.capacity
        sc.now = time


@njit
def refresh_waiting(job, b, now, integral):
    """Bring the waiting time of a waiting job up to date, and its contention, by the integral of that."""
    job.queued += now - b.last
    b.last = now
    if now > job.submit:
        job.contention = (integral - b.contention0) / (now - job.submit)


@njit
def useful(job, b):
    """Return the seconds that a job has progressed, but for those that were undone."""
    return job.executed - b.overhead - b.idled - b.lost


@njit
def save(S, j, period):
    """Keep the work of running job j at the last checkpoint since it was last brought up to date, if there was one."""
    job = S.job[j]
    b = S.body[j]
    last_checkpoint = job.started + np.floor((S.scalar[0].now - job.started) / period) * period
    if last_checkpoint > b.last:
        passed = max(0.0, last_checkpoint - b.last - b.pause)
        b.safe = job.progress + b.rate * passed
        b.kept = useful(job, b) + passed * (1 - b.idle)


@njit
def undo(S, j, progress, seconds):
    """Throw job j back to some progress, which took so many seconds that counted."""
    b = S.body[j]
    b.lost += useful(S.job[j], b) - seconds
    S.job[j].progress = progress
    b.segment = 0


@njit(inline="never")
def refresh(S, j):
    """Bring the waiting time, GPU-time, service and work of job j up to date."""
    job = S.job[j]
    b = S.body[j]
    clock = S.scalar[0].now
    dt = clock - b.last
    if dt > 0:
        if job.state == RUNNING:
            period = S.rule[0].checkpoint
            if 0 < period < 1e300:
                save(S, j, period)
            delay = min(b.pause, dt)
            b.pause -= delay
            b.overhead += delay
            job.progress += b.rate * (dt - delay)
            b.effort += b.pace * (dt - delay)
            if b.idle == 1:
                b.idled += dt - delay
            job.executed += dt
            # GPUs that two jobs share count once in all, so half for each.
            job.attained += job.held * dt * (0.5 if b.partner >= 0 else 1.0)
            if b.partner >= 0:
                b.shared += dt
            S.seconds_on[j, b.type] += dt
            b.fresh = 0
        elif job.state == WAITING:
            job.queued += dt
        b.last = clock
    if clock > job.submit:
        job.contention = (S.scalar[0].contention - b.contention0) / (clock - job.submit)


@njit(inline="never")
def take(S, n, slots):
    """Hold slots of node n (negative: give back)."""
    nd = S.nodes[n]
    if nd.down == 0:
        hold(S.nodes, S.count, S.member, n, slots)
        S.pools[nd.pool].free -= slots
    else:
        nd.free -= slots
    S.scalar[0].used += slots


@njit
def drift_key(S, j):
    """Bring the key of job j, which drifts with time, up to date."""
    drifted_key = S.key(S.scalar[0].now, S.job[j], S.knobs)
    if not np.isfinite(drifted_key):
        blame(S, j, BAD_KEY)
    S.body[j].key = drifted_key
    S.body[j].gated = 0


@njit(inline="never")
def blame(S, j, fault):
    """Remember the first job of which something is wrong."""
    if S.scalar[0].culprit < 0:
        S.scalar[0].culprit = j
        S.scalar[0].fault = fault


@njit(inline="never")
def find_speed(S, j):
    """Return the row of the speed table for the GPUs of running job j, -1: it has none."""
    b = S.body[j]
    # Some tables know exact placements: the GPUs node by node, in the order in which they are held.
    gpus_on_node = S.node_gpus
    k = 0
    e = S.body[b.partner if b.guest else j].head
    while e >= 0:
        gpus_on_node[k] = S.entry[e].slots // SLOTS
        k += 1
        e = S.entry[e].next
    gpus = max(1, b.got // SLOTS)
    nodes = b.nodes
    if b.jobs > 1:  # each of them on its part of the GPUs, and of the nodes
        part = max(1, round(b.got / SLOTS / b.jobs))
        gpus, nodes, k = part, (part * nodes + gpus - 1) // gpus, 0
    known_type = S.type_map[b.type]
    if known_type < 0:
        return np.int64(-1)
    speed_rows = RateRows(S.first, S.code, S.row)
    return find_row(speed_rows, S.job[j].model, known_type, nodes, gpus, gpus_on_node[:k])


@njit
def factor_of(table, a, b):
    """Return the factor of a pair of models, nan: unknown."""
    return table[a, b] if 0 <= a < table.shape[0] and 0 <= b < table.shape[0] else np.nan


@njit
def rounded(S, time):
    """Return time (s) as a multiple of the unit of the speed table, if it has one; less than half a unit stays as it is."""
    unit = S.rounding[0]
    rounded_time = np.rint(time / unit) * unit if unit > 0 else 0.0
    return rounded_time if rounded_time > 0 else time


@njit(inline="never")
def set_rate(S, j):
    """Look up the speed of running job j and when its segment ends; if it is unknown, j is blamed."""
    job = S.job[j]
    b = S.body[j]
    b.rate = b.pace = 0.0 if b.idle == 1 else 1.0
    b.goal = b.work
    m = job.model
    if m >= 0 and b.idle == 0:
        if b.row < 0:
            b.row = find_speed(S, j)
            if b.row < 0:
                blame(S, j, NO_SPEED)
                return
        last_segment = S.seg_first[m + 1] - 1
        # The segment only moves on: a job that was thrown back begins again at the first (`undo`).
        while S.seg_first[m] + b.segment < last_segment and S.seg_end[S.seg_first[m] + b.segment] < job.progress:
            b.segment += 1
        b.pace = S.rate[b.row + b.segment]
        if S.seg_first[m] + b.segment < last_segment:
            b.goal = min(b.work, S.seg_end[S.seg_first[m] + b.segment])
    if b.idle == 0:
        factor = b.gain
        partner_model = S.job[b.partner].model if b.partner >= 0 else -1
        if b.partner >= 0 and b.joint == 1:
            factor *= factor_of(S.merged, m, partner_model)
        elif b.partner >= 0:
            b.pace *= factor_of(S.sharing, m, partner_model)
        b.rate = b.pace * factor
        if not b.rate >= 0:
            blame(S, j, NO_PAIR)
            return
    # Rounding errors may put the progress past its goal by an ulp: no job ends in the past.
    work_left = max(0.0, b.goal - job.progress)
    b.finish = b.last + b.pause + rounded(S, work_left / b.rate) if b.rate > 0 else INF


@njit(inline="never")
def wake(S, j):
    """Set the timer of job j: its finish, its limit, its lease, the end of its stay or patience, a change of its key."""
    job = S.job[j]
    b = S.body[j]
    r = S.rule[0]
    clock = S.scalar[0].now
    timer = S.change(clock, job, S.knobs)
    if np.isnan(timer):
        blame(S, j, BAD_CHANGE)
    if timer <= clock:  # what has changed already does not change again
        timer = INF
    if job.state == RUNNING:
        timer = min(timer, b.finish, b.leaves, job.started + b.limit)
        if b.lease > clock:
            timer = min(timer, b.lease)
    elif S.cls[b.cls].relaxed != b.cls and r.patience < 1e300:
        timer = min(timer, job.waiting_since + r.patience)
    set_timer(S, j, timer)


@njit
def on_grid(time, interval):
    """Return the first multiple of `interval` at or after `time`, forgiving rounding."""
    return np.ceil(time / interval - 1e-9) * interval


@njit
def lease_end(S):
    """Return when (s) a lease ends that begins now: on the grid, so that leases end together and one decision serves many."""
    r = S.rule[0]
    lease_over = S.scalar[0].now + r.lease
    return on_grid(lease_over, r.lease_grid) if r.lease > 0 and r.lease_grid > 0 else lease_over


@njit(inline="never")
def renew_key(S, j):
    """Compute the key of job j, which is in no queue; a new value counts from the next decision on."""
    clock = S.scalar[0].now
    b = S.body[j]
    new_key = S.key(clock, S.job[j], S.knobs)
    if not np.isfinite(new_key):
        blame(S, j, BAD_KEY)
    b.gated = 0
    if new_key != b.key:
        b.key = new_key
        # Keys that take one value within an interval tie, whenever in it they did: decisions see them together.
        b.since = on_grid(clock, S.rule[0].interval) if S.rule[0].interval > 0 else clock


@njit
def is_eligible(S, j, pool):
    """Whether a pool serves the stage of job j, and is of a type that j may have, and on which it has a speed."""
    p = S.pools[pool]
    return p.stage == S.job[j].stage and S.known[S.body[j].knows, p.type] > 0


@njit(inline="never")
def nth_pool(S, j, n):
    """Return the index of the pool that job j tries at turn n, from 0: preferred types first, else as they stand."""
    turn_of_type = S.known[S.body[j].knows]
    last_turn = 1
    for gpu_type in range(turn_of_type.shape[0]):
        last_turn = max(last_turn, turn_of_type[gpu_type])
    for turn in range(1, last_turn + 2 if last_turn > 1 else 0):
        for p in range(S.pools.shape[0]):
            if max(turn_of_type[S.pools[p].type], 0) == turn % (last_turn + 1):  # those that it may not have come last
                if n == 0:
                    return p
                n -= 1
    return n


@njit
def is_patient(S, j):
    """Whether job j still insists on consolidation (rule "relax")."""
    return S.rule[0].placement == RELAX and S.cls[S.body[j].cls].tight == 1


@njit
def choose_nodes(S, j, slots, pool):
    """Choose nodes of a pool for job j by the placement rule and the index, into the work space; return how many, 0: no fit."""
    index = NodeIndex(S.nodes, S.count, S.member, S.sizes)
    nodes_asked = S.cls[S.body[j].cls].asked
    if nodes_asked > 0 and slots == S.body[j].slots:
        return find_even(index, pool, slots, nodes_asked, S.rule[0].placement, S.place_node, S.place_slots)
    return find_nodes(index, pool, slots, S.rule[0].placement, is_patient(S, j), S.place_node, S.place_slots)


@njit(inline="never")
def find_place(S, j, slots, pool):
    """Choose nodes as `choose_nodes`, of the present free GPUs; return how many, 0: no fit."""
    return choose_nodes(S, j, slots, pool) if S.pools[pool].free >= slots else 0
