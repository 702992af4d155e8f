"""Nodes for jobs that have been chosen, compiled: which stay, which are placed, which are displaced by larger ones.

GPUs are slots here, as in `gpuschedlab.cluster.node_index`.
"""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.node_index import SLOTS, fewest_nodes, hold
from gpuschedlab.cluster.placement import CONSOLIDATE, take_fewest, take_widest

FILLER, CHOSEN, MUST = range(3)
"""Levels of jobs: takes free GPUs; was counted in; was counted in and displaces the others."""


@njit
def pack(P, order, level, slots, room, stays, split, held, kinds):
    """Nodes of n jobs as rows (job, node, slots); `placed` says by which rule.

    `P` are nodes, of which those that are up count for the fewest; GPUs taken are held. `held` (k, 3) are rows of the jobs that may
    stay, `kinds` (n, T) the types in the order in which they are tried, -1: it cannot have this one.
    """
    n = len(slots)
    at = np.full(n, -1)
    done = np.zeros(n, np.bool_)  # node of the jobs that are on one: only these are displaced
    rows = [(0, 0, 0) for _ in range(0)]
    _stay(P, order, level, stays, held, at, done, rows, CHOSEN)
    later = [0 for _ in range(0)]
    for stage in (MUST, CHOSEN):
        todo = np.array([i for i in order if level[i] == stage and not done[i]], np.int64)
        queue = list(todo[np.argsort(-slots[todo], kind="mergesort")])  # the largest first, then in order
        queue.extend(later)
        later = [0 for _ in range(0)]
        k = 0
        while k < len(queue):
            i = queue[k]
            k += 1
            if _put(P, i, slots, room, split, kinds, at, done, rows):
                continue
            for j in _displace(P, i, level, slots, room, kinds, at, done):
                if level[j] == stage:
                    queue.append(j)
                else:
                    later.append(j)
            _put(P, i, slots, room, split, kinds, at, done, rows)
    _stay(P, order, level, stays, held, at, done, rows, FILLER)
    for i in order:
        if not done[i]:
            _put(P, i, slots, room, split, kinds, at, done, rows)
    rows.extend([(i, at[i], slots[i]) for i in range(n) if at[i] >= 0])
    out = np.empty((len(rows), 3), np.int64)
    for k, row in enumerate(rows):
        out[k, 0], out[k, 1], out[k, 2] = row
    return out


@njit
def _stay(P, order, level, stays, held, at, done, rows, least):
    """Leave jobs of a level and above where they are, if there is still room."""
    ends = np.searchsorted(held[:, 0], np.arange(len(level) + 1))
    for i in order:
        own = held[ends[i] : ends[i + 1]]
        fits = len(own) > 0 and stays[i] and not done[i] and level[i] >= least
        for r in range(len(own)):
            fits = fits and own[r, 2] <= P.nodes[own[r, 1]].free
        if not fits:
            continue
        done[i] = True
        for r in range(len(own)):
            hold(P.nodes, P.count, P.member, own[r, 1], own[r, 2])
            if len(own) == 1:
                at[i] = own[r, 1]
            else:
                rows.append((i, own[r, 1], own[r, 2]))


@njit
def _put(P, i, slots, room, split, kinds, at, done, rows):
    """Place a job if there is room: consolidated, otherwise, if it may be split, on any whole GPUs; whether it was."""
    node = np.empty(len(P.nodes) + 1, np.int32)
    taken = np.empty(len(P.nodes) + 1, np.int32)
    for consolidated in (True, False):
        for t in kinds[i]:
            if t < 0 or not (consolidated or (split[i] and slots[i] >= SLOTS)):
                continue
            if consolidated:
                count = take_fewest(P, t, room[i, t], CONSOLIDATE, node, taken)
            else:
                count = take_widest(P, t, slots[i], slots[i], node, taken)
            if count == 0:
                continue
            done[i] = True
            if consolidated and count == 1:
                at[i] = node[0]
            left = slots[i]  # its room may be more than it takes
            for k in range(count):
                own = min(left, P.nodes[node[k]].size if consolidated else taken[k])
                hold(P.nodes, P.count, P.member, node[k], own)
                left -= own
                if at[i] < 0 and own > 0:
                    rows.append((i, node[k], own))
            return True
    return False


@njit
def _displace(P, i, level, slots, room, kinds, at, done):
    """Empty a node, or several, for a job, of the first type on which that is possible; the jobs that lose their place."""
    out = [0 for _ in range(0)]
    loose = np.zeros(len(P.nodes), np.int64)
    cost = np.zeros(len(P.nodes))
    for j in range(len(slots)):
        if at[j] >= 0 and _yields(j, i, level, slots):
            loose[at[j]] += slots[j]
            cost[at[j]] += 1.0 if level[j] < level[i] else 1e3
    size = P.nodes["size"]
    for t in kinds[i]:
        many = fewest_nodes(P.sizes, t, room[i, t]) if t >= 0 else 0
        able = [0 for _ in range(0)]
        for v in range(len(P.nodes)):
            need = size[v] if many > 1 else room[i, t]
            if P.nodes[v].pool == t and P.nodes[v].down == 0 and P.nodes[v].free + loose[v] >= need:
                able.append(v)
        if many == 0 or len(able) < many:
            continue
        chosen = np.array(able)
        chosen = chosen[np.argsort(cost[chosen], kind="mergesort")]
        if many > 1:  # of several that are needed at once, the largest first
            chosen = chosen[np.argsort(-size[chosen], kind="mergesort")][:many]
        if size[chosen].sum() < room[i, t]:
            continue
        for node in chosen[:many]:
            need = min(room[i, t], size[node])
            for lower in (True, False):
                for j in range(len(slots)):
                    fits = P.nodes[node].free >= need
                    if not fits and at[j] == node and _yields(j, i, level, slots) and (level[j] < level[i]) == lower:
                        at[j] = -1
                        done[j] = False
                        hold(P.nodes, P.count, P.member, node, -slots[j])
                        out.append(j)
        break
    return out


@njit
def _yields(j, i, level, slots):
    """Whether a job gives its place to another one."""
    return j != i and (level[j] < level[i] or (level[j] == level[i] and slots[j] < slots[i]))
