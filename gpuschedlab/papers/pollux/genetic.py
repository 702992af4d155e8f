"""Compiled kernels of Pollux's genetic search on placement matrices (jobs x nodes, GPUs of each job on each node)."""

from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import njit

RESET = 0.1
THIN = 0.1
DROP = 0.1
JOIN = 0.1
"""Chances that a mutation resets a row to the GPUs of its job, thins a row, drops a cell of a row that is thinned (Pollux
artifact), and places a rigid job as a whole."""


class Limits(NamedTuple):
    """Matrices that are possible, of J jobs on N nodes."""

    size: np.ndarray  # (N,) GPUs of each node, 0 if it is down
    most: np.ndarray  # (J,) GPUs of each job at most
    least: np.ndarray  # (J,) GPUs of each job at least; fewer become none
    may: np.ndarray  # (J, N) whether a job may have a node


class Worth(NamedTuple):
    """Worth of a matrix of J jobs on N nodes: a power mean of speed-ups."""

    base: np.ndarray  # (J, N) GPUs that jobs have now
    speedup: np.ndarray  # (J, N + 1, G + 1) of each job on numbers of nodes and GPUs, 0 if it cannot run
    factor: np.ndarray  # (J,) factor of the speed-up of a job whose row is not that of `base`
    power: float  # of the mean; 0: geometric mean
    small: float  # added to each speed-up, so that a job without GPUs is not worth minus infinity


@njit
def draw(state):
    """Return the next random number (float) in [0, 1) of a generator with the state (1,) uint64 (xorshift64*)."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return float((x * np.uint64(2685821657736338717)) >> np.uint64(11)) / 9007199254740992.0


@njit
def below(state, n):
    """Return a random whole number from 0 to n - 1."""
    return int(draw(state) * n)


@njit
def repair(rows, limits, state):
    """Make a matrix possible: at most one spread job per node, no more GPUs than jobs may have, or nodes hold, and on no others.

    `rows` (J, N) are changed in place: jobs that come first keep their GPUs.
    """
    J, N = rows.shape
    distributed_cells = np.zeros(N, np.bool_)
    free = limits.size.copy()
    for j in range(J):
        spread = 0
        for n in range(N):
            rows[j, n] *= limits.may[j, n]
            spread += rows[j, n] > 0
        if spread == 0:
            continue
        allowed = limits.most[j]
        begin = 0
        if spread > 1:
            begin = below(state, N)  # the nodes that the limit cuts off are left to chance
        total = 0
        for k in range(N):
            n = (begin + k) % N
            if rows[j, n] > 0:
                if spread > 1 and distributed_cells[n]:
                    rows[j, n] = 0
                    continue
                distributed_cells[n] |= spread > 1
                rows[j, n] = min(rows[j, n], allowed, free[n])
                allowed -= rows[j, n]
                total += rows[j, n]
        for n in range(N):
            if total < limits.least[j]:
                rows[j, n] = 0
            free[n] -= rows[j, n]


@njit
def fitness(rows, worth):
    """Return the power mean (float) of the jobs' speed-ups, discounted by their factors if their rows are not `worth.base`'s."""
    power = worth.power
    J, N = rows.shape
    total = 0.0
    for j in range(J):
        gpus = 0
        nodes = 0
        same = True
        for n in range(N):
            gpus += rows[j, n]
            nodes += rows[j, n] > 0
            same &= rows[j, n] == worth.base[j, n]
        factor = 1.0 if same else worth.factor[j]
        job_speedup = worth.speedup[j, nodes, gpus] * factor + worth.small
        if power == 0.0:
            total += np.log(job_speedup)
        elif power == -1.0:
            total += 1.0 / job_speedup
        else:
            total += job_speedup**power
    if power == 0.0:
        return np.exp(total / J)
    return (total / J) ** (1.0 / power)


@njit
def mutate(rows, base, limits, state):
    """Change a matrix at random: rows go back to `base`, are thinned, and some cells grow if GPUs are free."""
    node_size = limits.size
    most_gpus = limits.most
    J, N = rows.shape
    free = node_size.copy()
    for j in range(J):
        if draw(state) < RESET:
            rows[j] = base[j]
        if draw(state) < THIN:
            for n in range(N):
                if rows[j, n] > 0 and draw(state) < DROP:
                    rows[j, n] = 0
        for n in range(N):
            free[n] -= rows[j, n]
    for j in range(J):
        if limits.least[j] == most_gpus[j] > 1 and draw(state) < JOIN:
            join(rows[j], free, most_gpus[j], limits.may[j])
    for only_held in (False, True):  # one cell of all that have room, and one of those that hold GPUs already
        cells = 0
        chosen_j = chosen_n = -1
        for n in range(N):
            if free[n] < 1:
                continue
            for j in range(J):
                if rows[j, n] > 0 or not only_held:
                    cells += 1
                    if draw(state) * cells < 1.0:
                        chosen_j = j
                        chosen_n = n
        if cells > 0:
            old_gpus = rows[chosen_j, chosen_n]
            rows[chosen_j, chosen_n] = old_gpus + below(state, node_size[chosen_n] + 1 - old_gpus)


@njit
def join(row, free, gpus, may):
    """Place a job as a whole on the fullest nodes that hold it, or the emptiest ones, if there is room where it `may` be."""
    free += row
    row[:] = 0
    room = np.where(may, free, 0)
    if room.sum() < gpus:
        return
    best = -1
    for n in range(len(room)):
        if room[n] >= gpus and (best < 0 or room[n] < room[best]):
            best = n
    gpus_to_join = gpus
    while gpus_to_join > 0:
        if best < 0:
            best = np.argmax(room)
        row[best] = min(gpus_to_join, room[best])
        gpus_to_join -= row[best]
        room[best] -= row[best]
        best = -1
    free -= row


@njit
def search(population, limits, worth, generations, patience, state):
    """Evolve matrices `population` (P, J, N) and return a tuple of arrays: them, best first, and their fitness (P,).

    Each generation has as many children as there are matrices: parents are the better of two drawn at random; a child has
    the rows of one up to a random job, and of the other from there on; it is mutated and repaired. The best of both
    generations that differ in fitness survive, until there were `generations`, or `patience` without a better matrix.
    """
    P, J, N = population.shape
    pool = np.empty((2 * P, J, N), population.dtype)
    pool[:P] = population
    fitness_values = np.full(2 * P, -np.inf)
    for k in range(P):
        repair(pool[k], limits, state)
        fitness_values[k] = fitness(pool[k], worth)
    stale = 0
    for _ in range(generations):
        best_fitness = fitness_values[:P].max()
        for k in range(P, 2 * P):
            pair = np.empty(2, np.int64)
            for side in range(2):
                a = below(state, P)
                b = below(state, P)
                pair[side] = a if fitness_values[a] >= fitness_values[b] else b
            cut = below(state, J)
            pool[k, :cut] = pool[pair[0], :cut]
            pool[k, cut:] = pool[pair[1], cut:]
            mutate(pool[k], worth.base, limits, state)
            repair(pool[k], limits, state)
            fitness_values[k] = fitness(pool[k], worth)
        fittest = survivors(fitness_values, P)
        pool[:P] = pool[fittest]
        fitness_values[:P] = fitness_values[fittest]
        stale = 0 if fitness_values[0] > best_fitness * (1 + 1e-9) + 1e-15 else stale + 1
        if stale >= patience:
            break
    fittest = survivors(fitness_values[:P].copy(), P)
    return pool[fittest], fitness_values[fittest]


@njit
def survivors(values, count):
    """Return an array of the indices of the best `count` matrices, best first; those with a fitness seen before come last."""
    fittest = np.argsort(-values, kind="mergesort")
    first_of_equals = np.empty(len(fittest), np.int64)
    again = np.empty(len(fittest), np.int64)
    firsts = agains = 0
    for i in range(len(fittest)):
        if i > 0 and values[fittest[i]] == values[fittest[i - 1]]:
            again[agains] = fittest[i]
            agains += 1
        else:
            first_of_equals[firsts] = fittest[i]
            firsts += 1
    first_of_equals[firsts:] = again[:agains]
    return first_of_equals[:count]
