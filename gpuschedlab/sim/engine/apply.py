"""Compiled application of a round's answer: which jobs stop, which stay, and where the others start.

The answer is put into force in five steps: jobs that cannot stay as they are stop; jobs with named nodes take them; the
placement rule places the others, type by type; guests join their hosts; and the next round is scheduled.
"""

import numpy as np
from numba import from_dtype, types

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.placement import BUDDY, has_cell
from gpuschedlab.sim.engine.due import after_decision, sleep_until
from gpuschedlab.sim.engine.jobs.accounting import blame, factor_of, find_place, refresh, set_rate, undo, wake
from gpuschedlab.sim.engine.jobs.lifecycle import begin_wait, hold, join, leave, let_go, start
from gpuschedlab.sim.engine.jobs.logs import log_stretch, log_tick
from gpuschedlab.sim.engine.jobs.queues import drop_waiting
from gpuschedlab.sim.engine.jobs.rank import order_of
from gpuschedlab.sim.engine.jobs.records import ANSWER, CELL, NO_TRANSFER, RUNNING, TAKEN, WAITING
from gpuschedlab.sim.engine.jobs.state import STATE
from gpuschedlab.sim.engine.preemption import reclaim, vacate

ANSWERS = types.Array(from_dtype(ANSWER), 1, "C")
CELLS = types.Array(from_dtype(CELL), 1, "C")


@njit
def _stop(S, j):
    """Job j gives its GPUs back and waits; it may start again within this answer."""
    leave(S, j)
    begin_wait(S, j)


@njit
def _on_its_cells(S, a, cells):
    """Whether a running job holds just the nodes that the answer names, if it names any."""
    if a.cells == 0:
        return True
    e = S.body[a.job].head
    for i in range(a.first, a.first + a.cells):  # both in order of node
        if e < 0 or S.entry[e].node != cells[i].node or S.entry[e].slots != cells[i].slots:
            return False
        e = S.entry[e].next
    return e < 0


@njit
def _keeps_its_gpus(S, a):
    """Whether a running job may go on with the GPUs that it holds, be it on other nodes."""
    b = S.body[a.job]
    same_source = a.source < 0 or a.source == b.source
    return a.slots == b.got and a.type == b.type and a.idle == b.idle and same_source


@njit
def _keeps_its_partner(S, a):
    """Whether a running job is the guest that the answer wants it to be, or no guest as that wants."""
    b = S.body[a.job]
    if a.host < 0:
        return b.guest == 0
    return b.guest == 1 and b.partner == a.host and b.joint == a.joint


@njit
def _stop_misfits(S, answer, cells):
    """Stop every running job that cannot stay as it is, or (if moves cost nothing) mark it to be moved."""
    for i in range(answer.shape[0]):
        a = answer[i]
        if S.job[a.job].state == RUNNING and not _keeps_its_gpus(S, a):
            _stop(S, a.job)
    for i in range(answer.shape[0]):  # by now, a guest whose host stopped has its GPUs to itself
        a = answer[i]
        if S.job[a.job].state != RUNNING:
            continue
        if not _keeps_its_partner(S, a):
            _stop(S, a.job)
        elif a.host < 0 and not _on_its_cells(S, a, cells):
            if S.rule[0].free_moves == 1:
                S.body[a.job].moving = 1
            else:
                _stop(S, a.job)


@njit
def _let_move(S, j):
    """Running job j, whose nodes are given back, goes on elsewhere at no cost; its guest comes along."""
    refresh(S, j)
    log_stretch(S, j)
    if S.body[j].partner >= 0:
        refresh(S, S.body[j].partner)
        log_stretch(S, S.body[j].partner)
    let_go(S, j)


@njit
def _settle(S, j):
    """Job j, and a guest of its, go on on the nodes that j holds now."""
    b = S.body[j]
    b.moving = 0
    b.row = -1
    set_rate(S, j)
    wake(S, j)
    if b.partner >= 0:
        partner = S.body[b.partner]
        partner.row = -1
        partner.nodes = b.nodes
        set_rate(S, b.partner)
        wake(S, b.partner)


@njit
def _begin(S, a):
    """Start a waiting job, which holds nodes or is to join its host, as the answer wants."""
    j = a.job
    b = S.body[j]
    if a.source >= 0 and a.source != b.source:
        m = S.job[j].model
        source_model = S.job[a.source].model
        b.gain = 1.0 if a.source == j else factor_of(S.transfer, source_model, m)
        if not b.gain >= 0:
            blame(S, j, NO_TRANSFER)
        undo(S, j, 0.0, 0.0)
        b.source = a.source
    b.idle = a.idle
    b.delay = a.delay
    drop_waiting(S, j)
    if a.host >= 0:
        join(S, j, a.host, a.joint)
    else:
        start(S, j, a.type, a.slots)


@njit
def _room_on(S, a, node, slots):
    """Whether a node can give slots to the job of an answer now."""
    nd = S.nodes[node]
    if nd.down > 0 or nd.type != a.type or nd.free < slots:
        return False
    return S.rule[0].placement != BUDDY or has_cell(S.nodes, node, slots)


@njit
def _take_cells(S, a, cells):
    """Give a job the nodes that the answer names and return True; False, and it is blamed, if others hold the GPUs."""
    for i in range(a.cells):
        answered_cell = cells[a.first + i]
        if not _room_on(S, a, answered_cell.node, answered_cell.slots):
            blame(S, a.job, TAKEN)
            return False
        S.place_node[i] = answered_cell.node
        S.place_slots[i] = answered_cell.slots
    hold(S, a.job, a.cells, S.place_node, S.place_slots)
    return True


@njit
def _place_named(S, answer, cells):
    """Start or move the jobs whose nodes are named, in the order in which the answer names them."""
    # Under the rule "buddy", which cells are left depends on that order.
    for i in range(answer.shape[0]):
        if S.body[answer[i].job].moving == 1:
            _let_move(S, answer[i].job)
    cell_row = 0
    while cell_row < cells.shape[0]:
        a = answer[cells[cell_row].answer]
        cell_row += a.cells
        waits = S.job[a.job].state == WAITING and a.slots > 0
        if a.host < 0 and (waits or S.body[a.job].moving == 1) and _take_cells(S, a, cells):
            if waits:
                _begin(S, a)
            else:
                _settle(S, a.job)


@njit
def _place_new(S, answer, order, pool):
    """Try to place all new jobs of a type beside those that stay, largest first, all or nothing; return whether all fit."""
    placed_jobs = 0
    for i in order:
        a = answer[i]
        if S.job[a.job].state != WAITING:
            continue
        k = find_place(S, a.job, a.slots, pool)
        if k == 0:
            break
        hold(S, a.job, k, S.place_node, S.place_slots)
        placed_jobs += 1
    new_jobs = 0
    for i in order:
        new_jobs += S.job[answer[i].job].state == WAITING
    all_placed = placed_jobs == new_jobs
    for i in order:
        a = answer[i]
        if placed_jobs > 0 and S.job[a.job].state == WAITING:
            placed_jobs -= 1
            if all_placed:
                _begin(S, a)
            else:
                let_go(S, a.job)
    return all_placed


@njit
def _move(S, a, pool):
    """Move a running job, whose nodes are vacated, to other nodes of the pool at no cost; return False if there are none."""
    _let_move(S, a.job)
    k = find_place(S, a.job, a.slots, pool)
    if k == 0:
        return False
    hold(S, a.job, k, S.place_node, S.place_slots)
    _settle(S, a.job)
    return True


@njit
def _give_way(S, a, pool):
    """Move a running job whose vacated nodes others took, if that costs nothing, or stop it; return whether it goes on."""
    b = S.body[a.job]
    b.vacated = 1
    if S.rule[0].free_moves == 1 and _move(S, a, pool):
        return True
    if b.partner >= 0:
        _stop(S, b.partner)
    _stop(S, a.job)
    return False


@njit
def _repack(S, answer, order, pool):
    """Place all jobs of a type anew, largest first; one whose old nodes are free stays. Return how many found no place."""
    for i in order:
        if S.job[answer[i].job].state == RUNNING:
            vacate(S, answer[i].job)
    not_placed = 0
    for i in order:
        a = answer[i]
        if S.job[a.job].state == RUNNING and (reclaim(S, a.job) or _give_way(S, a, pool)):
            continue
        k = find_place(S, a.job, a.slots, pool)
        if k > 0:
            hold(S, a.job, k, S.place_node, S.place_slots)
            _begin(S, a)
        else:
            not_placed += 1
    return not_placed


@njit
def _place_by_rule(S, answer):
    """Start the jobs whose nodes the placement rule chooses, type by type; return how many found no place."""
    not_placed = 0
    for p in range(S.pools.shape[0]):
        n = 0
        mine = np.empty(answer.shape[0], np.int64)
        for i in range(answer.shape[0]):
            a = answer[i]
            if a.slots > 0 and a.host < 0 and a.cells == 0 and a.type == S.pools[p].type:
                mine[n] = i
                n += 1
        # Largest first, since small jobs fit into what large ones leave; a stable sort, so that equal ones keep their order.
        answer_order = mine[:n].copy()
        ranks = order_of(-answer["slots"][answer_order])
        for i in range(n):
            answer_order[i] = mine[ranks[i]]
        # Those that run stay where they are if all others fit beside them: only then does nothing move without need.
        if not _place_new(S, answer, answer_order, p):
            not_placed += _repack(S, answer, answer_order, p)
    return not_placed


@njit
def _seat_guests(S, answer):
    """Let guests that wait join their hosts; return how many hosts do not run."""
    hosts_missing = 0
    for i in range(answer.shape[0]):
        a = answer[i]
        if a.host >= 0 and a.slots > 0 and S.job[a.job].state == WAITING:
            if S.job[a.host].state == RUNNING and S.body[a.host].partner < 0:
                _begin(S, a)
            else:
                hosts_missing += 1
    return hosts_missing


@njit(types.int64(STATE, ANSWERS, CELLS, types.float64))
def apply_answer(S, answer, cells, wake_at):
    """Put a round's answer into force at this instant; return how many jobs found no place (fragmentation)."""
    # `wake_at`: instant (s) of the next round, unless something happens before; nan: as always.
    # Whether a job was preempted is seen at the end: one that stopped and started again within the answer was not.
    ran = np.empty(answer.shape[0], np.bool_)
    for i in range(answer.shape[0]):
        ran[i] = S.job[answer[i].job].state == RUNNING and S.body[answer[i].job].fresh == 0
    _stop_misfits(S, answer, cells)
    _place_named(S, answer, cells)
    not_placed = _place_by_rule(S, answer)
    not_placed += _seat_guests(S, answer)
    for i in range(answer.shape[0]):
        if ran[i] and S.job[answer[i].job].state == WAITING:
            S.job[answer[i].job].preemptions += 1
    S.scalar[0].dirty = 0
    after_decision(S)
    if not np.isnan(wake_at):
        sleep_until(S, wake_at)
    log_tick(S)
    return not_placed
