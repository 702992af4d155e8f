"""Sessions: nothing is solved twice, a change is as good as a rebuild, and a copy goes on as the original."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from gpuschedlab.errors import SolverError
from gpuschedlab.optim import Change, MultipleChoice, Program, Session, solve, solve_mckp


def linear(seed: int, n: int = 8, m: int = 5) -> Program:
    rng = np.random.default_rng(seed)
    return Program(
        c=rng.normal(1, 1, n),
        A=rng.integers(0, 4, (m, n)).astype(float),
        row_upper=rng.integers(4, 20, m).astype(float),
        upper=3.0,
        maximize=True,
    )


def knapsack(seed: int, n: int = 12) -> MultipleChoice:
    rng = np.random.default_rng(seed)
    types = np.repeat([0, 1, 2], 4)
    gpus = np.tile([1, 2, 4, 8], 3)
    utility = (
        rng.uniform(0.5, 2, (n, 1)) * gpus ** rng.uniform(0.2, 0.9, (n, 1)) * rng.uniform(0.5, 1.5, (n, 3))[:, types]
    )
    utility[rng.random(utility.shape) < 0.2] = np.nan
    return MultipleChoice(utility, types, gpus, [8, 6, 9], name="Random round")


def rows_by_kronecker(p: MultipleChoice) -> Program:
    """The same program, put together of blocks."""
    n, C = p.shape
    T = len(p.capacity)
    use = sp.csr_array((p.gpus.astype(float), (p.kinds, np.arange(C))), shape=(T, C))
    jobs = sp.kron(sp.eye_array(n), np.ones((1, C)))
    types = sp.kron(np.ones((1, n)), use)
    return Program(
        c=np.nan_to_num(p.utility).ravel(),
        A=sp.vstack([jobs, types], format="csc"),
        row_upper=np.concatenate([np.ones(n), p.capacity]),
        upper=(~np.isnan(p.utility)).ravel().astype(float),
        integrality=True,
        maximize=True,
        shape=(n, C),
        name="By blocks",
    )


def counted(session: Session) -> list:
    """Programs that the session's solver is given from now on."""
    seen = []
    solver = session._worker.solve
    session._worker.solve = lambda program: (seen.append(program), solver(program))[1]
    return seen


ALL = [("highs", knapsack), ("mip", knapsack), ("prices", knapsack), ("highs", linear), ("mip", linear)]


@pytest.mark.parametrize(("solver", "make"), ALL)
def test_nothing_is_solved_twice(solver, make):
    session = Session(solver)
    seen = counted(session)
    answers = []
    for seed in (0, 0, 1, 1, 0):
        session.update(make(seed))
        answers += [session.solve(), session.solve()]
    assert len(seen) == 3
    assert all(a is b for a, b in zip(answers[::2], answers[1::2], strict=True))
    assert answers[0] is answers[2]
    assert answers[4] is answers[6]
    assert answers[8].objective == pytest.approx(answers[0].objective)
    assert all(a.status == "optimal" and a.seconds > 0 and a.bound >= a.objective - 1e-9 for a in answers)


@pytest.mark.parametrize(
    "field", ["c", "row_upper", "upper", "row_lower", "lower", "maximize", "integrality", "A", "shape"]
)
def test_any_change_is_seen(field):
    p = linear(3)
    new = {"maximize": False, "integrality": True, "A": p.A * 2, "row_lower": -9.0, "lower": 0.1, "shape": (2, 4)}
    changed = replace(p, **{field: new[field] if field in new else getattr(p, field) * 1.5})
    assert p.equals(replace(p))
    assert not p.equals(changed)
    session = Session(method="simplex")
    session.update(p)
    first = session.solve()
    session.update(changed)
    assert session.solve() is not first


@pytest.mark.parametrize("part", range(5))
def test_any_change_of_a_knapsack_is_seen(part):
    p = knapsack(0)
    parts = [p.utility, p.kinds, p.gpus, p.capacity, p.quantum]
    parts[part] = [np.where(p.utility > 1, 3.0, p.utility), p.kinds[::-1], p.gpus * 2, p.capacity + 1, 0.5][part]
    assert p.equals(knapsack(0))
    assert not p.equals(MultipleChoice(*parts))


@pytest.mark.parametrize("options", [{"solver": "highs", "method": "simplex"}, {"solver": "highs"}, {"solver": "mip"}])
def test_changes_equal_a_rebuild(options):
    rng = np.random.default_rng(5)
    p = linear(0)
    session = Session(**options)
    session.update(p)
    for _ in range(40):
        change = [
            Change(c=rng.normal(1, 1, 8)),
            Change(row_upper=rng.integers(2, 20, 5).astype(float)),
            Change(upper=rng.uniform(0.5, 3, 8), lower=np.full(8, 0.1)),
            Change(row_lower=np.full(5, 0.5)),
        ][rng.integers(4)]
        session.update(change)
        p = change.of(p)
        assert session.solve().objective == pytest.approx(solve(p).objective, rel=1e-6)


def test_the_simplex_method_starts_from_the_last_basis():
    rng = np.random.default_rng(2)
    p = linear(1, n=120, m=60)
    session = Session(method="simplex", presolve="off")
    steps = {"warm": 0, "cold": 0}
    for _ in range(6):
        session.update(p)
        session.solve()
        steps["warm"] += session._worker._handle.getInfo().simplex_iteration_count
        cold = Session(method="simplex", presolve="off")
        cold.update(p)
        cold.solve()
        steps["cold"] += cold._worker._handle.getInfo().simplex_iteration_count
        p = replace(p, c=p.c + rng.normal(0, 0.01, 120))
    assert steps["warm"] < 0.5 * steps["cold"]


@pytest.mark.parametrize("method", ["ipm", None])
def test_an_interior_point_does_not_depend_on_what_was_before(method):
    options = {"method": method, "crossover": False} if method else {}
    make = linear if method else knapsack
    session = Session("highs", **options)
    for seed in (0, 1, 2, 1, 0):
        session.update(make(seed))
        assert session.solve().x.tolist() == solve(make(seed), "highs", **options).x.tolist()


@pytest.mark.parametrize(("solver", "make"), ALL)
@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda session: pickle.loads(pickle.dumps(session))])
def test_a_copy_goes_on_as_the_original(solver, make, twin_of):
    options = {"method": "simplex"} if (solver, make) == ("highs", linear) else {}
    session = Session(solver, **options)
    session.update(make(0))
    first = session.solve()
    twin = twin_of(session)
    assert twin.solve().x.tolist() == first.x.tolist()
    for seed in (1, 2):
        for s in (session, twin):
            s.update(make(seed))
        assert session.solve().x.tolist() == twin.solve().x.tolist()


def test_prices_are_carried():
    session = Session("prices", gap=0.0)
    prices = None
    for seed in range(6):
        p = knapsack(seed, n=30)
        session.update(p)
        found = solve_mckp(p.utility, p.kinds, p.gpus, p.capacity, gap=0.0, prices=prices)
        answer = session.solve()
        prices = found.prices
        assert session._worker._prices.tolist() == prices.tolist()
        chosen = answer.table > 0.5
        assert np.where(chosen.any(axis=1), chosen.argmax(axis=1), -1).tolist() == found.choice.tolist()
        assert (answer.objective, answer.bound) == (found.objective, found.bound)
    session.update(MultipleChoice([[1.0]], [0], [1], [1]))  # fewer types: prices of others are no start
    assert session.solve().objective == 1.0


def test_prices_say_where_a_gap_is_left():
    p = knapsack(4, n=30)
    answer = solve(p, "prices", gap=0.0, labels=0, evaluations=2)
    assert answer.status == "stopped"
    assert answer.gap > 0
    assert answer.bound >= solve(p, "highs", gap=0).objective - 1e-9
    assert p.violation(answer.x) == 0


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_a_knapsack_are_those_of_its_blocks(seed):
    p = knapsack(seed, n=5)
    blocks = rows_by_kronecker(p)
    for name in ("c", "row_lower", "row_upper", "lower", "upper", "integrality"):
        assert getattr(p, name).tolist() == getattr(blocks, name).tolist()
    assert (p.A.toarray() == blocks.A.toarray()).all()
    assert p.A.has_canonical_format
    assert solve(blocks, "prices", gap=0).objective == pytest.approx(solve(p, "highs", gap=0).objective)


@pytest.mark.parametrize(
    "change",
    [
        {"maximize": False},
        {"integrality": False},
        {"shape": None},
        {"shape": (6, 10)},
        {"lower": 0.5},
        {"row_lower": 1.0},
        {"row_upper": 2.0},
        {"row_upper": 1.5},
    ],
)
def test_prices_refuse_other_programs_by_name(change):
    p = rows_by_kronecker(knapsack(0, n=5))
    upper = np.ones(60)
    assert solve(replace(p, upper=upper), "prices").status == "optimal"
    with pytest.raises(SolverError, match=r"By blocks: found no multiple-choice knapsack; 'prices' solves those only"):
        solve(replace(p, upper=upper, **change), "prices")
    A = p.A.copy()
    A.data[7] += 1.0
    with pytest.raises(SolverError, match="no multiple-choice knapsack"):
        solve(replace(p, A=A), "prices")


def test_what_cannot_be_is_refused():
    with pytest.raises(SolverError, match="found solve before any program"):
        Session().solve()
    with pytest.raises(SolverError, match="found a Change before any program"):
        Session().update(Change(c=[1.0]))
    with pytest.raises(SolverError, match=r"prices: .*'threads'.* expected options among .*gap, .*labels, evaluations"):
        Session("prices", threads=3)
    with pytest.raises(SolverError, match=r"mip: .*'tempo'"):
        solve(linear(0), "mip", tempo=1)
    with pytest.raises(SolverError, match="found a warm start"):
        solve(knapsack(0), "prices", warm=np.zeros(144))


def test_an_infeasible_program_leaves_the_session_usable():
    session = Session(method="simplex")
    session.update(linear(0))
    good = session.solve().objective
    session.update(Change(row_lower=np.full(5, 1e6), row_upper=np.full(5, 1e6)))
    for _ in range(2):
        with pytest.raises(SolverError, match="infeasible"):
            session.solve()
    session.update(linear(0))
    assert session.solve().objective == pytest.approx(good)
