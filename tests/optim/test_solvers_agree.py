"""Every solver against HiGHS: on 200 random programs of each kind, and on those that have no answer or a hard one."""

import time

import numpy as np
import pytest
from few import few
from hypothesis import given, settings
from hypothesis import strategies as st
from present import here, needs

from gpuschedlab.errors import Infeasible, OutOfTime, SolverError
from gpuschedlab.optim import Change, MultipleChoice, Program, Session, solve, solve_mckp

SEEDS = few(60, 90)
WHOLE = [("highs", {}), ("mip", {"engine": "cbc"}), ("mip", {"engine": "highs"})]
LINEAR = [*WHOLE, ("highs", {"method": "simplex"}), ("highs", {"method": "pdlp"})]
GAP = 1e-4
EXACT = [("mip", {}), ("prices", {})]
PARTS = []
"""Solvers of a program in so many parts as the name says."""
OF_ROUNDS = ["highs", "mip", "prices"]
"""Solvers of rounds."""
SHIMS = []
"""Solvers that make the shares of a relaxation whole."""
HASTY = [*WHOLE]
"""Solvers of badly scaled programs: those of papers, and options with which they give up soon."""
TOLERANCE = {}
"""Of objectives, relative, where it is not HiGHS' own of 1e-6."""
if here("copter"):
    LINEAR += [("copter", {})]
    EXACT += [("pop", {"parts": 1}), ("pop", {"parts": 1, "inner": "prices"})]
    PARTS += [("pop-2", {}), ("pop-4", {"inner": "prices"})]
    SHIMS += [("copter", {}), ("relaxed", {})]
    HASTY += [("copter", {"steps": 300})]
    OF_ROUNDS += ["copter", "relaxed", "pop"]
    TOLERANCE["copter"] = 1e-3


def any_program(seed: int, whole: bool) -> Program:
    """Rows and variables with bounds of every kind, in small whole numbers: solvable, infeasible and unbounded ones alike."""
    rng = np.random.default_rng(seed)
    m = rng.integers(1, 6)
    n = rng.integers(1, 8)
    A = np.where(rng.random((m, n)) < 0.6, rng.integers(-3, 5, (m, n)), 0).astype(float)
    middle = A @ rng.integers(-2, 4, n)
    c = rng.integers(-5, 6, n).astype(float)
    rows = rng.integers(0, 5, m)
    columns = rng.integers(0, 6, n)  # equal, above, below, between, free; bounded, free, above
    wide = np.where(rows == 0, 0, rng.integers(0, 4, m))
    sides = (
        np.where(np.isin(rows, (0, 1, 3)), middle - wide, -np.inf),
        np.where(np.isin(rows, (0, 2, 3)), middle + wide, np.inf),
    )
    lower = np.select([columns <= 2, columns == 3], [rng.integers(-2, 2, n), -np.inf], 0.0)
    upper = np.where(np.isin(columns, (3, 4)), np.inf, np.maximum(lower, -2) + rng.integers(0, 4, n))
    integrality = (rng.random(n) < 0.7) if whole else False
    return Program(c, A, *sides, lower, upper, integrality, maximize=bool(seed % 2))


@pytest.mark.parametrize(
    ("solver", "options"), [*LINEAR, ("prices", {}), pytest.param("pop-2", {}, marks=needs("copter")), *SHIMS]
)
def test_seconds_are_those_that_pass(solver, options):
    linear = (solver, options) in LINEAR
    program = Program([1.0, 2.0], [[1.0, 1.0]], row_upper=1.0, upper=1.0, maximize=True)
    choice = MultipleChoice([[3.0, 5.0], [2.0, 4.5]], [0, 0], [1, 2], [3])
    begin = time.perf_counter()
    answer = solve(program if linear else choice, solver, **options)
    assert 0 <= answer.seconds <= time.perf_counter() - begin


def other_units(p: Program, rows, columns, cost: float = 1.0) -> Program:
    """The same program: rows times `rows`, variables divided by `columns`, the objective times `cost`."""
    A = p.A.toarray() * np.asarray(rows)[:, None] * columns
    sides = (p.row_lower * rows, p.row_upper * rows, p.lower / columns, p.upper / columns)
    return Program(p.c * columns * cost, A, *sides, p.integrality, maximize=p.maximize)


def answered(program: Program, solver: str, options: dict) -> tuple:
    """Status, infeasible and unbounded ones included, and the solution."""
    try:
        found = solve(program, solver, **options)
    except Infeasible as error:
        return "unbounded or infeasible" if "unbounded" in str(error) else "infeasible", None
    except SolverError as error:
        return "unbounded" if "unbounded" in str(error) else str(error), None
    return found.status, found


def check_same(program: Program, solver: str, options: dict, exact: tuple, cost: float = 1.0, seed=None) -> str:
    """Compare an answer with the exact one of the program in units of its own; the status."""
    status, found = answered(program, solver, options)
    if status not in ("optimal", "infeasible", "unbounded"):
        return status
    assert status == exact[0], (seed, solver, options)
    if found is not None:
        best = exact[1].objective
        sign = 1 if program.maximize else -1
        close = TOLERANCE.get(solver, 1e-6) * max(1.0, abs(best))
        assert found.objective / cost == pytest.approx(best, abs=close), (seed, solver, options)
        assert sign * (found.bound / cost - best) >= -close, (seed, solver, options)
        assert program.value(found.x) == pytest.approx(found.objective)
    return status


@pytest.mark.parametrize("whole", [False, True])
def test_programs_of_any_status(whole):
    stati = []
    for seed in range(SEEDS):
        p = any_program(seed, whole)
        exact = answered(p, "highs", {"presolve": "off", "gap": 0.0} | ({} if whole else {"method": "simplex"}))
        stati.append(exact[0])
        for solver, options in WHOLE if whole else LINEAR:
            status = check_same(p, solver, options, exact, seed=seed)
            if options.get("method") != "pdlp":
                assert status == exact[0], (seed, solver, options)
    assert min(stati.count(s) for s in ("optimal", "infeasible", "unbounded")) > few(6, 9)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_no_unit_of_cost_makes_a_wrong_answer(seed, whole):
    p = any_program(seed, whole)
    exact = answered(p, "highs", {"gap": 0.0})
    m, n = p.A.shape
    for cost in (1e-9, 1e-6, 1e6, 1e9):
        q = other_units(p, np.ones(m), np.ones(n), cost)
        for solver, options in WHOLE if whole else LINEAR:
            gap = {"gap": 1e-7} if whole else {}
            status = check_same(q, solver, options | gap, exact, cost, seed)
            assert status == exact[0] or solver in TOLERANCE or "method" in options, (seed, cost, solver, options)


def test_badly_scaled_programs_have_no_wrong_answer():
    """Coefficients of one program over twelve orders of magnitude; some solvers give up, and say so."""
    given_up = 0
    for seed in range(60):
        p = any_program(seed, False)
        rng = np.random.default_rng(seed)
        m, n = p.A.shape
        exact = answered(p, "highs", {"gap": 0.0})
        q = other_units(p, 10 ** rng.uniform(-3, 3, m), 10 ** rng.uniform(-3, 3, n))
        for solver, options in HASTY:
            given_up += check_same(q, solver, options, exact, seed=seed) != exact[0]
    assert given_up <= 5


def test_degenerate_programs():
    """Rows that say the same, ties, and no objective at all."""
    cases = [
        (Program([3.0, 2.0], [[1.0, 1.0]] * 5, [2.0] * 5, [2.0] * 5, maximize=True), 6.0),
        (Program(np.ones(6), np.ones((4, 6)), row_upper=2.0, upper=1.0, maximize=True), 2.0),
        (Program([0.0, 0.0], [[1.0, 1.0]], row_lower=1.0, upper=3.0), 0.0),
        (Program([1.0, 1.0], [[1.0, 1.0], [1.0, -1.0]], upper=3.0, maximize=True), 6.0),
        (Program([1.0, 1.0], [[1.0, 1.0]], row_upper=4.0, lower=2.0, upper=2.0, maximize=True), 4.0),
    ]
    for p, best in cases:
        for solver, options in LINEAR:
            found = solve(p, solver, **options)
            assert (found.status, found.objective) == ("optimal", pytest.approx(best, abs=1e-5)), (solver, options)
            assert p.violation(found.x) < 1e-5


@pytest.mark.parametrize(("solver", "options"), LINEAR)
@pytest.mark.parametrize("whole", [False, True])
def test_programs_without_variables_or_rows(solver, options, whole):
    if whole and (solver, options) not in WHOLE:
        return
    for rows, sides in ((2, (-1.0, 1.0)), (0, (-np.inf, np.inf))):
        found = solve(Program(np.empty(0), np.empty((rows, 0)), *sides, integrality=whole), solver, **options)
        assert (found.status, found.objective, found.x.shape) == ("optimal", 0.0, (0,))
    with pytest.raises(Infeasible):
        solve(Program(np.empty(0), np.empty((1, 0)), 1.0, 2.0, integrality=whole), solver, **options)
    found = solve(Program([1.0, -2.0], np.empty((0, 2)), upper=3.0, integrality=whole), solver, **options)
    assert found.x.tolist() == [0.0, 3.0]
    with pytest.raises(SolverError, match="unbounded"):
        solve(Program([-1.0, 0.0], np.empty((0, 2)), integrality=whole), solver, **options)


def round_of(seed: int, must: bool = False) -> MultipleChoice:
    """A small round; every fourth has few different utilities, and every fourth those of very different sizes."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 8)
    C = rng.integers(1, 7)
    T = rng.integers(1, 4)
    utility = rng.normal(1, 1, (n, C))
    utility = (
        np.round(utility) if seed % 4 == 0 else utility * 10 ** rng.uniform(-4, 4, (n, 1)) if seed % 4 == 1 else utility
    )
    utility[rng.random((n, C)) < 0.2] = np.nan
    mandatory = rng.random(n) < 0.3 if must else None
    return MultipleChoice(
        utility, rng.integers(0, T, C), rng.integers(1, 5, C), rng.integers(0, 9, T), mandatory=mandatory
    )


def check_round(p: MultipleChoice, best, found, solver: str) -> None:
    """A choice that can be, worth what it says, no better than the best, within a bound that holds."""
    size = max(abs(best.objective), 1e-12)
    chosen = p.utility[found.table > 0.5]
    used = np.bincount(p.kinds, found.table.sum(axis=0) * p.gpus, len(p.capacity))
    assert (used <= p.capacity).all()
    assert (found.table.sum(axis=1)[p.mandatory] == 1).all()
    assert (found.table.sum(axis=1) <= 1).all()
    assert found.objective == pytest.approx(chosen.sum(), abs=1e-9 * size)  # nan where one is impossible
    assert found.objective <= best.objective + 1e-6 * size, solver
    assert found.bound >= best.objective - 1e-6 * size, solver
    assert found.status == ("optimal" if found.gap <= max(GAP, 1e-9) else "stopped"), solver


@pytest.mark.parametrize("must", [False, True])
def test_rounds(must):
    none = 0
    short = 0
    for seed in range(SEEDS):
        p = round_of(seed, must)
        status, best = answered(p, "highs", {"gap": 1e-9})
        none += status == "infeasible"
        for solver, options in (*EXACT, *SHIMS, *PARTS):
            now, found = answered(p, solver, options)
            if found is None:
                no_room = must and (solver, options) in SHIMS and "no room" in now
                assert no_room or now == status == "infeasible", (seed, solver, now)
                continue
            assert status == "optimal", (seed, solver)
            check_round(p, best, found, f"{seed} {solver}") if solver != "mip" else None
            least = best.objective - GAP * abs(best.objective)
            if (solver, options) in EXACT:
                assert found.objective >= least - 1e-9, (seed, solver, options)
            short += found.objective < least
    if SHIMS:
        assert short > SEEDS / 10  # parts and shims lose something, or the check above shows nothing
    assert (none > SEEDS / 10) == must


@pytest.mark.parametrize("worth", [1e-12, 1e12])
@pytest.mark.parametrize("must", [False, True])
def test_no_unit_of_worth_makes_a_round_worse(must, worth):
    """A round is as good in any unit of worth: no tolerance is absolute."""
    solvers = (*EXACT, ("prices", {"labels": 0}), *PARTS[1::2])
    solved = 0
    seeds = few(20, 30)
    for seed in range(seeds):
        p = round_of(4 * seed + 2, must)
        parts = (p.kinds, p.gpus, p.capacity)
        rest = {"mandatory": p.mandatory}
        q = MultipleChoice(p.utility * worth, *parts, **rest)
        for solver, options in solvers:
            status, here = answered(p, solver, options)
            there, found = answered(q, solver, options)
            assert there == status, (seed, solver, options)
            if here is not None:
                solved += 1
                assert found.objective / worth == pytest.approx(here.objective, rel=1.1 * GAP, abs=1e-9), (seed, solver)
    assert solved > 5 / 9 * len(solvers) * seeds


@pytest.mark.parametrize("must", [False, True])
def test_a_power_of_two_as_unit_of_worth_changes_no_choice_of_prices(must):
    for seed in range(40):
        p = round_of(seed, must)
        parts = (p.kinds, p.gpus, p.capacity)
        rest = {"mandatory": p.mandatory, "gap": 1e-9}
        for worth in (2.0**-40, 2.0**40):
            try:
                here, there = (solve_mckp(p.utility * w, *parts, **rest, labels=0) for w in (1.0, worth))
            except Infeasible:
                continue
            assert there.choice.tolist() == here.choice.tolist(), (seed, worth)
            assert there.objective / worth == pytest.approx(here.objective, rel=1e-12)


@pytest.mark.parametrize("solver", [*OF_ROUNDS, pytest.param("pop-2", marks=needs("copter"))])
def test_rounds_with_little_in_them(solver):
    for p in (
        MultipleChoice(np.zeros((0, 2)), [0, 0], [1, 2], [4]),
        MultipleChoice(np.zeros((3, 0)), [], [], [4]),
        MultipleChoice([[1.0], [2.0]], [0], [1], [0]),
        MultipleChoice([[np.nan], [-1.0]], [0], [1], [4]),
    ):
        found = solve(p, solver)
        assert (found.objective, found.table.sum()) == (0.0, 0.0)
        assert found.status == "optimal" or solver.startswith("pop")
    for p in (
        MultipleChoice(np.zeros((2, 0)), [], [], [4], mandatory=[True, False]),
        MultipleChoice([[1.0], [2.0]], [0], [1], [1], mandatory=[True, True]),
        MultipleChoice([[np.nan], [2.0]], [0], [1], [1], mandatory=[True, False]),
    ):
        with pytest.raises(Infeasible):
            solve(p, solver)


@pytest.mark.parametrize("solver", OF_ROUNDS)
def test_no_time_at_all(solver):
    """A point that can be and says that it was cut off, or an error that says that there is none."""
    rng = np.random.default_rng(0)
    gpus = np.tile([1, 2, 4, 8], 3)
    utility = rng.uniform(1, 2, (300, 1)) * gpus ** rng.uniform(0.3, 0.9, (300, 1)) * rng.uniform(0.5, 1.5, (300, 12))
    p = MultipleChoice(utility, np.repeat([0, 1, 2], 4), gpus, [200, 160, 90])
    try:
        found = solve(p, solver, time_limit=1e-4, gap=0.0)
    except OutOfTime:
        return
    assert found.status in ("time limit", "stopped", "optimal")
    assert p.violation(found.x) < 1e-6
    assert found.bound >= solve_mckp(utility, p.kinds, gpus, p.capacity).objective


CHANGE = st.tuples(st.sampled_from(["c", "row_upper", "row_lower", "box", "program", "none"]), st.integers(0, 2**20))


def change_of(p: Program, what: str, seed: int) -> Program | Change:
    """Another cost or other bounds of a program, another program, or none."""
    rng = np.random.default_rng(seed)
    m, n = p.A.shape
    if what == "program":
        return any_program(seed, False)
    low = p.row_lower
    high = p.row_upper
    return {
        "c": lambda: Change(c=rng.integers(-5, 6, n).astype(float)),
        "row_upper": lambda: Change(row_upper=np.maximum(low, rng.integers(-4, 9, m))),
        "row_lower": lambda: Change(row_lower=np.minimum(high, rng.integers(-9, 4, m))),
        "box": lambda: Change(lower=np.full(n, float(rng.integers(-3, 1))), upper=rng.integers(0, 4, n).astype(float)),
        "none": lambda: Change(),
    }[what]()


def of_session(session: Session) -> tuple:
    try:
        found = session.solve()
    except SolverError as error:
        return "infeasible" if isinstance(error, Infeasible) else "unbounded", None
    return found.status, found.objective


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**20), st.lists(CHANGE, min_size=2, max_size=6))
def test_updates_of_a_session_equal_a_rebuild(seed, changes):
    p = any_program(seed, False)
    sessions = [Session(solver, **options) for solver, options in LINEAR if options.get("method") != "pdlp"]
    for session in sessions:
        session.update(p)
    for what, k in changes:
        change = change_of(p, what, k)
        p = change.of(p) if isinstance(change, Change) else change
        status, best = answered(p, "highs", {})
        for session in sessions:
            session.update(change)
            now, objective = of_session(session)
            if (session.solver, now) == ("copter", "stopped"):
                continue
            assert now == status
            if best is not None:
                assert objective == pytest.approx(best.objective, abs=1e-3 * max(1.0, abs(best.objective)))


ROUND = st.tuples(st.integers(0, 2**20), st.integers(0, 9))


@settings(max_examples=15, deadline=None)
@given(st.lists(ROUND, min_size=2, max_size=5))
def test_rounds_of_a_session_equal_a_rebuild(stream):
    """Exact solvers find the same worth from anything before; the others a choice that can be, within the bound."""
    sessions = [Session(solver, **options) for solver, options in (*EXACT, *SHIMS, *PARTS)]
    for seed, first in stream:
        p = round_of(seed)
        p = MultipleChoice(p.utility, p.kinds, p.gpus, p.capacity, keys=first + np.arange(len(p.utility)))
        best = solve(p, gap=1e-9)
        for session, (solver, options) in zip(sessions, (*EXACT, *SHIMS, *PARTS), strict=True):
            session.update(p)
            found = session.solve()
            check_round(p, best, found, solver) if solver != "mip" else None
            if (solver, options) in EXACT:
                assert found.objective == pytest.approx(best.objective, rel=1.1 * GAP, abs=1e-9)
