"""Compiled decisions without preemption: which jobs start, which may pass others, which share.

Jobs of equal demand form a class. Within a decision room only shrinks, so once one job of a class cannot be placed
none of it can: only the heads of the open classes are ever compared, and the answer is the same as a walk down the
whole queue.
"""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.node_index import CLAIM, charge, charge_typed, has_room
from gpuschedlab.sim.engine.jobs.accounting import factor_of, find_place, find_speed, is_eligible, nth_pool
from gpuschedlab.sim.engine.jobs.lifecycle import can_host, hold, join, start
from gpuschedlab.sim.engine.jobs.queues import ahead, drop_waiting, first_queued, queue_classes, requeue
from gpuschedlab.sim.engine.jobs.records import ASK, CELL, GREEDY, RUN
from gpuschedlab.sim.engine.jobs.state import DECISION

ANY = 2**31 - 1  # slots, more than any job's
ASKS, RUNS, CELLS, CLAIMS = (
    np.dtype((np.record, kind)) for kind in (ASK, RUN, CELL, CLAIM)
)  # as attributes where nothing is compiled, too


@njit(inline="never")
def open_classes(S):
    """Open every class that has waiting jobs, and return how many there are."""
    n = 0
    for c in range(S.cls.shape[0]):
        S.cls[c].open = 1 if S.cls[c].count > 0 else 0
        n += S.cls[c].open
    return n


@njit
def most_free(S):
    """Return the number of free slots of the pool that has most."""
    most_slots = 0
    for p in range(S.pools.shape[0]):
        most_slots = max(most_slots, S.pools[p].free)
    return most_slots


@njit(inline="never")
def first_waiting(S):
    """Return the index of the first job in order among the heads of the open classes, or -1."""
    first_head = -1
    for c in range(S.cls.shape[0]):
        k = S.cls[c]
        if k.open == 1 and k.count > 0:
            j = S.heap[k.first]
            if first_head < 0 or ahead(S.body, j, first_head):
                first_head = j
    return first_head


@njit(inline="never")
def can_place(S, j):
    """Whether some pool can place waiting job j now."""
    nodes = 0
    for p in range(S.pools.shape[0]):
        if is_eligible(S, j, p):
            nodes = max(nodes, find_place(S, j, S.body[j].slots, p))
    return nodes > 0


@njit(inline="never")
def start_on(S, j, pool):
    """Start waiting job j (still in its class) on nodes of a pool that it may use; return whether they can be found now."""
    slots = S.body[j].slots
    k = find_place(S, j, slots, pool)
    if k > 0:
        drop_waiting(S, j)
        hold(S, j, k, S.place_node, S.place_slots)
        start(S, j, S.pools[pool].type, slots)
    return k > 0


@njit(inline="never")
def try_start(S, j):
    """Start waiting job j (still in its class) if some pool can place it now; return whether one can."""
    for n in range(S.pools.shape[0]):
        p = nth_pool(S, j, n)
        if is_eligible(S, j, p) and start_on(S, j, p):
            return True
    return False


@njit(inline="never")
def first_host(S, j, c):
    """Return the index of the first running job of class c, in order, that could take j as a guest, or -1."""
    host = -1
    for i in range(S.scalar[0].running):
        running_job = S.running[i]
        may_host = (
            S.body[running_job].cls == c
            and can_host(S, running_job)
            and S.known[S.body[j].knows, S.body[running_job].type] > 0
        )
        if may_host and (host < 0 or ahead(S.body, running_job, host)):
            host = running_job
    return host


@njit(inline="never")
def find_host(S, j):
    """Return the index of the running job of the same demand with which j would go best (sum of relative speeds), or -1."""
    m = S.job[j].model
    host = -1
    best_sharing = S.rule[0].share_limit
    if m < 0 or S.job[j].stage == 1:
        return -1
    for c in range(S.cls.shape[0]):
        k = S.cls[c]
        if k.hosts > 0 and k.slots == S.body[j].slots:
            sharing_speed = factor_of(S.sharing, m, k.model) + factor_of(S.sharing, k.model, m)
            if sharing_speed > best_sharing or (sharing_speed == best_sharing and host < 0):
                class_host = first_host(S, j, c)
                if class_host >= 0:
                    host = class_host
                    best_sharing = sharing_speed
    return host


@njit(inline="never")
def try_share(S, j):
    """Start waiting job j as the guest of a running one, if a good enough host runs; return whether one does."""
    host = find_host(S, j)
    if host < 0:
        return False
    drop_waiting(S, j)
    join(S, j, host, 0)
    return True


@njit(inline="never")
def close_behind(S, j):
    """Close every class that may use nodes that waiting job j may: none of them passes it."""
    for c in range(S.cls.shape[0]):
        k = S.cls[c]
        if k.open == 1 and k.count > 0 and k.stage == S.job[j].stage:
            for gpu_type in range(S.known.shape[1]):
                if S.known[S.body[j].knows, gpu_type] > 0 and S.known[S.body[S.heap[k.first]].knows, gpu_type] > 0:
                    k.open = 0


@njit(inline="never")
def fill(S):
    """Start waiting jobs in order while they fit; one that does not closes its class, or (strict) all that it competes with."""
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
                close_behind(S, j)
        n = requeue(S, n)


@njit(inline="never")
def list_waiting(S, spare):
    """Return an array of requests of the first waiting jobs, in order, as many as a plan looks at; their rows are in `chosen`.

    A job of which some quota has too little left is not among them.
    """
    queue = np.empty(int(min(S.scalar[0].waiting, S.rule[0].tested)), ASKS)
    i = 0
    n = queue_classes(S, ANY) if open_classes(S) > 0 else 0
    while n > 0 and i < len(queue):
        j = first_queued(S, n)
        S.cls[S.body[j].cls].head += 1
        n = requeue(S, n)
        if not has_room(S.claim, j, spare):
            continue
        a = queue[i]
        S.chosen[i] = j
        a.slots = S.body[j].slots
        a.kind = S.body[j].knows
        a.estimate = S.job[j].estimate
        a.submit = S.job[j].submit
        a.asked = S.cls[S.body[j].cls].asked
        i = i + 1
    return queue[:i]


@njit(inline="never")
def list_runs(S):
    """Return two arrays, a tuple: the running jobs, with one more row that ends the last, and their cells."""
    runs = np.empty(S.scalar[0].running + 1, RUNS)
    cells = np.empty(S.entry.shape[0], CELLS)
    k = 0
    for i in range(S.scalar[0].running):
        j = S.running[i]
        runs[i].end = S.job[j].started + S.job[j].estimate
        runs[i].first = k
        e = S.body[j].head
        while e >= 0:
            cells[k].node = S.entry[e].node
            cells[k].slots = S.entry[e].slots
            e = S.entry[e].next
            k = k + 1
    runs[-1].end = np.inf
    runs[-1].first = k
    return runs, cells[:k]


@njit(inline="never")
def spare_quotas(S):
    """Return an array (Q,) of the slots and jobs of each quota that running jobs do not claim."""
    spare = S.quota.copy()
    for i in range(S.scalar[0].running):
        j = S.running[i]
        charge(S.claim, j, spare)
        e = S.body[j].head
        while e >= 0:
            charge_typed(S.claim, j, S.nodes[S.entry[e].node].type, S.entry[e].slots, spare)
            e = S.entry[e].next
    return spare


@njit(inline="never")
def claims_of(S, count):
    """Return an array of the claims of the first chosen jobs."""
    claims = np.empty((count, S.claim.shape[1]), CLAIMS)
    for i in range(count):
        for k in range(claims.shape[1]):
            claims[i, k] = S.claim[S.chosen[i], k]
    return claims


@njit(inline="never")
def slowest_type(S, j, k, slots):
    """Return the number of the GPU type of the k nodes that job j holds; of several types, the one on which it is slowest.

    `place_node` has the numbers of the nodes.
    """
    slowest = S.nodes[S.place_node[0]].type
    several = False
    for i in range(k):
        several |= S.nodes[S.place_node[i]].type != slowest
    if not several or S.job[j].model < 0:
        return slowest
    least_rate = np.inf
    S.body[j].got = slots
    for i in range(k):
        S.body[j].type = S.nodes[S.place_node[i]].type
        speed_row = find_speed(S, j)
        if speed_row >= 0 and S.rate[speed_row] < least_rate:
            least_rate = S.rate[speed_row]
            slowest = S.body[j].type
    return slowest


@njit(inline="never")
def obey(S):
    """Start the waiting jobs that the policy's own planner starts, on the nodes that it names."""
    spare = spare_quotas(S)
    queue = list_waiting(S, spare)
    claims = claims_of(S, queue.shape[0])
    runs, run_cells = list_runs(S)
    wake = np.zeros(1)
    allowed = np.empty((S.known.shape[0], S.nodes.shape[0]), np.bool_)
    reach = np.empty_like(allowed)
    for n in range(S.nodes.shape[0]):
        up = S.nodes[n].down == 0
        allowed[:, n] = (S.known[:, S.nodes[n].type] > 0) & up
        reach[:, n] = (S.known[:, S.nodes[n].type] != 0) & up
    cells = S.planner(
        S.scalar[0].now, S.nodes, runs, queue, S.window, S.rule, run_cells, allowed, reach, wake, claims, spare, S.knobs
    )
    i = 0
    while i < len(cells):
        queue_row = cells[i].answer
        k = 0
        while i < len(cells) and cells[i].answer == queue_row:
            S.place_node[k] = cells[i].node
            S.place_slots[k] = cells[i].slots
            i = i + 1
            k = k + 1
        drop_waiting(S, S.chosen[queue_row])
        hold(S, S.chosen[queue_row], k, S.place_node, S.place_slots)
        start(
            S,
            S.chosen[queue_row],
            slowest_type(S, S.chosen[queue_row], k, queue[queue_row].slots),
            queue[queue_row].slots,
        )
    S.scalar[0].rests_until = wake[0]


@njit(DECISION.signature)
def decide_by_planner(S):
    """Decide by `obey`, and return 0."""
    obey(S)
    return 0
