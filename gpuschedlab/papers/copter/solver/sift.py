"""Sifting: a vertex of a linear program of many columns, by the simplex method on few of them at a time."""

import time
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from gpuschedlab.errors import SolverError
from gpuschedlab.optim.programs.program import Program, Solution
from gpuschedlab.optim.programs.work_limits import Limits
from gpuschedlab.optim.solvers.highs import Highs

MORE = 3_000
PART = 60
"""Columns that are let in at a time, at most: those that would gain most, 3,000 or a 60th of all. Twice as many where the last ones
brought nothing."""

PENALTY = 4.0
"""Cost of missing a row by the entry of a usual column, in largest costs of a column; grown if a program still misses some."""

GAINS = 1e-9
"""Reduced cost, in largest costs of a column, from which on a column gains."""


@dataclass(eq=False)
class Sift(Limits):
    """Sifting: HiGHS' simplex method over some columns, all others checked by their reduced costs, until none gains.

    References
    ----------
    Bixby, Gregory, Lustig, Marsten & Shanno, Operations Research 40 (1992). Elastic columns, which let a restricted program
    miss its rows at a cost, are ours.

    Examples
    --------
    >>> Sift().solve(Program([1.0, 2.0], [[1.0, 1.0]], row_upper=1.0, maximize=True)).x.tolist()
    [0.0, 1.0]
    """

    # The next program of the same shape begins with the columns that are above 0 or in the basis, and with the basis.

    word = "sift"
    # times that columns are let in, at most; then the status is ``stopped``, and the bound is what the prices prove
    pricings: int = 200

    def __post_init__(self):
        self._simplex = Highs(self.time_limit, self.gap, work=self.work, method="simplex", simplex_strategy=4)
        self._kept: tuple | None = None

    def solve(self, program: Program, x0: np.ndarray | None = None, y0: np.ndarray | None = None) -> Solution:
        """Return the `Solution` of a linear program.

        It begins with the columns that cost nothing, those above 0 in x0, and those that gain at prices y0.
        """
        if program.whole:
            raise SolverError(f"{program.name}: found whole variables; 'sift' solves linear programs. Use 'highs'.")
        if not len(program.c) or not program.A.shape[0]:
            return Highs(self.time_limit, self.gap, work=self.work, method="simplex").solve(program)
        return self._price_in(program, x0, y0)

    def _price_in(self, program: Program, x0: np.ndarray | None, y0: np.ndarray | None) -> Solution:
        """Solve a linear program of some columns, let others in until none gains, and return the `Solution`."""
        start = time.perf_counter()
        sign = -1.0 if program.maximize else 1.0
        c = sign * program.c
        largest = max(np.abs(program.c).max(), 1e-300)
        use = _first_columns(program, c, x0, None if y0 is None else sign * np.asarray(y0), GAINS * largest)
        simplex = self._simplex
        miss = _misses(program)
        penalty = PENALTY
        last = np.inf
        most = max(MORE, len(c) // PART)
        k = miss.shape[1]
        columns = self._columns((*program.A.shape, k), use)
        status = "stopped"
        begun = len(columns)
        count = 0
        gains = columns[:0]
        stays = None
        while count < self.pricings:
            count += 1
            restricted = _restricted(program, columns, miss, sign * penalty * largest)
            priced = simplex.solve_again(restricted, stays, len(gains)) if gains.size else simplex.solve(restricted)
            missed = priced.x[:k].max(initial=0.0) > 1e-9
            stays = np.ones(k + len(columns), bool)
            if priced.status != "optimal":
                status = priced.status
                break
            reduced = c - program.A.T @ (sign * priced.duals)
            reduced_in_use = reduced[columns]
            reduced[columns] = 0.0
            gains = np.flatnonzero((reduced < -GAINS * largest) & (program.upper > 0))
            if not gains.size and not missed:
                status = "optimal"
                break
            if not gains.size:  # a penalty was too small, or there is no point
                penalty *= 100
                if penalty > 1e8 * PENALTY:
                    return simplex.solve(program)
                continue
            if gains.size > most:  # those that gain most
                gains = gains[np.argpartition(reduced[gains], most)[:most]]
            if priced.objective * sign < last:  # what costs more than it gains may come back
                stays[k + begun :] = reduced_in_use[begun:] <= GAINS * largest
            else:
                most *= 2
            last = priced.objective * sign
            columns = np.append(columns[stays[k:]], gains)
        x = np.zeros(len(c))
        x[columns] = priced.x[k:]
        if simplex.basis is not None:
            self._keep((*program.A.shape, k), columns, priced.x)
        if status != "optimal" and missed:
            raise SolverError(f"{program.name}: no point in {count} pricings; give more work, or use 'highs'.")
        objective = program.value(x)
        bound = objective if status == "optimal" else -sign * np.inf
        seconds = time.perf_counter() - start
        return Solution(x, status, objective, bound, seconds, f"sift {count} pricings", priced.duals, program.shape)

    def _columns(self, shape: tuple, use: np.ndarray) -> np.ndarray:
        """Return an array of the columns to begin with: those of the last program of this shape, if there is one, then those in use.

        The basis of the last program is extended.
        """
        last = self._kept
        self._kept = None
        if last is None or last[0] != shape:
            return np.flatnonzero(use)
        use[last[1]] = False
        added = np.flatnonzero(use)
        basis_columns, basis_rows = self._simplex.basis
        self._simplex.basis = np.append(basis_columns, np.zeros(len(added), int)), basis_rows
        return np.append(last[1], added)

    def _keep(self, shape: tuple, columns: np.ndarray, x: np.ndarray):
        """Keep the columns that are above 0 or in the basis, and their basis, for the next program of this shape."""
        basis_columns, basis_rows = self._simplex.basis
        missing = np.arange(len(x)) < shape[-1]
        stands = (x != 0) | (basis_columns == 1) | missing
        self._kept = shape, columns[stands[shape[-1] :]]
        self._simplex.basis = basis_columns[stands], basis_rows


def _first_columns(program: Program, c: np.ndarray, x0, prices, least: float) -> np.ndarray:
    """Return a mask (n,) of columns in use from the start. They are free, cannot be 0, are above 0 in x0, or gain at the prices."""
    use = (c == 0) | (program.lower != 0)
    use |= np.zeros(len(c), bool) if x0 is None else np.asarray(x0) > 0
    if prices is None:
        return use
    reduced = c - program.A.T @ prices
    return use | (reduced < least)


def _misses(program: Program) -> sp.csc_array:
    """Return elastic columns, a `csc_array`: one for each finite side of a row, in units of the entry of a usual column."""
    entry_rows = program.A.indices
    m = program.A.shape[0]
    unit = np.sqrt(np.bincount(entry_rows, program.A.data**2, m) / np.maximum(np.bincount(entry_rows, minlength=m), 1))
    unit = np.where(unit > 0, unit, 1.0)
    up, down = (np.flatnonzero(np.isfinite(side)) for side in (program.row_lower, program.row_upper))
    k = len(up) + len(down)
    return sp.csc_array((np.append(unit[up], -unit[down]), (np.append(up, down), np.arange(k))), (m, k))


def _restricted(program: Program, columns: np.ndarray, miss, penalty: float) -> Program:
    """Return the `Program` of some columns, behind one column for each way to miss a row, which costs a penalty."""
    none = np.zeros(miss.shape[1])
    return replace(
        program,
        c=np.append(none + penalty, program.c[columns]),
        integrality=False,
        shape=None,
        A=sp.hstack([miss, program.A[:, columns]], format="csc"),
        lower=np.append(none, program.lower[columns]),
        upper=np.append(none + np.inf, program.upper[columns]),
    )
