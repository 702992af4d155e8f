"""The compiled changes of a job's life: it gets nodes, starts, shares, stops, ends, or fails with a node."""

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.cluster.placement import BUDDY, take_cell
from gpuschedlab.sim.engine.jobs.accounting import (
    INF,
    lease_end,
    refresh,
    renew_key,
    set_rate,
    take,
    undo,
    useful,
    wake,
)
from gpuschedlab.sim.engine.jobs.charges import charge, standing_of
from gpuschedlab.sim.engine.jobs.logs import log_stretch
from gpuschedlab.sim.engine.jobs.profiling import profiler_fits, skip_profiling, stay_end
from gpuschedlab.sim.engine.jobs.queues import add_running, drop_running, push_waiting, set_timer
from gpuschedlab.sim.engine.jobs.rank import insert_rank, remove_rank
from gpuschedlab.sim.engine.jobs.records import DONE, RUNNING, WAITING


@njit
def place_in_queue(S, j):
    """Choose the class in which job j waits; it skips profilers that are too small for it, or of types on which it has no speed."""
    if S.job[j].stage == 1 and not profiler_fits(S, j):
        skip_profiling(S, j)
    S.body[j].cls = S.body[j].base


@njit
def forget_start(S, j):
    """Take back that job j was started: no time passed since, so that it neither ran nor is preempted."""
    job = S.job[j]
    b = S.body[j]
    b.fresh = 0
    job.starts -= 1
    job.started = b.before
    if job.starts == 0:
        b.first = INF
        b.nodes = 0


@njit(inline="never")
def begin_wait(S, j):
    """Put job j among the waiting; if it was started at this instant, it has waited on."""
    job = S.job[j]
    job.state = WAITING
    if S.body[j].fresh == 1:
        forget_start(S, j)
    else:
        job.waiting_since = S.scalar[0].now
    place_in_queue(S, j)
    job.standing = standing_of(S, j)
    renew_key(S, j)
    push_waiting(S, j)
    S.scalar[0].waiting += 1
    wake(S, j)


@njit(inline="never")
def hold(S, j, k, out_node, out_slots):
    """Give job j the chosen slots, as linked entries in order of node."""
    b = S.body[j]
    sc = S.scalar[0]
    # In order of node, since answers and speed tables name cells so; few are held, so insertion is quickest.
    for i in range(1, k):
        node = out_node[i]
        slots = out_slots[i]
        entry_place = i
        while entry_place > 0 and out_node[entry_place - 1] > node:
            out_node[entry_place] = out_node[entry_place - 1]
            out_slots[entry_place] = out_slots[entry_place - 1]
            entry_place -= 1
        out_node[entry_place] = node
        out_slots[entry_place] = slots
    # From the last one: each entry goes before the others in the list.
    for i in range(k - 1, -1, -1):
        e = sc.free_entry
        entry = S.entry[e]
        sc.free_entry = entry.next
        entry.next = b.head
        entry.node = out_node[i]
        entry.slots = out_slots[i]
        entry.mask = 0
        if S.rule[0].placement == BUDDY:
            entry.mask = take_cell(S.nodes, out_node[i], out_slots[i])
        b.head = e
        take(S, out_node[i], out_slots[i])
    b.nodes = k


@njit(inline="never")
def let_go(S, j):
    """Give back the GPUs of job j and forget its nodes."""
    b = S.body[j]
    S.scalar[0].exhausted = 0
    while b.head >= 0:
        e = b.head
        entry = S.entry[e]
        if b.vacated == 0:
            take(S, entry.node, -entry.slots)
            S.nodes[entry.node].mask &= ~entry.mask
        b.head = entry.next
        entry.next = S.scalar[0].free_entry
        S.scalar[0].free_entry = e
    b.vacated = 0


@njit
def can_host(S, j):
    """Whether running job j could take a guest: alone, on one node, in no stage of its own."""
    b = S.body[j]
    return b.partner < 0 and b.nodes == 1 and S.job[j].stage == 0 and S.job[j].model >= 0


@njit
def count_host(S, j, sign):
    """Count job j as a possible host (1), or no longer (-1)."""
    if S.rule[0].sharing == 1 and can_host(S, j):
        S.cls[S.body[j].cls].hosts += sign


@njit
def contest(S, j):
    """Let decisions preempt running job j, as soon as its lease has ended and if the policy preempts at all."""
    if S.rule[0].preemptive == 1 and S.body[j].lease <= S.scalar[0].now:
        insert_rank(S, j)


@njit
def enter_running(S, j):
    """Put job j among the running."""
    add_running(S, j)
    contest(S, j)


@njit(inline="never")
def start(S, j, type_, slots):
    """Job j, which waits and holds nodes (or joins its partner), runs from now on; its class has forgotten it."""
    job = S.job[j]
    b = S.body[j]
    sc = S.scalar[0]
    refresh(S, j)
    sc.waiting -= 1
    sc.dirty = 1
    job.state = RUNNING
    job.held = slots / SLOTS / b.jobs
    b.got = slots
    b.type = type_
    b.pool = S.nodes[S.entry[S.body[b.partner if b.guest else j].head].node].pool
    b.pause = b.delay if b.delay >= 0 else b.switch + (b.restart if job.starts > 0 else 0.0)
    b.began = b.pause
    b.delay = -1.0
    b.effort = 0.0
    job.starts += 1
    b.before = job.started
    job.started = sc.now
    b.fresh = 1
    b.stretch = sc.now
    b.safe, b.kept = job.progress, useful(job, b)
    b.first = min(b.first, sc.now)
    b.lease = lease_end(S)
    b.leaves = stay_end(S, j, sc.now)
    b.row = -1
    renew_key(S, j)
    enter_running(S, j)
    count_host(S, j, 1)
    charge(S, j)
    set_rate(S, j)
    wake(S, j)


@njit(inline="never")
def join(S, j, h, joint):
    """Start waiting job j, of which its class has forgotten, on the GPUs of running job h, which has them to itself."""
    refresh(S, h)
    log_stretch(S, h)
    count_host(S, h, -1)
    host_body = S.body[h]
    b = S.body[j]
    b.partner = h
    b.guest = 1
    b.nodes = host_body.nodes
    host_body.partner = j
    b.joint = host_body.joint = joint
    host_body.effort = 0.0
    start(S, j, host_body.type, host_body.got)
    charge(S, h)
    set_rate(S, h)
    wake(S, h)


@njit(inline="never")
def part(S, j):
    """End the sharing of job j: its partner keeps the GPUs and runs at its own speed again."""
    b = S.body[j]
    p = b.partner
    if p < 0:
        return
    refresh(S, j)
    refresh(S, p)
    log_stretch(S, j)
    log_stretch(S, p)
    partner_body = S.body[p]
    if not b.guest:
        partner_body.head = b.head
        b.head = -1
        partner_body.guest = 0
    b.guest = 0
    b.partner = partner_body.partner = -1
    b.joint = partner_body.joint = 0
    b.effort = partner_body.effort = 0.0
    count_host(S, j, 1)
    count_host(S, p, 1)
    charge(S, p)
    set_rate(S, p)
    wake(S, p)


@njit(inline="never")
def leave(S, j):
    """Job j stops running, for whatever reason: up to date, logged, off its nodes."""
    refresh(S, j)
    part(S, j)
    log_stretch(S, j)
    count_host(S, j, -1)
    remove_rank(S, j)
    drop_running(S, j)
    let_go(S, j)
    S.job[j].held = 0.0
    S.body[j].got = 0
    charge(S, j)
    S.body[j].row = -1
    S.scalar[0].dirty = 1


@njit(inline="never")
def preempt(S, j):
    """Suspend job j; it keeps its progress and waits."""
    leave(S, j)
    # Started and stopped at one instant, it was not preempted: nothing of it shows.
    S.job[j].preemptions += 1 - S.body[j].fresh
    begin_wait(S, j)


@njit(inline="never")
def end_stay(S, j):
    """The stay of job j in a stage of limited time ends: nothing of it is kept, and it queues with the others."""
    leave(S, j)
    undo(S, j, 0.0, 0.0)
    skip_profiling(S, j)
    begin_wait(S, j)


@njit(inline="never")
def conclude(S, j):
    """Job j, which has done its work or has run for as long as it may, ends and will not run again."""
    leave(S, j)
    S.job[j].state = DONE
    S.body[j].end = S.scalar[0].now
    S.scalar[0].demanded -= S.body[j].slots
    S.scalar[0].done += 1
    set_timer(S, j, INF)


@njit(inline="never")
def lose(S, j):
    """Job j fails with its node: progress since its last checkpoint is gone, and it waits."""
    refresh(S, j)
    b = S.body[j]
    if S.rule[0].checkpoint > 0:
        undo(S, j, b.safe, b.kept)
    b.failures += 1
    leave(S, j)
    begin_wait(S, j)
