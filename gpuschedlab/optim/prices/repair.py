"""Compiled: from the choices at good prices to choices that fit, by greedy moves of one job at a time."""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.optim.prices.dual import evaluate, vertices_above


@njit
def round_mix(v, order, starts, gpus, type_of, hull, slope, size, capacity, prices, tried, weights, choice, used):
    """Give each job one of its choices in the relaxation's mix, so that the GPUs used follow the mix type by type."""
    # Jobs in which the mix agrees are settled first; of the others the largest first, each taking the choice that
    # leaves the least difference, at the prices given, between what is used and what the mix uses. Fills `choice` and
    # `used`.
    k = tried.shape[0]
    n = choice.shape[0]
    types = capacity.shape[0]
    answers = np.empty((k, n), np.int64)
    for a in range(k):
        evaluate(v, order, starts, gpus, hull, slope, size, capacity, tried[a], answers[a], used)
    largest = np.zeros(n)
    target = np.zeros(types)
    used[:] = 0.0
    for i in range(n):
        if (answers[:, i] != answers[0, i]).any():
            for c in answers[:, i]:
                largest[i] = max(largest[i], gpus[c] if c >= 0 else 0.0)
    least_price = 1e-12 * prices.max() if prices.max() > 0 else 1.0  # types that cost nothing follow the mix, too
    for i in np.argsort(-largest, kind="mergesort"):
        for a in range(k):
            c = answers[a, i]
            if c >= 0:
                target[type_of[c]] += weights[a] * gpus[c]
        least = np.inf
        for a in range(k):
            c = answers[a, i]
            apart = 0.0
            for t in range(types):
                more = gpus[c] if c >= 0 and type_of[c] == t else 0.0
                apart += (prices[t] + least_price) * abs(used[t] + more - target[t])
            if apart < least:
                least = apart
                choice[i] = c
        if choice[i] >= 0:
            used[type_of[choice[i]]] += gpus[choice[i]]


@njit
def _retreat(v, order, starts, gpus, hull, slope, size, capacity, prices, choice, kind, used, i):
    """Job i's cheapest move off a type that is over its capacity: (loss a GPU relieved, configuration)."""
    t = kind[i]
    over = used[t] - capacity[t]
    c = choice[i]
    worth = v[i, order[c]] - prices[t] * gpus[c]
    best = worth / min(gpus[c], over)  # to nothing
    pick = -1
    k = 0
    while k < size[i, t] and gpus[hull[i, starts[t] + k]] < gpus[c]:
        k += 1
    if k > 0:  # one vertex down
        d = hull[i, starts[t] + k - 1]
        loss = worth - (v[i, order[d]] - prices[t] * gpus[d])
        score = loss / min(gpus[c] - gpus[d], over)
        if score < best:
            best = score
            pick = d
    for s in range(starts.shape[0] - 1):  # to a type with room
        if s == t or size[i, s] == 0:
            continue
        room = capacity[s] - used[s]
        k = max(vertices_above(slope, i, starts[s], size[i, s], prices[s]), 1)
        while k > 0 and gpus[hull[i, starts[s] + k - 1]] > room:
            k -= 1
        if k == 0:
            continue
        d = hull[i, starts[s] + k - 1]
        score = (worth - (v[i, order[d]] - prices[s] * gpus[d])) / min(gpus[c], over)
        if score < best:
            best = score
            pick = d
    return best, pick


@njit
def _advance(v, order, starts, gpus, capacity, prices, choice, kind, used, i):
    """Job i's best move that fits and gains: (gain less the price of what it takes, configuration), or -inf."""
    c = choice[i]
    now = v[i, order[c]] if c >= 0 else 0.0
    paid = prices[kind[i]] * gpus[c] if c >= 0 else 0.0
    best = -np.inf
    pick = -1
    for t in range(starts.shape[0] - 1):
        room = capacity[t] - used[t] + (gpus[c] if c >= 0 and kind[i] == t else 0.0)
        for d in range(starts[t], starts[t + 1]):
            if gpus[d] > room:
                break
            gain = v[i, order[d]] - now
            if gain > 1e-12 * v[i, order[d]] and gain - prices[t] * gpus[d] + paid > best:
                best = gain - prices[t] * gpus[d] + paid
                pick = d
    return best, pick


@njit
def _move(gpus, type_of, choice, kind, used, i, pick):
    if choice[i] >= 0:
        used[kind[i]] -= gpus[choice[i]]
    choice[i] = pick
    if pick >= 0:
        kind[i] = type_of[pick]
        used[kind[i]] += gpus[pick]


@njit
def repair(v, order, starts, gpus, type_of, hull, slope, size, capacity, prices, choice, used, passes):
    """Make choices fit, then use what is left; changes `choice` and `used` in place, and returns the value of the choices."""
    # Each pass scores one move of every job concerned and makes them from the best on, looking again at each before it
    # is made.
    n = choice.shape[0]
    kind = np.where(choice >= 0, type_of[choice], 0)
    score = np.empty(n)
    while (used > capacity).any():
        score[:] = np.inf
        for i in range(n):
            if choice[i] >= 0 and used[kind[i]] > capacity[kind[i]]:
                score[i], _ = _retreat(
                    v, order, starts, gpus, hull, slope, size, capacity, prices, choice, kind, used, i
                )
        for i in np.argsort(score, kind="mergesort"):
            if score[i] == np.inf or not (used > capacity).any():
                break
            if used[kind[i]] > capacity[kind[i]]:
                _, pick = _retreat(v, order, starts, gpus, hull, slope, size, capacity, prices, choice, kind, used, i)
                _move(gpus, type_of, choice, kind, used, i, pick)
    return advance(v, order, starts, gpus, type_of, capacity, prices, choice, used, passes)


@njit
def advance(v, order, starts, gpus, type_of, capacity, prices, choice, used, passes):
    """Let jobs whose choices fit use what is left, those first that gain most beyond the prices; as `repair`."""
    n = choice.shape[0]
    kind = np.where(choice >= 0, type_of[choice], 0)
    score = np.empty(n)
    for _ in range(passes):
        moved = False
        for i in range(n):
            score[i], _ = _advance(v, order, starts, gpus, capacity, prices, choice, kind, used, i)
        for i in np.argsort(-score, kind="mergesort"):
            if score[i] == -np.inf:
                break
            _, pick = _advance(v, order, starts, gpus, capacity, prices, choice, kind, used, i)
            if pick >= 0:
                _move(gpus, type_of, choice, kind, used, i, pick)
                moved = True
        if not moved:
            break
    value = 0.0
    for i in range(n):
        if choice[i] >= 0:
            value += v[i, order[choice[i]]]
    return value
