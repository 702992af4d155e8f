"""copter against HiGHS on random programs of each kind, and what it says of those that have no answer."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from few import few
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuschedlab.errors import Infeasible, OutOfTime, SolverError
from gpuschedlab.optim import Change, EditedProgram, Program, Session, relative_gap, solve
from gpuschedlab.papers.copter.solver.bound import proved_bound
from gpuschedlab.papers.copter.solver.proximal import Copter


def random_program(seed: int) -> Program:
    """Rows and variables with every kind of bounds, many of them active: made around a point and prices that are optimal."""
    rng = np.random.default_rng(seed)
    m = rng.integers(2, 30)
    n = rng.integers(2, 50)
    A = np.where(rng.random((m, n)) < 0.3, rng.normal(size=(m, n)), 0.0)
    x = np.where(rng.random(n) < 0.5, rng.normal(size=n), 0.0)
    kind = rng.integers(0, 4, n)
    rows = rng.integers(0, 4, m)  # bounded, below, above, free; equal, below, above

    def away(size):
        return rng.random(size) * (rng.random(size) < 0.5)

    low = np.where(np.isin(kind, (0, 1)), x - away(n), -np.inf)
    high = np.where(np.isin(kind, (0, 2)), x + away(n), np.inf)
    lower = np.where(rows == 0, A @ x, np.where(rows == 1, A @ x - away(m), -np.inf))
    upper = np.where(rows == 0, A @ x, np.where(rows >= 2, A @ x + away(m), np.inf))
    y = rng.normal(size=m)
    d = rng.normal(size=n) * (rng.random(n) < 0.5)
    y = np.where(((y > 0) & (lower < A @ x)) | ((y < 0) & (upper > A @ x)), 0.0, y)
    d = np.where(((d > 0) & (low < x)) | ((d < 0) & (high > x)), 0.0, d)
    largest = bool(rng.integers(2))
    c = (A.T @ y + d) * (-1 if largest else 1)
    return Program(c, sp.csc_array(A), lower, upper, low, high, maximize=largest)


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_copter_agrees_with_highs(first):
    for seed in range(first, first + 50):
        program = random_program(seed)
        exact = solve(program, method="simplex")
        solver = Copter(tol=1e-6)
        found = solver.solve(program)
        size = max(1.0, abs(exact.objective))
        assert found.status == "optimal", (seed, solver.trace[-1])
        assert found.objective == pytest.approx(exact.objective, abs=1e-3 * size), seed
        assert solver.trace[-1].worst <= 1e-6
        assert program.violation(found.x) <= 1e-3, seed
        assert (found.bound - exact.objective) * (1 if program.maximize else -1) >= -1e-6 * size, seed


def test_entries_that_are_stored_as_zeros_imply_nothing():
    """Of two variables without a bound, the row bounds the first, though it has an entry of the second: a 0."""
    A = sp.csc_array((np.array([1.0, 0.0]), ([0, 0], [0, 1])), shape=(1, 2))
    program = Program([1.0, 0.0], A, row_upper=4.0, maximize=True)
    assert program.A.nnz == 2
    assert proved_bound(program, np.zeros(1)) == 4.0


def test_most_bounds_are_finite_and_tight():
    tight = 0
    for seed in range(60):
        program = random_program(seed)
        exact = solve(program, method="simplex").objective
        found = Copter(tol=1e-6).solve(program).bound
        tight += abs(found - exact) <= 1e-3 * max(1.0, abs(exact))
    assert tight >= 57


def test_no_point_and_no_best_are_errors():
    for seed in range(12):
        p = random_program(seed)
        A = sp.csc_array(sp.vstack([p.A, p.A[[0]]]))
        worse = p.row_upper[0] + 1 if np.isfinite(p.row_upper[0]) else p.row_lower[0] - 1
        side = (worse, np.inf) if np.isfinite(p.row_upper[0]) else (-np.inf, worse)
        if not np.isfinite(worse):
            continue
        rows = (np.append(p.row_lower, side[0]), np.append(p.row_upper, side[1]))
        with pytest.raises(Infeasible, match="infeasible"):
            Copter(tol=1e-6).solve(Program(p.c, A, *rows, p.lower, p.upper, maximize=p.maximize))
        c = np.append(p.c, 1.0 if p.maximize else -1.0)
        endless = sp.csc_array(sp.hstack([p.A, np.zeros((p.A.shape[0], 1))]))
        bounds = (np.append(p.lower, 0.0), np.append(p.upper, np.inf))
        with pytest.raises(SolverError, match="unbounded"):
            Copter(tol=1e-6).solve(Program(c, endless, p.row_lower, p.row_upper, *bounds, maximize=p.maximize))


def test_a_ray_through_rows_is_found():
    with pytest.raises(SolverError, match="unbounded"):
        Copter(tol=1e-6).solve(Program([1.0, 1.0], [[1.0, -1.0]], 0.0, 0.0, maximize=True))
    with pytest.raises(Infeasible, match="infeasible"):  # neither point nor best
        Copter(tol=1e-6).solve(
            Program([1.0, 0.0], [[0.0, 1.0], [0.0, 1.0]], [2.0, -np.inf], [np.inf, 1.0], maximize=True)
        )


def test_empty_programs():
    assert Copter(tol=1e-6).solve(Program(np.empty(0), np.empty((2, 0)), -1.0, 1.0)).objective == 0
    assert Copter(tol=1e-6).solve(Program([1.0, -2.0], np.empty((0, 2)), upper=3.0)).x.tolist() == [0, 3]
    with pytest.raises(Infeasible):
        Copter(tol=1e-6).solve(Program(np.empty(0), np.empty((1, 0)), 1.0, 2.0))


@pytest.mark.parametrize("seed", range(30))
def test_badly_scaled_programs_are_never_wrong(seed):
    p = random_program(seed)
    rng = np.random.default_rng(seed + 1000)
    r = 10 ** rng.uniform(-3, 3, p.A.shape[0])
    k = 10 ** rng.uniform(-3, 3, p.A.shape[1])
    A = sp.csc_array(sp.diags_array(r) @ p.A @ sp.diags_array(k))
    bad = Program(p.c * k, A, p.row_lower * r, p.row_upper * r, p.lower / k, p.upper / k, maximize=p.maximize)
    found = Copter(tol=1e-6).solve(bad)
    exact = solve(p, method="simplex").objective
    size = max(1.0, abs(exact))
    assert found.status in ("optimal", "stopped")
    if found.status == "optimal":
        assert found.objective == pytest.approx(exact, abs=1e-3 * size), seed
    assert (found.bound - exact) * (1 if p.maximize else -1) >= -1e-5 * size, seed


def test_a_time_limit():
    with pytest.raises(OutOfTime, match="no step"):
        Copter(time_limit=0.0).solve(random_program(1))
    assert Copter(steps=1).solve(random_program(3)).status == "stopped"


def test_whole_variables_are_refused():
    with pytest.raises(SolverError, match="whole"):
        solve(Program([1.0], [[1.0]], integrality=True), "copter")


def test_the_same_program_again_is_solved_at_once():
    solver = Copter()
    program = random_program(7)
    solver.solve(program)
    cold = len(solver.trace)
    solver.solve(program)
    assert len(solver.trace) == 1 < cold


KEYS = st.integers(0, 9)
EDIT = st.tuples(
    st.sampled_from(["add", "remove", "worth", "resource"]), KEYS, st.integers(1, 4), st.integers(0, 2**20)
)


def apply(edited: EditedProgram, mirror: dict, amounts: dict, edit) -> None:
    """One edit, and the same of plain dicts; edits that cannot be are left out."""
    what, key, k, seed = edit
    rng = np.random.default_rng(seed)
    worth = rng.random(k)
    use = {"a": rng.integers(0, 3, k), "b": rng.integers(0, 3, k)}
    if what == "add" and key not in mirror:
        edited.add_request(key, worth, use)
        mirror[key] = (worth, use)
    elif what == "remove" and key in mirror:
        edited.remove_request(key)
        del mirror[key]
    elif what == "worth" and key in mirror:
        worth = rng.random(len(mirror[key][0]))
        edited.change_worth(key, worth)
        mirror[key] = (worth, mirror[key][1])
    elif what == "resource":
        edited.change_resource("a", float(k))
        amounts["a"] += k


@settings(max_examples=40, deadline=None)
@given(st.lists(EDIT, min_size=10, max_size=60))
def test_edits_equal_a_rebuild(edits):
    edited = EditedProgram({"a": 5.0, "b": 7.0})
    mirror = {}
    amounts = {"a": 5.0, "b": 7.0}
    for edit in edits:
        apply(edited, mirror, amounts, edit)
    new = EditedProgram(amounts)
    for key, (worth, use) in mirror.items():
        new.add_request(key, worth, use)
    assert edited.program().equals(new.program())
    n = len(mirror)
    whole = np.zeros((n + 2, sum(len(w) for w, _ in mirror.values())))
    at = 0
    for row, (worth, use) in enumerate(mirror.values()):
        whole[row, at : at + len(worth)] = 1
        whole[n, at : at + len(worth)] = use["a"]
        whole[n + 1, at : at + len(worth)] = use["b"]
        at += len(worth)
    assert np.array_equal(edited.program().A.toarray(), whole)


def test_a_session_fed_by_a_thousand_edits_is_one_fed_by_programs():
    rng = np.random.default_rng(0)
    amounts = {"a": 40.0, "b": 40.0}
    edited = EditedProgram(amounts)
    mirror = {}
    session = Session("copter", tol=1e-6)
    rebuilt = Session("copter", tol=1e-6)
    session.update(edited)
    kinds = ["add", "add", "remove", "worth"]
    cold = 0
    warm = 0
    for step in range(1000):
        edit = (kinds[rng.integers(4)], int(rng.integers(80)), int(rng.integers(1, 5)), int(rng.integers(2**20)))
        apply(edited, mirror, amounts, edit)
        if step % 25 == 24:
            new = EditedProgram(amounts)
            for key, (worth, use) in mirror.items():
                new.add_request(key, worth, use)
            rebuilt.update(new.program())
            found = session.solve()
            other = rebuilt.solve()
            exact = solve(new.program(), method="simplex")
            size = 3e-6 * (1 + 2 * exact.objective)
            assert found.status == other.status == "optimal"
            assert abs(found.objective - exact.objective) <= size >= abs(other.objective - exact.objective), step
            assert new.program().violation(found.x) <= 1e-4
            assert session.solve() is found
            warm += session._worker.trace[-1].evaluations
            solver = Copter(tol=1e-6)
            solver.solve(new.program())
            cold += solver.trace[-1].evaluations
    assert warm < cold, "evaluations"


def test_any_solver_takes_an_edited_program():
    edited = EditedProgram({"a": 3.0})
    edited.add_request("one", [3.0, 5.0], {"a": [1.0, 2.0]})
    session = Session("highs", method="simplex")
    session.update(edited)
    assert session.solve().objective == solve(edited).objective == 5.0
    edited.change_resource("a", -2.0)
    assert session.solve().objective == solve(edited, "sift").objective == 3.0


def test_requests_that_are_put_go_on_from_their_shares():
    edited = EditedProgram({0: 2.0, 1: 2.0})
    parts = {"at": np.array([0, 1, 0, 1]), "val": np.array([1.0, 2.0, 1.0, 1.0])}
    edited.put_requests([5, 7], np.array([0, 2, 4]), np.ones(4), **parts, must=np.zeros(2, bool))
    edited.x = np.array([0.1, 0.2, 0.3, 0.4])
    parts = {"at": np.array([1, 0, 1]), "val": np.array([1.0, 1.0, 2.0])}
    edited.put_requests([7, 6, 5], np.array([0, 1, 2, 3]), np.ones(3), **parts, must=np.array([True, False, False]))
    assert edited.x.tolist() == [0.4, 0.0, 0.2]
    assert edited.program().A.toarray()[-2:].tolist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 2.0]]
    assert edited.program().row_lower[:3].tolist() == [1.0, -np.inf, -np.inf]


def test_bad_edits_are_errors():
    edited = EditedProgram({"a": 1.0})
    edited.add_request(1, [1.0], {"a": [1.0]})
    for edit in (
        lambda: edited.add_request(1, [1.0], {}),
        lambda: edited.add_request(2, [1.0], {"z": [1.0]}),
        lambda: edited.remove_request(9),
        lambda: edited.change_worth(1, [1.0, 2.0]),
        lambda: edited.change_resource("a", -2.0),
    ):
        with pytest.raises(SolverError):
            edit()
    edited.add_request(3, np.zeros(0), {}, must=True)
    with pytest.raises(Infeasible, match="infeasible"):
        solve(edited, "copter")


def test_a_session_starts_from_the_last_point():
    session = Session("copter")
    steps = []
    program = random_program(11)
    for shift in (0.0, 1e-3):
        session.update(Program(program.c * (1 + shift), program.A, program.row_lower, program.row_upper, program.lower,
                               program.upper, maximize=program.maximize))  # fmt: skip
        session.solve()
        steps.append(session._worker.trace[-1].evaluations)
    assert steps[1] < steps[0]


def multiple_choice(seed: int) -> Program:
    """The relaxation of a round: ties, jobs alike, subset sums, other units of utility, and most cells impossible."""
    rng = np.random.default_rng(seed)
    style = seed % 6
    n = rng.integers(2, 40)
    types = rng.integers(1, 5)
    C = rng.integers(2, 15)
    kinds = rng.integers(0, types, C)
    gpus = 2.0 ** rng.integers(0, 5, C)
    worth = rng.random((n, C)) * gpus**0.6
    if style == 0:
        worth = np.round(worth, 1)  # ties
    elif style == 1:
        worth[:] = worth[0]  # jobs alike
    elif style == 2:
        worth = np.tile(gpus, (n, 1))  # subset sums
    worth *= {3: 1e-6, 4: 1e6}.get(style, 1.0)
    possible = rng.random((n, C)) < (0.1 if style == 5 else 0.8)
    job, config = np.nonzero(possible)
    A = np.zeros((n + types, len(job)))
    A[job, np.arange(len(job))] = 1.0
    A[n + kinds[config], np.arange(len(job))] = gpus[config]
    upper = np.append(np.ones(n), rng.integers(1, 3 * n, types))
    return Program(worth[job, config], A, row_upper=upper, upper=1.0, maximize=True)


def with_groups(seed: int) -> Program:
    """Disjoint groups, some of them equations, with coefficients of their own; coupling rows of either sign, with two sides."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(2, 20)
    m = rng.integers(1, 8)
    sizes = rng.integers(1, 8, groups)
    n = int(sizes.sum()) + 3
    owner = np.repeat(np.arange(groups), sizes)
    A = np.zeros((groups + m, n))
    A[owner, np.arange(len(owner))] = rng.uniform(0.5, 3, groups)[owner]
    A[groups:] = np.where(rng.random((m, n)) < 0.4, rng.normal(size=(m, n)), 0.0)
    room = rng.uniform(0.5, 4, groups)
    equal = rng.random(groups) < 0.3
    x = np.append(rng.random(len(owner)), rng.normal(size=3))
    x[: len(owner)] *= (room / (A[:groups] @ x))[owner] * np.where(equal, 1.0, rng.random(groups))[owner]
    rows = A[groups:] @ x
    lower = np.where(rng.random(m) < 0.5, rows - rng.random(m), -np.inf)
    upper = np.where(np.isinf(lower) | (rng.random(m) < 0.5), rows + rng.random(m), np.inf)
    bounds = (np.append(np.where(equal, room, -np.inf), lower), np.append(room, upper))
    low = np.append(np.zeros(len(owner)), np.full(3, -2.0))
    high = np.append(np.full(len(owner), np.inf), np.full(3, 3.0))
    return Program(rng.normal(size=n), A, *bounds, low, high, maximize=bool(rng.integers(2)))


@pytest.mark.parametrize(
    ("made", "seeds", "tols"), [(multiple_choice, few(90, 240), (1e-6,)), (with_groups, few(30, 80), (1e-3, 1e-6))]
)
def test_programs_with_groups_agree_with_highs(made, seeds, tols):
    stopped = 0
    for seed in range(seeds):
        program = made(seed)
        sign = -1 if program.maximize else 1
        best = solve(program, method="simplex").objective
        room = np.maximum(np.abs(np.where(np.isfinite(program.row_upper), program.row_upper, program.row_lower)), 1.0)
        for tol in tols:
            solver = Copter(tol=tol)
            found = solver.solve(program)
            size = min(1.0, np.abs(program.c).max(initial=0.0)) + 2 * abs(best)
            stopped += found.status != "optimal"
            assert sign * (found.bound - best) <= 1e-9 * size, (seed, "bound")
            if found.status == "optimal":
                assert abs(found.objective - best) <= 30 * tol * size, seed
                rows = program.A @ found.x
                assert np.maximum(rows - program.row_upper, program.row_lower - rows).max() <= 10 * tol * room.max(), (
                    seed
                )
    assert stopped <= 0.01 * seeds * len(tols)


def test_infeasible_groups_are_proved():
    proved = 0
    seeds = few(30, 50)
    for seed in range(seeds):
        program = with_groups(seed)
        n = program.A.shape[1]
        A = sp.vstack([program.A, sp.csr_array(np.ones((1, n)))])
        most = program.row_upper[np.isfinite(program.row_upper)].sum() * 10 + 10 * n
        worse = Program(program.c, A, np.append(program.row_lower, most), np.append(program.row_upper, np.inf),
                        program.lower, np.minimum(program.upper, 1e3), maximize=program.maximize)  # fmt: skip
        try:
            solve(worse, method="simplex")
        except Infeasible:
            proved += 1
            with pytest.raises(Infeasible):
                Copter(tol=1e-6).solve(worse)
    assert proved > seeds / 5


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("part", [0.0, 0.5, 1.0])
def test_a_scaled_matrix_is_the_matrix_times_its_factors(seed, part):
    """Columns before the first stay as they are, and the entries of each row have a mean square of one."""
    from gpuschedlab.papers.copter.solver.groups import _equilibrate

    rng = np.random.default_rng(seed)
    m, n = rng.integers(2, 9, 2)
    dense = np.where(rng.random((m, n)) < 0.6, rng.normal(size=(m, n)) * 10.0 ** rng.integers(-3, 4, (m, n)), 0.0)
    A = sp.csc_array(dense)
    first = int(part * n)
    rows, columns = _equilibrate(A, first)
    assert columns[:first].tolist() == [1.0] * first
    np.testing.assert_allclose(A.toarray(), rows[:, None] * dense * columns, rtol=1e-12)
    full = (dense != 0).any(axis=1)
    np.testing.assert_allclose((A.toarray() ** 2).sum(axis=1)[full] / (dense != 0).sum(axis=1)[full], 1.0)


def test_the_program_finds_its_groups():
    program = with_groups(3)
    from gpuschedlab.papers.copter.solver.groups import grouped

    lp = grouped(program)
    groups = program.A.toarray()[lp.groups]
    assert ((groups > 0).sum(axis=0) <= 1).all()
    assert len(lp.groups) >= 2
    assert np.allclose([np.ptp(row[row > 0]) for row in groups], 0.0)
    assert np.sort(np.append(lp.rows, lp.groups)).tolist() == list(range(program.A.shape[0]))


@pytest.mark.parametrize("seed", range(40))
def test_a_vertex_is_exact_and_has_few_shares(seed):
    program = multiple_choice(seed)
    best = solve(program, method="simplex").objective
    for solver, options in (("sift", {}), ("copter", {"vertex": True})):
        found = solve(program, solver, **options)
        assert found.status == "optimal"
        assert found.objective == pytest.approx(best, rel=1e-9, abs=1e-12), (seed, solver)
        between = (found.x > 1e-9) & (found.x < 1 - 1e-9)
        tight = np.isclose(program.A @ found.x, program.row_upper)
        assert between.sum() <= tight.sum()


@pytest.mark.parametrize("first", range(0, 200, 100))
def test_sifting_agrees_with_simplex(first):
    for seed in range(first, first + 100):
        program = random_program(seed)
        exact = solve(program, method="simplex")
        found = solve(program, "sift")
        assert found.objective == pytest.approx(exact.objective, rel=1e-7, abs=1e-7), seed
        assert program.violation(found.x) <= 1e-6
    with pytest.raises(Infeasible):
        solve(Program([1.0, 1.0], [[1.0, 1.0]], row_lower=3.0, upper=1.0), "sift")


def test_sifting_goes_on_from_the_last_columns():
    rng = np.random.default_rng(0)
    session = Session("sift")
    for seed in range(20):
        program = multiple_choice(3)
        if seed % 7 == 3:  # one that has no point, in between
            session.update(Program([1.0, 1.0], [[1.0, 1.0]], row_lower=3.0, upper=1.0))
            with pytest.raises(Infeasible):
                session.solve()
        program = Change(c=program.c * rng.uniform(0.8, 1.2, len(program.c))).of(program)
        session.update(program)
        again = copy.deepcopy(session)
        exact = solve(program, method="simplex").objective
        assert session.solve().objective == pytest.approx(exact, rel=1e-9)
        assert again.solve().x.tolist() == session.solve().x.tolist()


@pytest.mark.parametrize("tol", [1e-2, 2e-3, 1e-4])
def test_optimal_is_said_where_the_gap_is_within_the_tolerance_alone(tol):
    """On relaxed rounds and general programs: by its own bound, and by what an exact solver finds."""
    rng = np.random.default_rng(7)
    optimal = 0
    for _ in range(12):
        n = 30
        m = 12
        A = rng.integers(0, 4, (m, n)).astype(float)
        program = Program(rng.uniform(0.5, 3, n), A, row_upper=A.sum(axis=1) * 0.2, upper=1.0, maximize=True)
        for most in (1, 2, 300):
            found = Copter(tol=tol, steps=most).solve(program)
            within = relative_gap(found.objective, found.bound) <= tol
            assert within or found.status != "optimal"
            optimal += found.status == "optimal"
        assert found.status == "optimal"
        assert found.objective >= (1 - tol) * solve(program, method="simplex").objective - 1e-9
    assert optimal >= 12
