"""Rows of a table that differ."""

from typing import NamedTuple

import numpy as np


class Distinct(NamedTuple):
    """Rows (K, C) that differ, in order; which of them each row is (n,); how many rows are each (K,); and the first that is (K,)."""

    rows: np.ndarray
    which: np.ndarray
    counts: np.ndarray
    first: np.ndarray


def distinct_rows(table) -> Distinct:
    """Return the result of `np.unique(table, axis=0)`, without its loss of interrupts, as `Distinct`.

    numpy compares rows as records, and an interrupt that comes within such a comparison is turned into "Cannot compare
    structured arrays": the run then fails in the place of being stopped.

    Parameters
    ----------
    table : array_like, shape (n, C)
        Numbers or bool; C is 1 or more, and none is nan.

    Examples
    --------
    >>> distinct_rows([[2, 1], [0, 3], [2, 1]]).rows.tolist()
    [[0, 3], [2, 1]]
    >>> distinct_rows([[2, 1], [0, 3], [2, 1]]).which.tolist()
    [1, 0, 1]
    """
    table = np.asarray(table)
    row_order = np.lexsort(table.T[::-1])
    ordered = table[row_order]
    is_new_row = np.ones(len(table), bool)
    is_new_row[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    which = np.empty(len(table), np.int64)
    which[row_order] = np.cumsum(is_new_row) - 1
    starts = np.flatnonzero(is_new_row)
    return Distinct(ordered[starts], which, np.diff(np.append(starts, len(table))), row_order[starts])
