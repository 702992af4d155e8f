"""HiGHS: the arrays of a program straight into highspy."""

import time

import numpy as np

from gpuschedlab._extras import need
from gpuschedlab.errors import OutOfTime, SolverError
from gpuschedlab.optim.programs.program import Program, Solution, cost_factor, no_variables, unsolvable
from gpuschedlab.optim.programs.work_limits import Limits, steps

METHODS = ("choose", "simplex", "ipm", "pdlp")

CLOSED = 1e-9
"""Absolute gap at which an integer program counts as solved, in units of its largest cost; HiGHS' own 1e-6 has no unit."""

LINEAR = {"simplex": "simplex_iteration_limit", "ipm": "ipm_iteration_limit", "pdlp": "pdlp_iteration_limit"}
WHOLE = {"highs": "mip_max_nodes"}
MOST = 2**31 - 1
"""Options of HiGHS that count work, by its unit (`work.RATES`), and their largest value: no limit."""


class Highs(Limits):
    """HiGHS with its options; the handle is kept from solve to solve, and the `basis` of linear programs by simplex."""

    # By other methods, and for integer programs, an answer does not depend on what was solved before.

    word = "highs"

    def __init__(self, time_limit=None, gap=1e-4, *, work=None, method=None, crossover=True, threads=1, **options):
        if method is not None and method not in METHODS:
            raise SolverError(f"highs: found method {method!r}; expected one of {', '.join(METHODS)}.")
        settings = {"output_flag": False, "mip_rel_gap": gap, "parallel": "on" if threads > 1 else "off"}
        settings |= {"run_crossover": "on" if crossover else "off", "random_seed": 0}
        settings |= {"threads": threads} if threads > 1 else {}
        super().__init__(time_limit, gap, work)
        self.method = method
        self.crossover = crossover
        self.settings = settings | options
        self._handle = None
        self._basis = None
        self._newer = False

    def __getstate__(self):
        return vars(self) | {"_basis": self.basis, "_newer": False, "_handle": None}  # it is made again

    @property
    def basis(self) -> tuple[np.ndarray, np.ndarray] | None:
        """HiGHS' status of each column and row of the last linear program by simplex, a pair of int arrays; None if unknown.

        A program with so many columns and rows begins from it.
        """
        if self._newer:
            found = self._handle.getBasis()
            parts = (np.array([*map(int, part)]) for part in (found.col_status, found.row_status))
            self._basis = tuple(parts) if found.valid else None
            self._newer = False
        return self._basis

    @basis.setter
    def basis(self, parts):
        self._basis = parts
        self._newer = False

    def solve(self, program: Program, x0: np.ndarray | None = None) -> Solution:
        """Return the `Solution` of a program, from a point if there is one."""
        highspy = need("highspy", "solver='highs' and policies that use it")
        if not len(program.c):
            return no_variables(program, "highs")
        wall_start = time.perf_counter()
        method = self.method or ("choose" if program.whole else "ipm")
        highs = self._prepared(highspy, method, program)
        # pdlp does not know the optimum of what it maximises.
        factor = cost_factor(program) * (-1.0 if method == "pdlp" and program.maximize else 1.0)
        keeps = method == "simplex" and not program.whole
        last_basis = self.basis if keeps else None
        _pass(highspy, highs, program, factor)
        if last_basis is not None and tuple(map(len, last_basis)) == program.A.shape[::-1]:
            basis = highspy.HighsBasis()
            basis_status = [highspy.HighsBasisStatus(status_number) for status_number in range(5)]
            basis.col_status, basis.row_status = (
                [basis_status[status_number] for status_number in status_part.tolist()] for status_part in last_basis
            )
            highs.setBasis(basis)
        if x0 is not None:
            highs.setSolution(len(x0), np.arange(len(x0), dtype=np.int32), np.asarray(x0, float))
        highs.run()
        further_methods = [("ipm", "on"), ("simplex", "on")][:: 1 if method == "simplex" else -1]
        for further_method, presolve in (*further_methods, ("simplex", "off")):  # its postsolve may lose a point
            if _failed(highspy, highs):
                method = further_method
                _set(highspy, highs, solver=method, presolve=presolve)
                highs.clearSolver()
                highs.run()
        answer = self._answer(highspy, highs, program, f"highs {method}", factor, wall_start)
        self._basis = None
        self._newer = keeps
        return answer

    def solve_again(self, program: Program, stays: np.ndarray, added: int) -> Solution:
        """Return the `Solution` of a linear program that differs from the one solved last in its columns, from its basis.

        `stays`: which of the old columns (bool) it has; `added` new ones come behind them.
        """
        wall_start = time.perf_counter()
        highs = self._handle
        highspy = need("highspy", "solver='highs'")
        new_columns = slice(-added, None)
        A = program.A[:, -added:]
        gone = np.flatnonzero(~stays).astype(np.int32)
        highs.deleteCols(len(gone), gone)
        entries = (A.nnz, A.indptr[:-1].astype(np.int32), A.indices, A.data)
        costs = program.c * cost_factor(program)
        highs.addCols(added, costs[new_columns], program.lower[new_columns], program.upper[new_columns], *entries)
        highs.run()
        return self._answer(highspy, highs, program, "highs simplex", cost_factor(program), wall_start)

    def _prepared(self, highspy, method: str, program: Program):
        """Return HiGHS' handle, a `highspy.Highs`, with its options set."""
        if self._handle is None:
            self._handle = highspy.Highs()
            _set(highspy, self._handle, **self.settings)
        highs = self._handle
        if self.time_limit is not None:  # its clock counts all that the handle has solved
            _set(highspy, highs, time_limit=highs.getRunTime() + self.time_limit)
        usual = {"solver": method, "presolve": "choose" if self.crossover or program.whole else "off"}
        largest_cost = float(np.abs(program.c).max())
        gap = self.settings.get("mip_abs_gap", CLOSED * largest_cost)
        _set(highspy, highs, **(usual | self.settings | {"mip_abs_gap": gap * cost_factor(program)}))
        if self.work is not None:
            for step, limit_option in (LINEAR | WHOLE).items():
                step_limit = steps(self.work, step, program.A.nnz) if (step in WHOLE) == program.whole else MOST
                _set(highspy, highs, **{limit_option: int(min(step_limit, MOST))})
        return highs

    def _answer(self, highspy, highs, program: Program, solver: str, factor: float, wall_start: float) -> Solution:
        """Return HiGHS' answer as a `Solution`; raise if there is no point at all."""
        status = _status(highspy, highs, program)
        highs_info = highs.getInfo()
        highs_point = highs.getSolution()
        point = np.array(highs_point.col_value) + 0.0  # no negative zeros
        if not np.isfinite(program.value(point)) or highs_info.primal_solution_status != 2:
            message = f"{program.name}: HiGHS found no point ({status}); give more than work={self.work}, "
            message += f"time_limit={self.time_limit}."
            limited = self.work is not None or self.time_limit is not None
            raise OutOfTime(message, status) if limited else SolverError(message)
        point[program.integrality] = np.round(point[program.integrality]) + 0.0
        objective = program.value(point)
        proved = objective if status == "optimal" else np.inf * (1 if program.maximize else -1)
        bound = highs_info.mip_dual_bound / factor if program.whole else proved
        duals = None if program.whole else np.array(highs_point.row_dual) / factor
        return Solution(
            point, status, objective, float(bound), time.perf_counter() - wall_start, solver, duals, program.shape
        )


def _failed(highspy, highs) -> bool:
    """Whether a method gave up without a point, as they do on some infeasible programs that another one settles."""
    S = highspy.HighsModelStatus
    status = highs.getModelStatus()
    return status == S.kSolveError or (status == S.kUnknown and highs.getInfo().primal_solution_status != 2)


def _set(highspy, highs, **options):
    for option, option_value in options.items():
        if highs.setOptionValue(option, option_value) == highspy.HighsStatus.kError:
            raise SolverError(
                f"highs: found option {option}={option_value!r}; expected a name and value that HiGHS knows."
            )


def _pass(highspy, highs, program: Program, factor: float):
    """Give HiGHS the arrays, costs times a factor; those of what is maximised are minimised where it is below 0."""
    A = program.A
    row_count, column_count = program.A.shape
    sense = highspy.ObjSense.kMaximize if program.maximize and factor > 0 else highspy.ObjSense.kMinimize
    variable_kinds = program.integrality.astype(np.int32)
    status = highs.passModel(
        column_count, row_count, A.nnz, int(highspy.MatrixFormat.kColwise), int(sense), 0.0,
        program.c * factor, program.lower, program.upper, program.row_lower, program.row_upper,
        A.indptr.astype(np.int32), A.indices.astype(np.int32), A.data.astype(float), variable_kinds,
    )  # fmt: skip
    if status == highspy.HighsStatus.kError:
        raise SolverError(
            f"{program.name}: HiGHS refused the arrays; expected finite numbers and bounds that do not cross."
        )


def _status(highspy, highs, program: Program) -> str:
    """Word for how HiGHS ended; infeasible and unbounded are errors."""
    S = highspy.HighsModelStatus
    status = highs.getModelStatus()
    if status == S.kUnboundedOrInfeasible:  # all that presolve knows: it is unbounded where it has any point
        column_count = len(program.c)
        highs.changeColsCost(column_count, np.arange(column_count, dtype=np.int32), np.zeros(column_count))
        _set(highspy, highs, solver="choose")
        highs.run()
        status = {S.kOptimal: S.kUnbounded, S.kInfeasible: S.kInfeasible}.get(highs.getModelStatus(), status)
    if status in (S.kInfeasible, S.kUnbounded, S.kUnboundedOrInfeasible):
        failure_word = {S.kInfeasible: "infeasible", S.kUnbounded: "unbounded"}.get(status, "unbounded or infeasible")
        raise unsolvable(program, failure_word)
    if status in (S.kOptimal, S.kModelEmpty, S.kTimeLimit):
        return "time limit" if status == S.kTimeLimit else "optimal"
    if status not in (S.kModelError, S.kPresolveError, S.kSolveError, S.kPostsolveError, S.kLoadError, S.kNotset):
        return "stopped"
    raise SolverError(
        f"{program.name}: HiGHS ended with {highs.modelStatusToString(status)!r}; expected a solution or a proof of none."
    )
