"""UniSched's program of leases (Gao, PhD thesis, NTU 2025, equations 5.4 to 5.14): which jobs meet which deadline, and when they run."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from gpuschedlab.errors import SolverError
from gpuschedlab.optim import Program


class LeaseJobs(NamedTuple):
    """What the program knows of n jobs with up to F deadlines; a best-effort job needs one lease and wants the first.

    Parameters
    ----------
    gpus : (n,) float array
        GPUs that each holds while it has a lease.
    need : (n, P) int array
        Leases that it needs under each placement, 0 where it has no such placement.
    due : (n, F) int array
        Leases until each deadline, never falling; 0 where there is none.
    value : (n, F) float array
        Reward if it is done by then.
    """

    gpus: np.ndarray
    need: np.ndarray
    due: np.ndarray
    value: np.ndarray

    @classmethod
    def of(cls, gpus, need, due, value) -> "LeaseJobs":
        """Arrays of the right shape: lists, and one column for several.

        Raises
        ------
        SolverError
            They do not fit together, or a job has fewer than 0 leases, GPUs or rewards.
        """
        gpus, value = np.asarray(gpus, float), np.asarray(value, float)
        need, due = np.asarray(need, np.int64), np.asarray(due, np.int64)
        need, due, value = (a[:, None] if a.ndim == 1 else a for a in (need, due, value))
        if not len(gpus) == len(need) == len(due) or due.shape != value.shape:
            raise SolverError(
                f"leases: found gpus {gpus.shape}, need {need.shape}, due {due.shape}, value {value.shape}; expected "
                "(n,), (n, P), (n, F), (n, F)."
            )
        if any((a < 0).any() for a in (gpus, need, due, value)):
            raise SolverError("leases: found a number below 0 in gpus, need, due or value; expected 0 or more.")
        return cls(gpus, need, due, value)


def growing_blocks(horizon: int, single: int = 6) -> np.ndarray:
    """Lengths of blocks of leases that cover a horizon: the first ones single, each later one twice as long.

    Parameters
    ----------
    horizon : int
        Leases to be covered, from 1 up.
    single : int
        Blocks of one lease, from 1 up.

    Examples
    --------
    >>> growing_blocks(20).tolist()
    [1, 1, 1, 1, 1, 1, 2, 4, 8]
    """
    lengths = [1] * min(single, horizon)
    while sum(lengths) < horizon:
        lengths.append(min(2 * lengths[-1], horizon - sum(lengths)))
    return np.array(lengths)


def lease_program(
    jobs: LeaseJobs,
    capacity: float,
    *,
    blocks: np.ndarray | None = None,
    cells: np.ndarray | None = None,
    free: np.ndarray | None = None,
    conserve: float = 0.0,
) -> Program:
    r"""Largest sum of rewards of jobs that get the leases which they need before a deadline.

    .. math:: \max \sum_{ifp} V_{if} s_{ifp} + w \sum_i \frac{g_i}{M} x_{i0}

    subject to :math:`\sum_{fp} s_{ifp} \le 1`; :math:`\sum_{k < Q_{if}} x_{ik} \ge \sum_p L_{ip} s_{ifp}` for each deadline;
    :math:`\sum_k x_{ik} \le \sum_{fp} L_{ip} s_{ifp}`; :math:`\sum_i g_i x_{ik} \le M` for each lease; and where cells are
    given, with z the placement used in the first lease: :math:`\sum_p z_{ip} = x_{i0}`,
    :math:`z_{ip} \le \sum_f s_{ifp}`, and the cells needed do not exceed those that are free, on each level and above (5.14).

    Parameters
    ----------
    jobs : LeaseJobs
    capacity : float
        GPUs (M).
    blocks : (B,) int array, optional
        Leases of each block, the first 1; default: single leases up to the last deadline. x then counts the leases of
        a block. With longer blocks the program is a relaxation: its optimum is an upper bound.
    cells : (n, P, 4) int array, optional
        Cells of each level that a placement takes.
    free : (4,) int array, optional
        Cells that are free.
    conserve : float
        Reward w of a cluster that is fully used in the first lease.

    Returns
    -------
    Program
        Variables: s, one per job, deadline and placement in that order where it is possible (`lease_choices`); x (n, B)
        row by row; z (n, P) where cells are given.

    References
    ----------
    Gao, PhD thesis, NTU 2025, section 5.3.3.4. As printed, (5.7) and (5.12) contradict each other where a placement slows
    a job down, and no row bounds a lease's GPUs; the form here follows the author's later code (TitanSched).

    Examples
    --------
    >>> from gpuschedlab.optim import solve
    >>> jobs = LeaseJobs.of(gpus=[1, 1, 1], need=[1, 2, 1], due=[2, 2, 1], value=[100, 100, 1])
    >>> solve(lease_program(jobs, capacity=2)).objective  # two leases of two GPUs: the last job has room, too
    201.0
    """
    n, P = jobs.need.shape
    blocks = np.ones(max(int(jobs.due.max(initial=0)), 1), int) if blocks is None else np.asarray(blocks)
    if blocks[0] != 1:
        raise SolverError(f"leases: found a first block of {blocks[0]} leases; expected 1, which is what runs now.")
    B, start = len(blocks), np.cumsum(blocks) - blocks
    job, step, place = lease_choices(jobs)
    m, need = len(job), jobs.need[job, place]
    rows = _Rows()
    x = m + np.arange(n)[:, None] * B + np.arange(B)
    rows.add(job, np.arange(m), np.ones(m), n, upper=1.0)
    owner, f = np.nonzero(jobs.due > 0)
    number = np.full(jobs.due.shape, -1)
    number[owner, f] = np.arange(len(owner))
    within, block = np.nonzero(start[None, :] < jobs.due[owner, f][:, None])
    rows.add(
        np.concatenate([number[job, step], within]),
        np.concatenate([np.arange(m), x[owner[within], block]]),
        np.concatenate([-need.astype(float), np.ones(len(within))]),
        len(owner),
        lower=0.0,
    )
    rows.add(
        np.concatenate([job, np.repeat(np.arange(n), B)]),
        np.concatenate([np.arange(m), x.ravel()]),
        np.concatenate([need.astype(float), -np.ones(n * B)]),
        n,
        lower=0.0,
    )
    rows.add(np.tile(np.arange(B), n), x.ravel(), np.repeat(jobs.gpus, B), B, upper=capacity * blocks)
    last = jobs.due.max(axis=1, initial=0)
    most = np.clip(last[:, None] - start, 0, blocks)
    c = np.concatenate([jobs.value[job, step], np.zeros(n * B)])
    c[x[:, 0]] = conserve * jobs.gpus / max(capacity, 1)
    upper = np.concatenate([np.ones(m), most.ravel()])
    if cells is not None:
        _cell_rows(rows, job, place, x[:, 0], np.asarray(cells), np.asarray(free, float), m + n * B)
        c, upper = np.append(c, np.zeros(n * P)), np.append(upper, (jobs.need > 0).ravel())
    A, low, high = rows.stacked(len(c))
    return Program(c, A, low, high, upper=upper, integrality=True, maximize=True, name="leases")


def lease_choices(jobs: LeaseJobs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Jobs, deadlines and placements (m,) of the variables s: those in which the leases needed fit before the deadline.

    Examples
    --------
    >>> [a.tolist() for a in lease_choices(LeaseJobs.of([1], [[2, 3]], [[2, 4]], [[9, 5]]))]
    [[0, 0, 0], [0, 1, 1], [0, 0, 1]]
    """
    need = jobs.need[:, None, :]
    return np.nonzero((need > 0) & (need <= jobs.due[:, :, None]))


def _cell_rows(rows: "_Rows", job, place, first, cells, free, at: int):
    """Rows of the placements used in the first lease; their variables z begin at `at`."""
    n, P, levels = cells.shape
    z = at + np.arange(n * P).reshape(n, P)
    owner = np.repeat(np.arange(n), P)
    rows.add(
        np.concatenate([owner, np.arange(n)]),
        np.concatenate([z.ravel(), first]),
        np.concatenate([np.ones(n * P), -np.ones(n)]),
        n,
        lower=0.0,
        upper=0.0,
    )
    rows.add(
        np.concatenate([np.arange(n * P), job * P + place]),
        np.concatenate([z.ravel(), np.arange(len(job))]),
        np.concatenate([np.ones(n * P), -np.ones(len(job))]),
        n * P,
        upper=0.0,
    )
    size = 2 ** np.arange(levels)
    above = np.cumsum((cells * size)[:, :, ::-1], axis=2)[:, :, ::-1]  # GPUs in cells of a level or more
    level = np.tile(np.arange(levels), n * P)
    have = np.cumsum((free * size)[::-1])[::-1]
    rows.add(level, np.repeat(z.ravel(), levels), above.ravel().astype(float), levels, upper=have)


class _Rows:
    """Rows of a program, group by group."""

    def __init__(self):
        self.parts, self.low, self.high, self.count = [], [], [], 0

    def add(self, row, column, value, count: int, lower=-np.inf, upper=np.inf):
        self.parts.append((np.asarray(row) + self.count, column, value))
        self.low.append(np.broadcast_to(lower, count))
        self.high.append(np.broadcast_to(upper, count))
        self.count += count

    def stacked(self, columns: int):
        row, column, value = (np.concatenate(p) for p in zip(*self.parts, strict=True))
        A = sp.csc_array((value.astype(float), (row, column)), shape=(self.count, columns))
        return A, np.concatenate(self.low), np.concatenate(self.high)
