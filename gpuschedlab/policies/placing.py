"""What policies of leases share: time left of jobs, and nodes for the chosen ones, consolidated where that is possible."""

from typing import TYPE_CHECKING

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.sim.allocation import Allocation
from gpuschedlab.speeds.elapsed import seconds_to

if TYPE_CHECKING:
    from gpuschedlab.sim.view import View

FILLER, CHOSEN, MUST = range(3)
"""Levels of jobs: takes what is free; was counted in; was counted in and displaces the others."""

LITTLE = 1e-9


def time_left(view: "View") -> np.ndarray:
    """Seconds that each job still needs on the GPUs that it requests, by its estimate; at least 1.

    Parameters
    ----------
    view : gpuschedlab.sim.View

    Returns
    -------
    (n,) float array
    """
    left = view.estimate - view.progress
    elastic = np.flatnonzero(view.elastic)
    if len(elastic):
        gpus = np.ceil(view.gpus[elastic]).astype(np.int64)
        types = np.maximum(view.gpu_type[elastic], 0)
        nodes = -(-gpus // _widest(view.cluster)[types])
        kinds = view.speeds.type_codes(view.cluster.gpu_types)[types]
        done = seconds_to(view.speeds, view.model[elastic], view.progress[elastic], kinds, nodes, gpus)
        left[elastic] = view.estimate[elastic] - np.where(np.isnan(done), view.executed[elastic], done)
    return np.maximum(left, 1.0)


def _widest(cluster) -> np.ndarray:
    kinds = range(len(cluster.gpu_types))
    return np.array([cluster.node_gpus[cluster.node_type == t].max() for t in kinds]).astype(np.int64)


def chosen_by_count(order: np.ndarray, gpus: np.ndarray, capacity: float) -> np.ndarray:
    """Go through jobs in order, and choose each that still has room.

    Parameters
    ----------
    order : (m,) int array
    gpus : (n,) float array
    capacity : float

    Returns
    -------
    (n,) bool array

    Examples
    --------
    >>> chosen_by_count(np.array([2, 0, 1]), np.array([4.0, 1.0, 3.0]), 4.0).tolist()
    [False, True, True]
    """
    chosen, room = np.zeros(len(gpus), bool), capacity
    for i in order:
        if gpus[i] <= room + LITTLE:
            chosen[i] = True
            room -= gpus[i]
        elif room < LITTLE:
            break
    return chosen


def placed(
    view: "View",
    order: np.ndarray,
    level: np.ndarray,
    *,
    gpus: np.ndarray | None = None,
    room: np.ndarray | None = None,
    split: np.ndarray | None = None,
    **answer,
) -> Allocation:
    """Give jobs nodes by level and order: jobs that run stay if they can, larger ones displace smaller ones.

    A job has the fewest nodes, the fullest ones that have room. One that is counted in and finds none displaces jobs of a
    lower level, then smaller ones of its own, which are placed again after it.

    Parameters
    ----------
    view : gpuschedlab.sim.View
    order : (m,) int array
        Positions of the jobs that may have GPUs, the first one first.
    level : (n,) int array
        FILLER, CHOSEN or MUST.
    gpus : (n,) float array, optional
        GPUs that each gets; default: what it requests.
    room : (n,) float array, optional
        GPUs that must be free on the nodes of each; default: as many as it gets.
    split : (n,) bool array, optional
        Jobs that may have more nodes than needed where consolidated ones are not to be had.
    **answer
        Further fields of the answer.

    Returns
    -------
    Allocation
        With the nodes of all jobs that got GPUs.
    """
    gpus = view.gpus if gpus is None else gpus
    room = gpus if room is None else room
    split = np.zeros(len(gpus), bool) if split is None else split
    held = view.nodes
    owner = held[:, 0].astype(np.int64)
    listed = np.zeros(len(gpus), bool)
    listed[order] = True
    stays = listed & (np.abs(view.running_gpus - gpus) < 0.01 + LITTLE) & (view.partner < 0) & (room == gpus)
    down = ~view.up[held[:, 1].astype(np.int64)]
    stays[owner[down]] = False
    free = np.where(view.up, view.cluster.node_gpus, 0).astype(float)
    kinds = np.stack([_types_first(view.gpu_type, t, len(view.capacity)) for t in range(len(view.capacity))], axis=1)
    rows = settle(
        np.asarray(order, np.int64),
        np.asarray(level, np.int64),
        np.asarray(gpus, float),
        np.asarray(room, float),
        stays,
        split,
        held[stays[owner]],
        kinds,
        view.cluster.node_type.astype(np.int64),
        np.where(view.up, view.cluster.node_gpus, 0).astype(float),
        free,
    )
    job = rows[:, 0].astype(np.int64)
    given = np.bincount(job, rows[:, 2], len(gpus)) if len(rows) else np.zeros(len(gpus))
    kind = np.zeros(len(gpus), np.int64)
    kind[job] = view.cluster.node_type[rows[:, 1].astype(np.int64)]
    return Allocation(kind, given, nodes=rows, **answer)


def _types_first(held: np.ndarray, t: int, types: int) -> np.ndarray:
    """(n,) the t-th type to be tried: the one held, then the others in order."""
    turn = np.where(held < 0, t, np.where(t == 0, held, np.where(t <= held, t - 1, t)))
    return turn.astype(np.int64) % types


@njit
def settle(order, level, gpus, room, stays, split, held, kinds, node_type, size, free):
    """Nodes of jobs as rows (job, node, GPUs); `placed` says by which rule.

    Parameters
    ----------
    order : (m,) int array
    level : (n,) int array
    gpus, room : (n,) float arrays
    stays, split : (n,) bool arrays
    held : (k, 3) float array
        Rows of the jobs that may stay.
    kinds : (n, T) int array
        Types in the order in which they are tried.
    node_type : (N,) int array
    size, free : (N,) float arrays
        GPUs of each node, and free ones; what is taken is subtracted.
    """
    n = len(gpus)
    at = np.full(n, -1)
    done = np.zeros(n, np.bool_)
    rows = [(0, 0, 0.0) for _ in range(0)]
    count = np.zeros(n, np.int64)
    for r in range(len(held)):
        count[int(held[r, 0])] += 1
    _stay(order, level, stays, held, count, at, done, rows, free, CHOSEN)
    later = [0 for _ in range(0)]
    for stage in (MUST, CHOSEN):
        queue = _by_size(order, level, gpus, done, stage)
        for i in later:
            queue.append(i)
        later = [0 for _ in range(0)]
        k = 0
        while k < len(queue):
            i = queue[k]
            k += 1
            if _put(i, level, gpus, room, split, kinds, node_type, size, free, at, done, rows):
                continue
            for j in _displace(i, level, gpus, room, kinds, node_type, size, free, at, done):
                if level[j] == stage:
                    queue.append(j)
                else:
                    later.append(j)
            _put(i, level, gpus, room, split, kinds, node_type, size, free, at, done, rows)
    _stay(order, level, stays, held, count, at, done, rows, free, FILLER)
    for i in order:
        if not done[i]:
            _put(i, level, gpus, room, split, kinds, node_type, size, free, at, done, rows)
    out = np.empty((len(rows) + (at >= 0).sum(), 3))
    k = 0
    for row in rows:
        out[k, 0], out[k, 1], out[k, 2] = row
        k += 1
    for i in range(n):
        if at[i] >= 0:
            out[k, 0], out[k, 1], out[k, 2] = i, at[i], gpus[i]
            k += 1
    return out


@njit
def _stay(order, level, stays, held, count, at, done, rows, free, least):
    """Leave jobs of a level and above where they are, if there is still room."""
    first = np.full(len(level), -1)
    for r in range(len(held) - 1, -1, -1):
        first[int(held[r, 0])] = r
    for i in order:
        if done[i] or not stays[i] or level[i] < least or first[i] < 0:
            continue
        fits = True
        for r in range(first[i], first[i] + count[i]):
            fits = fits and held[r, 2] <= free[int(held[r, 1])] + LITTLE
        if not fits:
            continue
        done[i] = True
        for r in range(first[i], first[i] + count[i]):
            free[int(held[r, 1])] -= held[r, 2]
            if count[i] == 1:
                at[i] = int(held[r, 1])
            else:
                rows.append((i, int(held[r, 1]), held[r, 2]))


@njit
def _by_size(order, level, gpus, done, stage):
    """Jobs of a level that have no place yet, the largest first, then in order."""
    todo = np.array([i for i in order if level[i] == stage and not done[i]])
    if len(todo) == 0:
        return [0 for _ in range(0)]
    return list(todo[np.argsort(-gpus[todo], kind="mergesort")])


@njit
def _put(i, level, gpus, room, split, kinds, node_type, size, free, at, done, rows):
    """Place a job where there is room; whether it was."""
    for t in kinds[i]:
        if _consolidated(i, t, gpus, room, node_type, size, free, at, rows):
            done[i] = True
            return True
    if split[i]:
        for t in kinds[i]:
            if _spread(i, t, gpus, node_type, free, rows):
                done[i] = True
                return True
    return False


@njit
def _fullest(need, t, node_type, free, taken):
    """Node of a type with the least free GPUs that are enough; -1: none."""
    best = -1
    for node in range(len(free)):
        if (
            node_type[node] == t
            and not taken[node]
            and free[node] >= need - LITTLE
            and (best < 0 or free[node] < free[best])
        ):
            best = node
    return best


@njit
def _consolidated(i, t, gpus, room, node_type, size, free, at, rows):
    """Place a job on the fewest nodes of a type, whole ones and the rest of it on one more."""
    widest = 0.0
    for node in range(len(size)):
        if node_type[node] == t:
            widest = max(widest, size[node])
    if widest <= 0:
        return False
    taken = np.zeros(len(free), np.bool_)
    whole = int((room[i] + LITTLE) // widest) if room[i] > widest else 0
    nodes = [0 for _ in range(0)]
    for _ in range(whole):
        node = _fullest(widest, t, node_type, free, taken)
        if node < 0:
            return False
        taken[node] = True
        nodes.append(node)
    rest = room[i] - whole * widest
    if rest > LITTLE:
        node = _fullest(rest, t, node_type, free, taken)
        if node < 0:
            return False
        nodes.append(node)
    if len(nodes) == 1:
        at[i] = nodes[0]
        free[nodes[0]] -= gpus[i]
        return True
    left = gpus[i]
    for node in nodes:
        count = min(left, widest)
        free[node] -= count
        left -= count
        if count > LITTLE:
            rows.append((i, node, count))
    return True


@njit
def _spread(i, t, gpus, node_type, free, rows):
    """Place a job on whatever whole GPUs of a type are free, on the emptiest nodes first."""
    total = 0.0
    for node in range(len(free)):
        if node_type[node] == t:
            total += np.floor(free[node] + LITTLE)
    if total < gpus[i] or gpus[i] < 1:
        return False
    left = gpus[i]
    while left > LITTLE:
        best = -1
        for node in range(len(free)):
            if node_type[node] == t and (best < 0 or free[node] > free[best]):
                best = node
        count = min(left, np.floor(free[best] + LITTLE))
        free[best] -= count
        left -= count
        rows.append((i, best, count))
    return True


@njit
def _displace(i, level, gpus, room, kinds, node_type, size, free, at, done):
    """Empty a node, or several, for a job, of the first type on which that is possible; the jobs that lose their place."""
    out = [0 for _ in range(0)]
    loose = np.zeros(len(free))
    cost = np.zeros(len(free))
    for j in range(len(gpus)):
        if at[j] >= 0 and _yields(j, i, level, gpus):
            loose[at[j]] += gpus[j]
            cost[at[j]] += 1.0 if level[j] < level[i] else 1e3
    for t in kinds[i]:
        widest = 0.0
        for node in range(len(size)):
            if node_type[node] == t:
                widest = max(widest, size[node])
        if widest <= 0:
            continue
        many = max(1, int(np.ceil(room[i] / widest - LITTLE)))
        need = min(room[i], widest)
        able = np.array(
            [v for v in range(len(free)) if node_type[v] == t and free[v] + loose[v] >= need - LITTLE and size[v] > 0]
        )
        if len(able) < many:
            continue
        for node in able[np.argsort(cost[able], kind="mergesort")][:many]:
            for lower in (True, False):
                for j in range(len(gpus)):
                    fits = free[node] >= need - LITTLE
                    if not fits and at[j] == node and _yields(j, i, level, gpus) and (level[j] < level[i]) == lower:
                        at[j] = -1
                        done[j] = False
                        free[node] += gpus[j]
                        out.append(j)
        return out
    return out


@njit
def _yields(j, i, level, gpus):
    """Whether a job gives its place to another one."""
    return j != i and (level[j] < level[i] or (level[j] == level[i] and gpus[j] < gpus[i]))
