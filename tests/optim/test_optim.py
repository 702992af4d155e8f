"""Programs and their solvers against enumeration, scipy, and each other."""

import itertools
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from present import needs
from strategies import strategy_of

from gpuschedlab.errors import Infeasible, OutOfTime, SolverError
from gpuschedlab.optim import Program, relative_gap, solve
from gpuschedlab.optim.programs.program import worst_status
from gpuschedlab.optim.solvers import highs, pymip
from gpuschedlab.optim.solvers.highs import Highs

SOLVERS = [("highs", {}), ("mip", {"engine": "cbc"}), ("mip", {"engine": "highs"})]


def random_program(seed: int, whole: bool, n: int = 6, m: int = 3) -> Program:
    rng = np.random.default_rng(seed)
    A = rng.integers(-2, 6, (m, n)).astype(float)
    return Program(
        c=rng.integers(-5, 10, n).astype(float),
        A=A,
        row_lower=-4.0,
        row_upper=rng.integers(3, 12, m).astype(float),
        upper=2.0,
        integrality=whole,
        maximize=bool(seed % 2),
    )


def best_by_enumeration(p: Program) -> float:
    points = np.array(list(itertools.product(range(3), repeat=len(p.c))), float)
    rows = points @ p.A.toarray().T
    fits = ((rows <= p.row_upper) & (rows >= p.row_lower)).all(axis=1)
    values = points[fits] @ p.c
    return values.max() if p.maximize else values.min()


@pytest.mark.parametrize(("solver", "options"), SOLVERS)
@pytest.mark.parametrize("seed", range(6))
def test_integer_programs_equal_enumeration(solver, options, seed):
    p = random_program(seed, whole=True)
    answer = solve(p, solver, gap=0, **options)
    assert answer.status == "optimal"
    assert answer.objective == pytest.approx(best_by_enumeration(p))
    assert answer.bound == pytest.approx(answer.objective)
    assert p.violation(answer.x) < 1e-6
    assert (answer.x == np.round(answer.x)).all()


@settings(max_examples=25, deadline=None)
@given(strategy_of(Program))
def test_linear_programs_equal_scipy(drawn):
    p = replace(drawn, integrality=False)
    sign = -1 if p.maximize else 1
    A = p.A.toarray()
    rows = np.vstack([A, -A])
    sides = np.concatenate([p.row_upper, -p.row_lower])
    bounded = np.isfinite(sides)
    box = np.column_stack([p.lower, p.upper])
    reference = scipy.optimize.linprog(sign * p.c, rows[bounded], sides[bounded], bounds=box)
    for method in ("ipm", "simplex"):
        answer = solve(p, "highs", method=method)
        assert answer.objective == pytest.approx(sign * reference.fun, abs=1e-6)
        assert answer.gap == 0


@pytest.mark.parametrize(("solver", "options"), SOLVERS)
@pytest.mark.parametrize("maximize", [False, True])
def test_a_rows_dual_is_what_its_bound_is_worth(solver, options, maximize):
    sign = 1.0 if maximize else -1.0

    def program(bound):
        return Program([3.0 * sign, 2.0 * sign], [[1.0, 1.0], [1.0, 0.0]], row_upper=[bound, 1.0], maximize=maximize)

    answer = solve(program(4.0), solver, **options)
    more = solve(program(5.0), solver, **options)
    assert answer.duals[0] == pytest.approx(more.objective - answer.objective)
    assert answer.duals == pytest.approx([2.0 * sign, 1.0 * sign])


@pytest.mark.parametrize(("solver", "options"), SOLVERS)
@pytest.mark.parametrize("whole", [False, True])
def test_solvers_print_nothing(solver, options, whole, capfd):
    solve(random_program(1, whole=whole), solver, **options)
    print("shown")
    assert capfd.readouterr().out == "shown\n"


def test_without_crossover_tied_variables_share():
    p = Program([1.0, 1.0, 1.0], np.ones((1, 3)), row_upper=1.0, upper=1.0, maximize=True)
    assert solve(p, method="ipm", crossover=False).x == pytest.approx([1 / 3] * 3, abs=1e-3)
    assert sorted(solve(p, method="simplex").x.round(6)) == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(("solver", "options"), SOLVERS)
def test_infeasible_and_unbounded_are_errors(solver, options):
    with pytest.raises(Infeasible, match="infeasible"):
        solve(Program([1.0], [[1.0]], row_lower=2.0, upper=1.0, integrality=True), solver, **options)
    with pytest.raises(SolverError, match="unbounded"):
        solve(Program([1.0], [[0.0]], maximize=True), solver, **options)


def hard_program(n=60, seed=3) -> Program:
    """A market-split program, whose gap no solver closes soon; its slacks make every point feasible."""
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 100, (5, n)).astype(float)
    rows = np.hstack([A, np.eye(5), -np.eye(5)])
    b = A.sum(axis=1) // 2
    whole = np.arange(n + 10) < n
    cost = np.where(whole, 0.0, 1.0)
    upper = np.where(whole, 1.0, np.inf)
    return Program(cost, rows, row_lower=b, row_upper=b, upper=upper, integrality=whole)


@pytest.mark.parametrize(("solver", "options"), SOLVERS[:2])
def test_a_time_limit_returns_the_best_found_and_says_so(solver, options):
    p = hard_program()
    answer = solve(p, solver, time_limit=0.5, gap=0, **options)
    assert answer.status == "time limit"
    assert p.violation(answer.x) < 1e-4
    assert answer.bound < answer.objective
    assert 0 < answer.gap <= 1 + 1e-9


def hurried(monkeypatch, times: float):
    """Let the clock that solvers read run so many times as fast."""
    clock = time.perf_counter
    begin = clock()
    monkeypatch.setattr(time, "perf_counter", lambda: begin + times * (clock() - begin))


COPTER = pytest.param(
    "copter", {"work": 5e-6, "tol": 1e-12}, random_program(3, whole=False, n=60, m=40), marks=needs("copter")
)
LIMITED = [
    *((solver, {"work": 2e-3, **options}, hard_program(40)) for solver, options in SOLVERS),
    ("highs", {"work": 1e-5, "method": "simplex"}, random_program(3, whole=False, n=60, m=40)),
    COPTER,
]
"""Solvers, options with which their work ends before they do, and what they solve."""


@pytest.mark.parametrize(("solver", "options", "program"), LIMITED)
def test_work_is_counted_not_timed(solver, options, program, monkeypatch):
    """The same point, bound and status whatever the clock says: work that ends a search is counted."""

    def answer():
        try:
            found = solve(program, solver, gap=0.0, **options)
        except OutOfTime as error:
            return error.status
        return found.status, found.objective, found.bound, found.x.tolist()

    first = answer()
    assert "stopped" in first
    hurried(monkeypatch, 1e6)
    assert answer() == first


def test_more_work_finds_more():
    p = hard_program(40)
    few, many = (solve(p, work=work, gap=0.0) for work in (1e-9, 0.3))
    assert few.status == many.status == "stopped"
    assert many.objective < few.objective
    assert many.bound >= few.bound


@pytest.mark.parametrize(("solver", "options", "program"), [COPTER])
def test_a_guard_in_seconds_says_that_it_struck(solver, options, program, monkeypatch):
    free = solve(program, solver, time_limit=3600.0, **options)
    assert free.status == "stopped"
    hurried(monkeypatch, 1e9)
    try:
        status = solve(program, solver, time_limit=3600.0, **options).status
    except OutOfTime as error:
        status = error.status
    assert status == "time limit"


def test_a_handle_kept_counts_the_work_of_each_program():
    worker = Highs(work=2e-3, method="simplex")
    small = random_program(1, False)
    whole = random_program(1, True)
    large = random_program(3, False, n=60, m=40)
    assert worker.solve(small).status == worker.solve(whole).status == worker.solve(small).status == "optimal"
    assert Highs(work=20.0, method="simplex").solve(large).objective == pytest.approx(solve(large).objective)


def test_seconds_are_those_of_each_solve():
    """HiGHS' clock runs on from solve to solve of a handle: what it has spent is added to the limit."""
    worker = Highs(3600.0, work=1e-2)
    worker.solve(hard_program(40))
    spent = worker._handle.getRunTime()
    worker.solve(random_program(1, True))
    assert worker._handle.getOptions().time_limit == pytest.approx(3600.0 + spent, abs=1e-6)
    assert spent > 1e-3


def test_the_status_of_a_whole_is_that_of_its_worst_part():
    for words in itertools.permutations(["optimal", "time limit", "stopped"]):
        assert worst_status(words) == "time limit"
    assert worst_status(["optimal", "stopped", "optimal"]) == "stopped"
    assert worst_status([]) == "optimal"


def wild_program(seed: int) -> Program:
    """Rows and columns without entries, bounds that are equal, far or none, a column of large coefficients, any wholeness."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(0, 14))
    n = int(rng.integers(1, 9))
    A = np.where(rng.random((m, n)) < rng.choice([0.0, 0.15, 0.4, 0.8]), rng.integers(-3, 5, (m, n)), 0).astype(float)
    if m and rng.random() < 0.3:
        A[:, rng.integers(n)] *= rng.choice([1e6, 1e-3])
    A[rng.random(m) < rng.choice([0.0, 0.4])] = 0.0
    A[:, rng.random(n) < rng.choice([0.0, 0.4])] = 0.0
    middle = rng.normal(0, 2, m).round(1) if rng.random() < 0.5 else A @ rng.integers(-2, 3, n)
    wide = rng.integers(0, 4, m)
    low, high = (np.where(rng.random(m) < 0.6, middle + side * wide, side * np.inf) for side in (-1, 1))
    lower = np.where(rng.random(n) < 0.25, -np.inf, rng.integers(-3, 2, n).astype(float))
    upper = np.where(rng.random(n) < 0.25, np.inf, np.maximum(lower, -3) + rng.integers(0, 5, n))
    c = rng.normal(0, 1, n).round(2) * (rng.random(n) < 0.8) * rng.choice([1.0, 1e-9, 1e6])
    return Program(c, A, low, high, lower, upper, rng.random(n) < rng.choice([0.0, 0.5, 1.0]), bool(rng.integers(2)))


def ending(program: Program, solver: str, **options) -> str:
    try:
        return solve(program, solver, work=1.0, **options).status
    except Infeasible:
        return "infeasible"
    except SolverError as error:
        return "unbounded" if "unbounded" in str(error) else "nothing"


CHILD = """
import sys
sys.path[:0] = {folders!r}
from test_optim import ending, wild_program
print(*(ending(wild_program(seed), {solver!r}, **{options!r}) for seed in range({count})), sep=",")
"""


@pytest.mark.parametrize(("solver", "options"), SOLVERS[:2])
def test_no_program_ends_the_process(solver, options):
    """Three hundred programs in a process of their own, which must live to print how each ended."""
    code = CHILD.format(
        folders=[str(Path(__file__).parents[i]) for i in (0, 1)], solver=solver, options=options, count=300
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    words = child.stdout.strip().split(",")
    assert len(words) == 300
    assert min(words.count(word) for word in ("optimal", "infeasible", "unbounded")) > 30


@pytest.mark.parametrize(("solver", "options"), SOLVERS)
@pytest.mark.parametrize("whole", [False, True])
def test_rows_without_entries(solver, options, whole):
    """They allow 0 or make the program infeasible; they have no price."""
    rows = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    found = solve(
        Program([1.0, 2.0], rows, [-1.0, -np.inf, 0.0], [np.inf, 3.0, 0.0], integrality=whole, maximize=True),
        solver,
        **options,
    )
    assert found.objective == 6.0
    if not whole:
        assert found.duals.tolist() == [0.0, 2.0, 0.0]
    for low, high in ((1.0, np.inf), (-np.inf, -1.0), (0.5, 0.5)):
        with pytest.raises(Infeasible):
            solve(Program([-1.0], [[0.0]], low, high, upper=1.0, integrality=whole), solver, **options)


@pytest.mark.parametrize(("solver", "options"), SOLVERS)
def test_coefficients_beyond_all_digits_are_refused(solver, options):
    rows = [[0.0], [1e30], [0.0]]
    with pytest.raises(SolverError, match="found a coefficient of 1e\\+30|refused the arrays"):
        solve(Program([1e30], rows, [-1.0, 0.0, -1.0], [1.0, 0.0, 1.0], -1.0, -0.04), solver, **options)


def test_a_row_without_entries_that_must_be_1_is_infeasible():
    with pytest.raises(Infeasible, match="row 0 .* has no entries and does not allow 0"):
        solve(Program([-1.0], [[0.0]], row_lower=1.0), "mip")


class Aborting(pymip.Pymip):
    """A solver that ends the process that it solves in."""

    def solve(self, program, x0=None):
        return super().solve(program, x0) if self.isolate else os.abort()


def test_a_process_of_its_own_solves_as_this_one_does():
    """Points, bounds and errors come through as they are, from one process for all."""
    pytest.importorskip("mip")
    pymip._child()
    child = pymip._child().pid
    for seed in range(40):
        program = wild_program(seed)
        assert ending(program, "mip", isolate=True) == ending(program, "mip"), seed
    there, here = (solve(random_program(1, whole=True), "mip", gap=0, isolate=i) for i in (True, False))
    assert (there.x.tolist(), there.objective, there.bound) == (here.x.tolist(), here.objective, here.bound)
    with pytest.raises(Infeasible, match="row 0"):
        solve(Program([-1.0], [[0.0]], row_lower=1.0), "mip", isolate=True)
    with pytest.raises(OutOfTime) as late:
        solve(hard_program(40), "mip", gap=0.0, time_limit=1e-9, isolate=True)
    assert late.value.status == "time limit"
    assert pymip._child().pid == child


def test_a_process_of_its_own_that_ends_is_an_error_and_the_next_program_has_another():
    pytest.importorskip("mip")
    easy = Program([1.0], [[1.0]], row_upper=2.0, maximize=True, name="easy")
    with pytest.raises(SolverError, match=r"easy: the process of CBC ended \(exit code -?\d+\)"):
        Aborting(isolate=True).solve(easy)
    assert solve(easy, "mip", isolate=True).objective == 2.0
    pymip._child().kill()
    pymip._child().wait()
    with pytest.raises(SolverError, match="the process of CBC ended"):
        solve(easy, "mip", isolate=True)
    assert solve(easy, "mip", isolate=True).objective == 2.0
    with pytest.raises(SolverError, match="found isolate with engine 'highs'; expected cbc"):
        solve(easy, "mip", engine="highs", isolate=True)


def narrow_program(seed: int) -> Program:
    """Equations and ranges over columns of very different units, most of them infeasible."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    m = int(rng.integers(2, 40))
    units = rng.choice([1.0, 1e-3, 1e4], (1, n))
    A = np.where(rng.random((m, n)) < rng.choice([0.1, 0.3, 0.6]), rng.integers(-3, 5, (m, n)) * units, 0.0)
    middle = rng.normal(0, 5, m)
    low = np.where(rng.random(m) < 0.5, middle, -np.inf)
    high = np.where(rng.random(m) < 0.5, middle + rng.integers(0, 2, m), np.inf)
    most = np.where(rng.random(n) < 0.5, rng.integers(1, 4, n), np.inf)
    return Program(rng.normal(0, 1, n), A, low, high, 0.0, most, maximize=bool(seed % 2))


@pytest.mark.parametrize("seed", range(200))
def test_where_a_method_of_highs_fails_another_one_decides(seed):
    """The interior point alone ends some infeasible programs with a solve error; none is left unsettled."""
    alone, plain = (ending(narrow_program(seed), "highs", method="ipm", crossover=c) for c in (False, True))
    assert alone == plain != "nothing", seed


@pytest.mark.data
def test_a_program_that_once_ended_the_process_is_infeasible(data_dir):
    kept = np.load(data_dir / "inputs/trust/cbc_abort_11.npz")
    bounds = (kept["rl"], kept["ru"], kept["lo"], kept["hi"])
    with pytest.raises(Infeasible):
        solve(Program(kept["c"], kept["A"], *bounds, maximize=bool(kept["mx"])), "mip")


@pytest.mark.parametrize(("solver", "options"), SOLVERS)
def test_a_warm_start_does_not_change_the_optimum(solver, options):
    p = random_program(4, whole=True)
    cold = solve(p, solver, gap=0, **options)
    assert solve(p, solver, gap=0, warm=cold, **options).objective == pytest.approx(cold.objective)
    with pytest.raises(SolverError, match="warm start of shape"):
        solve(p, solver, warm=np.zeros(2), **options)


def test_unknown_names_are_errors():
    p = random_program(0, whole=True)
    with pytest.raises(SolverError, match="expected one of highs, mip, prices"):
        solve(p, "glpk")
    with pytest.raises(SolverError, match="found method 'dual'"):
        solve(p, method="dual")
    with pytest.raises(SolverError, match="no_such_option"):
        solve(p, no_such_option=1)
    with pytest.raises(SolverError, match="found engine 'gurobi'"):
        solve(p, "mip", engine="gurobi")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"c": [1.0, np.inf]}, "not finite"),
        ({"c": [1.0, 2.0, 3.0]}, r"expected (2,)"),
        ({"lower": 3.0}, "lower=3.0 above upper=1.0"),
        ({"row_upper": [np.nan]}, "nan"),
        ({"lower": np.inf, "upper": np.inf}, "lower inf or upper -inf"),
        ({"row_lower": -np.inf, "row_upper": -np.inf}, "row_lower inf or row_upper -inf"),
    ],
)
def test_malformed_programs_are_refused(changes, words):
    good = {"c": [1.0, 2.0], "A": [[1.0, 1.0]], "row_upper": 1.0, "upper": 1.0}
    with pytest.raises(SolverError) as error:
        Program(**(good | changes))
    assert words in str(error.value)


def test_solutions_say_what_they_are():
    p = Program([1.0, 2.0], [[1.0, 1.0]], row_upper=1.0, upper=1.0, maximize=True, shape=(2, 1))
    answer = solve(p)
    assert answer.table.tolist() == [[0.0], [1.0]]
    assert answer.summary()["objective"] == pytest.approx(2.0)
    assert "optimal" in answer._repr_html_()
    assert relative_gap(1.0, np.inf) == np.inf
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(9.0, 10.0) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("ended", "limit", "error"), [("NO_SOLUTION_FOUND", "stopped", OutOfTime), ("INFEASIBLE", "stopped", Infeasible)]
)
def test_python_mip_says_why_it_has_no_point(ended, limit, error):
    mip = pytest.importorskip("mip")
    with pytest.raises(error):
        pymip._status(mip, mip.OptimizationStatus[ended], Program([1.0], [[1.0]]), 0, limit)


def test_highs_without_a_point_says_what_would_give_one(monkeypatch):
    """Values are there, but HiGHS says that they are no point of the program."""
    program = hard_program(10)

    class NoPoint:
        primal_solution_status = 1

    worker = Highs(work=1e-9, time_limit=60.0)
    monkeypatch.setattr(highs, "_status", lambda *given: "stopped")
    handle = SimpleNamespace(getInfo=NoPoint, getSolution=lambda: SimpleNamespace(col_value=[0.0] * len(program.c)))
    with pytest.raises(
        OutOfTime, match=r"HiGHS found no point \(stopped\); give more than work=1e-09, time_limit=60.0\.$"
    ):
        worker._answer(None, handle, program, "highs", 1.0, 0.0)
    with pytest.raises(SolverError, match="found no point") as error:
        Highs()._answer(None, handle, program, "highs", 1.0, 0.0)
    assert not isinstance(error.value, OutOfTime)


def test_settings_of_highs_in_its_own_words():
    plain = {"output_flag": False, "mip_rel_gap": 1e-4, "parallel": "off", "run_crossover": "on", "random_seed": 0}
    assert Highs().settings == plain
    other = plain | {"mip_rel_gap": 0.1, "parallel": "on", "run_crossover": "off", "threads": 2, "presolve": "off"}
    assert Highs(gap=0.1, crossover=False, threads=2, presolve="off").settings == other
