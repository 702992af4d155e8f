"""The multiple-choice knapsack by prices against enumeration, HiGHS, and its own bound."""

import itertools
import time

import numpy as np
import pytest
from configurations import sizes_on
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuschedlab.errors import Infeasible, SolverError
from gpuschedlab.optim import MultipleChoice, solve, solve_mckp
from gpuschedlab.optim.prices import mckp as prices
from gpuschedlab.optim.prices.dual import Assignment, Configurations, _enter, evaluate
from gpuschedlab.optim.prices.labels import Core, close_gap
from gpuschedlab.optim.prices.repair import round_mix


def concave(rng, n, nodes=(3, 2, 3), sizes=(8, 8, 4), decimals=None):
    """Utilities: a power of a concave speed-up, different for each job and type."""
    node_type = np.repeat(np.arange(len(nodes)), nodes)
    node_gpus = np.repeat(sizes, nodes)
    types, gpus = sizes_on(nodes, sizes)
    speed = rng.uniform(0.5, 3, (n, len(nodes)))[:, types] * gpus ** rng.uniform(0.3, 0.95, (n, 1))
    worth = (speed / speed.min(axis=1, keepdims=True)) ** -0.5
    worth = worth if decimals is None else np.round(worth, decimals)
    return 1.1 - worth, types, gpus, np.bincount(node_type, weights=node_gpus).astype(int)


def check_feasible(found, utility, types, gpus, capacity):
    taken = found.choice >= 0
    assert (
        np.bincount(types[found.choice[taken]], weights=gpus[found.choice[taken]], minlength=len(capacity)) <= capacity
    ).all()
    value = utility[taken, found.choice[taken]].sum()
    assert value == pytest.approx(found.objective)
    assert found.bound >= found.objective
    assert found.gap == pytest.approx((found.bound - found.objective) / max(found.bound, 1e-300))


def best_by_enumeration(utility, types, gpus, capacity):
    n, C = utility.shape
    best = 0.0
    for choice in itertools.product(range(-1, C), repeat=n):
        used = np.zeros(len(capacity))
        value = 0.0
        for i, c in enumerate(choice):
            if c >= 0:
                used[types[c]] += gpus[c]
                value += utility[i, c]
        if value > best and (used <= capacity).all():  # nan compares as false
            best = value
    return best


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6))
def test_small_problems_equal_enumeration(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 5)
    C = rng.integers(1, 5)
    T = rng.integers(1, 4)
    types = rng.integers(0, T, C)
    gpus = rng.integers(1, 5, C)
    utility = np.round(rng.normal(1, 1, (n, C)), 2)
    utility[rng.random((n, C)) < 0.2] = np.nan
    capacity = rng.integers(0, 8, T)
    found = solve_mckp(utility, types, gpus, capacity, gap=0)
    check_feasible(found, utility, types, gpus, capacity)
    assert found.objective == pytest.approx(best_by_enumeration(utility, types, gpus, capacity))
    assert found.gap < 1e-9


@pytest.mark.parametrize("decimals", [None, 2])
@pytest.mark.parametrize("n", [4, 15, 40])
def test_rounds_equal_highs(n, decimals):
    rng = np.random.default_rng(n)
    for _ in range(4):
        utility, types, gpus, capacity = concave(rng, n, decimals=decimals)
        utility[rng.random(utility.shape) < 0.1] = np.nan
        found = solve_mckp(utility, types, gpus, capacity, gap=0, quantum=0.01 if decimals else 0.0)
        check_feasible(found, utility, types, gpus, capacity)
        exact = solve(MultipleChoice(utility, types, gpus, capacity), "highs", gap=0)
        assert found.objective == pytest.approx(exact.objective, abs=1e-7)
        assert found.gap < 1e-9


def test_rigid_demands_equal_highs():
    """Few, large, awkward sizes: the knapsack is far from its relaxation."""
    rng = np.random.default_rng(8)
    gpus = np.array([4, 6, 10, 14, 16] * 3)
    types = np.repeat([0, 1, 2], 5)
    capacity = np.array([24, 16, 24])
    for _ in range(8):
        utility = np.full((12, 15), np.nan)
        for i in range(12):
            utility[i, gpus == rng.choice(gpus)] = rng.uniform(0.1, 1, 3)
        found = solve_mckp(utility, types, gpus, capacity, gap=0)
        check_feasible(found, utility, types, gpus, capacity)
        exact = solve(MultipleChoice(utility, types, gpus, capacity), "highs", gap=0)
        assert found.objective == pytest.approx(exact.objective, abs=1e-7)


def test_the_bound_holds_when_nothing_closes_the_gap():
    rng = np.random.default_rng(5)
    gaps = []
    for _ in range(10):
        utility, types, gpus, capacity = concave(rng, 12)
        quick = solve_mckp(utility, types, gpus, capacity, gap=0, labels=0)
        few = solve_mckp(utility, types, gpus, capacity, gap=0, labels=40)
        exact = solve_mckp(utility, types, gpus, capacity, gap=0)
        for found in (quick, few):
            check_feasible(found, utility, types, gpus, capacity)
            assert found.objective <= exact.objective + 1e-9 <= found.bound + 2e-9
        gaps.append(quick.gap)
    assert max(gaps) > 1e-6  # or this test shows nothing
    assert np.mean(gaps) < 0.02


def test_a_bad_start_and_few_evaluations_leave_a_valid_bound():
    utility, types, gpus, capacity = concave(np.random.default_rng(2), 30)
    exact = solve_mckp(utility, types, gpus, capacity, gap=0)
    for evaluations in (1, 2, 5):
        found = solve_mckp(
            utility, types, gpus, capacity, gap=0, prices=[9.0, 0.0, 0.1], evaluations=evaluations, labels=0
        )
        check_feasible(found, utility, types, gpus, capacity)
        assert found.bound >= exact.objective - 1e-9


def test_a_gap_allowed_is_kept():
    utility, types, gpus, capacity = concave(np.random.default_rng(3), 60)
    exact = solve_mckp(utility, types, gpus, capacity, gap=0)
    found = solve_mckp(utility, types, gpus, capacity, gap=0.01)
    assert found.gap <= 0.01
    assert found.objective >= 0.99 * exact.objective


def test_bounds_of_answers_that_fall_short_hold():
    rng = np.random.default_rng(9)
    short = 0
    for _ in range(30):
        utility, types, gpus, capacity = concave(rng, 10)
        exact = solve_mckp(utility, types, gpus, capacity, gap=0)
        found = solve_mckp(utility, types, gpus, capacity, gap=0.003)
        assert found.gap <= 0.003
        assert exact.objective <= found.bound + 1e-9
        short += found.objective < exact.objective - 1e-6
    assert short > 3  # or this test shows nothing


def test_the_order_of_configurations_and_jobs_does_not_matter():
    rng = np.random.default_rng(4)
    utility, types, gpus, capacity = concave(rng, 20)
    exact = solve_mckp(utility, types, gpus, capacity, gap=0)
    columns = rng.permutation(len(types))
    rows = rng.permutation(20)
    shuffled = solve_mckp(utility[rows][:, columns], types[columns], gpus[columns], capacity, gap=0)
    assert shuffled.objective == pytest.approx(exact.objective)
    assert columns[shuffled.choice].tolist() == exact.choice[rows].tolist()


def test_warm_prices_give_the_same_answer():
    utility, types, gpus, capacity = concave(np.random.default_rng(6), 50)
    cold = solve_mckp(utility, types, gpus, capacity, gap=0)
    warm = solve_mckp(utility, types, gpus, capacity, gap=0, prices=cold.prices)
    assert warm.objective == pytest.approx(cold.objective)
    assert (cold.prices >= 0).all()


def test_prices_to_begin_with_are_begun_with():
    """With the prices that a search ends with, its bound is had at once; without, one trial of prices gives a far worse one."""
    utility, types, gpus, capacity = concave(np.random.default_rng(6), 200)
    end = solve_mckp(utility, types, gpus, capacity, gap=0, labels=0, cells=0)
    first, begun = (
        solve_mckp(utility, types, gpus, capacity, gap=0, labels=0, cells=0, evaluations=1, prices=prices).bound
        for prices in (None, end.prices)
    )
    assert begun == pytest.approx(end.bound, rel=1e-9)
    assert first > 1.2 * end.bound


def test_choices_follow_the_mix_of_the_relaxation(monkeypatch):
    """Of 100 alike jobs on 150 GPUs, at the prices of which 1 and 2 GPUs are worth the same, half get 2."""
    seen = []

    def watched(v, configs, hulls, searched, assignment):
        round_mix(v, configs, hulls, searched, assignment)
        mix = np.zeros(len(configs.capacity))
        answer = Assignment(np.empty(len(v), np.int64), np.zeros(len(configs.capacity)))
        for tried, weight in zip(searched.tried, searched.weights, strict=True):
            evaluate(v, configs, hulls, tried, answer)
            mix += weight * answer.used
        seen.append(np.abs(assignment.used - mix) / configs.capacity)

    monkeypatch.setattr(prices, "round_mix", watched)
    solve_mckp([[1.0, 1.5]] * 100, [0, 0], [1, 2], [150], gap=0, labels=0, cells=0)
    assert np.max(seen) <= 1 / 150


def test_a_thousand_jobs_within_a_thousandth():
    utility, types, gpus, capacity = concave(np.random.default_rng(7), 1000, nodes=(100, 80, 120))
    found = solve_mckp(utility, types, gpus, capacity, gap=1e-3)
    check_feasible(found, utility, types, gpus, capacity)
    assert found.gap <= 1e-3


def test_nothing_to_choose():
    assert solve_mckp(np.zeros((0, 2)), [0, 0], [1, 2], [4]).objective == 0
    assert solve_mckp(np.zeros((3, 0)), [], [], [4]).choice.tolist() == [-1, -1, -1]
    assert solve_mckp([[1.0]], [0], [1], [0]).choice.tolist() == [-1]
    assert solve_mckp([[np.nan], [-1.0]], [0], [1], [4]).choice.tolist() == [-1, -1]
    assert solve_mckp([[1.0], [2.0]], [0], [1], [9]).choice.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([[1.0]], [0, 1], [1], [4]), "expected (n, C)"),
        (([[1.0]], [1], [1], [4]), "found type 1"),
        (([[1.0]], [0], [0.5], [4]), "not whole or below 1"),
        (([[np.inf]], [0], [1], [4]), "infinite"),
    ],
)
def test_malformed_arguments_are_refused(arguments, words):
    with pytest.raises(SolverError) as error:
        solve_mckp(*arguments)
    assert words in str(error.value)


@pytest.mark.parametrize("seed", range(3))
def test_few_cells_are_closed_by_highs_where_labels_are_too_few(seed, monkeypatch):
    """Rounds in which jobs come in fours that are alike: two labels a job leave a gap, HiGHS none."""
    monkeypatch.setattr(prices, "QUICK", 1)
    rng = np.random.default_rng(seed)
    types = np.repeat([0, 1, 2], 4)
    gpus = np.tile([3, 4, 6, 10], 3)
    capacity = np.array([17, 23, 29])
    utility = np.repeat(rng.uniform(0.5, 2, (6, 1)) * gpus ** rng.uniform(0.3, 0.95, (6, 1)), 4, axis=0)
    found = solve_mckp(utility, types, gpus, capacity, gap=1e-6)
    labels = solve_mckp(utility, types, gpus, capacity, gap=1e-6, cells=0, labels=1)
    few = solve_mckp(utility, types, gpus, capacity, gap=1e-6, cells=12)
    exact = solve(MultipleChoice(utility, types, gpus, capacity), "highs", gap=1e-7)
    for answer in (found, labels, few):
        check_feasible(answer, utility, types, gpus, capacity)
        assert answer.objective <= exact.objective * (1 + 1e-7)
        assert answer.bound >= exact.objective * (1 - 1e-7)
    assert found.objective == pytest.approx(exact.objective, rel=2e-6)
    assert found.status == "optimal"
    assert labels.gap > 1e-4  # or this test shows nothing


def test_jobs_that_must_run_do_and_what_cannot_be_is_said():
    utility = [[0.1, 0.2], [5.0, 9.0], [4.0, np.nan]]
    types = [0, 0]
    gpus = [1, 2]
    free = solve_mckp(utility, types, gpus, [3])
    held = solve_mckp(utility, types, gpus, [3], mandatory=[True, False, False])
    assert free.choice.tolist() == [-1, 1, 0]
    assert held.choice.tolist() == [0, 1, -1]
    assert (held.objective, held.bound) == (pytest.approx(9.1), pytest.approx(9.1))
    program = MultipleChoice(utility, types, gpus, [3], mandatory=np.array([True, False, False]))
    for solver in ("highs", "mip", "prices"):
        assert solve(program, solver).objective == pytest.approx(9.1)
    for solver in ("highs", "prices"):
        with pytest.raises(Infeasible):
            solve(MultipleChoice(utility, types, gpus, [1], mandatory=np.array([True, True, False])), solver)
        with pytest.raises(Infeasible):
            solve(MultipleChoice([[np.nan, np.nan]], types, gpus, [1], mandatory=np.array([True])), solver)
    with pytest.raises(SolverError, match=r"found mandatory \(1,\); expected \(3,\)"):
        solve_mckp(utility, types, gpus, [3], mandatory=[True])


def test_a_time_limit_gives_the_best_found_and_says_so():
    utility, types, gpus, capacity = concave(np.random.default_rng(12), 60)
    exact = solve_mckp(utility, types, gpus, capacity, gap=0)
    found = solve_mckp(utility, types, gpus, capacity, gap=0, time_limit=0.0)
    check_feasible(found, utility, types, gpus, capacity)
    assert found.status == "time limit"
    assert 0 < found.objective <= exact.objective <= found.bound
    assert exact.status == "optimal"


def test_the_clock_does_not_change_an_answer_in_time(monkeypatch):
    """A guard that does not strike changes nothing, however near it is; one that strikes is reported, even at a small gap."""
    utility, types, gpus, capacity = concave(np.random.default_rng(12), 300, nodes=(30, 20, 25))
    rest = {"gap": 1e-3, "labels": 0}
    free = solve_mckp(utility, types, gpus, capacity, **rest)
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    near = solve_mckp(utility, types, gpus, capacity, time_limit=0.5, **rest)
    assert (near.choice.tolist(), near.prices.tolist()) == (free.choice.tolist(), free.prices.tolist())
    assert (near.bound, near.status) == (free.bound, free.status)
    late = solve_mckp(utility, types, gpus, capacity, time_limit=0.0, gap=0.995)
    assert late.gap <= 0.995
    assert late.status == "time limit"


def test_work_bounds_the_prices_that_are_tried():
    utility, types, gpus, capacity = concave(np.random.default_rng(3), 200, nodes=(30, 20, 25))
    full = solve_mckp(utility, types, gpus, capacity, gap=0)
    one = solve_mckp(utility, types, gpus, capacity, gap=0, work=1e-9)
    few = solve_mckp(utility, types, gpus, capacity, gap=0, work=10.5 * 600 / 4e7, labels=0)
    ten = solve_mckp(utility, types, gpus, capacity, gap=0, evaluations=10, labels=0)
    assert one.status == "stopped"
    assert one.gap > full.gap
    assert one.objective <= full.objective <= one.bound
    assert (few.bound, few.prices.tolist()) == (ten.bound, ten.prices.tolist())


@pytest.mark.data
def test_jobs_of_tiny_worth_that_must_run_get_the_best_there_is(data_dir):
    kept = np.load(data_dir / "inputs/trust/prices_stopped_199.npz")
    must = np.arange(len(kept["u"])) < 2
    tiny, large = (solve_mckp(kept["u"] * w, kept["k"], kept["g"], kept["cap"], mandatory=must) for w in (1.0, 1e12))
    assert tiny.status == large.status == "optimal"
    assert tiny.objective * 1e12 == pytest.approx(large.objective, rel=1e-4)
    assert large.objective == pytest.approx(26.3159622)


@pytest.mark.parametrize("seed", range(40))
def test_the_unit_of_utilities_decides_nothing(seed):
    """Two jobs must run, at any loss: utilities of 1e-12 get what those of 1 get, within .1 %, by either door."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 16))
    utility, types, gpus, capacity = concave(rng, n)
    utility = utility - rng.uniform(0, 0.9, (n, 1))  # some are worth less than nothing on few GPUs
    utility[rng.random(utility.shape) < 0.2] = np.nan
    utility[:2, 0] = rng.uniform(-1, 1, 2)  # the two have a choice, or there is no answer
    must = np.arange(n) < 2
    for solved in (
        lambda u: solve_mckp(u, types, gpus, capacity, mandatory=must).objective,
        lambda u: solve(MultipleChoice(u, types, gpus, capacity, mandatory=must), "prices").objective,
    ):
        one = solved(utility)
        tiny = solved(utility * 1e-12) * 1e12
        assert tiny == pytest.approx(one, rel=1e-3)


def test_prices_of_another_length_are_refused():
    with pytest.raises(SolverError, match=r"found prices of shape \(2,\); expected \(1,\), one for each type"):
        solve_mckp([[1.0]], [0], [1], [4], prices=[1.0, 2.0])


def test_of_rows_that_limit_alike_the_largest_pivot_leaves():
    """A ratio that is less by rounding only does not make a small pivot: the basis stays well conditioned."""
    B = np.eye(2)
    rhs = np.array([2.0, 0.5 - 2e-14])
    basis = np.array([0, 1])
    assert rhs[1] / 0.5 < rhs[0] / 2.0
    assert _enter(B, rhs, basis, np.array([2.0, 0.5]), 7)
    assert basis.tolist() == [7, 1]
    assert B.tolist() == [[0.5, 0.0], [-0.25, 1.0]]


@pytest.mark.parametrize("seed", range(6))
def test_choices_of_least_loss_are_those_of_all_choices(seed):
    """Loss of the choices and price of the GPUs left idle, against every way to choose; many ways use as many GPUs."""
    rng = np.random.default_rng(seed)
    gpus = np.array([1.0, 2.0, 1.0, 2.0, 3.0])
    type_of = np.array([0, 0, 1, 1, 1])
    config = []
    loss = []
    at = [0]
    for _ in range(5):
        own = rng.permutation(5)[: rng.integers(1, 5)].tolist() + [-1] * int(rng.integers(2))
        config += own
        loss += [0.0, *np.sort(rng.integers(1, 9, len(own) - 1)).tolist()]
        at.append(len(config))
    at = np.array(at)
    config = np.array(config)
    loss = np.array(loss, float)
    capacity = np.array([5, 6])
    prices = np.array([0.5, 1.25])
    best = np.inf
    for picks in itertools.product(*(range(i, j) for i, j in itertools.pairwise(at))):
        own = config[list(picks)]
        used = np.bincount(type_of[own[own >= 0]], gpus[own[own >= 0]], 2)
        if (used <= capacity).all():
            best = min(best, loss[list(picks)].sum() + prices @ (capacity - used))
    configs = Configurations(np.arange(5), np.array([0, 2, 5]), gpus, type_of, capacity.astype(float))
    found, picks, dropped = close_gap(Core(at, config, loss), configs, prices, 1e9, 10_000)
    assert (found, dropped) == (pytest.approx(best if np.isfinite(best) else 1e9), np.inf)
    if np.isfinite(best):
        used = np.bincount(type_of[picks[picks >= 0]], gpus[picks[picks >= 0]], 2)
        own = sum(loss[at[i] + config[at[i] : at[i + 1]].tolist().index(pick)] for i, pick in enumerate(picks))
        assert own + prices @ (capacity - used) == pytest.approx(best)
