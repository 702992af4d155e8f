"""Slurm's own rule, compiled: the main loop, and the pass of backfill beside promises that hold their nodes whole.

It does the same as slurmctld 22.05 (select/cons_tres, sched/backfill), decision by decision: `data/slurm/`.
"""

from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import bare, njit
from gpuschedlab.cluster.node_index import charge, charge_typed, has_room
from gpuschedlab.papers.clusters.schedulers.slurm_nodes import (
    GPU,
    PROMISED,
    ROOMS,
    RUNNING,
    Held,
    choose,
    suffice,
)
from gpuschedlab.papers.clusters.schedulers.slurm_promises import Request, attempt, promise

FREELY = 2
"""Way of backfill in which later jobs pass without promises to earlier ones."""


class Site(NamedTuple):
    """Nodes of a site, and the jobs that may have them."""

    nodes: np.ndarray  # (N,) records of `node_index.NODE`
    allowed: np.ndarray  # (K, N) whether jobs of a kind may start on a node
    reach: np.ndarray  # (K, N) whether a node is of the partition of such jobs, and up
    windows: np.ndarray  # (W,) outages that are announced


class Running(NamedTuple):
    """Jobs that run."""

    runs: np.ndarray  # (n + 1,) end (s) of each, and its first cell; the last row ends the cells
    cells: np.ndarray  # (C,) node and slots


class Waiting(NamedTuple):
    """Jobs that wait, in order of priority."""

    jobs: np.ndarray  # (m,) requests
    claims: np.ndarray  # (m, Q) claims of each on the quotas
    spare: np.ndarray  # (Q,) amount that is left of each quota
    wide: np.ndarray  # (m,) nodes of each; 0: all slots wherever they are
    each: np.ndarray  # (m,) slots on each of these nodes; 0: not counted yet
    started: np.ndarray  # (m,) place of a job that has started among those that run; -1: it waits


class SlurmRule(NamedTuple):
    """Rule by which Slurm plans."""

    plan: np.void  # window, resolution, depth, number of jobs tested, least age and interval (`Plan`)
    epoch: float  # s since 1970 of the trace's zero
    way: float  # whether later jobs pass never (0), beside promises, or freely (`FREELY`)
    gres: bool  # whether jobs ask for GPUs as GRES (`choose`)


@njit
def waiting_jobs(jobs, claims, spare):
    """Return `Waiting`, jobs of which none has started, and none has its nodes counted."""
    job_count = jobs.shape[0]
    nodes_wide = np.zeros(job_count, np.int64)
    slots_each = np.zeros(job_count, np.int64)
    started = np.full(job_count, -1)
    return Waiting(jobs, claims, spare, nodes_wide, slots_each, started)


@bare()
def start(held, end, out, k, each, slots):
    """Let a job run on the k chosen nodes until an instant; the last of them gives the slots that are still missing."""
    job = held.count[RUNNING]
    first_cell = held.first[job]
    missing = slots
    whole_nodes = each < slots or k == 1
    for i in range(k):
        most = each
        if not whole_nodes:
            most = held.room[out[i]]
        taken_slots = min(missing, most)
        held.node[first_cell + i] = out[i]
        held.slots[first_cell + i] = taken_slots
        held.room[out[i]] -= taken_slots
        missing -= taken_slots
    held.first[job + 1] = first_cell + k
    sort_in(held, end)


@bare()
def take_quotas(waiting, q, held):
    """Take from the quotas the claims of the q-th waiting job, which has just started."""
    charge(waiting.claims, q, waiting.spare)
    last = held.count[RUNNING] - 1
    for cell in range(held.first[last], held.first[last + 1]):
        gpu_type = held.types[held.node[cell]]
        charge_typed(waiting.claims, q, gpu_type, held.slots[cell], waiting.spare)


@bare()
def sort_in(held, end):
    """One job more runs until an instant."""
    job = held.count[RUNNING]
    end_place = job
    while end_place > 0 and held.ends[held.order[end_place - 1]] > end:
        held.order[end_place] = held.order[end_place - 1]
        end_place -= 1
    held.order[end_place] = job
    held.ends[job] = end
    held.count[RUNNING] = job + 1


@bare()
def share(site, waiting, q):
    """Return a tuple: nodes of a waiting job, as asked or the fewest with equal whole GPUs, and slots on each; else 0, all."""
    if waiting.each[q] == 0:
        count_nodes(site, waiting, q)
    return waiting.wide[q], waiting.each[q]


@bare(inline="never")
def count_nodes(site, waiting, q):
    """Write the nodes of a waiting job, and the slots on each."""
    job = waiting.jobs[q]
    sizes = site.nodes["size"]
    usable = site.allowed[job.kind]
    waiting.each[q] = job.slots
    unit = 1
    if job.slots >= GPU:
        unit = GPU
    most = job.asked
    if most == 0:
        most = sizes.shape[0]
    for nodes_wide in range(max(job.asked, 1), most + 1):
        slots_each = -(-job.slots // (nodes_wide * unit)) * unit
        if large_enough(sizes, usable, slots_each, nodes_wide):
            waiting.wide[q] = nodes_wide
            waiting.each[q] = slots_each
            break


@bare()
def large_enough(sizes, usable, each, wide):
    """Whether so many usable nodes have so many slots, free or not."""
    large_nodes = 0
    for n in range(sizes.shape[0]):
        large_nodes += usable[n] and sizes[n] >= each
        if large_nodes >= wide:
            return True
    return False


@njit(inline="never")
def who_has(now, site, running, queue):
    """Return `Held`, the nodes that jobs hold, with room for those that wait; outages that are announced are promises."""
    nodes = site.nodes
    windows = site.windows
    ends = running.runs["end"][:-1]
    jobs = ends.shape[0]
    cells = running.cells.shape[0]
    in_whole_gpus = -(-queue["slots"] // GPU)
    most_cells = np.minimum(nodes.shape[0], np.maximum(queue["asked"], in_whole_gpus)).sum()
    most_jobs = jobs + queue.shape[0]
    integer_rows = np.empty((7, most_jobs + cells + most_cells + windows.shape[0] + 1), np.int64)
    time_rows = np.empty((3, most_jobs + windows.shape[0] + most_cells))
    room = nodes["free"].astype(np.int64)
    rooms = np.empty((8, nodes.shape[0] + 1))
    held_nodes = Held(
        count=np.zeros(3, np.int64),
        order=integer_rows[0],
        ends=time_rows[0],
        first=integer_rows[1],
        node=integer_rows[2],
        slots=integer_rows[3],
        room=room,
        types=nodes["type"],
        promised=integer_rows[4],
        begin=time_rows[1],
        end=time_rows[2],
        by_begin=integer_rows[5],
        by_end=integer_rows[6],
        until=np.full(nodes.shape[0], np.inf),
        rooms=rooms,
    )
    held_nodes.first[: jobs + 1] = running.runs["first"]
    held_nodes.node[:cells] = running.cells["node"]
    held_nodes.slots[:cells] = running.cells["slots"]
    held_nodes.ends[:jobs] = ends
    held_nodes.order[:jobs] = np.argsort(ends, kind="mergesort")
    held_nodes.count[RUNNING] = jobs
    for i in range(windows.shape[0]):
        if windows[i].announced <= now < windows[i].end:
            promise(held_nodes, windows[i].node, max(windows[i].start, now), windows[i].end)
    return held_nodes


@njit(inline="never")
def backfill(now, held, site, waiting, rule, out):
    """Start or promise, in order, as long as any job may still start beside the promises; return the first promise (s), or inf.

    A job whose owner has reached a limit starts in no way, and is promised nothing.
    """
    depth = rule.plan.depth
    if rule.way == FREELY:
        depth = 0.0
    jobs = waiting.jobs
    first_promise = np.inf
    promised = 0
    last = last_tested(waiting, rule.plan.tested)
    q = -1
    while q < last:
        q += 1
        job = jobs[q]
        while last >= q and not may_start_still(now, held, site, waiting, last):
            last -= 1
        if q > last or waiting.started[q] >= 0 or not has_room(waiting.claims, q, waiting.spare):
            continue
        reserves = promised < depth and now - job.submit >= rule.plan.min_age
        if not reserves and not may_start(now, held, site, waiting, q):
            continue
        nodes_wide, slots_each = share(site, waiting, q)
        request = Request(job.estimate, nodes_wide, slots_each, site.allowed[job.kind], site.reach[job.kind], reserves)
        begin, k = attempt(now, held, request, rule, out)
        if k > 0 and begin <= now:
            waiting.started[q] = held.count[RUNNING]
            held.count[ROOMS] = 0
            start(held, now + job.estimate, out, k, slots_each, job.slots)
            take_quotas(waiting, q, held)
        elif k > 0:
            first_promise = min(first_promise, begin)
            promised = promised + 1
    return first_promise


@bare()
def last_tested(waiting, most):
    """Return the index of the last waiting job that backfill looks at, `most` of those not started; -1 if it looks at none."""
    last = -1
    tested = 0.0
    while tested < most and last < waiting.started.shape[0] - 1:
        last += 1
        tested += waiting.started[last] < 0
    return last


@bare()
def may_start_still(now, held, site, waiting, q):
    """Whether a job waits, no limit keeps it, and it fits now."""
    if waiting.started[q] >= 0 or not has_room(waiting.claims, q, waiting.spare):
        return False
    return may_start(now, held, site, waiting, q)


@bare(inline="never")
def may_start(now, held, site, waiting, q):
    """Whether a job fits now, beside the promises so far."""
    job = waiting.jobs[q]
    nodes_wide, slots_each = share(site, waiting, q)
    if nodes_wide == 0:
        slots_each = GPU
    return suffice(held.room, site.allowed[job.kind], held.until, now + job.estimate, slots_each, nodes_wide)


@njit(inline="never")
def plan(now, site, running, waiting, rule, wake):
    """Return the answer of `gpuschedlab.Ordered.planner`, an array: nodes and slots of the jobs that start.

    The instant until which the planner rests is written into `wake`, as there. The claims of jobs that start are taken from the quotas.
    """
    chosen_nodes = np.empty(site.nodes.shape[0], np.int64)
    held_nodes = who_has(now, site, running, waiting.jobs)
    main_loop(now, held_nodes, site, waiting, rule, chosen_nodes)
    every = rule.plan.every
    between = every > 0 and np.ceil(now / every - 1e-9) * every > now
    wake[0] = np.inf
    if between:
        wake[0] = now
    elif rule.way > 0:
        wake[0] = backfill(now, held_nodes, site, waiting, rule, chosen_nodes)
    return answer_of(held_nodes, running, waiting.started)


@njit(inline="never")
def main_loop(now, held, site, waiting, rule, out):
    """Start jobs in order: one that does not fit keeps its nodes from all after it; one at a limit does not."""
    barred = np.zeros(site.nodes.shape[0], np.bool_)
    for q in range(waiting.jobs.shape[0]):
        if not has_room(waiting.claims, q, waiting.spare):
            continue
        job = waiting.jobs[q]
        nodes_wide, slots_each = share(site, waiting, q)
        usable = site.allowed[job.kind] & ~barred
        for i in range(held.count[PROMISED]):
            usable[held.promised[i]] &= held.begin[i] >= now + job.estimate
        k = choose(held.room, usable, slots_each, nodes_wide, rule.gres, out)
        if k > 0:
            waiting.started[q] = held.count[RUNNING]
            start(held, now + job.estimate, out, k, slots_each, job.slots)
            take_quotas(waiting, q, held)
        else:
            barred |= site.reach[job.kind]
            if barred.all():
                break


@njit(inline="never")
def answer_of(held, running, started):
    """Return an array of the cells of the jobs that started, in order of the queue."""
    before = held.first[running.runs.shape[0] - 1]
    answer_row = 0
    answer = np.empty(held.first[held.count[RUNNING]] - before, running.cells.dtype)
    for q in np.flatnonzero(started >= 0):
        for cell in range(held.first[started[q]], held.first[started[q] + 1]):
            answer[answer_row].answer = q
            answer[answer_row].node = held.node[cell]
            answer[answer_row].slots = held.slots[cell]
            answer_row += 1
    return answer
