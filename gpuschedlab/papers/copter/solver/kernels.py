"""Compiled: the point of some prices in a proximal step, in closed form for each group, and the curvature of the dual there.

Notation as in `Grouped`; a step of size tau around x0 asks for the prices y of the coupling rows that make
min over X of (c - A'y)'x + |x - x0|^2 / (2 tau) large. Its x is the projection of x0 + tau (A'y - c) on X.
"""

import numpy as np

from gpuschedlab._compiled import njit


@njit
def reduced_cost(c, ptr, at, val, y, k):
    """Return the cost of one unit of column k, less its price in the coupling rows at prices y."""
    cost = c[k]
    for e in range(ptr[k], ptr[k + 1]):
        cost -= val[e] * y[at[e]]
    return cost


@njit
def project(begin, room, equal, ptr, at, val, c, x0, tau, y, x, inside, count, tight, price, activity):
    """The point of some prices in the groups, and their bound; thresholds by Michelot's iteration (Condat, Math. Program. 158).

    Fills the point x (n,); `inside` (n,), the places whose variable is above 0, group after group, `count` (G,) of them in each;
    `tight` (G,), whether the group's row binds, and the best `price` (G,) of that row. A x is added to `activity` (m,). Returns
    |x - x0|^2, c'x, and the least of (c - A'y)'x over all points.
    """
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
            reduced = reduced_cost(c, ptr, at, val, y, k)
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
        t = top - room[i] if tight[i] else 0.0
        if total > room[i]:
            t = max(t, (total - room[i]) / positive)
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
            end = n
            n = first
            for s in range(first, end):
                k = inside[s]
                if x[k] > t:
                    inside[n] = k
                    n += 1
                else:
                    x[k] = 0.0
                    moved += x0[k] * x0[k]
        count[i] = n - first
        for s in range(first, n):
            k = inside[s]
            w = x[k] - t
            x[k] = w
            moved += (w - x0[k]) ** 2
            cost += c[k] * w
            for e in range(ptr[k], ptr[k + 1]):
                activity[at[e]] += val[e] * w
    return moved, cost, proved


@njit
def curvature(ptr, at, val, inside, count, tight, where, H):
    """A P A' over the rows with `where` >= 0 (their places in H, which is filled), P the projection's derivative."""
    H[:] = 0.0
    sums = np.zeros(H.shape[0])
    touched = np.empty(H.shape[0], np.int64)
    of = np.full(H.shape[0], -1)
    begin = 0
    for i in range(count.shape[0]):
        n = 0
        for k in inside[begin : begin + count[i]]:
            for e in range(ptr[k], ptr[k + 1]):
                r = where[at[e]]
                if r < 0:
                    continue
                if tight[i]:
                    if of[r] != i:
                        of[r] = i
                        touched[n] = r
                        sums[r] = 0.0
                        n += 1
                    sums[r] += val[e]
                for f in range(ptr[k], ptr[k + 1]):
                    if where[at[f]] >= 0:
                        H[r, where[at[f]]] += val[e] * val[f]
        begin += count[i]
        for r in touched[:n]:
            for q in touched[:n]:
                H[r, q] -= sums[r] * sums[q] / count[i]
