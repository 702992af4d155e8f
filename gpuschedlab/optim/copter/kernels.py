"""Compiled: one proximal step of a linear program, by coordinate descent on its dual with an active set of rows.

Notation: minimise c'x subject to rl <= A x <= ru, l <= x <= u, A by rows (`ptr`, `at`, `val`); y (m,) prices of the rows,
q = A'y. A proximal step around (x0, y0) is the saddle point of c'x - y'(A x - s) + |x - x0|^2 / (2 tau)
- |y - y0|^2 / (2 sigma), s between rl and ru. Without x, which follows from q, it is a concave function of y.
"""

import numpy as np

from gpuschedlab._compiled import njit


@njit
def _slope(i, step, ptr, at, val, c, low, high, x0, q, tau):
    """(A x)_i after a step of y_i, and its derivative."""
    activity = 0.0
    curvature = 0.0
    for k in range(ptr[i], ptr[i + 1]):
        j = at[k]
        free = x0[j] + tau * (q[j] + val[k] * step - c[j])
        if free <= low[j]:
            activity += val[k] * low[j]
        elif free >= high[j]:
            activity += val[k] * high[j]
        else:
            activity += val[k] * free
            curvature += val[k] * val[k]
    return activity, tau * curvature


@njit
def _best_price(y, activity, h, rl, ru):
    """Where a row's quadratic model, with the cost of its bounds, is least."""
    up = y - (activity - rl) / h  # -inf where rl is
    if up > 0:
        return up
    down = y - (activity - ru) / h
    return down if down < 0 else 0.0


@njit
def _settle(i, tol, rl, ru, y0, sigma, y, ptr, at, val, c, low, high, x0, q, tau):
    """Make y_i the best with all others as they are; returns how far its row was from it, in units of the row."""
    start = y[i]
    price = start
    below, above = -np.inf, np.inf
    first = 0.0
    for trial in range(30):
        activity, curvature = _slope(i, price - start, ptr, at, val, c, low, high, x0, q, tau)
        activity += (price - y0[i]) / sigma
        h = curvature + 1.0 / sigma
        target = _best_price(price, activity, h, rl[i], ru[i])
        off = abs(target - price) * h
        if trial == 0:
            first = off
        if off <= tol:
            break
        if target > price:
            below = price
        else:
            above = price
        slow = trial > 8 and np.isfinite(below) and np.isfinite(above)
        if slow or not below <= target <= above or (trial > 3 and target in (below, above)):
            target = 0.5 * (below + above)
        price = target
    if price != start:
        y[i] = price
        for k in range(ptr[i], ptr[i + 1]):
            q[at[k]] += val[k] * (price - start)
    return first


@njit
def descend(rl, ru, y0, sigma, y, ptr, at, val, c, low, high, x0, q, tau, tol, most):
    """Coordinate descent over all rows, between full sweeps over those that still moved.

    Returns
    -------
    left : float
        Largest distance of a row from its best in the last full sweep.
    work : float
        Entries of A read, in multiples of all.
    """
    m = y.shape[0]
    active = np.empty(m, np.int64)
    entries = max(ptr[m], 1)
    read = 0.0
    left = np.inf
    while read < most:
        left = 0.0
        n_active = 0
        for i in range(m):
            moved = _settle(i, 0.1 * tol, rl, ru, y0, sigma, y, ptr, at, val, c, low, high, x0, q, tau)
            read += (ptr[i + 1] - ptr[i] + 1) / entries
            left = max(left, moved)
            if moved > 0.3 * tol:
                active[n_active] = i
                n_active += 1
        if left <= tol:
            break
        for _ in range(10):
            kept = 0
            largest = 0.0
            for a in range(n_active):
                i = active[a]
                moved = _settle(i, 0.1 * tol, rl, ru, y0, sigma, y, ptr, at, val, c, low, high, x0, q, tau)
                read += (ptr[i + 1] - ptr[i] + 1) / entries
                largest = max(largest, moved)
                if moved > 0.1 * tol:
                    active[kept] = i
                    kept += 1
            n_active = kept
            if largest <= 0.5 * tol or read > most:
                break
    return left, read
