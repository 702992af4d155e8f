"""Compiled: closing the gap of a multiple-choice knapsack exactly, by labels over the choices that may still matter.

At given prices each choice of a job has a loss: how much its Lagrangian worth falls short of the job's best. A solution's
value is the Lagrangian bound less its losses and less the price of the GPUs that it leaves idle. So one better than the best
known has losses below the gap: few choices remain, and a dynamic program over them, with a label for each use of GPUs, ends.
"""

import numpy as np
from numba import njit


@njit(cache=True)
def core_choices(v, order, starts, gpus, type_of, capacity, prices, choice, limit):
    """Choices whose loss is below `limit`: (job pointers (n + 1,), configurations, losses), best first in each job.

    `choice` is filled with the choice of least loss.
    """
    n, C = v.shape
    room = 16 * n + 64
    config = np.empty(room, np.int64)
    loss = np.empty(room)
    at = np.zeros(n + 1, np.int64)
    worth = np.empty(C)
    for i in range(n):
        best = 0.0
        choice[i] = -1
        for c in range(C):
            t = type_of[c]
            w = v[i, order[c]] - prices[t] * gpus[c]
            worth[c] = w if gpus[c] <= capacity[t] and v[i, order[c]] > 0 else -np.inf
            if worth[c] > best:
                best = worth[c]
                choice[i] = c
        k = at[i]
        if k + C + 1 > room:
            room = 2 * room + C
            config = np.append(config, np.empty(room - config.shape[0], np.int64))
            loss = np.append(loss, np.empty(room - loss.shape[0]))
        if best < limit:
            config[k] = -1
            loss[k] = best
            k += 1
        for c in range(C):
            if best - worth[c] < limit:
                config[k] = c
                loss[k] = best - worth[c]
                k += 1
        rank = np.argsort(loss[at[i] : k])
        config[at[i] : k] = config[at[i] : k][rank]
        loss[at[i] : k] = loss[at[i] : k][rank]
        at[i + 1] = k
    return at, config[: at[n]], loss[: at[n]]


@njit(cache=True)
def _slot(table, stamp, round_, labels, used, size):
    """Place in the hash table of the label with this use of GPUs, or of the empty place for it."""
    mask = table.shape[0] - 1
    h = np.uint64(1469598103934665603)
    for t in range(size):
        h = (h ^ np.uint64(used[t])) * np.uint64(1099511628211)
    p = np.int64((h ^ (h >> np.uint64(29))) & np.uint64(mask))
    while stamp[p] == round_:
        same = True
        for t in range(size):
            if labels[table[p], t] != used[t]:
                same = False
                break
        if same:
            return p
        p = (p + 1) & mask
    return p


@njit(cache=True)
def close_gap(at, config, loss, type_of, gpus, capacity, prices, limit, width):
    """Choices of least loss, if any is below `limit`.

    Parameters
    ----------
    at, config, loss
        From `core_choices`.
    capacity : (T,) int array
        GPUs of each type.
    limit : float
        Only losses below this are of interest.
    width : int
        Labels kept from one job to the next; beyond, those of least loss stay and `dropped` says what was given up.

    Returns
    -------
    found : float
        Least loss found, idle GPUs at their price included; `limit` where none is below.
    picks : (n,) int array
        The choices, where one was found.
    dropped : float
        No solution that was given up has less loss than this; inf where none was.
    """
    n, types = at.shape[0] - 1, capacity.shape[0]
    jobs = np.argsort(at[1:] - at[:-1])  # the settled ones first
    least, most = _ranges(at, config, type_of, gpus, jobs, types)
    best_table = np.empty(4 * 1024, np.int64)
    stamp = np.zeros(best_table.shape[0], np.int64)
    used = np.zeros((1, types), np.int64)
    value = np.zeros(1)
    history = 0
    parent = np.empty(1024, np.int64)
    option = np.empty(1024, np.int64)
    begins = np.zeros(n + 1, np.int64)
    dropped = np.inf
    fresh = np.empty(types, np.int64)
    for step in range(n):
        i = jobs[step]
        cap = min(used.shape[0] * (at[i + 1] - at[i]), 64 * width)
        while best_table.shape[0] < 2 * cap + 2:
            best_table = np.empty(2 * best_table.shape[0], np.int64)
            stamp = np.zeros(best_table.shape[0], np.int64)
        new_used = np.empty((cap, types), np.int64)
        new_value = np.empty(cap)
        new_from = np.empty(cap, np.int64)
        new_option = np.empty(cap, np.int64)
        count = 0
        for a in range(used.shape[0]):
            for k in range(at[i], at[i + 1]):
                total = value[a] + loss[k]
                if total >= limit:
                    break
                fits = True
                idle = 0.0
                for t in range(types):
                    fresh[t] = used[a, t]
                if config[k] >= 0:
                    fresh[type_of[config[k]]] += np.int64(gpus[config[k]])
                for t in range(types):
                    if fresh[t] + least[step + 1, t] > capacity[t]:
                        fits = False
                        break
                    idle += prices[t] * max(capacity[t] - fresh[t] - most[step + 1, t], 0)
                if not fits or total + idle >= limit:
                    continue
                p = _slot(best_table, stamp, step + 1, new_used, fresh, types)
                if stamp[p] == step + 1:
                    c = best_table[p]
                    if total >= new_value[c]:
                        continue
                elif count < cap:
                    c = count
                    count += 1
                    stamp[p] = step + 1
                    best_table[p] = c
                    new_used[c] = fresh
                else:
                    dropped = min(dropped, total + idle)
                    continue
                new_value[c] = total
                new_from[c] = a
                new_option[c] = k
        if count == 0:
            return limit, option[:0], dropped
        keep = np.arange(count)
        if count > width:
            rank = np.argsort(new_value[:count])
            keep = rank[:width]
            dropped = min(dropped, new_value[rank[width]])
        used = new_used[keep]
        value = new_value[keep]
        kept = keep.shape[0]
        if history + kept > parent.shape[0]:
            grown = 2 * (history + kept)
            parent = np.append(parent, np.empty(grown - parent.shape[0], np.int64))
            option = np.append(option, np.empty(grown - option.shape[0], np.int64))
        for q in range(kept):
            parent[history + q] = new_from[keep[q]]
            option[history + q] = new_option[keep[q]]
        begins[step] = history
        history += kept
    found = limit
    last = -1
    for a in range(used.shape[0]):
        total = value[a]
        for t in range(types):
            total += prices[t] * (capacity[t] - used[a, t])
        if total < found:
            found = total
            last = a
    picks = np.empty(n if last >= 0 else 0, np.int64)
    for step in range(picks.shape[0] - 1, -1, -1):
        k = option[begins[step] + last]
        picks[jobs[step]] = config[k]
        last = parent[begins[step] + last]
    return found, picks, dropped


@njit(cache=True)
def _ranges(at, config, type_of, gpus, jobs, types):
    """Least and most GPUs of each type that the jobs from each step on may use together: two (n + 1, T) arrays."""
    n = jobs.shape[0]
    least = np.zeros((n + 1, types), np.int64)
    most = np.zeros((n + 1, types), np.int64)
    low = np.empty(types, np.int64)
    high = np.empty(types, np.int64)
    for step in range(n - 1, -1, -1):
        i = jobs[step]
        low[:] = 1 << 40
        high[:] = 0
        for k in range(at[i], at[i + 1]):
            for t in range(types):
                g = np.int64(gpus[config[k]]) if config[k] >= 0 and type_of[config[k]] == t else 0
                low[t] = min(low[t], g)
                high[t] = max(high[t], g)
        for t in range(types):
            least[step, t] = least[step + 1, t] + low[t]
            most[step, t] = most[step + 1, t] + high[t]
    return least, most
