"""HiGHS: the arrays of a program straight into highspy."""

import time

import numpy as np

from gpuschedlab._extras import need
from gpuschedlab.errors import SolverError
from gpuschedlab.optim.program import Program, Solution

METHODS = ("choose", "simplex", "ipm", "pdlp")


def solve_highs(
    program: Program,
    time_limit: float | None = None,
    gap: float = 1e-4,
    x0: np.ndarray | None = None,
    *,
    method: str | None = None,
    crossover: bool = True,
    threads: int = 1,
    **options,
) -> Solution:
    """Solve with HiGHS.

    Parameters
    ----------
    program, time_limit, gap, x0
        As in `solve`.
    method : str, optional
        How linear programs are solved; by default ``ipm``, three times faster than the others on scheduling programs.
    crossover : bool
        Whether the interior point is moved to a vertex. Without (and without presolve), ties are shared among the tied.
    threads : int
        Threads; 1 keeps runs equal to the byte.
    **options
        Any option of HiGHS by its name.

    Returns
    -------
    Solution

    Raises
    ------
    SolverError, MissingExtra
        As in `solve`.
    """
    highspy = need("highspy", "solver='highs' and policies that use it")
    start = time.perf_counter()
    whole = bool(program.integrality.any())
    method = method or ("choose" if whole else "ipm")
    if method not in METHODS:
        raise SolverError(f"highs: found method {method!r}; expected one of {', '.join(METHODS)}.")
    h = highspy.Highs()
    settings = {"output_flag": False, "mip_rel_gap": gap, "solver": method, "parallel": "on" if threads > 1 else "off"}
    settings |= {"run_crossover": "on" if crossover else "off", "random_seed": 0}
    settings |= {} if crossover or whole else {"presolve": "off"}
    settings |= {"threads": threads} if threads > 1 else {}
    settings |= {"time_limit": time_limit} if time_limit is not None else {}
    for key, value in (settings | options).items():
        if h.setOptionValue(key, value) == highspy.HighsStatus.kError:
            raise SolverError(f"highs: found option {key}={value!r}; expected a name and value that HiGHS knows.")
    _pass(highspy, h, program)
    if x0 is not None:
        h.setSolution(len(x0), np.arange(len(x0), dtype=np.int32), np.asarray(x0, float))
    h.run()
    status = _status(highspy, h, program)
    info, found = h.getInfo(), h.getSolution()
    x = np.array(found.col_value) + 0.0  # no negative zeros
    if not np.isfinite(program.value(x)) or info.primal_solution_status != 2:
        raise SolverError(f"{program.name}: HiGHS found no point ({status}); give more than time_limit={time_limit}.")
    x[program.integrality] = np.round(x[program.integrality]) + 0.0
    objective = program.value(x)
    bound = (
        info.mip_dual_bound
        if whole
        else (objective if status == "optimal" else np.inf * (1 if program.maximize else -1))
    )
    duals = None if whole else np.array(found.row_dual)
    seconds = time.perf_counter() - start
    return Solution(x, status, objective, float(bound), seconds, f"highs {method}", duals, program.shape)


def _pass(highspy, h, program: Program):
    A, (m, n) = program.A, program.A.shape
    sense = highspy.ObjSense.kMaximize if program.maximize else highspy.ObjSense.kMinimize
    kinds = program.integrality.astype(np.int32)
    status = h.passModel(
        n, m, A.nnz, int(highspy.MatrixFormat.kColwise), int(sense), 0.0,
        program.c, program.lower, program.upper, program.row_lower, program.row_upper,
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
    if status in (S.kInfeasible, S.kUnbounded, S.kUnboundedOrInfeasible):
        word = {S.kInfeasible: "infeasible", S.kUnbounded: "unbounded"}.get(status, "unbounded or infeasible")
        raise SolverError(f"{program.name}: {word}; no point satisfies all rows and bounds with a finite best value.")
    if status in (S.kOptimal, S.kModelEmpty):
        return "optimal"
    stopped = (S.kTimeLimit, S.kIterationLimit, S.kSolutionLimit, S.kInterrupt, S.kHighsInterrupt, S.kObjectiveTarget)
    if status in (*stopped, S.kObjectiveBound, S.kUnknown, S.kMemoryLimit):
        return "time limit" if status == S.kTimeLimit else "stopped"
    raise SolverError(
        f"{program.name}: HiGHS ended with {h.modelStatusToString(status)!r}; expected a solution or a proof of none."
    )
