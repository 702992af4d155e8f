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
    answer_count = searched.tried.shape[0]
    job_count = choice.shape[0]
    types = prices.shape[0]
    answers = np.empty((answer_count, job_count), np.int64)
    for answer in range(answer_count):
        evaluate(v, configs, hulls, searched.tried[answer], Assignment(answers[answer], used))
    largest = np.zeros(job_count)
    target = np.zeros(types)
    used[:] = 0.0
    for job in range(job_count):
        if (answers[:, job] != answers[0, job]).any():
            for config in answers[:, job]:
                largest[job] = max(largest[job], gpus[config] if config >= 0 else 0.0)
    least_price = 1e-12 * prices.max() if prices.max() > 0 else 1.0  # types that cost nothing follow the mix, too
    for job in np.argsort(-largest, kind="mergesort"):
        for answer in range(answer_count):
            config = answers[answer, job]
            if config >= 0:
                target[type_of[config]] += searched.weights[answer] * gpus[config]
        least_apart = np.inf
        for answer in range(answer_count):
            config = answers[answer, job]
            apart = 0.0
            for gpu_type in range(types):
                added_gpus = gpus[config] if config >= 0 and type_of[config] == gpu_type else 0.0
                apart += (prices[gpu_type] + least_price) * abs(used[gpu_type] + added_gpus - target[gpu_type])
            if apart < least_apart:
                least_apart = apart
                choice[job] = config
        if choice[job] >= 0:
            used[type_of[choice[job]]] += gpus[choice[job]]


@njit
def _retreat(v, configs, hulls, prices, assignment, i):
    """Return the cheapest move of job i off a type that is over its capacity, a tuple (loss a GPU relieved, configuration)."""
    config_order = configs.order
    starts = configs.starts
    gpus = configs.gpus
    hull = hulls.vertices
    hull_sizes = hulls.sizes
    used = assignment.used
    config = assignment.choice[i]
    gpu_type = configs.type_of[config]
    over = used[gpu_type] - configs.capacity[gpu_type]
    worth = v[i, config_order[config]] - prices[gpu_type] * gpus[config]
    best_score = worth / min(gpus[config], over)  # to nothing
    pick = -1
    vertex = 0
    while vertex < hull_sizes[i, gpu_type] and gpus[hull[i, starts[gpu_type] + vertex]] < gpus[config]:
        vertex += 1
    if vertex > 0:  # one vertex down
        other_config = hull[i, starts[gpu_type] + vertex - 1]
        loss = worth - (v[i, config_order[other_config]] - prices[gpu_type] * gpus[other_config])
        score = loss / min(gpus[config] - gpus[other_config], over)
        if score < best_score:
            best_score = score
            pick = other_config
    for other_type in range(starts.shape[0] - 1):  # to a type with room
        if other_type == gpu_type or hull_sizes[i, other_type] == 0:
            continue
        room = configs.capacity[other_type] - used[other_type]
        vertex = max(
            vertices_above(hulls.slopes, i, starts[other_type], hull_sizes[i, other_type], prices[other_type]), 1
        )
        while vertex > 0 and gpus[hull[i, starts[other_type] + vertex - 1]] > room:
            vertex -= 1
        if vertex == 0:
            continue
        other_config = hull[i, starts[other_type] + vertex - 1]
        loss = worth - (v[i, config_order[other_config]] - prices[other_type] * gpus[other_config])
        score = loss / min(gpus[config], over)
        if score < best_score:
            best_score = score
            pick = other_config
    return best_score, pick


@njit
def _advance(v, configs, prices, assignment, i):
    """Return the best move of job i that fits and gains, a tuple (gain less its GPUs' price, configuration), or (-inf, -1)."""
    config_order = configs.order
    starts = configs.starts
    gpus = configs.gpus
    config = assignment.choice[i]
    present_type = -1
    present_gpus = 0.0
    present_value = 0.0
    paid = 0.0
    if config >= 0:
        present_type = configs.type_of[config]
        present_gpus = gpus[config]
        present_value = v[i, config_order[config]]
        paid = prices[present_type] * present_gpus
    best_gain = -np.inf
    pick = -1
    for gpu_type in range(starts.shape[0] - 1):
        room = configs.capacity[gpu_type] - assignment.used[gpu_type]
        if gpu_type == present_type:
            room += present_gpus
        for new_config in range(starts[gpu_type], starts[gpu_type + 1]):
            if gpus[new_config] > room:
                break
            gain = v[i, config_order[new_config]] - present_value
            if (
                gain > 1e-12 * v[i, config_order[new_config]]
                and gain - prices[gpu_type] * gpus[new_config] + paid > best_gain
            ):
                best_gain = gain - prices[gpu_type] * gpus[new_config] + paid
                pick = new_config
    return best_gain, pick


@njit
def _move(configs, assignment, i, pick):
    """Give job i another configuration, -1 for none."""
    config_before = assignment.choice[i]
    if config_before >= 0:
        assignment.used[configs.type_of[config_before]] -= configs.gpus[config_before]
    assignment.choice[i] = pick
    if pick >= 0:
        assignment.used[configs.type_of[pick]] += configs.gpus[pick]


@njit
def _too_many(configs, assignment, i):
    """Whether job i has GPUs of a type that is over its capacity."""
    config = assignment.choice[i]
    if config < 0:
        return False
    gpu_type = configs.type_of[config]
    return assignment.used[gpu_type] > configs.capacity[gpu_type]


@njit
def repair(v, configs, hulls, prices, assignment, passes):
    """Make choices fit, then use the GPUs that stay free, in place in the assignment; return the choices' value, a float."""
    # Each pass scores one move of every job concerned and makes them from the best on, looking again at each before it
    # is made.
    job_count = v.shape[0]
    score = np.empty(job_count)
    while (assignment.used > configs.capacity).any():
        score[:] = np.inf
        for job in range(job_count):
            if _too_many(configs, assignment, job):
                score[job], _ = _retreat(v, configs, hulls, prices, assignment, job)
        for job in np.argsort(score, kind="mergesort"):
            if score[job] == np.inf or not (assignment.used > configs.capacity).any():
                break
            if _too_many(configs, assignment, job):
                _, pick = _retreat(v, configs, hulls, prices, assignment, job)
                _move(configs, assignment, job, pick)
    return advance(v, configs, prices, assignment, passes)


@njit
def advance(v, configs, prices, assignment, passes):
    """Let jobs whose choices fit use free GPUs, first those that gain most beyond the prices; return the value, a float."""
    job_count = v.shape[0]
    score = np.empty(job_count)
    for _ in range(passes):
        moved = False
        for job in range(job_count):
            score[job], _ = _advance(v, configs, prices, assignment, job)
        for job in np.argsort(-score, kind="mergesort"):
            if score[job] == -np.inf:
                break
            _, pick = _advance(v, configs, prices, assignment, job)
            if pick >= 0:
                _move(configs, assignment, job, pick)
                moved = True
        if not moved:
            break
    choices_value = 0.0
    for job in range(job_count):
        config = assignment.choice[job]
        if config >= 0:
            choices_value += v[job, configs.order[config]]
    return choices_value
