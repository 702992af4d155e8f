"""A program as arrays, and what a solver says of it."""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from gpuschedlab.errors import SolverError


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
        Bounds of the rows; -inf and inf where there is none.
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
        A = sp.csc_array(self.A)
        A.sum_duplicates()
        m, n = A.shape
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

    def value(self, x) -> float:
        """Objective at x."""
        return float(self.c @ np.asarray(x, float))

    def violation(self, x) -> float:
        """Largest amount by which x breaks a bound, a row, or wholeness; 0 where it breaks none.

        Parameters
        ----------
        x : (n,) float array
        """
        x = np.asarray(x, float)
        rows = self.A @ x
        parts = [rows - self.row_upper, self.row_lower - rows, x - self.upper, self.lower - x]
        parts.append(np.abs(x - np.round(x))[self.integrality])
        return float(max(max(p.max(initial=0.0) for p in parts), 0.0))

    def __repr__(self):
        (m, n), verb = self.A.shape, "maximize" if self.maximize else "minimize"
        rows = f"{m} row{'' if m == 1 else 's'}"
        return f"{self.name}: {verb} {n} variables ({self.integrality.sum()} whole), {rows}, {self.A.nnz} nonzeros"


def _vector(program: Program, key: str, size: int, dtype) -> np.ndarray:
    """Field as an array of its length; a scalar is repeated."""
    value = np.asarray(getattr(program, key), dtype)
    if value.ndim == 0:
        value = np.full(size, value)
    if value.shape != (size,):
        raise SolverError(f"{program.name}.{key}: found shape {value.shape}; expected ({size},), as A says.")
    if dtype is float and np.isnan(value).any():
        raise SolverError(f"{program.name}.{key}: found nan at {np.flatnonzero(np.isnan(value))[0]}; expected numbers.")
    return np.ascontiguousarray(value)


@dataclass(frozen=True, eq=False)
class Solution:
    """What a solver found.

    Parameters
    ----------
    x : (n,) float array
        Best point found; whole variables are rounded.
    status : str
        ``optimal`` (within the gap asked for), ``time limit`` or ``stopped`` (best found so far).
    objective, bound : float
        Value of x, and the best value that any point could have.
    seconds : float
        Wall time of building and solving.
    solver : str
        Who found it, and how.
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

    @property
    def gap(self) -> float:
        """Proven distance from the optimum, relative to the larger of |objective| and |bound|."""
        return relative_gap(self.objective, self.bound)

    @property
    def table(self) -> np.ndarray:
        """`x` in the program's own layout (`Program.shape`)."""
        return self.x if self.shape is None else self.x.reshape(self.shape)

    def summary(self) -> dict:
        """Status, objective, bound, gap, seconds and solver."""
        keys = ("status", "objective", "bound", "gap", "seconds", "solver")
        return {key: getattr(self, key) for key in keys}

    def _repr_html_(self):
        return "<table>" + "".join(f"<tr><th>{k}</th><td>{v}</td></tr>" for k, v in self.summary().items()) + "</table>"


def relative_gap(objective: float, bound: float) -> float:
    """|bound - objective| relative to the larger of the two; 0 where they agree, inf without a bound."""
    if not np.isfinite(bound):
        return float("inf")
    top = max(abs(objective), abs(bound))
    return abs(bound - objective) / top if top > 0 else 0.0


def solve(
    program: Program, solver: str = "highs", *, time_limit: float | None = None, gap: float = 1e-4, warm=None, **options
):
    """Solve a program with the solver named, and no other.

    Parameters
    ----------
    program : Program
    solver : str
        ``highs``: arrays straight into highspy. ``mip``: python-mip, variable by variable (readable; CBC or HiGHS).
    time_limit : float, optional
        Seconds; when they are over, the best point found is returned, with status ``time limit``.
    gap : float
        Relative distance between objective and bound at which an integer program counts as solved.
    warm : Solution or (n,) float array, optional
        A point to start from.
    **options
        ``highs``: `method` ("choose", "simplex", "ipm", "pdlp"), `crossover` (bool), `threads`, and any option of
        HiGHS by its name. ``mip``: `engine` ("cbc" or "highs"), `threads`.

    Returns
    -------
    Solution

    Raises
    ------
    SolverError
        Infeasible or unbounded, no point found in time, or an unknown solver or option.
    MissingExtra
        The solver's package is not installed.
    """
    from gpuschedlab.optim.highs import solve_highs
    from gpuschedlab.optim.pymip import solve_pymip

    solvers = {"highs": solve_highs, "mip": solve_pymip}
    if solver not in solvers:
        raise SolverError(f"solve: found solver {solver!r}; expected one of {', '.join(solvers)}.")
    x = getattr(warm, "x", warm)
    if x is not None and np.shape(x) != program.c.shape:
        raise SolverError(f"solve: found a warm start of shape {np.shape(x)}; expected {program.c.shape}.")
    return solvers[solver](program, time_limit, gap, x, **options)
