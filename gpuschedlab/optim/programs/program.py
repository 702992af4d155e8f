"""A program as arrays, a change of it, and what a solver found."""

from dataclasses import dataclass, field, replace
from html import escape

import numpy as np
import scipy.sparse as sp

from gpuschedlab._knob import check_kind, numbers_of
from gpuschedlab.errors import Infeasible, SolverError


@dataclass(frozen=True, eq=False)
class Program:
    """A linear or mixed-integer program: optimise c'x subject to row_lower <= A x <= row_upper and lower <= x <= upper.

    Parameters
    ----------
    c : (n,) float array
        Cost of each variable.
    A : (m, n) scipy sparse array or dense array
        Coefficients; kept by columns (CSC).
    row_lower, row_upper : (m,) float arrays or floats
        Bounds of the rows; -inf and inf if there is none.
    lower, upper : (n,) float arrays or floats
        Bounds of the variables.
    integrality : (n,) bool array or bool
        Which variables are whole numbers.
    maximize : bool
        Whether the objective is to be made large.
    shape : tuple of int, optional
        How the variables are laid out, for `Solution.table`, such as (jobs, configurations).
    name : str
        What the program is, for messages.

    Raises
    ------
    SolverError
        Arrays that do not fit together, nan anywhere, or bounds that cross.

    Examples
    --------
    >>> knapsack = Program([60.0, 100, 120], [[10.0, 20, 30]], row_upper=50, upper=1, integrality=True, maximize=True)
    >>> knapsack
    Program: maximize 3 variables (3 whole), 1 row, 3 nonzeros
    >>> from gpuschedlab.optim import solve
    >>> solve(knapsack).x.tolist()
    [0.0, 1.0, 1.0]
    """

    c: np.ndarray
    A: sp.csc_array
    row_lower: np.ndarray = -np.inf
    row_upper: np.ndarray = np.inf
    lower: np.ndarray = 0.0
    upper: np.ndarray = np.inf
    integrality: np.ndarray = False
    maximize: bool = False
    shape: tuple[int, ...] | None = None
    name: str = "Program"

    def __post_init__(self):
        check_kind(self.name, str, SolverError, "Program.name", "a text")
        check_kind(self.maximize, bool | np.bool_, SolverError, f"{self.name}.maximize", "True or False")
        A = _matrix(self)
        A.sum_duplicates()
        m, n = A.shape
        _check_layout(self, n)
        put = {"c": _vector(self, "c", n, float), "A": A}
        for key, size in (("row_lower", m), ("row_upper", m), ("lower", n), ("upper", n)):
            put[key] = _vector(self, key, size, float)
        put["integrality"] = _vector(self, "integrality", n, bool)
        for key, value in put.items():
            object.__setattr__(self, key, value)
        if not (np.isfinite(self.c).all() and np.isfinite(A.data).all()):
            raise SolverError(f"{self.name}: found a cost or coefficient that is not finite; expected numbers.")
        for low, high in (("row_lower", "row_upper"), ("lower", "upper")):
            bad = np.flatnonzero(~(put[low] <= put[high]))
            if bad.size:
                raise SolverError(
                    f"{self.name}: found {low}={put[low][bad[0]]} above {high}={put[high][bad[0]]} at {bad[0]} "
                    f"({bad.size} such); expected {low} <= {high}."
                )
            if (put[low] == np.inf).any() or (put[high] == -np.inf).any():
                raise SolverError(f"{self.name}: found {low} inf or {high} -inf; expected numbers, or no bound.")

    def __deepcopy__(self, memo):
        return self  # nothing in it changes

    @property
    def whole(self) -> bool:
        """Whether any variable is a whole number."""
        return bool(self.integrality.any())

    def equals(self, other: "Program") -> bool:
        """Whether another program is the same, bit by bit."""
        return self is other or (type(self) is type(other) and _alike(self._parts(), other._parts()))

    def _parts(self) -> tuple:
        """Return a tuple of all that makes it the program that it is."""
        bounds = (self.row_lower, self.row_upper, self.lower, self.upper)
        A = (self.A.indptr, self.A.indices, self.A.data)
        return (self.maximize, self.shape, self.c, *bounds, self.integrality, *A)

    def value(self, x) -> float:
        """Return the objective at x, a number."""
        return float((self.c * np.asarray(x, float)).sum())  # in one thread, always in the same order

    def violation(self, x) -> float:
        """Largest amount by which x (n,) breaks a bound, a row, or wholeness; 0 if it breaks none."""
        x = np.asarray(x, float)
        row_activity = self.A @ x
        violations = [row_activity - self.row_upper, self.row_lower - row_activity, x - self.upper, self.lower - x]
        violations.append(np.abs(x - np.round(x))[self.integrality])
        return float(max(max(violation.max(initial=0.0) for violation in violations), 0.0))

    def write(self, path) -> None:
        """Write it: ``.npz`` (equal to the bit), ``.mps`` or ``.mps.gz`` (by HiGHS: 15 digits, and neither name nor shape)."""
        from gpuschedlab.optim.programs.archives import write_program

        write_program(self, path)

    @classmethod
    def read(cls, path) -> "Program":
        """Read a `Program` from such a file; raise SolverError if it holds none."""
        from gpuschedlab.optim.programs.archives import read_program

        return read_program(path, Program)

    def __repr__(self):
        row_count, variable_count = self.A.shape
        verb = "maximize" if self.maximize else "minimize"
        rows_in_words = f"{row_count} row{'' if row_count == 1 else 's'}"
        return (
            f"{self.name}: {verb} {variable_count} variables ({self.integrality.sum()} whole), {rows_in_words}, "
            f"{self.A.nnz} nonzeros"
        )


def _matrix(program: Program) -> sp.csc_array:
    """Return the coefficients by columns, a `csc_array` of floats."""
    try:
        matrix = sp.csc_array(program.A).astype(float, copy=False)
    except (TypeError, ValueError):
        matrix = None
    if matrix is None or matrix.ndim != 2:
        raise SolverError(
            f"{program.name}.A: found {program.A!r}; expected an (m, n) array of numbers, dense or sparse."
        )
    return matrix


def _check_layout(program: Program, variables: int):
    """Raise SolverError unless the layout of the variables, if there is one, holds each of them."""
    layout = program.shape
    if layout is None:
        return
    is_shape = isinstance(layout, tuple) and all(isinstance(length, int | np.integer) for length in layout)
    if not is_shape or np.prod(layout, dtype=float) != variables:
        raise SolverError(
            f"{program.name}.shape: found {layout!r}; expected the lengths of {variables} variables' layout, or None."
        )


def _vector(program: Program, key: str, size: int, dtype) -> np.ndarray:
    """Return a field as an array of its length; a scalar is repeated."""
    value = numbers_of(getattr(program, key), SolverError, f"{program.name}.{key}", f"a number, or ({size},) numbers")
    if dtype is bool:
        value = value != 0
    if value.ndim == 0:
        value = np.full(size, value)
    if value.shape != (size,):
        raise SolverError(f"{program.name}.{key}: found shape {value.shape}; expected ({size},), as A says.")
    if dtype is float and np.isnan(value).any():
        first = np.flatnonzero(np.isnan(value))[0]
        raise SolverError(f"{program.name}.{key}: found nan at {first}; expected numbers.")
    return np.ascontiguousarray(value)


def _alike(ours: tuple, theirs: tuple) -> bool:
    """Whether arrays and plain values are the same one by one; nan, too."""
    return all(_same(our_array, their_array) for our_array, their_array in zip(ours, theirs, strict=True))


def _same(ours, theirs) -> bool:
    """Whether two arrays have the same bytes, or two plain values are equal."""
    if isinstance(ours, np.ndarray):
        return ours.shape == theirs.shape and np.array_equal(ours.view(np.uint8), theirs.view(np.uint8))
    return ours == theirs


@dataclass(frozen=True, eq=False)
class Change:
    """What a program has new against the one before: costs (n,) and bounds (m,), (n,); None leaves them as they are.

    Examples
    --------
    >>> from gpuschedlab.optim import solve
    >>> program = Program([1.0, 2.0], [[1.0, 1.0]], row_upper=1.0, maximize=True)
    >>> solve(Change(row_upper=[3.0]).of(program)).objective
    6.0
    """

    c: np.ndarray | None = None
    row_lower: np.ndarray | None = None
    row_upper: np.ndarray | None = None
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None

    def of(self, program: Program) -> Program:
        """Return the `Program` with this change."""
        return replace(
            program,
            **{
                array_name: changed_array
                for array_name, changed_array in vars(self).items()
                if changed_array is not None
            },
        )


@dataclass(frozen=True, eq=False)
class Solution:
    """What a solver found.

    Parameters
    ----------
    x : (n,) float array
        Best point found; whole variables are rounded.
    status : str
        ``optimal`` (within the gap asked for), ``stopped`` (the work allowed was done: best found so far) or ``time limit``
        (the guard in seconds struck: another run may find something else).
    objective, bound : float
        Value of x, and the best value that any point could have.
    seconds : float
        Wall time of building and solving.
    solver : str
        The solver, and how it found the solution.
    duals : (m,) float array, optional
        Price of each row, d objective / d bound (linear programs).
    """

    x: np.ndarray
    status: str
    objective: float
    bound: float
    seconds: float
    solver: str
    duals: np.ndarray | None = None
    shape: tuple[int, ...] | None = field(default=None, repr=False)

    def __deepcopy__(self, memo):
        return self  # nothing in it changes

    @property
    def gap(self) -> float:
        """Proven distance from the optimum, relative to the larger of the absolute values of `objective` and `bound`."""
        return relative_gap(self.objective, self.bound)

    @property
    def table(self) -> np.ndarray:
        """Array of `x` in the program's own layout (`Program.shape`)."""
        return self.x if self.shape is None else self.x.reshape(self.shape)

    def summary(self) -> dict:
        """Return a dict of status, objective, bound, gap, seconds and solver."""
        keys = ("status", "objective", "bound", "gap", "seconds", "solver")
        return {solution_part: getattr(self, solution_part) for solution_part in keys}

    def _repr_html_(self):
        html_rows = [
            f"<tr><th>{solution_part}</th><td>{escape(str(field_value))}</td></tr>"
            for solution_part, field_value in self.summary().items()
        ]
        return f"<table>{''.join(html_rows)}</table>"


def relative_gap(objective: float, bound: float) -> float:
    """Distance of `bound` from `objective`, relative to the larger of their absolute values; 0 if they agree, inf without a bound."""
    if not np.isfinite(bound):
        return float("inf")
    top = max(abs(objective), abs(bound))
    return abs(bound - objective) / top if top > 0 else 0.0


def worst_status(words) -> str:
    """Return the word for the status of a whole by those of its parts: ``time limit`` first, ``optimal`` if all are."""
    return max(words, key=lambda status: (status != "optimal") + (status == "time limit"), default="optimal")


def no_variables(program: Program, solver: str) -> Solution:
    """Return the `Solution` of a program without variables, whose rows are all 0; raise Infeasible if a row does not allow 0."""
    if ((program.row_lower > 0) | (program.row_upper < 0)).any():
        raise Infeasible(f"{program.name}: infeasible; it has no variables, and a row that does not allow 0.")
    duals = np.zeros(len(program.row_upper))
    return Solution(np.empty(0), "optimal", 0.0, 0.0, 0.0, solver, duals, program.shape)


def unsolvable(program: Program, word: str) -> SolverError:
    """Return a `SolverError` for a program without a best point: "unbounded", or else no point is known to be feasible."""
    error_class = SolverError if word == "unbounded" else Infeasible
    return error_class(f"{program.name}: {word}; no point satisfies all rows and bounds with a finite best value.")


def directions(program: Program) -> Program:
    """Return a `Program` of directions, from -1 to 1, in which one may go for good.

    If one improves, a program that has a point is unbounded.
    """

    def sides(low, high, most):
        return np.where(np.isinf(low), -most, 0.0), np.where(np.isinf(high), most, 0.0)

    row_sides = sides(program.row_lower, program.row_upper, np.inf)
    bounds = sides(program.lower, program.upper, 1.0)
    return Program(program.c, program.A, *row_sides, *bounds, maximize=program.maximize, name=program.name)


def cost_factor(program: Program) -> float:
    """Power of two that costs are multiplied by for solvers whose tolerances are absolute: 1 if the largest is 1e-3 to 1e6."""
    largest_cost = float(np.abs(program.c).max(initial=0.0))
    if largest_cost == 0 or 1e-3 <= largest_cost <= 1e6:
        return 1.0
    return float(2.0 ** -np.floor(np.log2(largest_cost)))
