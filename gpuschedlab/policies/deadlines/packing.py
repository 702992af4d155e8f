"""Nodes for jobs that have been chosen, compiled: which stay, which are placed, which are displaced by larger ones."""

import numpy as np

from gpuschedlab._compiled import njit

FILLER, CHOSEN, MUST = range(3)
"""Levels of jobs: takes what is free; was counted in; was counted in and displaces the others."""

LITTLE = 1e-9


@njit
def pack(order, level, gpus, room, stays, split, held, kinds, node_type, size, free):
    """Nodes of jobs as rows (job, node, GPUs); `placed` says by which rule.

    Parameters
    ----------
    order : (m,) int array
    level : (n,) int array
    gpus : (n,) float array
    room : (n, T) float array
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
def _fewest(need, t, node_type, size):
    """Fewest nodes of a type that have so many GPUs in all, were they empty; 0: all of them have less."""
    own = np.sort(size[node_type == t])[::-1]
    total = 0.0
    for k in range(len(own)):
        total += own[k]
        if total >= need - LITTLE:
            return k + 1
    return 0


@njit
def _largest_empty(t, node_type, size, free, taken):
    """Largest node of a type of which nothing is held; -1: none."""
    best = -1
    for node in range(len(free)):
        empty = node_type[node] == t and not taken[node] and size[node] > 0 and free[node] >= size[node] - LITTLE
        if empty and (best < 0 or size[node] > size[best]):
            best = node
    return best


@njit
def _consolidated(i, t, gpus, room, node_type, size, free, at, rows):
    """Place a job on the fewest nodes of a type: the largest empty ones, and the rest of it on one more."""
    left = room[i, t]
    most = _fewest(left, t, node_type, size)
    taken = np.zeros(len(free), np.bool_)
    nodes = [0 for _ in range(0)]
    last = -1
    while len(nodes) < most:
        last = _fullest(left, t, node_type, free, taken)
        node = _largest_empty(t, node_type, size, free, taken) if last < 0 and len(nodes) + 1 < most else -1
        if node < 0:
            break
        taken[node] = True
        nodes.append(node)
        left -= size[node]
    if last < 0:
        return False
    nodes.append(last)
    if len(nodes) == 1:
        at[i] = last
        free[last] -= gpus[i]
        return True
    left = gpus[i]
    for node in nodes:
        count = min(left, size[node])
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
        many = _fewest(room[i, t], t, node_type, size)
        whole = many > 1
        able = [0 for _ in range(0)]
        for v in range(len(free)):
            need = size[v] if whole else room[i, t]
            if node_type[v] == t and size[v] > 0 and free[v] + loose[v] >= need - LITTLE:
                able.append(v)
        if many == 0 or len(able) < many:
            continue
        chosen = _cheapest(np.array(able), size, cost, whole)[:many]
        if size[chosen].sum() < room[i, t] - LITTLE:
            continue
        for node in chosen:
            need = min(room[i, t], size[node])
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
def _cheapest(nodes, size, cost, largest_first):
    """Nodes in order of what emptying them costs; of several that are needed at once, the largest first."""
    nodes = nodes[np.argsort(cost[nodes], kind="mergesort")]
    return nodes[np.argsort(-size[nodes], kind="mergesort")] if largest_first else nodes


@njit
def _yields(j, i, level, gpus):
    """Whether a job gives its place to another one."""
    return j != i and (level[j] < level[i] or (level[j] == level[i] and gpus[j] < gpus[i]))
