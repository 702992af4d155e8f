"""What prices prove of a linear program: no point is better."""

import numpy as np
import scipy.sparse as sp

from gpuschedlab.optim.program import Program

NOTHING = 1e-9
"""Reduced cost, relative to the largest cost, that counts as none where a variable has no bound."""


def proved_bound(program: Program, prices: np.ndarray) -> float:
    """Best objective that any point could have, by the Lagrangian at some prices.

    Variables without a bound get the one that the rows imply, if any. Where one without any has a reduced cost of the wrong
    sign, the prices are moved, as little as possible, to make it none.

    Parameters
    ----------
    program : Program
    prices : (m,) float array
        d objective / d bound of each row; a wrong sign counts as 0.

    Returns
    -------
    float
        inf (-inf when minimising) where the prices prove nothing.

    Examples
    --------
    >>> one = Program([1.0, 2.0], [[1.0, 1.0]], row_upper=1.0, maximize=True)
    >>> proved_bound(one, np.array([2.0])), proved_bound(one, np.array([3.0])), proved_bound(one, np.array([1.5]))
    (2.0, 3.0, 2.0)
    """
    sign = -1.0 if program.maximize else 1.0
    low, high = _implied(program)
    c, A = program.c * sign, sp.csr_array(program.A)
    bounds = (program.row_lower, program.row_upper)
    y = signed(np.asarray(prices, float) * sign, *bounds)
    cost, first = max(np.abs(c).max(initial=0.0), 1e-30), y
    open_ = np.isinf(low) | np.isinf(high)
    for near in (0.0, 1e-5, 1e-3, 1e-1):  # reduced costs that the best prices may have at 0
        y = first
        for _ in range(3 if near else 1):
            reduced = c - A.T @ y
            reduced[np.abs(reduced) <= NOTHING * cost] = 0.0
            wrong = (reduced != 0) & np.isinf(np.where(reduced > 0, low, high))
            if not wrong.any():
                return sign * dual_value(y, reduced, *bounds, low, high)[0]
            if near:
                some = wrong | (open_ & (np.abs(reduced) <= near * cost))
                y = signed(y + _moved(A, c - A.T @ y, some, y), *bounds)
    return sign * -np.inf


def dual_value(y, reduced, rl, ru, low, high) -> tuple[float, float]:
    """Bound that prices prove (minimising), but for columns that would make it -inf, and their largest |reduced cost|."""
    sides, edge = np.where(y > 0, rl, ru), np.where(reduced > 0, low, high)
    endless, some = np.isinf(edge), y != 0
    ends = (reduced != 0) & ~endless
    worst = np.abs(reduced[endless]).max(initial=0.0)
    return float(y[some] @ sides[some] + reduced[ends] @ edge[ends]), float(worst)


def signed(y, low, high) -> np.ndarray:
    """Prices with 0 where a row has no bound on that side (minimising)."""
    return np.where(((y > 0) & np.isinf(low)) | ((y < 0) & np.isinf(high)), 0.0, y)


def _moved(A, reduced, some_columns, y) -> np.ndarray:
    """Least change of prices that are not 0 (of all, where there are none) that makes some reduced costs 0."""
    from scipy.sparse.linalg import lsqr

    some = np.flatnonzero(np.abs(y) > 1e-6 * np.abs(y).max(initial=0.0))
    some = some if some.size else np.arange(len(y))
    free = sp.csr_array(A[some][:, np.flatnonzero(some_columns)].T)
    change = np.zeros(len(y))
    change[some] = lsqr(free, reduced[some_columns], atol=1e-14, btol=1e-14, iter_lim=2000)[0]
    return change


def _implied(program: Program) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the variables, with those that single rows imply for variables that have none."""
    low, high = program.lower.copy(), program.upper.copy()
    missing = np.isinf(low) | np.isinf(high)
    if not missing.any():
        return low, high
    A = sp.csr_array(program.A)
    m = A.shape[0]
    row, col, val = np.repeat(np.arange(m), np.diff(A.indptr)), A.indices, A.data
    for _ in range(3):
        for limit, side in ((program.row_upper, 1.0), (-program.row_lower, -1.0)):
            a = side * val  # a x <= limit
            with np.errstate(invalid="ignore"):
                least = np.where(a > 0, a * low[col], np.where(a < 0, a * high[col], 0.0))
            endless = np.isinf(least)
            others = np.bincount(row, endless, m)[row] - endless
            total = np.bincount(row, np.where(endless, 0.0, least), m)[row] - np.where(endless, 0.0, least)
            good = (others == 0) & np.isfinite(limit[row]) & (a != 0)
            at, value = col[good], (limit[row] - total)[good] / a[good]
            up = a[good] > 0
            new = high.copy()
            np.minimum.at(new, at[up], value[up])
            high = np.where(np.isinf(high), new, high)
            new = low.copy()
            np.maximum.at(new, at[~up], value[~up])
            low = np.where(np.isinf(low), new, low)
    return low, high
