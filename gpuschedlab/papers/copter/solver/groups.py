"""A linear program as copter takes it: columns in groups, each with one row of its own, and the rows that couple them."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from gpuschedlab._compiled import njit
from gpuschedlab.optim.programs.program import Program

ROUNDS = 8
"""Of equilibration, where columns belong to no group; more change little."""


class Grouped(NamedTuple):
    """minimise c'x, x in X, rl <= A x <= ru: in X are x >= 0 whose sum over each group is at most, or equal to, its room.

    Columns stand at places, group by group; then come those that belong to none, each between its own bounds.
    """

    order: np.ndarray  # (n,) which column of the program stands at each place
    begin: np.ndarray  # (G + 1,) where each group begins, and the columns in none
    room: np.ndarray  # (G,)
    equal: np.ndarray  # (G,) whether the sum equals the room
    ptr: np.ndarray  # (n + 1,), and at, val: coefficients of the coupling rows, by place
    at: np.ndarray
    val: np.ndarray
    c: np.ndarray  # (n,)
    low: np.ndarray  # bounds of columns in no group
    high: np.ndarray
    rl: np.ndarray  # (m,)
    ru: np.ndarray
    sizes: np.ndarray  # (m,) what an amount by which a row is broken is compared with: its bound, or a usual one
    rows: np.ndarray  # of the program, that couple
    groups: np.ndarray  # rows of the program, of the groups
    by_row: np.ndarray  # factors of the coupling rows, of the columns by place, and of the groups' rows
    by_column: np.ndarray
    by_group: np.ndarray
    sign: float  # -1 where the program is to be made large

    @property
    def scales(self) -> tuple[float, float]:
        """Tuple of the usual size of a variable, and of a cost."""
        bounds = (self.room, self.low, self.high)
        return typical(*bounds) if len(self.groups) else typical(*bounds, self.rl, self.ru), typical(self.c)

    def unscaled(self, x, y, prices) -> tuple[np.ndarray, np.ndarray]:
        """Return a tuple of arrays: the point and prices of the program's rows, from those of places, coupling rows and groups."""
        point = np.empty(len(x))
        duals = np.empty(len(self.rows) + len(self.groups))
        point[self.order] = x * self.by_column
        duals[self.rows] = y * self.by_row * self.sign
        duals[self.groups] = prices * self.by_group * self.sign
        return point, duals


def typical(*parts) -> float:
    """Return the median of the finite values that are not 0, unsigned, as a float; 1 if there are none."""
    every = np.abs(np.concatenate(parts))
    every = every[np.isfinite(every) & (every > 0)]
    return float(np.median(every)) if every.size else 1.0


def grouped(program: Program) -> Grouped:
    """Return a program as a `Grouped`: its groups (generalised upper bounds), and its coupling rows scaled to one norm.

    The row of a group has one positive coefficient, an upper bound, and columns from 0 that no bound of their own holds below it;
    such rows are taken in their order.

    Examples
    --------
    >>> one = grouped(Program([1.0, 2.0, 3.0], [[2.0, 2.0, 0.0], [1.0, 5.0, 1.0]], row_upper=[4.0, 7.0]))
    >>> one.groups.tolist(), one.rows.tolist(), one.room.tolist(), one.order.tolist()
    ([0], [1], [2.0], [0, 1, 2])
    """
    by_rows = program.A.tocsr()
    m, n = by_rows.shape
    rl = program.row_lower
    ru = program.row_upper
    low = program.lower
    high = program.upper
    fits = (ru >= 0) & np.isfinite(ru) & ((rl <= 0) | (rl == ru))
    owner, group_weight = _owners(by_rows.indptr, by_rows.indices, by_rows.data, fits, ru, low, high)
    groups = np.flatnonzero(group_weight > 0)
    coupling_rows = np.flatnonzero(group_weight == 0)
    group_number = np.full(m + 1, len(groups))
    group_number[groups] = np.arange(len(groups))
    group_of_column = group_number[owner]
    column_order = np.arange(n) if (np.diff(group_of_column) >= 0).all() else np.argsort(group_of_column, kind="stable")
    edges = np.searchsorted(group_of_column[column_order], np.arange(len(groups) + 2))
    couples = sp.csc_array(by_rows[coupling_rows] if len(groups) else by_rows)
    couples = couples if np.array_equal(column_order, np.arange(n)) else couples[:, column_order]
    couples.eliminate_zeros()
    by_row, by_column = _equilibrate(couples, edges[-2])
    sign = -1.0 if program.maximize else 1.0
    by_group = 1 / group_weight[groups]
    rl = rl[coupling_rows] * by_row
    ru = ru[coupling_rows] * by_row
    sizes = np.where(np.isfinite(ru), np.abs(ru), np.where(np.isfinite(rl), np.abs(rl), 0.0))
    low, high = ((side[column_order] / by_column)[edges[-2] :] for side in (low, high))
    if not (usual := sizes[sizes > 0]).size:
        usual = typical(low, high, program.row_upper[groups] * by_group)
    return Grouped(
        column_order, edges[:-1], program.row_upper[groups] * by_group, program.row_lower[groups] == program.row_upper[groups],
        couples.indptr.astype(np.uint32), couples.indices.astype(np.uint32), couples.data,
        sign * program.c[column_order] * by_column, low, high, rl, ru, np.maximum(sizes, np.median(usual)),
        coupling_rows, groups, by_row, by_column, by_group, sign,
    )  # fmt: skip


@njit
def _owners(ptr, at, val, fits, ru, low, high):
    """Return a tuple of arrays: row (n,) of each column's group, or -1; coefficient (m,) of rows that are a group's, others 0."""
    m = fits.shape[0]
    owner = np.full(low.shape[0], -1)
    group_weight = np.zeros(m)
    for i in range(m):
        a = 0.0
        for k in range(ptr[i], ptr[i + 1] if fits[i] else ptr[i]):
            j = at[k]
            if low[j] == 0 and high[j] == 0:
                continue
            a = val[k] if a == 0 else a
            if not a > 0 or val[k] != a or owner[j] >= 0 or low[j] != 0 or high[j] * a < ru[i]:
                a = -1.0
                break
        if a > 0:
            group_weight[i] = a
            for k in range(ptr[i], ptr[i + 1]):
                if high[at[k]] > 0:
                    owner[at[k]] = i
    return owner, group_weight


def _equilibrate(A: sp.csc_array, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Scale rows, and columns from `first` on, to one norm, in place, and return a tuple of their factors (m,) and (n,)."""
    m, n = A.shape
    row_factors = np.ones(m)
    column_factors = np.ones(n)
    loose = A.indptr[first]
    column_of = np.repeat(np.arange(first, n), np.diff(A.indptr[first:]))
    for _ in range(ROUNDS if len(column_of) else 0):
        for factors, scaled_index, coefficients in (
            (column_factors, column_of, A.data[loose:]),
            (row_factors, A.indices, A.data),
        ):
            largest = np.zeros(len(factors))
            np.maximum.at(largest, scaled_index, np.abs(coefficients))
            by = 1 / np.sqrt(np.where(largest > 0, largest, 1.0))
            coefficients *= by[scaled_index]
            factors *= by
    squares, many = (np.bincount(A.indices, w, m) for w in (A.data**2, None))
    r = 1 / np.sqrt(np.where(squares > 0, squares, 1.0) / np.maximum(many, 1))
    A.data *= r[A.indices]
    return row_factors * r, column_factors
