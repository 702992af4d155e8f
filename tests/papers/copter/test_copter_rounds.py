"""Rounds by relaxation and shim (COpter-Sia, LP*), and in parts (POP)."""

import itertools

import numpy as np
import polars as pl
import pytest

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import SolverError
from gpuschedlab.optim import MultipleChoice, Session, solve
from gpuschedlab.optim.programs.shims import largest_share, possible_cells, relaxed
from gpuschedlab.papers.copter.explorers.price_paths import descent_prices
from gpuschedlab.papers.copter.solver.partition import Pop
from gpuschedlab.papers.copter.solver.proximal import Copter
from gpuschedlab.papers.copter.solver.rounds import bound_at
from gpuschedlab.policies import Sia
from gpuschedlab.sim import simulate

SIZES = np.array([1, 2, 4, 8, 16])


def knapsack(seed: int, n: int, keys=None, utility=None) -> MultipleChoice:
    rng = np.random.default_rng(seed)
    types = np.repeat([0, 1, 2], 5)
    gpus = np.tile(SIZES, 3)
    worth = rng.uniform(1, 2, (n, 1)) * gpus ** rng.uniform(0.3, 0.8, (n, 1)) * rng.uniform(0.5, 1.5, (n, 3))[:, types]
    worth[rng.random(worth.shape) < 0.3] = np.nan
    return MultipleChoice(worth if utility is None else utility, types, gpus, [n, n, n // 2], keys=keys)


def feasible(problem: MultipleChoice, x) -> bool:
    table = x.reshape(problem.shape)
    used = np.bincount(problem.kinds, table.sum(axis=0) * problem.gpus, len(problem.capacity))
    chosen = problem.utility[table > 0.5]
    return bool((table.sum(axis=1) <= 1).all() and (used <= problem.capacity).all() and not np.isnan(chosen).any())


@pytest.mark.parametrize("solver", ["copter", "relaxed", "pop-4", "pop"])
@pytest.mark.parametrize("seed", range(8))
def test_answers_fit_and_bounds_hold(seed, solver):
    problem = knapsack(seed, 12 + 4 * seed)
    best = solve(problem, gap=1e-6)
    found = solve(problem, solver)
    assert feasible(problem, found.x)
    assert found.objective == pytest.approx(np.nansum(problem.utility[found.table > 0.5]))
    assert found.objective <= best.objective * (1 + 1e-6)
    assert found.bound >= best.objective * (1 - 1e-6)
    if not solver.startswith("pop"):
        assert found.bound <= solve(relaxed(problem, possible_cells(problem))).objective * 1.005
    assert found.status == ("optimal" if found.gap <= 1e-4 else "stopped")


@pytest.mark.parametrize(("solver", "lost"), [("copter", 0.015), ("relaxed", 0.015)])
def test_a_large_round_loses_little(solver, lost):
    problem = knapsack(3, 400)
    found = solve(problem, solver)
    assert found.gap < lost


def test_the_relaxation_over_possible_cells_is_that_over_all():
    problem = knapsack(5, 30)
    cells = possible_cells(problem)
    whole = relaxed(problem, cells)
    every = solve(MultipleChoice(problem.utility, problem.kinds, problem.gpus, problem.capacity), "highs", gap=0.0)
    assert whole.A.shape == (33, len(cells.job))
    assert solve(whole).objective >= every.objective - 1e-9


def test_the_bound_of_prices_by_enumeration():
    problem = MultipleChoice([[3.0, 5.0], [2.0, np.nan], [1.0, 4.0]], [0, 0], [1, 2], [3])
    best = 0.0
    for choice in itertools.product([-1, 0, 1], repeat=3):
        worth = sum(problem.utility[i, c] for i, c in enumerate(choice) if c >= 0)
        if not np.isnan(worth) and sum(problem.gpus[c] for c in choice if c >= 0) <= 3:
            best = max(best, worth)
    cells = possible_cells(problem)
    assert best == 7.0
    assert min(bound_at(problem, cells, np.array([p])) for p in np.linspace(0, 6, 61)) >= best


def test_the_shim_takes_the_largest_share_that_fits():
    problem = MultipleChoice([[3.0, 5.0], [2.0, 4.5]], [0, 0], [1, 2], [3], mandatory=[False, True])
    cells = possible_cells(problem)
    assert largest_share(problem, cells, np.array([0.4, 0.6, 0.2, 0.3])).tolist() == [0, 1]
    assert largest_share(problem, cells, np.array([0.4, 0.6, 0.0, 0.0])).tolist() == [1, 0]
    full = MultipleChoice([[3.0], [2.0]], [0], [1], [1], mandatory=[True, True])
    with pytest.raises(SolverError, match="mandatory job 1"):
        largest_share(full, possible_cells(full), np.ones(2))


def test_warm_rounds_take_fewer_sweeps_than_cold_ones():
    warm = Session("copter")
    cold = 0.0
    problem = knapsack(0, 300)
    keys = np.arange(300)
    rng = np.random.default_rng(1)
    sweeps = 0.0
    for r in range(5):
        problem = MultipleChoice(problem.utility, problem.kinds, problem.gpus, problem.capacity, keys=keys)
        warm.update(problem)
        warm.solve()
        again = Copter()
        again.solve(problem)
        if r:
            sweeps = sweeps + warm._worker.trace[-1].evaluations
            cold = cold + again.trace[-1].evaluations
        new = rng.random(300) < 0.05
        utility = np.where(new[:, None], knapsack(100 + r, 300).utility, problem.utility)
        order = rng.permutation(300)
        keys = np.where(new, 1000 * (r + 1) + np.arange(300), keys)[order]
        utility = utility[order]
        problem = knapsack(0, 300, utility=utility)
    assert sweeps < cold


def test_jobs_stay_in_their_part():
    def program(keys):
        return MultipleChoice(np.ones((len(keys), 2)), [0, 1], [1, 2], [6, 6], keys=np.array(keys))

    pop = Pop(Session, parts=3, inner="prices")
    pop.solve(program(range(6)))
    first = dict(pop._part)
    assert sorted(first.values()) == [0, 0, 1, 1, 2, 2]
    pop.solve(program([5, 1, 7, 8, 2]))
    assert all(pop._part[k] == first[k] for k in (1, 2, 5))
    assert max(np.bincount(list(pop._part.values()), minlength=3)) == 2


@pytest.mark.parametrize("parts", [2, 16])
def test_a_job_finds_a_place_in_its_part(parts):
    """Of 8 GPUs a job that needs 4 can run in two parts, not in more; one that needs all of them makes the round one part."""
    pop = Pop(Session, parts=parts, inner="prices")
    found = pop.solve(MultipleChoice([[1.0, np.nan], [np.nan, 2.0]], [0, 0], [1, 4], [8]))
    assert found.table.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert "2 parts" in found.solver
    whole = pop.solve(MultipleChoice([[1.0, np.nan], [np.nan, 2.0]], [0, 0], [1, 8], [9]))
    assert whole.table.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert whole.solver.endswith("1 part")


def test_mandatory_jobs_that_do_not_fit_their_part_make_the_round_one_part():
    """Three jobs of 2 GPUs in two parts of 3: two of them would be in one part."""
    must = np.ones(3, bool)
    found = Pop(Session, parts=2).solve(MultipleChoice(np.ones((3, 1)), [0], [2], [6], mandatory=must))
    assert found.table.tolist() == [[1.0]] * 3


def test_parts_get_whole_nodes_and_all_of_them():
    from gpuschedlab.papers.copter.solver.partition import _share

    shares = [_share(np.array([50, 7]), 4, k, 8) for k in range(4)]
    assert np.sum(shares, axis=0).tolist() == [50, 7]
    assert [s.tolist() for s in shares] == [[18, 7], [16, 0], [8, 0], [8, 0]]


def test_worth_of_impossible_cells_wastes_gpus():
    utility = np.full((2, 2), np.nan)
    utility[:, 0] = 0.1
    problem = MultipleChoice(utility, [0, 1], [1, 1], [2, 2])
    assert Pop(Session, parts=1, inner="prices").solve(problem).objective == pytest.approx(0.2)
    assert Pop(Session, parts=1, inner="prices", idle=1.1).solve(problem).objective == 0.0


@pytest.mark.parametrize("name", ["pop-", "pop-0", "pop-x", "simplex"])
def test_unknown_names_are_errors(name):
    with pytest.raises(SolverError, match="expected"):
        Session(name)


@pytest.mark.parametrize("solver", ["copter", "relaxed", "pop-4"])
def test_sia_takes_each_solver(solver):
    trace = pl.DataFrame(
        {"job_id": [str(i) for i in range(12)], "submit": np.arange(12) * 300.0, "gpus": [1.0, 2, 4] * 4}
    ).with_columns(duration=pl.lit(4000.0))
    cluster = Cluster.parse("4x4:a,4x4:b")
    runs = [simulate(trace, cluster, Sia(solver=s)) for s in (solver, "prices")]
    assert runs[0].jobs["end"].is_not_null().all()
    assert runs[0].jobs["jct"].mean() <= 2 * runs[1].jobs["jct"].mean()


@pytest.mark.parametrize("seed", range(3))
def test_a_descent_lowers_the_bound_until_no_price_alone_can(seed):
    """How many moves that takes is a matter of rounding; that each is down, and where they end, is not."""
    problem = knapsack(seed, 12)
    cells = possible_cells(problem)
    path = descent_prices(problem, moves=100)
    bounds = [bound_at(problem, cells, prices) for prices in path]
    assert (path[0] == 0).all()
    assert (np.diff(bounds) <= 1e-12 * bounds[0]).all()
    for place in range(len(problem.capacity)):
        for factor in (0.9, 0.99, 1.01, 1.1):
            prices = path[-1].copy()
            prices[place] *= factor
            assert bound_at(problem, cells, prices) >= bounds[-1] * (1 - 1e-4)
