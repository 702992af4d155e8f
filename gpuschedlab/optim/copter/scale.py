"""A linear program scaled for first-order methods: rows and columns of one size, costs and bounds of about 1."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

ROUNDS = 8
"""Of equilibration; more change little."""


class Scaled(NamedTuple):
    """minimise c'x, rl <= A x <= ru, low <= x <= high with x = columns x' / size, y = rows y' cost (primes: scaled).

    Parameters
    ----------
    A : scipy.sparse.csr_array
        By rows.
    c, low, high : (n,) float arrays
    rl, ru : (m,) float arrays
    rows, columns : (m,), (n,) float arrays
        Factors of A's rows and columns.
    size, cost : float
        Factors of all bounds, and of all costs.
    sign : float
        -1 where the program is to be made large.
    """

    A: sp.csr_array
    c: np.ndarray
    low: np.ndarray
    high: np.ndarray
    rl: np.ndarray
    ru: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    size: float
    cost: float
    sign: float

    @property
    def parts(self) -> tuple:
        """Entries of A and bounds of x, as the compiled code takes them."""
        return self.A.indptr, self.A.indices, self.A.data, self.c, self.low, self.high

    @property
    def unit(self) -> float:
        """Objective that counts as nothing's: 1 here or in the program's own units, whichever is less (1e-6 at least)."""
        return min(1.0, max(self.cost * self.size, 1e-6))

    def unscaled(self, x, y) -> tuple[np.ndarray, np.ndarray]:
        """Point and prices in the units of the program."""
        return x * self.columns / self.size, y * self.rows * (self.sign / self.cost)

    def scaled(self, x, y) -> tuple[np.ndarray, np.ndarray]:
        """Point and prices of the program in the units of this."""
        return x / self.columns * self.size, y / self.rows * (self.sign * self.cost)


def scale(c, A, rl, ru, low, high, sign: float) -> Scaled:
    """Scale a program (`sign` -1: it is to be made large).

    Examples
    --------
    >>> one = scale([2.0], [[4.0]], [-np.inf], [8.0], [0.0], [np.inf], -1.0)
    >>> one.A.toarray().tolist(), one.c.tolist(), one.ru.tolist()
    ([[1.0]], [-1.0], [1.0])
    """
    A = sp.csr_array(A, dtype=float, copy=True)
    A.eliminate_zeros()
    m, n = A.shape
    rows, columns = np.ones(m), np.ones(n)
    row_of = np.repeat(np.arange(m), np.diff(A.indptr))
    for _ in range(ROUNDS if A.nnz else 0):
        most = np.abs(A.data)
        by_row, by_column = np.zeros(m), np.zeros(n)
        np.maximum.at(by_row, row_of, most)
        np.maximum.at(by_column, A.indices, most)
        r, k = (1 / np.sqrt(np.where(a > 0, a, 1.0)) for a in (by_row, by_column))
        A.data *= r[row_of] * k[A.indices]
        rows, columns = rows * r, columns * k
    c = np.asarray(c, float) * columns * sign
    rl, ru = (np.asarray(b, float) * rows for b in (rl, ru))
    low, high = (np.asarray(b, float) / columns for b in (low, high))
    size, cost = 1 / _typical(rl, ru, low, high), 1 / _typical(c)
    return Scaled(A, c * cost, low * size, high * size, rl * size, ru * size, rows, columns, size, cost, sign)


def _typical(*parts) -> float:
    """Median of what is finite and not 0, unsigned; 1 where nothing is."""
    every = np.concatenate(parts)
    every = every[np.isfinite(every) & (every != 0)]
    return float(np.median(np.abs(every))) if every.size else 1.0
