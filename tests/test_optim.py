"""Programs and their solvers against enumeration, scipy, and each other."""

import itertools

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuschedlab.errors import Infeasible, OutOfTime, SolverError
from gpuschedlab.optim import Program, pymip, relative_gap, solve

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
@given(st.integers(0, 10_000))
def test_linear_programs_equal_scipy(seed):
    p = random_program(seed, whole=False)
    sign = -1 if p.maximize else 1
    A = p.A.toarray()
    reference = scipy.optimize.linprog(
        sign * p.c, np.vstack([A, -A]), np.concatenate([p.row_upper, -p.row_lower]), bounds=(0, 2)
    )
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
    cost, upper = np.where(whole, 0.0, 1.0), np.where(whole, 1.0, np.inf)
    return Program(cost, rows, row_lower=b, row_upper=b, upper=upper, integrality=whole)


@pytest.mark.parametrize(("solver", "options"), SOLVERS[:2])
def test_a_time_limit_returns_the_best_found_and_says_so(solver, options):
    p = hard_program()
    answer = solve(p, solver, time_limit=0.5, gap=0, **options)
    assert answer.status == "time limit"
    assert p.violation(answer.x) < 1e-4
    assert answer.bound < answer.objective
    assert 0 < answer.gap <= 1 + 1e-9


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
    ("ended", "limit", "error"), [("NO_SOLUTION_FOUND", 0.1, OutOfTime), ("INFEASIBLE", None, Infeasible)]
)
def test_python_mip_says_why_it_has_no_point(ended, limit, error):
    mip = pytest.importorskip("mip")
    with pytest.raises(error):
        pymip._status(mip, mip.OptimizationStatus[ended], Program([1.0], [[1.0]]), 0, limit)
