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
def _build_hulls(v, configs):
    """Return a tuple of the fields of the `Hulls` of all jobs and types."""
    n = v.shape[0]
    order = configs.order
    starts = configs.starts
    gpus = configs.gpus
    types = starts.shape[0] - 1
    hull = np.empty(v.shape, np.int32)
    slope = np.empty(v.shape)
    size = np.zeros((n, types), np.int32)
    for i in range(n):
        for t in range(types):
            base = starts[t]
            k = 0
            top = 0.0
            for c in range(base, starts[t + 1]):
                value = v[i, order[c]]
                if not value > top or gpus[c] > configs.capacity[t]:  # nan, too
                    continue
                while True:
                    v0 = 0.0
                    g0 = 0.0
                    if k > 0:
                        last_vertex = hull[i, base + k - 1]
                        v0 = v[i, order[last_vertex]]
                        g0 = gpus[last_vertex]
                    dg = gpus[c] - g0
                    s = np.inf
                    if dg > 0:
                        s = (value - v0) / dg
                    if k and s >= slope[i, base + k - 1]:
                        k -= 1
                        continue
                    break
                hull[i, base + k] = c
                slope[i, base + k] = s
                k = k + 1
                top = value
            size[i, t] = k
    return hull, slope, size


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
    order = configs.order
    starts = configs.starts
    gpus = configs.gpus
    slope = hulls.slopes
    size = hulls.sizes
    used = assignment.used
    value = 0.0
    used[:] = 0.0
    types = size.shape[1]
    bound = (prices * configs.capacity).sum()
    for i in range(size.shape[0]):
        best = 0.0
        pick = -1
        kind = 0
        for t in range(types):
            if size[i, t] == 0 or slope[i, starts[t]] <= prices[t]:
                continue
            above = vertices_above(slope, i, starts[t], size[i, t], prices[t])
            c = hulls.vertices[i, starts[t] + above - 1]
            worth = v[i, order[c]] - prices[t] * gpus[c]
            if worth > best:
                best = worth
                pick = c
                kind = t
        assignment.choice[i] = pick
        bound += best
        if pick >= 0:
            value += v[i, order[pick]]
            used[kind] += gpus[pick]
    return bound, value


@njit
def _enter(B, rhs, basis, column, index):
    """Pivot a column into the basis (B its inverse, rhs its values) and return True; False if nothing limits it."""
    m = rhs.shape[0]
    step = B @ column
    row = -1
    best = np.inf
    for r in range(m):
        if step[r] > 1e-9:
            ratio = rhs[r] / step[r]
            if ratio < best - 1e-12 or (ratio < best + 1e-12 and step[r] > step[row]):
                best = ratio
                row = r
    if row < 0:
        return False
    pivot = step[row]
    for r in range(m):
        if r != row and step[r] != 0.0:
            factor = step[r] / pivot
            for k in range(m):
                B[r, k] -= factor * B[row, k]
            rhs[r] = max(rhs[r] - factor * rhs[row], 0.0)
    for k in range(m):
        B[row, k] /= pivot
    rhs[row] /= pivot
    basis[row] = index
    return True


@njit
def _solve_master(B, rhs, basis, pool, count, tolerance, duals):
    """Let in known columns (a slack t, or types + k for answer k of the pool) until none gains; fills the duals."""
    m = rhs.shape[0]
    types = rhs.shape[0] - 1
    column = np.empty(rhs.shape[0])
    for _ in range(20 * (m + count)):  # degenerate pivots could go round in a circle; any prices give a valid bound
        duals[:] = 0.0
        for r in range(m):
            if basis[r] >= types:
                duals += pool[basis[r] - types, types] * B[r]
        best = tolerance
        enter = -1
        for t in range(types):
            if -duals[t] > best:
                best = -duals[t]
                enter = t
        for k in range(count):
            paid = (duals[:types] * pool[k, :types]).sum()
            gain = pool[k, types] - duals[types] - paid
            if gain > best:
                best = gain
                enter = types + k
        if enter < 0:
            return
        column[:] = 0.0
        if enter < types:
            column[enter] = 1.0
        else:
            column[:types] = pool[enter - types, :types]
            column[types] = 1.0
        if not _enter(B, rhs, basis, column, enter):
            return


@njit
def _search_prices(v, configs, hulls, warm, gap, most):
    """Return a tuple of the fields of the `PriceSearch` of some jobs."""
    # The master has a row a type and one for convexity; its columns are the answers of `evaluate`. New columns are
    # asked for half-way between the best prices so far and the master's (Wentges, 1997), which makes warm prices worth
    # having.
    #
    # Begins at `warm` prices (T,), ends at a relative distance `gap` between the bound and the relaxation's value, or after `most`
    # evaluations.
    capacity = configs.capacity
    types = capacity.shape[0]
    m = types + 1
    pool = np.zeros((most + 1, m))  # GPUs by type, then value; answer 0 gives nothing to anybody
    tried = np.full((most + 1, types), 1e300)
    B = np.eye(m)
    rhs = np.append(capacity, 1.0)
    basis = np.arange(m)  # t: idle GPUs of type t; types + k: answer k of the pool
    duals = np.empty(m)
    choice = np.empty(v.shape[0], np.int64)
    best = warm.copy()
    bound = np.inf
    relaxed = 0.0
    count = 1
    weight = 1.0  # of the best prices; the first evaluation is at the warm ones
    while count <= most:
        scale = abs(bound) if 0 < abs(bound) < np.inf else 1.0
        _solve_master(B, rhs, basis, pool, count, EPS * scale, duals)
        relaxed = duals[types] + (duals[:types] * capacity).sum()
        if bound - relaxed <= gap * scale:
            break
        trial_prices = tried[count]
        trial_prices[:] = np.maximum(weight * best + (1.0 - weight) * duals[:types], 0.0)
        used = pool[count, :types]
        here, pool[count, types] = evaluate(v, configs, hulls, trial_prices, Assignment(choice, used))
        paid = (duals[:types] * used).sum()
        gain = pool[count, types] - duals[types] - paid
        count += 1
        if here < bound:
            bound = here
            best[:] = trial_prices
        elif weight == 0.0 and gain <= EPS * scale:
            break
        # Half-way again where the answer helps the master; nearer to the master's own prices where it does not.
        weight = 0.5 if gain > EPS * scale else weight * 0.5 if weight > 0.1 else 0.0
    mixed = np.flatnonzero((basis >= types) & (rhs > 1e-9))
    return best, bound, relaxed, tried[basis[mixed] - types], rhs[mixed], count - 1
