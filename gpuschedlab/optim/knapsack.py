"""The multiple-choice knapsack: a program in its compact form, from which its rows are made where a solver wants them."""

from functools import cached_property

import numpy as np
import scipy.sparse as sp

from gpuschedlab.errors import SolverError
from gpuschedlab.optim.program import Program


class MultipleChoice(Program):
    """Choose at most one configuration a job, for the largest sum of utilities within the GPUs of each type.

    maximise sum u_ij x_ij subject to sum_j x_ij <= 1 for each job i, sum gpus_j x_ij <= capacity_t for each type t, x
    binary. Rows and columns are made when they are asked for: n rows for jobs, then T for types; variables are laid
    out (n, C).

    Parameters
    ----------
    utility : (n, C) float array
        Of each job in each configuration, against none at 0; nan where impossible.
    type_of_config : (C,) int array
        GPU type, 0 to T - 1.
    gpus_of_config : (C,) int array
        GPUs, at least 1.
    capacity : (T,) int array
        GPUs of each type.
    quantum : float
        All utilities are multiples of it (0: of nothing), which lets a gap below it count as closed.
    name : str
        What the program is, for messages.
    mandatory : (n,) bool array, optional
        Jobs that must get a configuration: sum_j x_ij = 1, whatever it is worth.
    keys : (n,) int array, optional
        What each job is known by from round to round, for solvers that start from the last one; no part of the program.

    Raises
    ------
    SolverError
        Arrays that do not fit together, utilities that are infinite, or GPUs that are not whole.

    Examples
    --------
    >>> program = MultipleChoice([[3.0, 5.0], [2.0, 4.5]], [0, 0], [1, 2], [3])
    >>> program
    Multiple choice: maximize 4 variables (4 whole), 3 rows, 8 nonzeros
    >>> program.A.toarray().tolist()
    [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 2.0, 1.0, 2.0]]
    """

    maximize = True

    def __init__(
        self,
        utility,
        type_of_config,
        gpus_of_config,
        capacity,
        quantum: float = 0.0,
        name: str = "Multiple choice",
        mandatory=None,
        keys=None,
    ):
        utility = np.ascontiguousarray(utility, float)
        kinds, gpus, room = (np.asarray(a) for a in (type_of_config, gpus_of_config, capacity))
        _check(name, utility, kinds, gpus, room)
        kinds, gpus, room = (np.ascontiguousarray(a, np.int64) for a in (kinds, gpus, room))
        must = np.zeros(len(utility), bool) if mandatory is None else np.asarray(mandatory, bool)
        if must.shape != (len(utility),):
            raise SolverError(f"{name}: found mandatory {must.shape}; expected ({len(utility)},), a flag for each job.")
        vars(self).update(utility=utility, kinds=kinds, gpus=gpus, capacity=room)  # frozen, as every program
        vars(self).update(mandatory=must)
        if keys is not None and np.shape(keys) != (len(utility),):
            raise SolverError(f"{name}: found keys {np.shape(keys)}; expected ({len(utility)},), one for each job.")
        vars(self).update(keys=None if keys is None else np.asarray(keys, np.int64))
        vars(self).update(quantum=float(quantum), name=name, shape=utility.shape)

    @classmethod
    def of(cls, program: Program) -> "MultipleChoice":
        """The compact form of a program that is laid out as this class lays it out.

        Raises
        ------
        SolverError
            It is no such program.
        """
        if isinstance(program, cls):
            return program
        found = _read(program)
        if found is None:
            raise SolverError(
                f"{program.name}: found no multiple-choice knapsack; 'prices' solves those only, as sia_round and "
                "MultipleChoice lay them out. Use solver 'highs' or 'mip'."
            )
        return found

    def _parts(self) -> tuple:
        return self.utility, self.kinds, self.gpus, self.capacity, self.quantum, self.mandatory

    @cached_property
    def c(self) -> np.ndarray:
        """(n C,) utilities, 0 where impossible."""
        return np.nan_to_num(self.utility).ravel()

    @cached_property
    def A(self) -> sp.csc_array:
        """(n + T, n C) rows of jobs, then of types."""
        (n, C), T = self.shape, len(self.capacity)
        data, rows = np.ones((n, C, 2)), np.empty((n, C, 2), np.int32)
        data[:, :, 1] = self.gpus
        rows[:, :, 0], rows[:, :, 1] = np.arange(n)[:, None], n + self.kinds
        starts = np.arange(0, 2 * n * C + 1, 2, dtype=np.int32)
        return sp.csc_array((data.ravel(), rows.ravel(), starts), shape=(n + T, n * C))

    @cached_property
    def row_lower(self) -> np.ndarray:
        """(n + T,) one configuration for each mandatory job, otherwise none."""
        return np.concatenate([np.where(self.mandatory, 1.0, -np.inf), np.full(len(self.capacity), -np.inf)])

    @cached_property
    def row_upper(self) -> np.ndarray:
        """(n + T,) one configuration a job, then the GPUs of each type."""
        return np.concatenate([np.ones(self.shape[0]), self.capacity])

    @cached_property
    def lower(self) -> np.ndarray:
        """(n C,) zeros."""
        return np.zeros(self.utility.size)

    @cached_property
    def upper(self) -> np.ndarray:
        """(n C,) 1, or 0 where impossible."""
        return (~np.isnan(self.utility)).ravel().astype(float)

    @cached_property
    def integrality(self) -> np.ndarray:
        """(n C,) all whole."""
        return np.ones(self.utility.size, bool)


def _check(name, utility, kinds, gpus, room):
    if utility.ndim != 2 or kinds.shape != (utility.shape[1],) or gpus.shape != kinds.shape or room.ndim != 1:
        raise SolverError(
            f"{name}: found utility {utility.shape}, types {kinds.shape}, GPUs {gpus.shape}, capacity {room.shape}; "
            "expected (n, C), (C,), (C,), (T,)."
        )
    if kinds.size and not 0 <= kinds.min() <= kinds.max() < room.size:
        raise SolverError(f"{name}: found type {kinds.max()}; expected 0 to {room.size - 1}, as capacity says.")
    if not _whole(gpus).all() or (gpus < 1).any() or not _whole(room).all() or (room < 0).any():
        raise SolverError(f"{name}: found GPUs that are not whole or below 1; count in a smaller unit.")
    if np.isinf(utility).any():
        raise SolverError(f"{name}: found an infinite utility; expected numbers, or nan where impossible.")


def _whole(a: np.ndarray) -> np.ndarray:
    return np.isfinite(a) & (a == np.floor(a))


def _read(program: Program) -> MultipleChoice | None:
    """The knapsack that a program's arrays spell out; None where they spell something else."""
    shape, rows = program.shape or (), program.A.shape[0]
    if len(shape) != 2 or not 0 < shape[0] < rows or not shape[1]:
        return None
    n, C = shape
    use = program.A[n:, :C].toarray()  # what the first job's configurations take
    possible = program.upper > 0
    utility = np.where(possible, program.c, np.nan).reshape(shape)
    try:
        found = MultipleChoice(
            utility,
            use.argmax(axis=0),
            use.max(axis=0),
            program.row_upper[n:],
            name=program.name,
            mandatory=program.row_lower[:n] == 1,
        )
    except SolverError:
        return None
    same = (
        program.maximize
        and program.integrality.all()
        and not program.lower.any()
        and (program.upper[possible] >= 1).all()
        and ((program.row_lower <= 0) | (program.row_lower == 1))[:n].all()
        and (program.row_lower[n:] <= 0).all()
        and (program.row_upper[:n] == 1).all()
        and (found.A != program.A).nnz == 0
    )
    return found if same else None
