"""Compiled: hulls, the value of prices, and the search for the best prices of a multiple-choice knapsack.

Notation: n jobs, C configurations ordered by (type, GPUs), T types; v (n, C) values in the caller's order, those not above 0, or nan,
never chosen; prices (T,) of a GPU.
"""

from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import njit

EPS = 1e-11

# Machine code gives plain tuples to Python: numba makes a NamedTuple by calling Python code, in which Ctrl-C would end the process.


class Configurations(NamedTuple):
    """Configurations that jobs choose from, ordered by (type, GPUs), and the GPUs that there are."""

    order: np.ndarray  # (C,) the caller's place of each configuration
    starts: np.ndarray  # (T + 1,) first configuration of each type, and the end
    gpus: np.ndarray  # (C,) floats: GPUs of each configuration
    type_of: np.ndarray  # (C,) GPU type of each configuration
    capacity: np.ndarray  # (T,) floats: GPUs of each type, beyond which no configuration is looked at


class Hulls(NamedTuple):
    """Upper hull of value over GPUs of each job and type; a type's vertices begin at its first configuration."""

    vertices: np.ndarray  # (n, C) configuration at each vertex
    slopes: np.ndarray  # (n, C) value per further GPU up to each vertex
    sizes: np.ndarray  # (n, T) number of vertices


class Assignment(NamedTuple):
    """Choices of jobs, which kernels change in place."""

    choice: np.ndarray  # (n,) configuration of each job, -1 for none
    used: np.ndarray  # (T,) GPUs that the choices use


class PriceSearch(NamedTuple):
    """Prices that a search found, and the mix of answers that solves the relaxation."""

    prices: np.ndarray  # (T,) prices with the least bound
    bound: float  # the Lagrangian bound at these prices
    relaxed: float  # value of the relaxation over the answers known
    tried: np.ndarray  # (k, T) prices of the answers in the mix
    weights: np.ndarray  # (k,) share of each answer in the mix
    evaluations: int  # prices tried


def build_hulls(v, configs) -> Hulls:
    """Return the upper hull of value over GPUs, for each job and type, from (0, 0) upwards, as `Hulls`."""
    return Hulls(*_build_hulls(v, configs))


def search_prices(v, configs, hulls, warm, gap, most) -> PriceSearch:
    """Search the prices at which the Lagrangian bound is least, and return the `PriceSearch`.

    Dantzig-Wolfe by the simplex method, with smoothed prices.
    """
    return PriceSearch(*_search_prices(v, configs, hulls, warm, gap, most))


@njit
def _build_hulls(utility, configs):
    """Return a tuple of the fields of the `Hulls` of all jobs and types."""
    job_count = utility.shape[0]
    config_order = configs.order
    starts = configs.starts
    gpus = configs.gpus
    types = starts.shape[0] - 1
    hull = np.empty(utility.shape, np.int32)
    slope = np.empty(utility.shape)
    hull_sizes = np.zeros((job_count, types), np.int32)
    for job in range(job_count):
        for gpu_type in range(types):
            base = starts[gpu_type]
            vertex = 0
            top = 0.0
            for config in range(base, starts[gpu_type + 1]):
                config_value = utility[job, config_order[config]]
                if not config_value > top or gpus[config] > configs.capacity[gpu_type]:  # nan, too
                    continue
                while True:
                    v0 = 0.0
                    g0 = 0.0
                    if vertex > 0:
                        last_vertex = hull[job, base + vertex - 1]
                        v0 = utility[job, config_order[last_vertex]]
                        g0 = gpus[last_vertex]
                    dg = gpus[config] - g0
                    config_slope = np.inf
                    if dg > 0:
                        config_slope = (config_value - v0) / dg
                    if vertex and config_slope >= slope[job, base + vertex - 1]:
                        vertex -= 1
                        continue
                    break
                hull[job, base + vertex] = config
                slope[job, base + vertex] = config_slope
                vertex = vertex + 1
                top = config_value
            hull_sizes[job, gpu_type] = vertex
    return hull, slope, hull_sizes


@njit
def vertices_above(slope, i, base, size, price):
    """Return how many vertices of job i's hull from `base` have a slope above the price (a binary search)."""
    low = 0
    high = size
    while low < high:
        mid = (low + high) // 2
        if slope[i, base + mid] > price:
            low = mid + 1
        else:
            high = mid
    return low


@njit
def evaluate(v, configs, hulls, prices, assignment):
    """Return a tuple of numbers: the Lagrangian bound, and the value chosen.

    The bound is the sum of max(0, max_c v - price g), and price . capacity.
    """
    # Fills each job's best choice (-1 none; of equals the smaller) and the GPUs they use by type.
    config_order = configs.order
    starts = configs.starts
    gpus = configs.gpus
    slope = hulls.slopes
    hull_sizes = hulls.sizes
    used = assignment.used
    chosen_value = 0.0
    used[:] = 0.0
    types = hull_sizes.shape[1]
    bound = (prices * configs.capacity).sum()
    for job in range(hull_sizes.shape[0]):
        best_worth = 0.0
        pick = -1
        best_type = 0
        for gpu_type in range(types):
            if hull_sizes[job, gpu_type] == 0 or slope[job, starts[gpu_type]] <= prices[gpu_type]:
                continue
            above = vertices_above(slope, job, starts[gpu_type], hull_sizes[job, gpu_type], prices[gpu_type])
            config = hulls.vertices[job, starts[gpu_type] + above - 1]
            worth = v[job, config_order[config]] - prices[gpu_type] * gpus[config]
            if worth > best_worth:
                best_worth = worth
                pick = config
                best_type = gpu_type
        assignment.choice[job] = pick
        bound += best_worth
        if pick >= 0:
            chosen_value += v[job, config_order[pick]]
            used[best_type] += gpus[pick]
    return bound, chosen_value


@njit
def _enter(B, rhs, basis, entering_column, entering_index):
    """Pivot a column into the basis (B its inverse, rhs its values) and return True; False if nothing limits it."""
    basis_size = rhs.shape[0]
    step = B @ entering_column
    leaving_row = -1
    smallest_ratio = np.inf
    for basis_row in range(basis_size):
        if step[basis_row] > 1e-9:
            ratio = rhs[basis_row] / step[basis_row]
            if ratio < smallest_ratio - 1e-12 or (
                ratio < smallest_ratio + 1e-12 and step[basis_row] > step[leaving_row]
            ):
                smallest_ratio = ratio
                leaving_row = basis_row
    if leaving_row < 0:
        return False
    pivot = step[leaving_row]
    for basis_row in range(basis_size):
        if basis_row != leaving_row and step[basis_row] != 0.0:
            factor = step[basis_row] / pivot
            for basis_column in range(basis_size):
                B[basis_row, basis_column] -= factor * B[leaving_row, basis_column]
            rhs[basis_row] = max(rhs[basis_row] - factor * rhs[leaving_row], 0.0)
    for basis_column in range(basis_size):
        B[leaving_row, basis_column] /= pivot
    rhs[leaving_row] /= pivot
    basis[leaving_row] = entering_index
    return True


@njit
def _solve_master(B, rhs, basis, pool, pool_count, tolerance, duals):
    """Let in known columns (a slack t, or types + k for answer k of the pool) until none gains; fills the duals."""
    basis_size = rhs.shape[0]
    types = rhs.shape[0] - 1
    master_column = np.empty(rhs.shape[0])
    for _ in range(
        20 * (basis_size + pool_count)
    ):  # degenerate pivots could go round in a circle; any prices give a valid bound
        duals[:] = 0.0
        for basis_row in range(basis_size):
            if basis[basis_row] >= types:
                duals += pool[basis[basis_row] - types, types] * B[basis_row]
        best_gain = tolerance
        enter = -1
        for gpu_type in range(types):
            if -duals[gpu_type] > best_gain:
                best_gain = -duals[gpu_type]
                enter = gpu_type
        for pool_column in range(pool_count):
            paid = (duals[:types] * pool[pool_column, :types]).sum()
            gain = pool[pool_column, types] - duals[types] - paid
            if gain > best_gain:
                best_gain = gain
                enter = types + pool_column
        if enter < 0:
            return
        master_column[:] = 0.0
        if enter < types:
            master_column[enter] = 1.0
        else:
            master_column[:types] = pool[enter - types, :types]
            master_column[types] = 1.0
        if not _enter(B, rhs, basis, master_column, enter):
            return


@njit
def _search_prices(utility, configs, hulls, warm, gap, most_evaluations):
    """Return a tuple of the fields of the `PriceSearch` of some jobs."""
    # The master has a row a type and one for convexity; its columns are the answers of `evaluate`. New columns are
    # asked for half-way between the best prices so far and the master's (Wentges, 1997), which makes warm prices worth
    # having.
    #
    # Begins at `warm` prices (T,), ends at a relative distance `gap` between the bound and the relaxation's value, or after `most`
    # evaluations.
    capacity = configs.capacity
    types = capacity.shape[0]
    basis_size = types + 1
    pool = np.zeros((most_evaluations + 1, basis_size))  # GPUs by type, then value; answer 0 gives nothing to anybody
    tried = np.full((most_evaluations + 1, types), 1e300)
    B = np.eye(basis_size)
    rhs = np.append(capacity, 1.0)
    basis = np.arange(basis_size)  # t: idle GPUs of type t; types + k: answer k of the pool
    duals = np.empty(basis_size)
    choice = np.empty(utility.shape[0], np.int64)
    best_prices = warm.copy()
    bound = np.inf
    relaxed = 0.0
    pool_count = 1
    weight = 1.0  # of the best prices; the first evaluation is at the warm ones
    while pool_count <= most_evaluations:
        scale = abs(bound) if 0 < abs(bound) < np.inf else 1.0
        _solve_master(B, rhs, basis, pool, pool_count, EPS * scale, duals)
        relaxed = duals[types] + (duals[:types] * capacity).sum()
        if bound - relaxed <= gap * scale:
            break
        trial_prices = tried[pool_count]
        trial_prices[:] = np.maximum(weight * best_prices + (1.0 - weight) * duals[:types], 0.0)
        used = pool[pool_count, :types]
        here, pool[pool_count, types] = evaluate(utility, configs, hulls, trial_prices, Assignment(choice, used))
        paid = (duals[:types] * used).sum()
        gain = pool[pool_count, types] - duals[types] - paid
        pool_count += 1
        if here < bound:
            bound = here
            best_prices[:] = trial_prices
        elif weight == 0.0 and gain <= EPS * scale:
            break
        # Half-way again where the answer helps the master; nearer to the master's own prices where it does not.
        weight = 0.5 if gain > EPS * scale else weight * 0.5 if weight > 0.1 else 0.0
    mixed = np.flatnonzero((basis >= types) & (rhs > 1e-9))
    return best_prices, bound, relaxed, tried[basis[mixed] - types], rhs[mixed], pool_count - 1
