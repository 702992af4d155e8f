"""UniSched's program of leases (Gao, PhD thesis, NTU 2025, equations 5.4 to 5.14): which jobs meet which deadline, and when they run."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from gpuschedlab.errors import SolverError
from gpuschedlab.optim import Program


class LeaseJobs(NamedTuple):
    """Data of the program on n jobs with up to F deadlines; a best-effort job needs one lease and wants the first."""

    gpus: np.ndarray  # (n,) GPUs that each holds while it has a lease
    need: np.ndarray  # (n, P) leases that it needs under each placement, 0 where it has no such placement
    due: np.ndarray  # (n, F) leases until each deadline, never falling; 0 where there is none
    value: np.ndarray  # (n, F) reward if it is done by then

    @classmethod
    def of(cls, gpus, need, due, value) -> "LeaseJobs":
        """Return `LeaseJobs`: arrays of the right shape from lists, and one column for several.

        Raise SolverError if they do not fit together.
        """
        gpus = np.asarray(gpus, float)
        value = np.asarray(value, float)
        need = np.asarray(need, np.int64)
        due = np.asarray(due, np.int64)
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
    """Return an array of lengths of blocks of leases that cover a horizon (from 1 up).

    The first ones are single, each later one is twice as long.
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
) -> Program:
    r"""Return the `Program` of the largest sum of rewards of jobs that get the leases which they need before a deadline.

    .. math:: \max \sum_{ifp} V_{if} s_{ifp}

    subject to :math:`\sum_{fp} s_{ifp} \le 1`; :math:`\sum_{k < Q_{if}} x_{ik} \ge \sum_p L_{ip} s_{ifp}` for each deadline;
    :math:`\sum_k x_{ik} \le \sum_{fp} L_{ip} s_{ifp}`; :math:`\sum_i g_i x_{ik} \le M` for each lease; and where cells are
    given, with z the placement used in the first lease: :math:`\sum_p z_{ip} = x_{i0}`,
    :math:`z_{ip} \le \sum_f s_{ifp}`, and the cells needed do not exceed those that are free, on each level and above (5.14).

    `capacity` is M. With `blocks` (B,) of leases, the first of 1 (default: single ones up to the last deadline), x counts the leases of
    a block: the program is a relaxation, and its optimum an upper bound. `cells` (n, P, 4) of each level are the GPUs of a placement,
    `free` (4,) those that are free.

    Variables: s, one per job, deadline and placement in that order if it is possible (`lease_choices`); x (n, B) row by row; z
    (n, P) where cells are given.

    References
    ----------
    Gao, PhD thesis, NTU 2025, section 5.3.3.4. As printed, (5.7) and (5.12) contradict each other where a placement slows
    a job down, and no row bounds a lease's GPUs; the form here follows the author's later code (TitanSched).
    """
    n, P = jobs.need.shape
    if blocks is None:
        last_due = int(jobs.due.max(initial=0))
        blocks = np.ones(max(last_due, 1), int)
    blocks = np.asarray(blocks)
    if blocks[0] != 1:
        raise SolverError(f"leases: found a first block of {blocks[0]} leases; expected 1, which is what runs now.")
    B = len(blocks)
    start = np.cumsum(blocks) - blocks
    job, step, placement = lease_choices(jobs)
    m = len(job)
    need = jobs.need[job, placement]
    owner, f = np.nonzero(jobs.due > 0)
    variable_number = np.full(jobs.due.shape, -1)
    variable_number[owner, f] = np.arange(len(owner))
    within, block = np.nonzero(start[None, :] < jobs.due[owner, f][:, None])
    job_rows = sp.eye_array(n)
    every = np.ones((1, B))
    row_groups = [
        [_entries(1, job, np.arange(m), (n, m)), None],
        [
            _entries(-need, variable_number[job, step], np.arange(m), (len(owner), m)),
            _entries(1, within, owner[within] * B + block, (len(owner), n * B)),
        ],
        [_entries(need, job, np.arange(m), (n, m)), sp.kron(job_rows, -every, "coo")],
        [None, sp.kron(jobs.gpus[None, :], sp.eye_array(B), "coo")],
    ]
    low = np.concatenate([np.full(n, -np.inf), np.zeros(len(owner) + n), np.full(B, -np.inf)])
    high = np.concatenate([np.ones(n), np.full(len(owner) + n, np.inf), capacity * blocks])
    most_leases = np.clip(jobs.due.max(axis=1, initial=0)[:, None] - start, 0, blocks)
    c = np.append(jobs.value[job, step], np.zeros(n * B))
    upper = np.concatenate([np.ones(m), most_leases.ravel()])
    lease_constraints = _Rows(row_groups, low, high)
    if cells is not None:
        lease_constraints = _with_cells(lease_constraints, B, job * P + placement, np.asarray(cells), np.asarray(free))
        c = np.append(c, np.zeros(n * P))
        upper = np.append(upper, (jobs.need > 0).ravel())
    A = sp.block_array(lease_constraints.parts, format="csc")
    return Program(
        c, A, lease_constraints.low, lease_constraints.high, upper=upper, integrality=True, maximize=True, name="leases"
    )


def _entries(value, row, column, shape) -> sp.coo_array:
    return sp.coo_array((np.broadcast_to(np.asarray(value, float), row.shape), (row, column)), shape=shape)


def lease_choices(jobs: LeaseJobs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a tuple of arrays (m,): jobs, deadlines and placements of the variables s.

    They are those in which the leases needed fit before the deadline.
    """
    need = jobs.need[:, None, :]
    return np.nonzero((need > 0) & (need <= jobs.due[:, :, None]))


class _Rows(NamedTuple):
    """Rows of the program, group by group of rows and of variables."""

    parts: list  # groups of rows by groups of variables, None where all coefficients are 0
    low: np.ndarray  # (m,) lower bound of each row
    high: np.ndarray  # (m,) upper bound of each row


def _with_cells(rows: _Rows, blocks: int, placed, cells, free) -> _Rows:
    """Return the `_Rows` with those of the placements used in the first lease, and their variables z.

    `blocks` is the number of variables x of each job, `placed` (m,) the number of job and placement of each variable s.
    """
    n, P, levels = cells.shape
    cell_size = 2 ** np.arange(levels)
    gpus_above = _from_the_end(cells * cell_size)  # GPUs in cells of a level or more
    free_above = _from_the_end(free * cell_size)
    first_variable = np.arange(n)
    in_first_lease = _entries(-1, first_variable, first_variable * blocks, (n, n * blocks))
    one_placement = sp.kron(sp.eye_array(n), np.ones((1, P)))
    chosen = _entries(-1, placed, np.arange(len(placed)), (n * P, len(placed)))
    by_level = gpus_above.reshape(n * P, levels).T
    row_groups = [[*row_group, None] for row_group in rows.parts]
    row_groups.append([None, in_first_lease, one_placement])
    row_groups.append([chosen, None, sp.eye_array(n * P)])
    row_groups.append([None, None, sp.coo_array(by_level.astype(float))])
    low = np.concatenate([rows.low, np.zeros(n), np.full(n * P + levels, -np.inf)])
    high = np.concatenate([rows.high, np.zeros(n + n * P), free_above.astype(float)])
    return _Rows(row_groups, low, high)


def _from_the_end(amounts: np.ndarray) -> np.ndarray:
    """Return an array: sums of amounts from each place of the last axis to its end."""
    return np.cumsum(amounts[..., ::-1], axis=-1)[..., ::-1]
