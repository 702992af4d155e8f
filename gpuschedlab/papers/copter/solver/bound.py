"""Proof by prices of a linear program: no point is better."""

import numpy as np
import scipy.sparse as sp

from gpuschedlab.optim.programs.program import Program

NOTHING = 1e-9
"""Reduced cost, relative to the largest cost, that counts as none if a variable has no bound."""


def proved_bound(program: Program, prices: np.ndarray) -> float:
    """Return the best objective that any point could have, a float, by the Lagrangian at some prices.

    Variables without a bound get the one that the rows imply, if any. If one without any has a reduced cost of the wrong
    sign, the prices (m,), d objective / d bound of each row, are moved, as little as possible, to make it none. A price of the wrong
    sign counts as 0. If nothing is proved the bound is inf (-inf when minimising).

    Examples
    --------
    >>> one = Program([1.0, 2.0], [[1.0, 1.0]], row_upper=1.0, maximize=True)
    >>> proved_bound(one, np.array([2.0])), proved_bound(one, np.array([3.0])), proved_bound(one, np.array([1.5]))
    (2.0, 3.0, 2.0)
    """
    sign = -1.0 if program.maximize else 1.0
    limits = (program.row_lower, program.row_upper)
    low, high = _implied(program)
    c = sign * program.c
    A = sp.csr_array(program.A)
    cost = max(np.abs(c).max(initial=0.0), 1e-30)
    free = np.isinf(low) | np.isinf(high)
    given_prices = signed(np.asarray(prices, float) * sign, *limits)
    for near in (0.0, 1e-5, 1e-3, 1e-1):  # reduced costs that the best prices may have at 0
        y = given_prices
        for _ in range(3 if near else 1):
            reduced = c - A.T @ y
            reduced[np.abs(reduced) <= NOTHING * cost] = 0.0
            edge = np.where(reduced > 0, low, high)
            side = np.where(y > 0, *limits)
            wrong = (reduced != 0) & np.isinf(edge)
            if not wrong.any():
                priced = y != 0
                off = reduced != 0
                of_rows = (y[priced] * side[priced]).sum()
                of_columns = (reduced[off] * edge[off]).sum()
                return sign * float(of_rows + of_columns)
            if near:
                doubtful_columns = wrong | (free & (np.abs(reduced) <= near * cost))
                y = signed(y + _moved(A, c - A.T @ y, doubtful_columns, y), *limits)
    return sign * -np.inf


def signed(y, low, high) -> np.ndarray:
    """Return an array of the prices, with 0 if a row has no bound on that side (minimising)."""
    return np.where(((y > 0) & np.isinf(low)) | ((y < 0) & np.isinf(high)), 0.0, y)


def _moved(A, reduced, columns, y) -> np.ndarray:
    """Return an array: the least change of prices that are not 0 (of all, if there are none) that makes some reduced costs 0."""
    from scipy.sparse.linalg import lsqr

    priced_rows = np.abs(y) > 1e-6 * np.abs(y).max(initial=0.0)
    change = np.zeros(len(y))
    priced_rows |= not priced_rows.any()
    change[priced_rows] = lsqr(A[priced_rows][:, columns].T, reduced[columns], atol=1e-14, btol=1e-14, iter_lim=2000)[0]
    return change


def _implied(program: Program) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of the variables' lower and upper bounds (n,), with those that single rows imply for variables that have none."""
    low = program.lower.copy()
    high = program.upper.copy()
    A = sp.coo_array(program.A)
    val = A.data
    program_row, col = A.coords
    m = A.shape[0]
    for _ in range(3 if (np.isinf(low) | np.isinf(high)).any() else 0):
        for limit, a in ((program.row_upper, val), (-program.row_lower, -val)):  # a x <= limit
            with np.errstate(invalid="ignore"):
                least = np.where(a > 0, a * low[col], np.where(a < 0, a * high[col], 0.0))
            endless = np.isinf(least)
            least[endless] = 0.0
            other_endless = np.bincount(program_row, endless, m)[program_row] - endless
            room = limit[program_row] - (np.bincount(program_row, least, m)[program_row] - least)
            good = (other_endless == 0) & np.isfinite(room) & (a != 0)
            bounded_column = col[good]
            implied_bound = room[good] / a[good]
            up = a[good] > 0
            new_low = low.copy()
            new_high = high.copy()
            np.minimum.at(new_high, bounded_column[up], implied_bound[up])
            np.maximum.at(new_low, bounded_column[~up], implied_bound[~up])
            low = np.where(np.isinf(low), new_low, low)
            high = np.where(np.isinf(high), new_high, high)
    return low, high
