"""The multiple-choice knapsack: a program in its compact form, from which its rows are made where a solver wants them."""

from functools import cached_property

import numpy as np
import scipy.sparse as sp

from gpuschedlab._knob import check_kind, check_number, numbers_of
from gpuschedlab.errors import SolverError
from gpuschedlab.optim.programs.program import Program


class MultipleChoice(Program):
    """Choose at most one configuration a job, for the largest sum of utilities within the GPUs of each type.

    maximise sum u_ij x_ij subject to sum_j x_ij <= 1 for each job i, sum gpus_j x_ij <= capacity_t for each type t, x
    binary. Rows and columns are made when they are asked for: n rows for jobs, then T for types; variables are laid
    out (n, C).

    Parameters
    ----------
    utility : (n, C) float array
        Of each job in each configuration, against none at 0; nan if impossible.
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
        quantum=0.0,
        name="Multiple choice",
        mandatory=None,
        keys=None,
    ):
        check_kind(name, str, SolverError, "MultipleChoice.name", "a text")
        check_number(quantum, SolverError, f"{name}: quantum", "a number, 0 or more")
        utility = np.ascontiguousarray(
            numbers_of(utility, SolverError, f"{name}: utility", "an (n, C) array of numbers")
        )
        arrays = {"type_of_config": type_of_config, "gpus_of_config": gpus_of_config, "capacity": capacity}
        kinds, gpus, room = (
            numbers_of(values, SolverError, f"{name}: {word}", "an array of whole numbers")
            for word, values in arrays.items()
        )
        _check(name, utility, kinds, gpus, room)
        kinds, gpus, room = (np.ascontiguousarray(a, np.int64) for a in (kinds, gpus, room))
        must = np.zeros(len(utility), bool)
        if mandatory is not None:
            must = numbers_of(mandatory, SolverError, f"{name}: mandatory", "true or false for each job") != 0
        if keys is not None:
            keys = _whole_keys(name, keys)
        for what, each in (("mandatory", must), ("keys", keys)):
            if each is not None and each.shape != (len(utility),):
                raise SolverError(f"{name}: found {what} {each.shape}; expected ({len(utility)},), one for each job.")
        # Frozen, as every program.
        vars(self).update(utility=utility, kinds=kinds, gpus=gpus, capacity=room, mandatory=must, keys=keys)
        vars(self).update(quantum=float(quantum), name=name, shape=utility.shape)

    @classmethod
    def of(cls, program: Program, x0=None, instead: str = "") -> "MultipleChoice":
        """Return the compact form, a `MultipleChoice`, of a program that is laid out as this class lays it out.

        Raises
        ------
        SolverError
            It is no such program; or there is a point to start from, where the solver has something `instead`.
        """
        if x0 is not None:
            raise SolverError(f"{program.name}: found a warm start; {instead}.")
        if not isinstance(program, cls) and (program := _read(plain_program := program)) is None:
            raise SolverError(
                f"{plain_program.name}: found no multiple-choice knapsack; 'prices' solves those only, as "
                "MultipleChoice lays them out. Use solver 'highs' or 'mip'."
            )
        return program

    def _parts(self) -> tuple:
        return self.utility, self.kinds, self.gpus, self.capacity, self.quantum, self.mandatory

    @cached_property
    def c(self) -> np.ndarray:
        """Array (n C,) of utilities, 0 if impossible."""
        return np.nan_to_num(self.utility).ravel()

    @cached_property
    def A(self) -> sp.csc_array:
        """Sparse matrix (n + T, n C), a `csc_array`: rows of jobs, then of types."""
        job_count, config_count = self.shape
        columns_of_job = (self.kinds, self.gpus)
        column_types, gpus = (np.tile(config_array, job_count) for config_array in columns_of_job)
        return cell_rows(
            np.repeat(np.arange(job_count), config_count),
            job_count + column_types,
            gpus,
            job_count + len(self.capacity),
        )

    @cached_property
    def row_lower(self) -> np.ndarray:
        """Array (n + T,): one configuration for each mandatory job, otherwise none."""
        return np.concatenate([np.where(self.mandatory, 1.0, -np.inf), np.full(len(self.capacity), -np.inf)])

    @cached_property
    def row_upper(self) -> np.ndarray:
        """Array (n + T,): one configuration a job, then the GPUs of each type."""
        return np.concatenate([np.ones(self.shape[0]), self.capacity])

    @cached_property
    def lower(self) -> np.ndarray:
        """Array (n C,) of zeros."""
        return np.zeros(self.utility.size)

    @cached_property
    def upper(self) -> np.ndarray:
        """Array (n C,): 1, or 0 if impossible."""
        return (~np.isnan(self.utility)).ravel().astype(float)

    @cached_property
    def integrality(self) -> np.ndarray:
        """Array (n C,) of bools: all whole."""
        return np.ones(self.utility.size, bool)


def _whole_keys(name: str, keys) -> np.ndarray:
    """Return the keys of the jobs, an array (jobs,) of whole numbers."""
    expected = "a whole number for each job"
    numbers = numbers_of(keys, SolverError, f"{name}: keys", expected)
    if not (np.abs(numbers) < 2.0**63).all() or not (numbers == np.floor(numbers)).all():
        raise SolverError(f"{name}: keys: found {keys!r}; expected {expected}.")
    return np.asarray(keys).astype(np.int64)


def cell_rows(job, kind, gpus, rows: int) -> sp.csc_array:
    """Return a sparse matrix (rows, k), a `csc_array`, of the coefficients of k cells.

    Each cell counts once in the row of its job, and as its GPUs in that of their type.
    """
    matrix_rows = np.empty((len(job), 2), np.int32)
    coefficients = np.ones((len(job), 2))
    matrix_rows[:, 0] = job
    matrix_rows[:, 1] = kind
    coefficients[:, 1] = gpus
    starts = np.arange(0, matrix_rows.size + 1, 2, dtype=np.int32)
    return sp.csc_array((coefficients.ravel(), matrix_rows.ravel(), starts), shape=(rows, len(job)))


def _check(name, utility, kinds, gpus, room):
    if utility.ndim != 2 or kinds.shape != (utility.shape[1],) or gpus.shape != kinds.shape or room.ndim != 1:
        raise SolverError(
            f"{name}: found utility {utility.shape}, type_of_config {kinds.shape}, gpus_of_config {gpus.shape}, capacity {room.shape}; "
            "expected (n, C), (C,), (C,), (T,)."
        )
    is_type = (kinds >= 0) & (kinds < room.size) & (kinds == np.floor(kinds))
    if not is_type.all():
        raise SolverError(
            f"{name}: type_of_config: found type {kinds[~is_type][0]:g}; expected 0 to {room.size - 1}, as capacity says."
        )
    counts = np.concatenate([gpus - 1, room]).astype(float)
    if not (np.isfinite(counts) & (counts >= 0) & (counts == np.floor(counts))).all():
        raise SolverError(
            f"{name}: found GPUs that are not whole or below 1; expected whole numbers in gpus_of_config and capacity. "
            "Count in a smaller unit."
        )
    if np.isinf(utility).any():
        raise SolverError(f"{name}: found an infinite utility; expected numbers, or nan where impossible.")


def _read(program: Program) -> MultipleChoice | None:
    """Return the `MultipleChoice` that a program's arrays spell out; None if they spell something else."""
    shape = program.shape or ()
    program_rows = program.A.shape[0]
    if len(shape) != 2 or not 0 < shape[0] < program_rows or not shape[1]:
        return None
    job_count, config_count = shape
    use = program.A[job_count:, :config_count].toarray()  # what the first job's configurations take
    possible = program.upper > 0
    utility = np.where(possible, program.c, np.nan).reshape(shape)
    try:
        knapsack_parts = (use.argmax(axis=0), use.max(axis=0), program.row_upper[job_count:], 0.0, program.name)
        knapsack = MultipleChoice(utility, *knapsack_parts, mandatory=program.row_lower[:job_count] == 1)
    except SolverError:
        return None
    sides = (program.row_lower[:job_count], program.row_lower[job_count:], program.row_upper[:job_count])
    same = program.maximize and program.integrality.all() and not program.lower.any()
    same &= (program.upper[possible] >= 1).all() and ((sides[0] <= 0) | (sides[0] == 1)).all()
    same &= (sides[1] <= 0).all() and (sides[2] == 1).all() and (knapsack.A != program.A).nnz == 0
    return knapsack if same else None
