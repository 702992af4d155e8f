"""python-mip: a program variable by variable and row by row, for CBC or HiGHS."""

import contextlib
import ctypes
import os
import pickle
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from gpuschedlab._extras import need
from gpuschedlab.errors import Infeasible, LabError, OutOfTime, SolverError
from gpuschedlab.optim.programs.program import Program, Solution, cost_factor, directions, no_variables, unsolvable
from gpuschedlab.optim.programs.work_limits import Limits, steps

MOST = 2**31 - 1
"""Nodes without a limit."""

LARGEST = 1e15
"""Of coefficients, as for HiGHS: doubles have no more digits."""

FAR = 1e9
"""Values of a variable without a bound at which an optimum is doubted: CBC stops somewhere and says optimal."""


@dataclass(eq=False)
class Pymip(Limits):
    """python-mip with its options."""

    word = "mip"
    engine: str = "cbc"  # ``cbc`` or ``highs``
    threads: int = 1
    # whether CBC solves in a process of its own, which it ends for some programs: a SolverError then, and this process
    # lives. The process starts once (about a second), and is kept
    isolate: bool = False

    def __post_init__(self):
        if self.engine not in ("cbc", "highs"):
            raise SolverError(f"mip: found engine {self.engine!r}; expected cbc or highs.")
        if self.isolate and self.engine != "cbc":
            raise SolverError(f"mip: found isolate with engine {self.engine!r}; expected cbc, which needs it.")

    def solve(self, program: Program, x0: np.ndarray | None = None) -> Solution:
        """Return the `Solution` of a program; a point to start from concerns integer programs only."""
        if self.isolate:
            return solved_apart(replace(self, isolate=False), program, x0, "CBC")
        mip = need("mip", "solver='mip' and policies that use it")
        if not len(program.c):
            return no_variables(program, f"mip {self.engine}")
        wall_start = time.perf_counter()
        factor = cost_factor(program)
        rows_with_entries = _rows(program)
        mip_model, variables = _model(mip, program, rows_with_entries, self.engine, factor)
        mip_model.verbose = 0
        mip_model.threads = self.threads
        mip_model.max_mip_gap = self.gap
        mip_model.seed = 0
        mip_model.max_mip_gap_abs = 0.0  # or CBC stops at 1e-10 whatever the scale
        if self.work is not None:
            mip_model.max_nodes = int(min(steps(self.work, self.engine, program.A.nnz), MOST))
        if x0 is not None and program.whole:
            mip_model.start = [
                (variable, float(start_value)) for variable, start_value in zip(variables, x0, strict=True)
            ]
        with _quiet():
            ended = mip_model.optimize(max_seconds=self.time_limit if self.time_limit is not None else np.inf)
        point = np.array([variable.x if mip_model.num_solutions else np.nan for variable in variables], float)
        ended = self._checked(mip, ended, program, point)
        late = self.time_limit is not None and (
            self.work is None or time.perf_counter() - wall_start >= self.time_limit
        )
        status = _status(mip, ended, program, mip_model.num_solutions, "time limit" if late else "stopped")
        point[program.integrality] = np.round(point[program.integrality]) + 0.0
        objective = program.value(point)
        bound = objective if status == "optimal" and not program.whole else float(mip_model.objective_bound) / factor
        duals = None
        if not program.whole and status == "optimal" and len(mip_model.constrs) == len(rows_with_entries):
            duals = np.zeros(program.A.shape[0])  # a row without entries has no price
            duals[rows_with_entries] = (
                np.array(
                    [np.nan if constraint.pi is None else constraint.pi for constraint in mip_model.constrs], float
                )
                / factor
            )
        seconds = time.perf_counter() - wall_start
        return Solution(point, status, objective, bound, seconds, f"mip {self.engine}", duals, program.shape)

    def _checked(self, mip, ended, program: Program, point: np.ndarray):
        """Return the `OptimizationStatus` of a solve, checked: engines mistake one reason for no best point for another."""
        S = mip.OptimizationStatus
        far = (np.isinf(program.upper) & (point > FAR)) | (np.isinf(program.lower) & (point < -FAR))
        none = ended in (S.INFEASIBLE, S.INT_INFEASIBLE, S.UNBOUNDED)
        if (
            not none and far.any()
        ):  # does the objective grow without end along a direction that no row and no bound ends?
            growth = replace(self, gap=Limits.gap).solve(directions(program)).objective
            none = abs(growth) > 1e-6 * np.abs(program.c).max(initial=0.0)
        if not none or not program.c.any():
            return ended
        bounds_of_program = (program.row_lower, program.row_upper, program.lower, program.upper, program.integrality)
        free = Program(np.zeros(len(program.c)), program.A, *bounds_of_program, name=program.name)
        try:
            replace(self, gap=Limits.gap).solve(free)
        except Infeasible:
            return S.INFEASIBLE
        return S.UNBOUNDED


@contextlib.contextmanager
def _quiet():
    """Context manager: keep the standard output of C libraries shut: CBC writes to it whatever its log level."""
    sys.stdout.flush()
    kept_stdout = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    flush = (lambda: os.name != "nt" and ctypes.CDLL(None).fflush(None),)
    with contextlib.ExitStack() as after:  # each is done, whatever interrupts the one before
        for undo in ((os.close, nowhere), (os.close, kept_stdout), (os.dup2, kept_stdout, 1), flush):
            after.callback(*undo)
        os.dup2(nowhere, 1)
        yield


def _rows(program: Program) -> np.ndarray:
    """Return an array of the rows that have entries.

    CBC ends the whole process for some programs with rows that have none, or coefficients too large.
    """
    if (largest_coefficient := np.abs(program.A.data).max(initial=0.0)) > LARGEST:
        raise SolverError(
            f"{program.name}: found a coefficient of {largest_coefficient:g}; expected {LARGEST:g} at most. Use another unit."
        )
    has_entries = np.zeros(program.A.shape[0], bool)
    has_entries[program.A.indices[program.A.data != 0]] = True
    never = np.flatnonzero(~has_entries & ((program.row_lower > 0) | (program.row_upper < 0)))
    if never.size:
        raise Infeasible(
            f"{program.name}: infeasible; row {never[0]} ({never.size} such) has no entries and does not allow 0."
        )
    return np.flatnonzero(has_entries)


def _model(mip, program: Program, rows_with_entries: np.ndarray, engine: str, factor: float):
    sense = mip.MAXIMIZE if program.maximize else mip.MINIMIZE
    mip_model = mip.Model(sense=sense, solver_name=mip.CBC if engine == "cbc" else mip.HIGHS)
    if engine == "cbc":
        from mip.cbc import cbc_set_parameter

        # Strengthening of cliques ends the whole process for some small programs with free variables (cbcbox 2.935).
        cbc_set_parameter(mip_model.solver, "clqstr", "off")
    variable_kinds = np.where(program.integrality, mip.INTEGER, mip.CONTINUOUS)
    variables = [
        mip_model.add_var(lb=float(low), ub=float(high), obj=float(cost), var_type=str(variable_kind))
        for low, high, cost, variable_kind in zip(
            program.lower, program.upper, program.c * factor, variable_kinds, strict=True
        )
    ]
    A = program.A.tocsr()
    for row, low, high in zip(
        rows_with_entries, program.row_lower[rows_with_entries], program.row_upper[rows_with_entries], strict=True
    ):
        entries = slice(A.indptr[row], A.indptr[row + 1])
        row_sum = mip.xsum(
            float(coefficient) * variables[column]
            for column, coefficient in zip(A.indices[entries], A.data[entries], strict=True)
        )
        if low == high:
            mip_model += row_sum == float(low)
            continue
        if np.isfinite(high):
            mip_model += row_sum <= float(high)
        if np.isfinite(low):
            mip_model += row_sum >= float(low)
    return mip_model, variables


def _status(mip, ended, program: Program, solutions: int, limit: str) -> str:
    """Word for how the engine ended, `limit` if one struck; infeasible, unbounded and empty-handed are errors."""
    S = mip.OptimizationStatus
    if ended == S.OPTIMAL:
        return "optimal"
    if ended in (S.INFEASIBLE, S.INT_INFEASIBLE, S.UNBOUNDED):
        raise unsolvable(program, "unbounded" if ended == S.UNBOUNDED else "infeasible")
    if ended == S.FEASIBLE and solutions:
        return limit
    raise OutOfTime(
        f"{program.name}: python-mip found no point ({limit}: {ended.name}); give it more work or time.", limit
    )


ONE = threading.Lock()
"""Of the child: one program at a time."""


@cache
def _child() -> subprocess.Popen:
    """Return the process (`Popen`) that solves apart.

    It imports nothing of the caller's script, as children of multiprocessing do.
    """
    code = f"import sys; sys.path[:] = {sys.path!r}; from gpuschedlab.optim.solvers.pymip import serve; serve()"
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def solved_apart(worker, program, x0, engine: str):
    """Return the `Solution` of `worker.solve(program, x0)` in a process that is kept from call to call."""
    with ONE:
        child = _child()
        try:
            pickle.dump((worker, program, x0), child.stdin)
            child.stdin.flush()
            answer = pickle.load(child.stdout)
        except BaseException as error:
            child.kill()  # whatever it was: it may be in the middle of an answer
            _child.cache_clear()
            if not isinstance(error, (EOFError, OSError)):
                raise
            message = f"{program.name}: the process of {engine} ended (exit code {child.wait()}); expected an answer."
            raise SolverError(f"{message} Use another solver.") from error
    if isinstance(answer, LabError):
        raise answer
    return answer


def serve() -> None:
    """Solve what comes on the standard input, until it is closed: the child's part."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what else is printed must not be taken for an answer
    with contextlib.suppress(EOFError):
        while True:
            worker, program, x0 = pickle.load(sys.stdin.buffer)
            try:
                answer = worker.solve(program, x0)
            except LabError as error:
                answer = error
            pickle.dump(answer, answers)
            answers.flush()
