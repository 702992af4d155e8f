"""Compiled: the point of some prices in a proximal step, in closed form for each group, and the curvature of the dual there.

Notation as in `Grouped`; a step of size tau around x0 asks for the prices y of the coupling rows that make
min over X of (c - A'y)'x + |x - x0|^2 / (2 tau) large. Its x is the projection of x0 + tau (A'y - c) on X.
"""

from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import njit


class Groups(NamedTuple):
    """Groups of columns, each with one row of its own: the sum of its variables is at most, or equal to, its room."""

    begin: np.ndarray  # (G + 1,) first column of each group, and the end
    room: np.ndarray  # (G,)
    equal: np.ndarray  # (G,) whether the sum equals the room


class Columns(NamedTuple):
    """Costs of n columns, and their coefficients in the coupling rows."""

    ptr: np.ndarray  # (n + 1,) first coefficient of each column, and the end
    at: np.ndarray  # (k,) row of each coefficient
    val: np.ndarray  # (k,) coefficients
    c: np.ndarray  # (n,) costs


class Point(NamedTuple):
    """The point of some prices, which `project` fills, and the columns that shape the dual's curvature there."""

    x: np.ndarray  # (n,) variables
    inside: np.ndarray  # (n,) columns whose variable is above 0, group after group
    count: np.ndarray  # (G,) number of them in each group
    tight: np.ndarray  # (G,) whether the group's row binds
    price: np.ndarray  # (G,) best price of the group's row
    activity: np.ndarray  # (m,) A x


@njit
def reduced_cost(columns, y, k):
    """Return the cost (float) of one unit of column k, less its price in the coupling rows at prices y."""
    cost = columns.c[k]
    for e in range(columns.ptr[k], columns.ptr[k + 1]):
        cost -= columns.val[e] * y[columns.at[e]]
    return cost


@njit
def _keep_above(point, x0, first, end, threshold, moved):
    """Keep the columns of `inside`, `first` to `end`, above a threshold; return a tuple: the new end, and the squares moved."""
    n = first
    for s in range(first, end):
        k = point.inside[s]
        if point.x[k] > threshold:
            point.inside[n] = k
            n += 1
        else:
            point.x[k] = 0.0
            moved += x0[k] * x0[k]
    return n, moved


@njit
def _first_threshold(top, total, positive, room):
    """Return the threshold (float) from which Michelot's iteration rises, by the largest value, sum and number of positives."""
    threshold = top - room
    if total > room:
        threshold = max(threshold, (total - room) / positive)
    return threshold


@njit
def _add_column(columns, k, x, activity):
    """Add column k, x times, to the activity of the coupling rows."""
    for e in range(columns.ptr[k], columns.ptr[k + 1]):
        activity[columns.at[e]] += columns.val[e] * x


@njit
def project(groups, columns, x0, tau, y, point):
    """Find the point of some prices in the groups, and their bound; return a tuple of three floats.

    Thresholds are by Michelot's iteration (Condat, Math. Program. 158).

    Fills the point; A x is added to its activity. Returns |x - x0|^2, c'x, and the least of (c - A'y)'x over all points.
    """
    begin = groups.begin
    room = groups.room
    equal = groups.equal
    x = point.x
    inside = point.inside
    tight = point.tight
    price = point.price
    moved = 0.0
    cost = 0.0
    proved = 0.0
    n = 0
    for i in range(room.shape[0]):
        first = n
        total = 0.0
        positive = 0
        top = -np.inf
        least = np.inf
        for k in range(begin[i], begin[i + 1]):
            reduced = reduced_cost(columns, y, k)
            z = x0[k] - tau * reduced
            x[k] = z
            if z > 0:
                total += z
                positive += 1
            top = max(top, z)
            least = min(least, reduced)
        tight[i] = equal[i] or total > room[i]
        price[i] = least if equal[i] else min(least, 0.0)
        proved += room[i] * price[i]
        t = 0.0
        if tight[i]:
            t = _first_threshold(top, total, positive, room[i])
        for k in range(begin[i], begin[i + 1]):
            if x[k] > t:
                inside[n] = k
                n += 1
            else:
                x[k] = 0.0
                moved += x0[k] * x0[k]
        while tight[i]:
            above = -room[i]
            for s in range(first, n):
                above += x[inside[s]]
            if above <= (t + 1e-15 * abs(t)) * (n - first):
                break
            t = above / (n - first)
            n, moved = _keep_above(point, x0, first, n, t, moved)
        point.count[i] = n - first
        for s in range(first, n):
            k = inside[s]
            x[k] -= t
            moved += (x[k] - x0[k]) ** 2
            cost += columns.c[k] * x[k]
            _add_column(columns, k, x[k], point.activity)
    return moved, cost, proved


@njit
def curvature(columns, point, place, H):
    """A P A' over the rows with `place` >= 0 (that in H, which is filled), P the projection's derivative."""
    ptr = columns.ptr
    coefficient_rows = columns.at
    val = columns.val
    count = point.count
    H[:] = 0.0
    sums = np.zeros(H.shape[0])
    touched = np.empty(H.shape[0], np.int64)
    group_of_row = np.full(H.shape[0], -1)
    begin = 0
    for i in range(count.shape[0]):
        n = 0
        for k in point.inside[begin : begin + count[i]]:
            for e in range(ptr[k], ptr[k + 1]):
                r = place[coefficient_rows[e]]
                if r < 0:
                    continue
                if point.tight[i]:
                    if group_of_row[r] != i:
                        group_of_row[r] = i
                        touched[n] = r
                        sums[r] = 0.0
                        n += 1
                    sums[r] += val[e]
                for f in range(ptr[k], ptr[k + 1]):
                    q = place[coefficient_rows[f]]
                    if q >= 0:
                        H[r, q] += val[e] * val[f]
        begin += count[i]
        for r in touched[:n]:
            for q in touched[:n]:
                H[r, q] -= sums[r] * sums[q] / count[i]
