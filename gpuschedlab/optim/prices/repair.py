"""Compiled: from the choices at good prices to choices that fit, by greedy moves of one job at a time."""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.optim.prices.dual import Assignment, evaluate, vertices_above


@njit
def round_mix(v, configs, hulls, searched, assignment):
    """Give each job one of its choices in the relaxation's mix, so that the GPUs used follow the mix type by type."""
    # Jobs in which the mix agrees are settled first; of the others the largest first, each taking the choice that
    # leaves the least difference, at the prices found, between the GPUs used and those that the mix uses. Fills the
    # assignment.
    gpus = configs.gpus
    type_of = configs.type_of
    prices = searched.prices
    choice = assignment.choice
    used = assignment.used
    k = searched.tried.shape[0]
    n = choice.shape[0]
    types = prices.shape[0]
    answers = np.empty((k, n), np.int64)
    for a in range(k):
        evaluate(v, configs, hulls, searched.tried[a], Assignment(answers[a], used))
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
                target[type_of[c]] += searched.weights[a] * gpus[c]
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
def _retreat(v, configs, hulls, prices, assignment, i):
    """Return the cheapest move of job i off a type that is over its capacity, a tuple (loss a GPU relieved, configuration)."""
    order = configs.order
    starts = configs.starts
    gpus = configs.gpus
    hull = hulls.vertices
    size = hulls.sizes
    used = assignment.used
    c = assignment.choice[i]
    t = configs.type_of[c]
    over = used[t] - configs.capacity[t]
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
        room = configs.capacity[s] - used[s]
        k = max(vertices_above(hulls.slopes, i, starts[s], size[i, s], prices[s]), 1)
        while k > 0 and gpus[hull[i, starts[s] + k - 1]] > room:
            k -= 1
        if k == 0:
            continue
        d = hull[i, starts[s] + k - 1]
        loss = worth - (v[i, order[d]] - prices[s] * gpus[d])
        score = loss / min(gpus[c], over)
        if score < best:
            best = score
            pick = d
    return best, pick


@njit
def _advance(v, configs, prices, assignment, i):
    """Return the best move of job i that fits and gains, a tuple (gain less its GPUs' price, configuration), or (-inf, -1)."""
    order = configs.order
    starts = configs.starts
    gpus = configs.gpus
    c = assignment.choice[i]
    present_type = -1
    present_gpus = 0.0
    present_value = 0.0
    paid = 0.0
    if c >= 0:
        present_type = configs.type_of[c]
        present_gpus = gpus[c]
        present_value = v[i, order[c]]
        paid = prices[present_type] * present_gpus
    best = -np.inf
    pick = -1
    for t in range(starts.shape[0] - 1):
        room = configs.capacity[t] - assignment.used[t]
        if t == present_type:
            room += present_gpus
        for d in range(starts[t], starts[t + 1]):
            if gpus[d] > room:
                break
            gain = v[i, order[d]] - present_value
            if gain > 1e-12 * v[i, order[d]] and gain - prices[t] * gpus[d] + paid > best:
                best = gain - prices[t] * gpus[d] + paid
                pick = d
    return best, pick


@njit
def _move(configs, assignment, i, pick):
    """Give job i another configuration, -1 for none."""
    c = assignment.choice[i]
    if c >= 0:
        assignment.used[configs.type_of[c]] -= configs.gpus[c]
    assignment.choice[i] = pick
    if pick >= 0:
        assignment.used[configs.type_of[pick]] += configs.gpus[pick]


@njit
def _too_many(configs, assignment, i):
    """Whether job i has GPUs of a type that is over its capacity."""
    c = assignment.choice[i]
    if c < 0:
        return False
    t = configs.type_of[c]
    return assignment.used[t] > configs.capacity[t]


@njit
def repair(v, configs, hulls, prices, assignment, passes):
    """Make choices fit, then use the GPUs that stay free, in place in the assignment; return the value of the choices."""
    # Each pass scores one move of every job concerned and makes them from the best on, looking again at each before it
    # is made.
    n = v.shape[0]
    score = np.empty(n)
    while (assignment.used > configs.capacity).any():
        score[:] = np.inf
        for i in range(n):
            if _too_many(configs, assignment, i):
                score[i], _ = _retreat(v, configs, hulls, prices, assignment, i)
        for i in np.argsort(score, kind="mergesort"):
            if score[i] == np.inf or not (assignment.used > configs.capacity).any():
                break
            if _too_many(configs, assignment, i):
                _, pick = _retreat(v, configs, hulls, prices, assignment, i)
                _move(configs, assignment, i, pick)
    return advance(v, configs, prices, assignment, passes)


@njit
def advance(v, configs, prices, assignment, passes):
    """Let jobs whose choices fit use free GPUs, those first that gain most beyond the prices; return the value as `repair`."""
    n = v.shape[0]
    score = np.empty(n)
    for _ in range(passes):
        moved = False
        for i in range(n):
            score[i], _ = _advance(v, configs, prices, assignment, i)
        for i in np.argsort(-score, kind="mergesort"):
            if score[i] == -np.inf:
                break
            _, pick = _advance(v, configs, prices, assignment, i)
            if pick >= 0:
                _move(configs, assignment, i, pick)
                moved = True
        if not moved:
            break
    value = 0.0
    for i in range(n):
        c = assignment.choice[i]
        if c >= 0:
            value += v[i, configs.order[c]]
    return value
