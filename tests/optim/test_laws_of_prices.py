"""Laws of the solver by prices, kernel by kernel, against enumeration and HiGHS; and what programs and refusals say."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from gpuschedlab.errors import SolverError
from gpuschedlab.optim import Change, EditedProgram, MultipleChoice, Program, Session, solve, solve_mckp
from gpuschedlab.optim.prices import dual, labels, repair
from gpuschedlab.optim.programs import program, shims, work_limits
from gpuschedlab.optim.programs.knapsack import cell_rows

KINDS = np.array([0, 0, 0, 1, 1, 2, 2])
GPUS = np.array([1, 2, 4, 1, 3, 2, 8])
SEEDS = range(12)


def knapsack(seed: int, jobs: int = 6) -> MultipleChoice:
    """Jobs whose worth grows with GPUs, some of it impossible, on seven configurations of three types."""
    rng = np.random.default_rng(seed)
    worth = rng.uniform(0.1, 3, (jobs, 1)) * GPUS ** rng.uniform(0.3, 1.1, (jobs, 1)) * (1 + 0.3 * KINDS)
    worth[rng.random(worth.shape) < 0.15] = np.nan
    return MultipleChoice(worth, KINDS, GPUS, rng.integers(1, 9, 3))


def kernels(problem: MultipleChoice) -> tuple[dual.Configurations, dual.Hulls]:
    """Configurations in the order of kernels, and the hulls of all jobs."""
    order = np.lexsort((problem.gpus, problem.kinds))
    kinds = problem.kinds[order]
    starts = np.searchsorted(kinds, np.arange(len(problem.capacity) + 1))
    configs = dual.Configurations(
        order, starts, problem.gpus[order].astype(float), kinds, problem.capacity.astype(float)
    )
    return configs, dual.build_hulls(problem.utility, configs)


def usable(problem: MultipleChoice, job: int) -> np.ndarray:
    """Configurations of a job that are worth something and fit into the cluster."""
    fits = problem.gpus <= problem.capacity[problem.kinds]
    return np.flatnonzero(fits & (np.nan_to_num(problem.utility[job]) > 0))


def used_by(problem: MultipleChoice, choice) -> np.ndarray:
    """GPUs of each type that choices use."""
    chosen = choice[choice >= 0]
    return np.bincount(problem.kinds[chosen], problem.gpus[chosen], minlength=len(problem.capacity))


def value_of(problem: MultipleChoice, choice) -> float:
    jobs = np.flatnonzero(choice >= 0)
    return float(problem.utility[jobs, choice[jobs]].sum())


def in_callers_order(configs: dual.Configurations, choice) -> np.ndarray:
    """Choices of a kernel as places in the caller's arrays."""
    return np.where(choice >= 0, configs.order[choice], -1)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_hull_is_the_least_concave_function_above_all_configurations(seed):
    problem = knapsack(seed)
    configs, hulls = kernels(problem)
    for job, kind in itertools.product(range(len(problem.utility)), range(3)):
        begin = configs.starts[kind]
        vertices = hulls.vertices[job, begin : begin + hulls.sizes[job, kind]]
        slopes = hulls.slopes[job, begin : begin + hulls.sizes[job, kind]]
        gpus = np.append(0.0, configs.gpus[vertices])
        worth = np.append(0.0, problem.utility[job, configs.order[vertices]])
        assert slopes == pytest.approx(np.diff(worth) / np.diff(gpus))
        assert (np.diff(slopes) < 0).all()
        assert (slopes > 0).all()
        others = [c for c in usable(problem, job) if problem.kinds[c] == kind]
        assert len(vertices) > 0 or not others
        for c in others:
            assert problem.utility[job, c] <= np.interp(problem.gpus[c], gpus, worth) + 1e-12
        for price in (0.0, 0.3, *slopes):
            above = dual.vertices_above(hulls.slopes, job, begin, hulls.sizes[job, kind], price)
            assert above == (slopes > price).sum()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_value_of_prices_is_that_of_the_best_choice_of_each_job(seed):
    problem = knapsack(seed)
    configs, hulls = kernels(problem)
    prices = np.random.default_rng(seed).uniform(0, 1, 3)
    assignment = dual.Assignment(np.empty(6, np.int64), np.zeros(3))
    bound, value = dual.evaluate(problem.utility, configs, hulls, prices, assignment)
    choice = in_callers_order(configs, assignment.choice)
    surplus = problem.utility - prices[KINDS] * GPUS
    best = [max([0.0, *surplus[job, usable(problem, job)]]) for job in range(6)]
    assert bound == pytest.approx(sum(best) + prices @ problem.capacity)
    assert value == pytest.approx(value_of(problem, choice))
    assert assignment.used == pytest.approx(used_by(problem, choice))
    assert [surplus[job, c] if c >= 0 else 0.0 for job, c in enumerate(choice)] == pytest.approx(best)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_least_bound_is_the_optimum_of_the_relaxation(seed):
    problem = knapsack(seed)
    configs, hulls = kernels(problem)
    found = dual.search_prices(problem.utility, configs, hulls, np.zeros(3), 1e-9, 500)
    cells = shims.possible_cells(problem)
    relaxed = shims.relaxed(problem, cells)
    exact = linprog(-relaxed.c, relaxed.A, relaxed.row_upper, bounds=(0, 1))
    assert found.bound == pytest.approx(-exact.fun, rel=1e-7)
    assert found.relaxed == pytest.approx(-exact.fun, rel=1e-7)
    assert found.weights.sum() == pytest.approx(1)
    assert (found.prices >= 0).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_repaired_choices_fit_and_their_value_is_their_own(seed):
    problem = knapsack(seed, 12)
    configs, hulls = kernels(problem)
    prices = np.full(3, 0.05)  # so low that choices do not fit
    assignment = dual.Assignment(np.empty(12, np.int64), np.zeros(3))
    dual.evaluate(problem.utility, configs, hulls, prices, assignment)
    assert (assignment.used > problem.capacity).any()
    repaired = repair.repair(problem.utility, configs, hulls, prices, assignment, 6)
    choice = in_callers_order(configs, assignment.choice)
    assert assignment.used == pytest.approx(used_by(problem, choice))
    assert (assignment.used <= problem.capacity).all()
    assert repaired == pytest.approx(value_of(problem, choice))
    advanced = repair.advance(problem.utility, configs, np.zeros(3), assignment, 50)
    choice = in_callers_order(configs, assignment.choice)
    assert (assignment.used <= problem.capacity).all()
    assert advanced == pytest.approx(value_of(problem, choice))
    assert advanced >= repaired - 1e-12
    for job in range(12):  # at prices of 0 nothing that gains is left to do for one job alone
        without = used_by(problem, np.delete(choice, job))
        now = problem.utility[job, choice[job]] if choice[job] >= 0 else 0.0
        fits = [c for c in usable(problem, job) if without[KINDS[c]] + GPUS[c] <= problem.capacity[KINDS[c]]]
        assert all(problem.utility[job, c] <= now + 1e-9 for c in fits)


def least_loss(problem: MultipleChoice, prices, limit: float) -> float:
    """Least loss below a limit of all choices that fit, by enumeration: of the choices, and of the GPUs that stay idle."""
    surplus = problem.utility - prices[KINDS] * GPUS
    options = [[-1, *usable(problem, job)] for job in range(len(problem.utility))]
    best = [max(surplus[job, c] if c >= 0 else 0.0 for c in own) for job, own in enumerate(options)]
    lowest = limit
    for choice in itertools.product(*options):
        used = used_by(problem, np.array(choice))
        if (used <= problem.capacity).all():
            gained = sum(surplus[job, c] for job, c in enumerate(choice) if c >= 0)
            lowest = min(lowest, sum(best) - gained + prices @ (problem.capacity - used))
    return lowest


@pytest.mark.parametrize("limit", [0.4, 2.0, 50.0])
@pytest.mark.parametrize("seed", range(6))
def test_labels_find_the_least_loss_of_all_choices(seed, limit):
    problem = knapsack(seed, 5)
    configs, hulls = kernels(problem)
    prices = dual.search_prices(problem.utility, configs, hulls, np.zeros(3), 1e-9, 500).prices
    core = labels.core_choices(problem.utility, configs, prices, limit)
    surplus = problem.utility - prices[KINDS] * GPUS
    for job in range(5):
        own = {-1: 0.0} | {c: surplus[job, c] for c in usable(problem, job)}
        wanted = {c for c, gain in own.items() if max(own.values()) - gain < limit}
        at = slice(core.first[job], core.first[job + 1])
        assert set(in_callers_order(configs, core.config[at]).tolist()) == wanted
        assert (np.diff(core.loss[at]) >= 0).all()
    lowest, picks, dropped = labels.close_gap(core, configs, prices, limit, 10_000)
    assert lowest == pytest.approx(least_loss(problem, prices, limit))
    assert dropped == np.inf
    if len(picks):
        choice = in_callers_order(configs, picks)
        idle = problem.capacity - used_by(problem, choice)
        best = [max([0.0, *surplus[job, usable(problem, job)]]) for job in range(5)]
        assert sum(best) + prices @ problem.capacity - value_of(problem, choice) == pytest.approx(lowest)
        assert (idle >= 0).all()
    else:
        assert lowest == limit
    narrow, _, given_up = labels.close_gap(core, configs, prices, limit, 1)
    assert min(narrow, given_up) <= lowest + 1e-9, "what was given up could have been better"


def test_shares_become_whole_in_the_order_of_the_largest():
    """Of three jobs that want 4 of 6 GPUs the one with the largest share has them; the others have their next."""
    problem = MultipleChoice(
        np.tile([1.0, 2.0, 3.0], (3, 1)), [0, 0, 0], [1, 2, 4], [6], mandatory=[False, False, True]
    )
    cells = shims.possible_cells(problem)
    share = np.array([0.2, 0.3, 0.9, 0.0, 0.0005, 0.5, 0.1, 0.2, 0.3])
    assert shims.largest_share(problem, cells, share).tolist() == [1, -1, 2], "the mandatory job first"
    assert shims.worth_of(problem, np.array([1, -1, 2])) == 5.0
    crowded = MultipleChoice([[1.0]] * 2, [0], [2], [3], mandatory=[True, True])
    with pytest.raises(SolverError, match="no room for mandatory job 1"):
        shims.largest_share(crowded, shims.possible_cells(crowded), np.ones(2))


def test_rows_of_cells_by_hand():
    rows = cell_rows(np.array([0, 1, 1]), np.array([2, 3, 2]), np.array([2.0, 1, 4]), 4)
    assert rows.toarray().tolist() == [[1, 0, 0], [0, 1, 1], [2, 0, 4], [0, 1, 0]]


@pytest.mark.parametrize("seed", range(6))
def test_an_edited_program_is_the_program_of_what_is_left(seed):
    """After any edits: the same objective as a program that is begun with the resources and requests of the end."""
    rng = np.random.default_rng(seed)
    edited = EditedProgram({"gpus": 6.0, "nodes": 4.0})
    session = Session("highs")
    requests = {}
    room = {"gpus": 6.0, "nodes": 4.0}
    for step in range(14):
        name = f"job {step}"
        kind = rng.integers(4)
        if kind < 2 or not requests:
            worth = rng.uniform(0.5, 5, 2)
            requests[name] = (worth, {"gpus": rng.integers(1, 4, 2).astype(float), "nodes": np.ones(2)})
            edited.add_request(name, worth=worth, uses=requests[name][1])
        elif kind == 2:
            gone = rng.choice(list(requests))
            edited.remove_request(gone)
            del requests[gone]
        else:
            changed = rng.choice(list(requests))
            requests[changed] = (rng.uniform(0.5, 5, 2), requests[changed][1])
            edited.change_worth(changed, requests[changed][0])
        by = float(rng.integers(-1, 2))
        edited.change_resource("gpus", by)
        room["gpus"] += by
        session.update(edited)
        fresh = EditedProgram(dict(room))
        for request, (worth, uses) in requests.items():
            fresh.add_request(request, worth=worth, uses=uses)
        assert session.solve().objective == pytest.approx(solve(fresh.program(), "highs").objective, abs=1e-9)


def test_numbers_of_a_program_by_hand():
    small = Program(
        [1.0, -2.0],
        [[1.0, 1.0], [1.0, -1.0]],
        [-1.0, -np.inf],
        [2.0, 1.0],
        lower=0.0,
        upper=2.0,
        integrality=[True, False],
    )
    assert small.value([1.0, 2.0]) == -3.0
    assert small.violation([1.0, 1.0]) == 0.0
    assert small.violation([2.5, 0.0]) == pytest.approx(1.5), "the second row: 2.5 - 0 is 1.5 above 1"
    assert small.violation([0.4, 0.4]) == pytest.approx(0.4), "0.4 is 0.4 from a whole number"
    assert small.violation([0.0, -1.5]) == pytest.approx(1.5)
    assert small.equals(
        Program(small.c, small.A, small.row_lower, small.row_upper, small.lower, small.upper, small.integrality)
    )
    changed = Change(c=np.array([3.0, 0.0])).of(small)
    assert changed.value([1.0, 2.0]) == 3.0
    assert not changed.equals(small)
    assert solve(Program(np.zeros(0), np.zeros((1, 0)))).x.shape == (0,)


@pytest.mark.parametrize(
    ("objective", "bound", "gap"), [(90.0, 100.0, 0.1), (0.0, 0.0, 0.0), (-3.0, -2.0, 1 / 3), (1.0, np.inf, np.inf)]
)
def test_a_relative_gap_by_hand(objective, bound, gap):
    assert program.relative_gap(objective, bound) == pytest.approx(gap)


def test_work_is_steps_times_entries():
    assert work_limits.steps(2.0, "simplex", 1_000_000) == 400
    assert work_limits.steps(1e-9, "highs", 500) == 1.0
    assert work_limits.steps(None, "cbc", 1) == np.inf
    assert program.worst_status(["optimal", "time limit"]) == "time limit"
    assert program.worst_status(["optimal"]) == "optimal"


def one_choice(worth=1.0, kind=0, gpus=1, room=1):
    return MultipleChoice([[worth]], np.array([kind]), np.array([gpus]), np.array([room]))


def one_row(**bounds):
    return Program([1.0], [[1.0]], **bounds)


def edits(action, *words, **more):
    """An edit of a program of two GPUs with one request."""
    edited = EditedProgram({"gpus": 2.0})
    edited.add_request("a", worth=[1.0], uses={"gpus": [1.0]})
    getattr(edited, action)(*words, **more)


SOUND = [
    lambda: one_choice(worth=np.nan),
    lambda: one_choice(worth=-1.0),
    lambda: one_choice(room=0),
    lambda: one_row(lower=1.0, upper=1.0),
    lambda: one_row(row_lower=-np.inf, row_upper=np.inf),
    lambda: edits("change_resource", "gpus", -2.0),
    lambda: Session("pop-1"),
    lambda: Session("mip", engine="cbc", isolate=True),
]
"""Calls at the last value that is taken."""


@pytest.mark.parametrize("call", SOUND)
def test_the_last_value_that_is_taken(call):
    call()


REFUSED = [
    (lambda: one_choice(gpus=0), "GPUs that are not whole or below 1"),
    (lambda: one_choice(gpus=1.5, room=3), "whole"),
    (lambda: one_choice(room=-1), "below 1"),
    (lambda: one_choice(room=0.5), "whole"),
    (lambda: one_choice(worth=np.inf), "inf"),
    (lambda: one_choice(worth=-np.inf), "inf"),
    (lambda: one_choice(kind=1), "type"),
    (lambda: one_choice(kind=-1), "type"),
    (lambda: MultipleChoice([[1.0, 2.0]], [0], [1, 2], [3]), "expected"),
    (lambda: one_row(lower=1.1, upper=1.0), "lower <= upper"),
    (lambda: one_row(row_lower=1.1, row_upper=1.0), "row_lower <= row_upper"),
    (lambda: one_row(lower=np.inf, upper=np.inf), "lower inf"),
    (lambda: one_row(row_lower=np.inf, row_upper=np.inf), "row_lower inf"),
    (lambda: Program([1.0], [[1.0, 2.0]]), r"found shape \(1,\)"),
    (lambda: Program([np.nan], [[1.0]]), "c"),
    (lambda: Session("pop-0"), "pop-0"),
    (lambda: Session("pop-x"), "pop-x"),
    (lambda: Session("x"), "'x'"),
    (lambda: Session("mip", engine="x"), "'x'"),
    (lambda: Session("highs").solve(), "update"),
    (lambda: solve(one_row(), "nobody"), "nobody"),
    (lambda: solve(one_row(row_lower=2.0, upper=1.0)), "infeasible"),
    (lambda: solve(Program([1.0], [[1e21]], row_upper=1e21, upper=1.0), "mip"), "1e"),
    (lambda: solve_mckp([[1.0]], [0], [1], [3], prices=[1.0, 2.0]), "prices"),
    (lambda: edits("remove_request", "b"), "b"),
    (lambda: edits("add_request", "a", worth=[1.0], uses={}), "a"),
    (lambda: edits("add_request", "e", worth=[1.0], uses={"disks": [1.0]}), "disks"),
    (lambda: edits("change_worth", "a", [1.0, 2.0]), "a"),
    (lambda: edits("change_resource", "disks", 1.0), "disks"),
]
"""Calls that are refused, and a word of the refusal."""


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_refusals_name_what_was_found(call, words):
    with pytest.raises(SolverError, match=words):
        call()
