"""Compiled: the point of some prices in a proximal step, in closed form for each group, and the curvature of the dual there.

Notation as in `Grouped`; a step of size tau around x0 asks for the prices y of the coupling rows that make
min over X of (c - A'y)'x + |x - x0|^2 / (2 tau) large. Its x is the projection of x0 + tau (A'y - c) on X.
"""

import numpy as np

from gpuschedlab._compiled import njit


@njit
def project(begin, end, room, equal, ptr, at, val, c, low, high, x0, tau, y, x, inside, count, tight, price, activity):
    """The point of some prices, and what they prove.

    Each group's threshold is found by Michelot's iteration (Condat, Math. Program. 158 (2016)), without sorting.

    Parameters
    ----------
    x : (n,) float array
        Filled: the point.
    inside, count : (n,), (G + 1,) int arrays
        Filled: places of each group, from its first place on, whose variable is above 0 (or strictly between its bounds), and how many.
    tight : (G + 1,) bool array
        Filled: whether the group's row binds.
    price : (G + 1,) float array
        Filled: best price of each group's row.
    activity : (m,) float array
        Filled: A x.

    Returns
    -------
    value : float
        c'x + |x - x0|^2 / (2 tau).
    cost : float
        c'x.
    proved : float
        What no point of X is less worth in (c - A'y)'x, but for columns that would make it -inf.
    worst : float
        Largest reduced cost of these.
    """
    last = begin.shape[0] - 1
    activity[:] = 0.0
    moved, cost, proved, worst = 0.0, 0.0, 0.0, 0.0
    for i in range(last + 1):
        top, total, positive, least = -np.inf, 0.0, 0, np.inf
        e = ptr[begin[i]]
        for k in range(begin[i], end[i]):
            q = 0.0
            while e < ptr[k + 1]:
                q += val[e] * y[at[e]]
                e += 1
            reduced = c[k] - q
            z = x0[k] - tau * reduced
            x[k] = z
            if z > 0:
                total += z
                positive += 1
            if z > top:
                top = z
            if reduced < least:
                least = reduced
            if i == last and reduced != 0:
                edge = low[k] if reduced > 0 else high[k]
                if np.isinf(edge):
                    worst = max(worst, abs(reduced))
                else:
                    proved += edge * reduced
        tight[i] = i < last and (total > room[i] or equal[i])
        t = top - room[i] if tight[i] else 0.0
        if total > room[i]:
            t = max(t, (total - room[i]) / positive)
        price[i] = 0.0
        if i < last:
            price[i] = least if equal[i] else min(least, 0.0)
            proved += room[i] * price[i]
        n = begin[i]
        for k in range(begin[i], end[i]):
            z = x[k]
            if i == last:
                x[k] = min(max(z, low[k]), high[k])
                inside[n] = k
                n += x[k] == z and low[k] < high[k]
            elif z > t:
                inside[n] = k
                n += 1
                continue
            else:
                x[k] = 0.0
                if x0[k] != 0:
                    moved += x0[k] * x0[k]
                continue
            moved += (x[k] - x0[k]) ** 2
            cost += c[k] * x[k]
            for e in range(ptr[k], ptr[k + 1]):
                activity[at[e]] += val[e] * x[k]
        count[i] = n - begin[i]
        if i == last:
            continue
        while tight[i] and n > begin[i]:
            above = -room[i]
            for s in range(begin[i], n):
                above += x[inside[s]]
            new = above / (n - begin[i])
            if new <= t + 1e-15 * abs(t):
                break
            t = new
            kept = begin[i]
            for s in range(begin[i], n):
                k = inside[s]
                if x[k] > t:
                    inside[kept] = k
                    kept += 1
                else:
                    x[k] = 0.0
                    moved += x0[k] * x0[k]
            n = kept
        count[i] = n - begin[i]
        for s in range(begin[i], n):
            k = inside[s]
            w = x[k] - t
            x[k] = w
            moved += (w - x0[k]) ** 2
            cost += c[k] * w
            for e in range(ptr[k], ptr[k + 1]):
                activity[at[e]] += val[e] * w
    return cost + moved / (2 * tau), cost, proved, worst


@njit
def curvature(begin, ptr, at, val, inside, count, tight, where, diagonal, H):
    """A P A' over the rows with `where` >= 0, P the projection's derivative: its diagonal without the groups', and, if H is not empty, all.

    Parameters
    ----------
    where : (m,) int array
        Place of each row in H, -1 for none.
    """
    diagonal[:] = 0.0
    H[:] = 0.0
    full = H.shape[0] > 0
    sums = np.zeros(diagonal.shape[0])
    touched = np.empty(diagonal.shape[0], np.int64)
    of = np.full(diagonal.shape[0], -1)
    for i in range(begin.shape[0]):
        n = 0
        for s in range(begin[i], begin[i] + count[i]):
            k = inside[s]
            for e in range(ptr[k], ptr[k + 1]):
                r = where[at[e]]
                if r < 0:
                    continue
                diagonal[r] += val[e] * val[e]
                if not full:
                    continue
                if tight[i]:
                    if of[r] != i:
                        of[r], touched[n], sums[r] = i, r, 0.0
                        n += 1
                    sums[r] += val[e]
                for f in range(ptr[k], ptr[k + 1]):
                    q = where[at[f]]
                    if q >= 0:
                        H[r, q] += val[e] * val[f]
        for a in range(n):
            for b in range(n):
                H[touched[a], touched[b]] -= sums[touched[a]] * sums[touched[b]] / count[i]


@njit
def multiplied(begin, ptr, at, val, inside, count, tight, where, v, out):
    """A P A' v over the rows with `where` >= 0; `out` is filled."""
    out[:] = 0.0
    for i in range(begin.shape[0]):
        if tight[i] and count[i] < 2:
            continue
        mean = 0.0
        for s in range(begin[i], begin[i] + count[i] if tight[i] else begin[i]):
            k = inside[s]
            for e in range(ptr[k], ptr[k + 1]):
                r = where[at[e]]
                if r >= 0:
                    mean += val[e] * v[r] / count[i]
        for s in range(begin[i], begin[i] + count[i]):
            k = inside[s]
            q = -mean
            for e in range(ptr[k], ptr[k + 1]):
                r = where[at[e]]
                if r >= 0:
                    q += val[e] * v[r]
            if q != 0.0:
                for e in range(ptr[k], ptr[k + 1]):
                    r = where[at[e]]
                    if r >= 0:
                        out[r] += val[e] * q
