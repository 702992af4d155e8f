"""Compiled: closing the gap of a multiple-choice knapsack exactly, by labels over the choices that may still matter.

At given prices each choice of a job has a loss: how much its worth less its price falls short of the job's best. A
solution's value is the Lagrangian bound less its losses and less the price of the GPUs that it leaves idle. So one
that is better than the best known has losses below the gap: few choices remain, and a dynamic program over them, a
label for each use of GPUs, ends.

Sorts are stable: of equals, which are common, the first wins, compiled or not.
"""

from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import njit


class Core(NamedTuple):
    """Choices that may still matter, job by job, best first in each."""

    first: np.ndarray  # (n + 1,) first choice of each job, and the end
    config: np.ndarray  # (k,) configuration of each choice, -1 for none
    loss: np.ndarray  # (k,) loss of each choice


class _Labels(NamedTuple):
    """Labels after some of the jobs, one for each use of GPUs."""

    used: np.ndarray  # (k, T) whole GPUs that the choices use
    loss: np.ndarray  # (k,) sum of the losses of the choices
    before: np.ndarray  # (k,) label that each one extends, among those of the job before
    chosen: np.ndarray  # (k,) configuration of the last job, -1 for none


class _Ahead(NamedTuple):
    """Limits that labels have to keep, with the jobs that are yet to come."""

    least: np.ndarray  # (T,) GPUs that these jobs use together at least
    most: np.ndarray  # (T,) GPUs that they use together at most
    capacity: np.ndarray  # (T,) GPUs of each type
    prices: np.ndarray  # (T,) price of a GPU
    limit: float  # loss from which on a label is of no use


def core_choices(v, configs, prices, limit) -> Core:
    """Return the choices whose loss is below `limit`, as `Core`."""
    return Core(*_core_choices(v, configs, prices, limit))  # a plain tuple comes from machine code, as in `dual`


@njit
def _core_choices(v, configs, prices, limit):
    """Return a tuple of the fields of the `Core` of all jobs."""
    order = configs.order
    gpus = configs.gpus
    type_of = configs.type_of
    n, C = v.shape
    first_choice = np.zeros(n + 1, np.int64)
    config = np.empty(16 * n + 64, np.int64)
    loss = np.empty(16 * n + 64)
    worth = np.zeros(C + 1)  # the last is none
    for i in range(n):
        best = 0.0
        for c in range(C):
            value = v[i, order[c]]
            fits = gpus[c] <= configs.capacity[type_of[c]] and value > 0
            worth[c] = value - prices[type_of[c]] * gpus[c] if fits else -np.inf
            best = max(best, worth[c])
        k = first_choice[i]
        if k + C + 1 > config.shape[0]:
            config = np.append(config, np.empty(config.shape[0] + C, np.int64))
            loss = np.append(loss, np.empty(loss.shape[0] + C))
        for c in range(C + 1):
            if best - worth[c] < limit:
                config[k] = c if c < C else -1
                loss[k] = best - worth[c]
                k += 1
        rank = np.argsort(loss[first_choice[i] : k], kind="mergesort")
        config[first_choice[i] : k] = config[first_choice[i] : k][rank]
        loss[first_choice[i] : k] = loss[first_choice[i] : k][rank]
        first_choice[i + 1] = k
    return first_choice, config[: first_choice[n]], loss[: first_choice[n]]


@njit
def _find(table, stamp, mark, labels, used):
    """Return the place (int) in the hash table of the label with this use of GPUs, or of the empty place for it."""
    mask = np.uint64(table.shape[0] - 1)
    h = np.uint64(1469598103934665603)
    for t in range(used.shape[0]):
        h = (h ^ np.uint64(used[t])) * np.uint64(1099511628211)
    p = np.int64((h ^ (h >> np.uint64(29))) & mask)
    while stamp[p] == mark and (labels[table[p]] != used).any():
        p = np.int64(np.uint64(p + 1) & mask)
    return p


@njit
def _idle_cost(used, ahead):
    """Return the price of the GPUs that will be idle at the least; inf if the jobs to come cannot but exceed the capacity."""
    cost = 0.0
    for t in range(used.shape[0]):
        if used[t] + ahead.least[t] > ahead.capacity[t]:
            return np.inf
        idle = ahead.capacity[t] - used[t] - ahead.most[t]
        cost += ahead.prices[t] * max(idle, 0)
    return cost


@njit
def _extend(labels, config, loss, configs, ahead):
    """Return the `_Labels` after one more job with some choices (`config`, `loss`); of equal use the least loss stays."""
    used = labels.used
    room = used.shape[0] * config.shape[0]
    size = 64
    while size < 2 * room:
        size *= 2
    label_table = np.empty(size, np.int64)
    stamp = np.zeros(size, np.int8)
    count = 0
    new_used = np.empty((room, used.shape[1]), np.int64)
    new_loss = np.empty(room)
    before = np.empty(room, np.int64)
    chosen = np.empty(room, np.int64)
    for a in range(used.shape[0]):
        for k in range(config.shape[0]):
            total = labels.loss[a] + loss[k]
            if total >= ahead.limit:
                break  # best first
            fresh = new_used[count]
            fresh[:] = used[a]
            if config[k] >= 0:
                fresh[configs.type_of[config[k]]] += np.int64(configs.gpus[config[k]])
            if total + _idle_cost(fresh, ahead) >= ahead.limit:
                continue
            p = _find(label_table, stamp, 1, new_used, fresh)
            label = count
            if stamp[p] == 1:
                label = label_table[p]
                if total >= new_loss[label]:
                    continue
            else:
                count += 1
            stamp[p] = 1
            label_table[p] = label
            new_loss[label] = total
            before[label] = a
            chosen[label] = config[k]
    return _Labels(new_used[:count], new_loss[:count], before[:count], chosen[:count])


@njit
def _ranges(core, configs, jobs):
    """Return two arrays (steps + 1, T): the least and most GPUs of each type that jobs from each step on may use together."""
    config = core.config
    n = jobs.shape[0]
    types = configs.capacity.shape[0]
    least = np.zeros((n + 1, types), np.int64)
    most = np.zeros((n + 1, types), np.int64)
    for step in range(n - 1, -1, -1):
        i = jobs[step]
        for t in range(types):
            low = 1 << 40
            high = 0
            for k in range(core.first[i], core.first[i + 1]):
                g = 0
                if config[k] >= 0 and configs.type_of[config[k]] == t:
                    g = np.int64(configs.gpus[config[k]])
                low = min(low, g)
                high = max(high, g)
            least[step, t] = least[step + 1, t] + low
            most[step, t] = most[step + 1, t] + high
    return least, most


@njit
def _least(labels, width):
    """Return the `width` labels of least loss, `_Labels`, and the least loss of the others, inf if there are none."""
    count = labels.loss.shape[0]
    keep = np.arange(count)
    dropped = np.inf
    if count > width:
        rank = np.argsort(labels.loss, kind="mergesort")
        dropped = labels.loss[rank[width]]
        keep = rank[:width]
    return _Labels(labels.used[keep], labels.loss[keep], labels.before[keep], labels.chosen[keep]), dropped


@njit
def close_gap(core, configs, prices, limit, width):
    """Return a tuple: the least loss, an array (n,) of its choices, and the least loss of a label given up (inf if none was).

    Loss is that of the choices and the price of idle GPUs. If none is below `limit`, the limit is returned, with an empty array.
    """
    # At most `width` labels are kept from one job to the next: those of least loss.
    capacity = configs.capacity
    choice_counts = core.first[1:] - core.first[:-1]
    picks = np.full(choice_counts.shape[0], -1, np.int64)
    used = np.zeros((1, capacity.shape[0]), np.int64)
    for i in np.flatnonzero(choice_counts == 1):  # settled
        picks[i] = core.config[core.first[i]]
        if picks[i] >= 0:
            used[0, configs.type_of[picks[i]]] += np.int64(configs.gpus[picks[i]])
    jobs = np.flatnonzero(choice_counts > 1)
    jobs = jobs[np.argsort(choice_counts[jobs], kind="mergesort")]
    labels = _Labels(used, np.zeros(1), jobs[:0], jobs[:0])  # a settled job's only choice is its best: no loss
    least, most = _ranges(core, configs, jobs)
    befores = [jobs[:0]]
    choices = [jobs[:0]]
    dropped = np.inf  # the first of each is of no step
    for step in range(jobs.shape[0]):
        options = slice(core.first[jobs[step]], core.first[jobs[step] + 1])
        ahead = _Ahead(least[step + 1], most[step + 1], capacity, prices, limit)
        extended = _extend(labels, core.config[options], core.loss[options], configs, ahead)
        labels, dropped_here = _least(extended, width)
        dropped = min(dropped, dropped_here)
        befores.append(labels.before)
        choices.append(labels.chosen)
    lowest = limit
    last = -1
    end = _Ahead(least[-1], most[-1], capacity, prices, limit)
    for a in range(labels.loss.shape[0]):
        total = labels.loss[a] + _idle_cost(labels.used[a], end)
        if total < lowest:
            lowest = total
            last = a
    if last < 0:
        return limit, picks[:0], dropped
    for step in range(jobs.shape[0] - 1, -1, -1):  # the choices that led to the best label
        picks[jobs[step]] = choices[step + 1][last]
        last = befores[step + 1][last]
    return lowest, picks, dropped
