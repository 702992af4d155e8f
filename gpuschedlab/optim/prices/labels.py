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
def _core_choices(utility, configs, prices, limit):
    """Return a tuple of the fields of the `Core` of all jobs."""
    config_order = configs.order
    gpus = configs.gpus
    type_of = configs.type_of
    job_count, config_count = utility.shape
    first_choice = np.zeros(job_count + 1, np.int64)
    config = np.empty(16 * job_count + 64, np.int64)
    loss = np.empty(16 * job_count + 64)
    worth = np.zeros(config_count + 1)  # the last is none
    for job in range(job_count):
        best_worth = 0.0
        for choice_config in range(config_count):
            config_value = utility[job, config_order[choice_config]]
            fits = gpus[choice_config] <= configs.capacity[type_of[choice_config]] and config_value > 0
            worth[choice_config] = (
                config_value - prices[type_of[choice_config]] * gpus[choice_config] if fits else -np.inf
            )
            best_worth = max(best_worth, worth[choice_config])
        choice_place = first_choice[job]
        if choice_place + config_count + 1 > config.shape[0]:
            config = np.append(config, np.empty(config.shape[0] + config_count, np.int64))
            loss = np.append(loss, np.empty(loss.shape[0] + config_count))
        for choice_config in range(config_count + 1):
            if best_worth - worth[choice_config] < limit:
                config[choice_place] = choice_config if choice_config < config_count else -1
                loss[choice_place] = best_worth - worth[choice_config]
                choice_place += 1
        rank = np.argsort(loss[first_choice[job] : choice_place], kind="mergesort")
        config[first_choice[job] : choice_place] = config[first_choice[job] : choice_place][rank]
        loss[first_choice[job] : choice_place] = loss[first_choice[job] : choice_place][rank]
        first_choice[job + 1] = choice_place
    return first_choice, config[: first_choice[job_count]], loss[: first_choice[job_count]]


@njit
def _find(table, stamp, mark, labels, used):
    """Return the place (int) in the hash table of the label with this use of GPUs, or of the empty place for it."""
    mask = np.uint64(table.shape[0] - 1)
    label_hash = np.uint64(1469598103934665603)
    for gpu_type in range(used.shape[0]):
        label_hash = (label_hash ^ np.uint64(used[gpu_type])) * np.uint64(1099511628211)
    hash_place = np.int64((label_hash ^ (label_hash >> np.uint64(29))) & mask)
    while stamp[hash_place] == mark and (labels[table[hash_place]] != used).any():
        hash_place = np.int64(np.uint64(hash_place + 1) & mask)
    return hash_place


@njit
def _idle_cost(used, ahead):
    """Return the price of the GPUs that will be idle at the least; inf if the jobs to come cannot but exceed the capacity."""
    cost = 0.0
    for gpu_type in range(used.shape[0]):
        if used[gpu_type] + ahead.least[gpu_type] > ahead.capacity[gpu_type]:
            return np.inf
        idle = ahead.capacity[gpu_type] - used[gpu_type] - ahead.most[gpu_type]
        cost += ahead.prices[gpu_type] * max(idle, 0)
    return cost


@njit
def _extend(labels, config, loss, configs, ahead):
    """Return the `_Labels` after one more job with some choices (`config`, `loss`); of equal use the least loss stays."""
    used = labels.used
    room = used.shape[0] * config.shape[0]
    table_size = 64
    while table_size < 2 * room:
        table_size *= 2
    label_table = np.empty(table_size, np.int64)
    stamp = np.zeros(table_size, np.int8)
    label_count = 0
    new_used = np.empty((room, used.shape[1]), np.int64)
    new_loss = np.empty(room)
    parent_label = np.empty(room, np.int64)
    chosen = np.empty(room, np.int64)
    for old_label in range(used.shape[0]):
        for choice in range(config.shape[0]):
            label_loss = labels.loss[old_label] + loss[choice]
            if label_loss >= ahead.limit:
                break  # best first
            fresh = new_used[label_count]
            fresh[:] = used[old_label]
            if config[choice] >= 0:
                fresh[configs.type_of[config[choice]]] += np.int64(configs.gpus[config[choice]])
            if label_loss + _idle_cost(fresh, ahead) >= ahead.limit:
                continue
            hash_place = _find(label_table, stamp, 1, new_used, fresh)
            label = label_count
            if stamp[hash_place] == 1:
                label = label_table[hash_place]
                if label_loss >= new_loss[label]:
                    continue
            else:
                label_count += 1
            stamp[hash_place] = 1
            label_table[hash_place] = label
            new_loss[label] = label_loss
            parent_label[label] = old_label
            chosen[label] = config[choice]
    return _Labels(new_used[:label_count], new_loss[:label_count], parent_label[:label_count], chosen[:label_count])


@njit
def _ranges(core, configs, jobs):
    """Return two arrays (steps + 1, T): the least and most GPUs of each type that jobs from each step on may use together."""
    config = core.config
    job_count = jobs.shape[0]
    types = configs.capacity.shape[0]
    least_gpus = np.zeros((job_count + 1, types), np.int64)
    most_gpus = np.zeros((job_count + 1, types), np.int64)
    for step in range(job_count - 1, -1, -1):
        job = jobs[step]
        for gpu_type in range(types):
            low = 1 << 40
            high = 0
            for choice in range(core.first[job], core.first[job + 1]):
                choice_gpus = 0
                if config[choice] >= 0 and configs.type_of[config[choice]] == gpu_type:
                    choice_gpus = np.int64(configs.gpus[config[choice]])
                low = min(low, choice_gpus)
                high = max(high, choice_gpus)
            least_gpus[step, gpu_type] = least_gpus[step + 1, gpu_type] + low
            most_gpus[step, gpu_type] = most_gpus[step + 1, gpu_type] + high
    return least_gpus, most_gpus


@njit
def _least(labels, width):
    """Return the `width` labels of least loss, `_Labels`, and the least loss of the others, inf if there are none."""
    label_count = labels.loss.shape[0]
    keep = np.arange(label_count)
    dropped = np.inf
    if label_count > width:
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
    for settled_job in np.flatnonzero(choice_counts == 1):  # settled
        picks[settled_job] = core.config[core.first[settled_job]]
        if picks[settled_job] >= 0:
            used[0, configs.type_of[picks[settled_job]]] += np.int64(configs.gpus[picks[settled_job]])
    jobs = np.flatnonzero(choice_counts > 1)
    jobs = jobs[np.argsort(choice_counts[jobs], kind="mergesort")]
    labels = _Labels(used, np.zeros(1), jobs[:0], jobs[:0])  # a settled job's only choice is its best: no loss
    least_gpus, most_gpus = _ranges(core, configs, jobs)
    befores = [jobs[:0]]
    choices = [jobs[:0]]
    dropped = np.inf  # the first of each is of no step
    for step in range(jobs.shape[0]):
        options = slice(core.first[jobs[step]], core.first[jobs[step] + 1])
        ahead = _Ahead(least_gpus[step + 1], most_gpus[step + 1], capacity, prices, limit)
        extended = _extend(labels, core.config[options], core.loss[options], configs, ahead)
        labels, dropped_here = _least(extended, width)
        dropped = min(dropped, dropped_here)
        befores.append(labels.before)
        choices.append(labels.chosen)
    lowest = limit
    best_label = -1
    at_the_end = _Ahead(least_gpus[-1], most_gpus[-1], capacity, prices, limit)
    for label in range(labels.loss.shape[0]):
        label_loss = labels.loss[label] + _idle_cost(labels.used[label], at_the_end)
        if label_loss < lowest:
            lowest = label_loss
            best_label = label
    if best_label < 0:
        return limit, picks[:0], dropped
    for step in range(jobs.shape[0] - 1, -1, -1):  # the choices that led to the best label
        picks[jobs[step]] = choices[step + 1][best_label]
        best_label = befores[step + 1][best_label]
    return lowest, picks, dropped
