"""HiGHS: the arrays of a program straight into highspy."""

import time

import numpy as np

from gpuschedlab._extras import need
from gpuschedlab.errors import Infeasible, OutOfTime, SolverError
from gpuschedlab.optim.program import Program, Solution, cost_factor, no_variables

METHODS = ("choose", "simplex", "ipm", "pdlp")


class Highs:
    """HiGHS with its options; the handle is kept from solve to solve, and the basis of linear programs by simplex.

    By other methods, and for integer programs, an answer does not depend on what was solved before.

    Parameters
    ----------
    time_limit : float, optional
        Seconds of each solve.
    gap : float
        Relative gap at which an integer program counts as solved.
    method : str, optional
        How linear programs are solved; by default ``ipm``, three times faster than the others on scheduling programs.
    crossover : bool
        Whether the interior point is moved to a vertex. Without (and without presolve), ties are shared among the tied.
    threads : int
        Threads; 1 keeps runs equal to the byte.
    **options
        Any option of HiGHS by its name.

    Raises
    ------
    SolverError
        An unknown method.

    Examples
    --------
    >>> Highs(method="simplex").solve(Program([1.0], [[1.0]], row_upper=2.0, maximize=True)).objective
    2.0
    """

    def __init__(
        self,
        time_limit: float | None = None,
        gap: float = 1e-4,
        *,
        method: str | None = None,
        crossover: bool = True,
        threads: int = 1,
        **options,
    ):
        if method is not None and method not in METHODS:
            raise SolverError(f"highs: found method {method!r}; expected one of {', '.join(METHODS)}.")
        settings = {"output_flag": False, "mip_rel_gap": gap, "parallel": "on" if threads > 1 else "off"}
        settings |= {"run_crossover": "on" if crossover else "off", "random_seed": 0}
        settings |= {"threads": threads} if threads > 1 else {}
        settings |= {"time_limit": time_limit} if time_limit is not None else {}
        self.method, self.crossover, self.time_limit, self.settings = method, crossover, time_limit, settings | options
        self._handle = None
        self._basis: tuple[np.ndarray, np.ndarray] | None = None

    def __getstate__(self):
        return vars(self) | {"_handle": None}  # it cannot be copied, and is made again

    def solve(self, program: Program, x0: np.ndarray | None = None) -> Solution:
        """Solve a program, from a point if there is one.

        Raises
        ------
        SolverError, MissingExtra
            As in `gpuschedlab.optim.solve`.
        """
        highspy = need("highspy", "solver='highs' and policies that use it")
        if not len(program.c):
            return no_variables(program, "highs")
        start = time.perf_counter()
        whole = bool(program.integrality.any())
        method = self.method or ("choose" if whole else "ipm")
        h = self._prepared(highspy, method, whole)
        if "mip_abs_gap" in self.settings:
            _set(highspy, h, "mip_abs_gap", self.settings["mip_abs_gap"] * cost_factor(program))
        _pass(highspy, h, program, method)
        if x0 is not None:
            h.setSolution(len(x0), np.arange(len(x0), dtype=np.int32), np.asarray(x0, float))
        keeps = method == "simplex" and not whole
        if keeps and self._basis is not None and tuple(map(len, self._basis)) == program.A.shape[::-1]:
            _set_basis(highspy, h, *self._basis)
        h.run()
        answer = _answer(highspy, h, program, method, self.time_limit, start)
        self._basis = _get_basis(h) if keeps else None
        return answer

    def _prepared(self, highspy, method: str, whole: bool):
        """The handle, with its options set."""
        if self._handle is None:
            self._handle = highspy.Highs()
            for key, value in self.settings.items():
                _set(highspy, self._handle, key, value)
        h = self._handle
        _set(highspy, h, "solver", self.settings.get("solver", method))
        _set(highspy, h, "presolve", self.settings.get("presolve", "choose" if self.crossover or whole else "off"))
        return h


def _set(highspy, h, key: str, value):
    if h.setOptionValue(key, value) == highspy.HighsStatus.kError:
        raise SolverError(f"highs: found option {key}={value!r}; expected a name and value that HiGHS knows.")


def _get_basis(h) -> tuple[np.ndarray, np.ndarray] | None:
    basis = h.getBasis()
    columns, rows = (np.array([int(s) for s in part], np.int8) for part in (basis.col_status, basis.row_status))
    return (columns, rows) if basis.valid else None


def _set_basis(highspy, h, columns: np.ndarray, rows: np.ndarray):
    basis = highspy.HighsBasis()
    basis.col_status = [highspy.HighsBasisStatus(int(s)) for s in columns]
    basis.row_status = [highspy.HighsBasisStatus(int(s)) for s in rows]
    h.setBasis(basis)


def _answer(highspy, h, program: Program, method: str, time_limit: float | None, start: float) -> Solution:
    """What HiGHS found; no point at all is an error."""
    whole = bool(program.integrality.any())
    status = _status(highspy, h, program)
    info, found = h.getInfo(), h.getSolution()
    x = np.array(found.col_value) + 0.0  # no negative zeros
    if not np.isfinite(program.value(x)) or info.primal_solution_status != 2:
        kind = OutOfTime if status == "time limit" else SolverError
        raise kind(f"{program.name}: HiGHS found no point ({status}); give more than time_limit={time_limit}.")
    x[program.integrality] = np.round(x[program.integrality]) + 0.0
    objective = program.value(x)
    proved = objective if status == "optimal" else np.inf * (1 if program.maximize else -1)
    factor = _factor(program, method)
    bound = info.mip_dual_bound / factor if whole else proved
    duals = None if whole else np.array(found.row_dual) / factor
    seconds = time.perf_counter() - start
    return Solution(x, status, objective, float(bound), seconds, f"highs {method}", duals, program.shape)


def _factor(program: Program, method: str) -> float:
    """What costs are multiplied by; below 0 for pdlp, which does not know the optimum of what it maximises."""
    return cost_factor(program) * (-1.0 if method == "pdlp" and program.maximize else 1.0)


def _pass(highspy, h, program: Program, method: str):
    A, (m, n) = program.A, program.A.shape
    factor = _factor(program, method)
    sense = highspy.ObjSense.kMaximize if program.maximize and factor > 0 else highspy.ObjSense.kMinimize
    kinds = program.integrality.astype(np.int32)
    status = h.passModel(
        n, m, A.nnz, int(highspy.MatrixFormat.kColwise), int(sense), 0.0,
        program.c * factor, program.lower, program.upper, program.row_lower, program.row_upper,
        A.indptr.astype(np.int32), A.indices.astype(np.int32), A.data.astype(float), kinds,
    )  # fmt: skip
    if status == highspy.HighsStatus.kError:
        raise SolverError(
            f"{program.name}: HiGHS refused the arrays; expected finite numbers and bounds that do not cross."
        )


def _status(highspy, h, program: Program) -> str:
    """Word for how HiGHS ended; infeasible and unbounded are errors."""
    S = highspy.HighsModelStatus
    status = h.getModelStatus()
    if status == S.kUnboundedOrInfeasible:
        status = _which(highspy, h, len(program.c))
    if status in (S.kInfeasible, S.kUnbounded, S.kUnboundedOrInfeasible):
        word = {S.kInfeasible: "infeasible", S.kUnbounded: "unbounded"}.get(status, "unbounded or infeasible")
        kind = SolverError if status == S.kUnbounded else Infeasible
        raise kind(f"{program.name}: {word}; no point satisfies all rows and bounds with a finite best value.")
    if status in (S.kOptimal, S.kModelEmpty):
        return "optimal"
    stopped = (S.kTimeLimit, S.kIterationLimit, S.kSolutionLimit, S.kInterrupt, S.kHighsInterrupt, S.kObjectiveTarget)
    if status in (*stopped, S.kObjectiveBound, S.kUnknown, S.kMemoryLimit):
        return "time limit" if status == S.kTimeLimit else "stopped"
    raise SolverError(
        f"{program.name}: HiGHS ended with {h.modelStatusToString(status)!r}; expected a solution or a proof of none."
    )


def _which(highspy, h, n: int):
    """Status of a program of which presolve knows only that it has no best point: unbounded, where it has any."""
    S = highspy.HighsModelStatus
    h.changeColsCost(n, np.arange(n, dtype=np.int32), np.zeros(n))
    _set(highspy, h, "solver", "choose")
    h.run()
    status = h.getModelStatus()
    return {S.kOptimal: S.kUnbounded, S.kInfeasible: S.kInfeasible}.get(status, S.kUnboundedOrInfeasible)
