"""Buddy cells of 1, 2, 4 and 8 GPUs: how a demand can be made of them, and whether cells that are free suffice."""

from functools import cache

import numpy as np

from gpuschedlab.errors import SolverError

LEVELS = 4
SIZES = 2 ** np.arange(LEVELS)
MOST = 16
"""Most GPUs for which all combinations are listed (Gao, PhD thesis, NTU 2025, section 5.3.3.3)."""


@cache
def cell_policies(gpus: int) -> tuple[tuple[int, int, int, int], ...]:
    """All ways to give a job cells of 1, 2, 4 and 8 GPUs: rounded up to whole cells of one node or more, and exact ones.

    The first is consolidated: one cell of the next power of two, or whole nodes of 8. Above 16 GPUs there is no other.

    Parameters
    ----------
    gpus : int
        GPUs that the job requests, from 1 up.

    Returns
    -------
    tuple of (c0, c1, c2, c3)
        Cells of each level, each on a node of its own.

    Examples
    --------
    >>> cell_policies(3)
    ((0, 0, 1, 0), (3, 0, 0, 0), (1, 1, 0, 0))
    >>> len(cell_policies(8)), len(cell_policies(16)), cell_policies(20)
    (10, 35, ((0, 0, 0, 3),))
    """
    if gpus < 1:
        raise SolverError(f"cell_policies: found {gpus} GPUs; expected 1 or more.")
    level = min(int(np.ceil(np.log2(gpus))), LEVELS - 1)
    whole = tuple(int(-(-gpus // 8)) if g == level == LEVELS - 1 else int(g == level) for g in range(LEVELS))
    exact = []
    for c3 in range(gpus // 8 + 1 if gpus <= MOST else 0):
        for c2 in range((gpus - 8 * c3) // 4 + 1):
            for c1 in range((gpus - 8 * c3 - 4 * c2) // 2 + 1):
                exact.append((gpus - 8 * c3 - 4 * c2 - 2 * c1, c1, c2, c3))
    return (whole, *(c for c in exact if c != whole))


def cells_of(free: np.ndarray) -> np.ndarray:
    """Free cells of each level that nodes with so many free GPUs hold, the largest first.

    Parameters
    ----------
    free : (N,) int array
        Free GPUs of each node, wherever they lie in it.

    Examples
    --------
    >>> cells_of([8, 6, 3]).tolist()
    [1, 2, 1, 1]
    """
    left = np.asarray(free, np.int64)
    found = np.zeros(LEVELS, np.int64)
    for g in reversed(range(LEVELS)):
        found[g] = (left // SIZES[g]).sum()
        left = left % SIZES[g]
    return found


def cells_suffice(need: np.ndarray, cells: np.ndarray) -> bool:
    """Whether free cells, split where they are too large, hold all cells needed (equation 5.14).

    Parameters
    ----------
    need, cells : (4,) int arrays
        Cells needed and free, of each level.

    Examples
    --------
    >>> cells_suffice([2, 0, 1, 0], [0, 1, 1, 0]), cells_suffice([0, 0, 2, 0], [8, 0, 1, 0])
    (True, False)
    """
    spare = SIZES * (np.asarray(cells) - np.asarray(need))
    return bool((np.cumsum(spare[::-1]) >= 0).all())


def carve(need: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Split free cells, largest first, so that those needed are among them (the proof of proposition 1).

    Parameters
    ----------
    need, cells : (4,) int arrays

    Returns
    -------
    (4,) int array
        Cells of each level that are left.

    Raises
    ------
    SolverError
        They do not suffice.

    Examples
    --------
    >>> carve([1, 0, 0, 0], [0, 0, 0, 1]).tolist()
    [1, 1, 1, 0]
    """
    left = np.array(cells, np.int64)
    need = np.asarray(need, np.int64)
    for g in reversed(range(LEVELS)):
        while left[g] < need[g]:
            above = np.flatnonzero(left[g + 1 :])
            if not len(above):
                raise SolverError(f"carve: found cells {list(cells)} for {list(need)}; expected enough of each level.")
            h = g + 1 + above[0]  # the smallest that is larger
            left[h] -= 1
            left[g:h] += 1
            left[g] += 1
        left[g] -= need[g]
    return left
