"""Compiled: closing the gap of a multiple-choice knapsack exactly, by labels over the choices that may still matter.

At given prices each choice of a job has a loss: how much its worth less its price falls short of the job's best. A
solution's value is the Lagrangian bound less its losses and less the price of the GPUs that it leaves idle. So one
that is better than the best known has losses below the gap: few choices remain, and a dynamic program over them, a
label for each use of GPUs, ends.

Sorts are stable: of equals, which are common, the first wins, compiled or not.
"""

import numpy as np

from gpuschedlab._compiled import njit


@njit
def core_choices(v, order, starts, gpus, type_of, capacity, prices, limit):
    """Choices whose loss is below `limit`: (job pointers (n + 1,), configurations, losses), best first in each job."""
    n, C = v.shape
    at = np.zeros(n + 1, np.int64)
    config = np.empty(16 * n + 64, np.int64)
    loss = np.empty(16 * n + 64)
    worth = np.zeros(C + 1)  # the last is none
    for i in range(n):
        best = 0.0
        for c in range(C):
            value = v[i, order[c]]
            fits = gpus[c] <= capacity[type_of[c]] and value > 0
            worth[c] = value - prices[type_of[c]] * gpus[c] if fits else -np.inf
            best = max(best, worth[c])
        k = at[i]
        if k + C + 1 > config.shape[0]:
            config = np.append(config, np.empty(config.shape[0] + C, np.int64))
            loss = np.append(loss, np.empty(loss.shape[0] + C))
        for c in range(C + 1):
            if best - worth[c] < limit:
                config[k] = c if c < C else -1
                loss[k] = best - worth[c]
                k += 1
        rank = np.argsort(loss[at[i] : k], kind="mergesort")
        config[at[i] : k] = config[at[i] : k][rank]
        loss[at[i] : k] = loss[at[i] : k][rank]
        at[i + 1] = k
    return at, config[: at[n]], loss[: at[n]]


@njit
def _find(table, stamp, mark, labels, used):
    """Place in the hash table of the label with this use of GPUs, or of the empty place for it."""
    mask = np.uint64(table.shape[0] - 1)
    h = np.uint64(1469598103934665603)
    for t in range(used.shape[0]):
        h = (h ^ np.uint64(used[t])) * np.uint64(1099511628211)
    p = np.int64((h ^ (h >> np.uint64(29))) & mask)
    while stamp[p] == mark and (labels[table[p]] != used).any():
        p = np.int64(np.uint64(p + 1) & mask)
    return p


@njit
def _idle_cost(used, least, most, capacity, prices):
    """Price of the GPUs that will be idle at the least; inf if the jobs to come cannot but exceed the capacity."""
    cost = 0.0
    for t in range(used.shape[0]):
        if used[t] + least[t] > capacity[t]:
            return np.inf
        cost += prices[t] * max(capacity[t] - used[t] - most[t], 0)
    return cost


@njit
def _extend(used, value, config, loss, type_of, gpus, least, most, capacity, prices, limit):
    """Labels after one more job: (used, value, label before, choice, count); of equal use the least loss stays."""
    room = used.shape[0] * config.shape[0]
    size = 64
    while size < 2 * room:
        size *= 2
    table = np.empty(size, np.int64)
    stamp = np.zeros(size, np.int8)
    count = 0
    new_used = np.empty((room, used.shape[1]), np.int64)
    new_value = np.empty(room)
    before = np.empty(room, np.int64)
    chosen = np.empty(room, np.int64)
    for a in range(used.shape[0]):
        for k in range(config.shape[0]):
            total = value[a] + loss[k]
            if total >= limit:
                break  # best first
            fresh = new_used[count]
            fresh[:] = used[a]
            if config[k] >= 0:
                fresh[type_of[config[k]]] += np.int64(gpus[config[k]])
            if total + _idle_cost(fresh, least, most, capacity, prices) >= limit:
                continue
            p = _find(table, stamp, 1, new_used, fresh)
            at = count
            if stamp[p] == 1:
                at = table[p]
                if total >= new_value[at]:
                    continue
            else:
                count += 1
            stamp[p] = 1
            table[p] = at
            new_value[at] = total
            before[at] = a
            chosen[at] = config[k]
    return new_used, new_value, before, chosen, count


@njit
def _ranges(at, config, type_of, gpus, jobs, types):
    """Least and most GPUs of each type that the jobs from each step on may use together: two (steps + 1, T) arrays."""
    n = jobs.shape[0]
    least = np.zeros((n + 1, types), np.int64)
    most = np.zeros((n + 1, types), np.int64)
    for step in range(n - 1, -1, -1):
        i = jobs[step]
        for t in range(types):
            low = 1 << 40
            high = 0
            for k in range(at[i], at[i + 1]):
                g = np.int64(gpus[config[k]]) if config[k] >= 0 and type_of[config[k]] == t else 0
                low = min(low, g)
                high = max(high, g)
            least[step, t] = least[step + 1, t] + low
            most[step, t] = most[step + 1, t] + high
    return least, most


@njit
def close_gap(at, config, loss, type_of, gpus, capacity, prices, limit, width):
    """Choices of least loss, if any is below `limit`; `at, config, loss` are from `core_choices`."""
    # At most `width` labels are kept from one job to the next: those of least loss.
    counts = at[1:] - at[:-1]
    picks = np.full(counts.shape[0], -1, np.int64)
    used = np.zeros((1, capacity.shape[0]), np.int64)
    for i in np.flatnonzero(counts == 1):  # settled
        picks[i] = config[at[i]]
        if picks[i] >= 0:
            used[0, type_of[picks[i]]] += np.int64(gpus[picks[i]])
    value = np.zeros(1)  # a settled job's only choice is its best: no loss
    jobs = np.flatnonzero(counts > 1)
    jobs = jobs[np.argsort(counts[jobs], kind="mergesort")]
    least, most = _ranges(at, config, type_of, gpus, jobs, capacity.shape[0])
    befores = [jobs[:0]]
    choices = [jobs[:0]]
    dropped = np.inf  # the first of each is of no step
    for step in range(jobs.shape[0]):
        own = slice(at[jobs[step]], at[jobs[step] + 1])
        used, value, before, chosen, count = _extend(
            used, value, config[own], loss[own], type_of, gpus, least[step + 1], most[step + 1], capacity, prices, limit
        )
        keep = np.arange(count)
        if count > width:
            rank = np.argsort(value[:count], kind="mergesort")
            dropped = min(dropped, value[rank[width]])
            keep = rank[:width]
        used = used[keep]
        value = value[keep]
        befores.append(before[keep])
        choices.append(chosen[keep])
    found = limit
    last = -1
    for a in range(used.shape[0]):
        total = value[a] + _idle_cost(used[a], least[-1], most[-1], capacity, prices)
        if total < found:
            found = total
            last = a
    if last < 0:
        return limit, picks[:0], dropped
    for step in range(jobs.shape[0] - 1, -1, -1):  # the choices that led to the best label
        picks[jobs[step]] = choices[step + 1][last]
        last = befores[step + 1][last]
    return found, picks, dropped
