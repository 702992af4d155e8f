"""Nodes for jobs that have been chosen, compiled: which stay, which are placed, which are displaced by larger ones.

GPUs are slots here, as in `gpuschedlab.cluster.node_index`.
"""

from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.node_index import SLOTS, fewest_nodes, hold
from gpuschedlab.cluster.placement import CONSOLIDATE, take_fewest, take_widest

FILLER, CHOSEN, MUST = range(3)
"""Levels of jobs: takes free GPUs; was counted in; was counted in and displaces the others."""


class Requests(NamedTuple):
    """Requests of n jobs for GPUs, of T types."""

    level: np.ndarray  # (n,) FILLER, CHOSEN or MUST
    slots: np.ndarray  # (n,) slots that each gets
    room: np.ndarray  # (n, T) slots that must be free on nodes of a type
    stays: np.ndarray  # (n,) whether it may stay on the nodes that it has
    split: np.ndarray  # (n,) whether it may have more nodes than it needs
    kinds: np.ndarray  # (n, T) types in the order in which they are tried, -1: it cannot have this one


class _Placing(NamedTuple):
    """Places of n jobs so far."""

    at: np.ndarray  # (n,) node of the jobs that are on one, else -1: only these are displaced
    done: np.ndarray  # (n,) whether the job has all its GPUs
    rows: list  # (job, node, slots) of the jobs that are on several nodes


@njit
def pack(P, order, jobs, held):
    """Return the nodes of n jobs (`Requests`) as an array of rows (job, node, slots); `placed` says by which rule.

    `P` are nodes, of which those that are up count for the fewest; GPUs taken are held. `held` (k, 3) are rows of the jobs that may
    stay.
    """
    n = len(jobs.slots)
    level = jobs.level
    node_of_job = np.full(n, -1)
    done = np.zeros(n, np.bool_)
    cells_of_jobs = [(0, 0, 0) for _ in range(0)]
    placing = _Placing(node_of_job, done, cells_of_jobs)
    _stay(P, order, jobs, held, placing, CHOSEN)
    later = [0 for _ in range(0)]
    for stage in (MUST, CHOSEN):
        todo = np.array([i for i in order if level[i] == stage and not done[i]], np.int64)
        by_size = np.argsort(-jobs.slots[todo], kind="mergesort")
        queue = list(todo[by_size])  # the largest first, then in order
        queue.extend(later)
        later = [0 for _ in range(0)]
        k = 0
        while k < len(queue):
            i = queue[k]
            k += 1
            if _put(P, jobs, i, placing):
                continue
            for j in _displace(P, jobs, i, placing):
                if level[j] == stage:
                    queue.append(j)
                else:
                    later.append(j)
            _put(P, jobs, i, placing)
    _stay(P, order, jobs, held, placing, FILLER)
    for i in order:
        if not done[i]:
            _put(P, jobs, i, placing)
    cells_of_jobs.extend([(i, node_of_job[i], jobs.slots[i]) for i in range(n) if node_of_job[i] >= 0])
    cell_array = np.empty((len(cells_of_jobs), 3), np.int64)
    for k, cell in enumerate(cells_of_jobs):
        cell_array[k, 0], cell_array[k, 1], cell_array[k, 2] = cell
    return cell_array


@njit
def _stay(P, order, jobs, held, placing, least):
    """Leave jobs of a level and above on their nodes, if there is still room."""
    ends = np.searchsorted(held[:, 0], np.arange(len(jobs.level) + 1))
    for i in order:
        own_rows = held[ends[i] : ends[i + 1]]
        fits = len(own_rows) > 0 and jobs.stays[i] and not placing.done[i] and jobs.level[i] >= least
        for r in range(len(own_rows)):
            fits = fits and own_rows[r, 2] <= P.nodes[own_rows[r, 1]].free
        if not fits:
            continue
        placing.done[i] = True
        for r in range(len(own_rows)):
            node = own_rows[r, 1]
            hold(P.nodes, P.count, P.member, node, own_rows[r, 2])
            if len(own_rows) == 1:
                placing.at[i] = node
            else:
                placing.rows.append((i, node, own_rows[r, 2]))


@njit
def _put(P, jobs, i, placing):
    """Place job i if there is room: consolidated, otherwise, if it may be split, on any whole GPUs. Return whether it was."""
    slots = jobs.slots[i]
    splits = jobs.split[i] and slots >= SLOTS
    node = np.empty(len(P.nodes) + 1, np.int32)
    taken_nodes = np.empty(len(P.nodes) + 1, np.int32)
    for consolidated in (True, False):
        for t in jobs.kinds[i]:
            if t < 0 or not (consolidated or splits):
                continue
            if consolidated:
                node_count = take_fewest(P, t, jobs.room[i, t], CONSOLIDATE, node, taken_nodes)
            else:
                node_count = take_widest(P, t, slots, slots, node, taken_nodes)
            if node_count == 0:
                continue
            placing.done[i] = True
            if consolidated and node_count == 1:
                placing.at[i] = node[0]
            missing = slots  # its room may be more than it takes
            for k in range(node_count):
                most_slots = taken_nodes[k]
                if consolidated:
                    most_slots = P.nodes[node[k]].size
                node_slots = min(missing, most_slots)
                hold(P.nodes, P.count, P.member, node[k], node_slots)
                missing -= node_slots
                if placing.at[i] < 0 and node_slots > 0:
                    placing.rows.append((i, node[k], node_slots))
            return True
    return False


@njit
def _displace(P, jobs, i, placing):
    """Empty a node, or several, for job i, of the first type that allows it; return a list of the jobs that lose their place."""
    level = jobs.level
    slots = jobs.slots
    room = jobs.room
    node_of_job = placing.at
    displaced_jobs = [0 for _ in range(0)]
    loose = np.zeros(len(P.nodes), np.int64)
    cost = np.zeros(len(P.nodes))
    for j in range(len(slots)):
        if node_of_job[j] >= 0 and _yields(j, i, jobs):
            loose[node_of_job[j]] += slots[j]
            cost[node_of_job[j]] += 1.0 if level[j] < level[i] else 1e3
    node_size = P.nodes["size"]
    for t in jobs.kinds[i]:
        many = fewest_nodes(P.sizes, t, room[i, t]) if t >= 0 else 0
        able = [0 for _ in range(0)]
        for v in range(len(P.nodes)):
            need = node_size[v] if many > 1 else room[i, t]
            if P.nodes[v].pool == t and P.nodes[v].down == 0 and P.nodes[v].free + loose[v] >= need:
                able.append(v)
        if many == 0 or len(able) < many:
            continue
        chosen = np.array(able)
        chosen = chosen[np.argsort(cost[chosen], kind="mergesort")]
        if many > 1:  # of several that are needed at once, the largest first
            chosen = chosen[np.argsort(-node_size[chosen], kind="mergesort")][:many]
        if node_size[chosen].sum() < room[i, t]:
            continue
        for node in chosen[:many]:
            need = min(room[i, t], node_size[node])
            for lower in (True, False):
                for j in range(len(slots)):
                    fits = P.nodes[node].free >= need
                    if fits or node_of_job[j] != node or not _yields(j, i, jobs):
                        continue
                    if (level[j] < level[i]) == lower:
                        node_of_job[j] = -1
                        placing.done[j] = False
                        hold(P.nodes, P.count, P.member, node, -slots[j])
                        displaced_jobs.append(j)
        break
    return displaced_jobs


@njit
def _yields(j, i, jobs):
    """Whether job j gives its place to job i."""
    if j == i:
        return False
    if jobs.level[j] == jobs.level[i]:
        return jobs.slots[j] < jobs.slots[i]
    return jobs.level[j] < jobs.level[i]
