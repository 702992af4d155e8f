"""Laws of COpter's problems and solvers: networks, proofs by prices, rounds in parts and warm rounds; and refusals."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from gpuschedlab.errors import SolverError
from gpuschedlab.optim import MultipleChoice, Program, Session, solve
from gpuschedlab.optim.programs.shims import possible_cells
from gpuschedlab.papers.copter.shards import methods as shards
from gpuschedlab.papers.copter.shards import program as fleets
from gpuschedlab.papers.copter.solver import bound, groups
from gpuschedlab.papers.copter.solver.partition import Pop
from gpuschedlab.papers.copter.solver.rounds import bound_at
from gpuschedlab.papers.copter.traffic import methods as traffic
from gpuschedlab.papers.copter.traffic import networks
from gpuschedlab.papers.copter.traffic import program as flows

SIZES = [(2, 1), (5, 4), (5, 10), (12, 16), (30, 36), (30, 60), (60, 72), (60, 140)]
"""Routers and links: none to spare, some, and as many as there can be."""


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("nodes", "links"), SIZES)
def test_a_network_is_whole_and_has_the_links_that_were_asked_for(nodes, links, seed):
    made = networks.generated_network(nodes, links, seed)
    pairs = {(int(a), int(b)) for a, b in zip(made.tails, made.heads, strict=True)}
    assert len(made.heads) == len(pairs) == 2 * links, "each link both ways, and no pair twice"
    assert {(b, a) for a, b in pairs} == pairs
    joined = sp.csr_array((np.ones(2 * links), (made.tails, made.heads)), (nodes, nodes))
    assert connected_components(joined)[0] == 1
    assert np.diff(made.starts).sum() == 2 * links
    apart = np.sqrt(((made.place[:, None] - made.place) ** 2).sum(axis=2))
    tree = minimum_spanning_tree(apart).toarray() > 0
    assert all((int(a), int(b)) in pairs for a, b in np.argwhere(tree)), "the shortest tree is part of it"


@pytest.mark.parametrize("seed", range(8))
def test_rings_give_no_router_many_more_links_than_the_mean(seed):
    """Where all links beyond the tree close rings, routers that have as many as the rule allows get no more."""
    nodes, links = 60, 72
    made = networks.generated_network(nodes, links, seed)
    apart = np.sqrt(((made.place[:, None] - made.place) ** 2).sum(axis=2))
    tree = minimum_spanning_tree(apart).toarray() > 0
    degree_in_tree = tree.sum(axis=0) + tree.sum(axis=1)
    most = max(3, -(-2 * links // nodes) + 1)
    assert (np.diff(made.starts) <= np.maximum(degree_in_tree, most)).all()


def linear(seed: int) -> Program:
    """A linear program with bounds of all kinds."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((6, 12), density=0.4, rng=rng, format="csc") * 3
    c = rng.normal(size=12)
    low = np.where(rng.random(12) < 0.3, -1.0, 0.0)
    upper = np.where(rng.random(6) < 0.7, rng.uniform(1, 4, 6), np.inf)
    lower = np.where(np.isfinite(upper) & (rng.random(6) < 0.3), -2.0, -np.inf)
    return Program(c, A, lower, upper, low, low + rng.uniform(0.5, 3, 12), maximize=bool(seed % 2))


def choices(seed: int, jobs: int = 14, mandatory: float = 0.0) -> MultipleChoice:
    """A round of jobs on two types of GPUs."""
    rng = np.random.default_rng(seed)
    worth = rng.uniform(0.1, 3, (jobs, 5)) * np.array([1, 1.6, 2.4, 1.3, 3])
    worth[rng.random(worth.shape) < 0.15] = np.nan
    return MultipleChoice(worth, [0, 0, 0, 1, 1], [1, 2, 4, 1, 3], [9.0, 7], mandatory=rng.random(jobs) < mandatory)


@pytest.mark.parametrize("seed", range(12))
def test_no_prices_prove_less_than_the_optimum(seed):
    problem = linear(seed)
    best = solve(problem, "highs").objective
    sign = 1.0 if problem.maximize else -1.0
    rng = np.random.default_rng(seed)
    for prices in (np.zeros(6), np.linspace(-1, 1, 6), rng.normal(size=6), rng.exponential(size=6)):
        assert sign * bound.proved_bound(problem, prices) >= sign * best - 1e-7
    duals = solve(problem, "highs").duals
    assert bound.proved_bound(problem, duals) == pytest.approx(best, abs=1e-6), "the optimal prices prove it"


@pytest.mark.parametrize("seed", range(8))
def test_no_prices_of_gpus_prove_less_than_the_best_round(seed):
    problem = choices(seed)
    best = solve(problem, "highs", gap=0).objective
    cells = possible_cells(problem)
    rng = np.random.default_rng(seed)
    for prices in (np.zeros(2), np.array([0.3, 0.5]), rng.exponential(size=2)):
        assert bound_at(problem, cells, prices) >= best - 1e-9
    total = np.nanmax(np.where(problem.utility > 0, problem.utility, np.nan), axis=1)
    assert bound_at(problem, cells, np.zeros(2)) == pytest.approx(np.nansum(total)), "free GPUs: each job has its best"


@pytest.mark.parametrize("mandatory", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(6))
def test_rounds_in_parts_fit_and_are_worth_no_more_than_the_whole(seed, mandatory):
    problem = choices(seed, mandatory=mandatory)
    whole = solve(problem, "highs", gap=0).objective
    for parts in (1, 2, 3):
        found = Pop(Session, parts=parts, inner="highs").solve(problem)
        assert problem.violation(found.x) < 1e-9
        assert found.objective == pytest.approx(problem.value(found.x))
        assert found.objective <= whole + 1e-7
        if parts == 1:
            assert found.objective == pytest.approx(whole, rel=1e-4)


@pytest.mark.parametrize("solver", ["copter", "sift"])
@pytest.mark.parametrize("seed", range(6))
def test_a_session_finds_the_optimum_of_each_change(seed, solver):
    problem = linear(seed)
    session = Session(solver)
    for step in range(3):
        changed = dataclasses.replace(problem, c=problem.c * (1 + 0.1 * step))
        session.update(changed)
        found = session.solve()
        best = solve(changed, "highs").objective
        assert found.objective == pytest.approx(best, rel=2e-3, abs=2e-3)
        assert changed.violation(found.x) < 2e-3


@pytest.mark.parametrize("seed", range(4))
def test_warm_rounds_are_whole_and_near_the_best(seed):
    session = Session("copter")
    for step in range(4):
        base = choices(seed, 30)
        problem = MultipleChoice(base.utility * (1 + 0.2 * step), base.kinds, base.gpus, base.capacity + step)
        session.update(problem)
        found = session.solve()
        best = solve(problem, "highs", gap=0).objective
        assert problem.violation(found.x) < 1e-9
        assert 0.97 * best <= found.objective <= best + 1e-7
        assert found.bound >= best - 1e-7


def test_typical_is_the_median_of_sizes_other_than_0():
    assert groups.typical(np.array([0.0, 4.0])) == pytest.approx(4.0)
    assert groups.typical(np.array([1.0, -2.0, np.inf, 9.0])) == 2.0
    assert groups.typical(np.array([])) == 1.0


@pytest.mark.parametrize("way", ["exact", "relaxed", "e-store"])
def test_every_way_keeps_memory_and_loads(way):
    fleet = shards.random_fleet(20, 4, 3)
    loads = shards.zipf_loads(3, 20, stateful=True, rng=2)
    assert loads.sum(axis=1) == pytest.approx(np.ones(3))
    decide = shards.decision(way, **({"method": "simplex"} if way == "relaxed" else {}))
    placed, share, _ = decide(fleet, loads[0], 0.05)
    assert (placed @ fleet.size <= fleet.memory * (1 + 1e-9)).all()
    assert share.sum(axis=0) == pytest.approx(np.ones(20))
    assert (share[~placed] < 1e-9).all()
    assert fleets.unevenness(loads[0], share) >= 0


@pytest.mark.parametrize("way", ["all", "top", "pop-2", "pop-3"])
def test_every_way_of_flow_keeps_links_and_demands(way):
    network = networks.generated_network(9, 14, 2)
    pairs, demand = networks.bimodal_demands(network, 24, (0, 200), (400, 900), 3)
    routes = flows.network_routes(network, pairs)
    assert (np.diff(demand) <= 0).all()
    rows = traffic.allocate_flow(routes, network.capacity, demand[None], way, rng=1)
    best = solve(flows.flow_program(routes, network.capacity, demand), method="simplex").objective
    assert 0 < rows[0].flow <= best * (1 + 1e-6)
    if way == "all":
        assert rows[0].flow == pytest.approx(best, rel=1e-6)


REFUSED = [
    (lambda: fleets.Fleet.of([1], [1, 2], [[1]]), "expected"),
    (lambda: fleets.Fleet.of([0], [1], [[1]]), "expected"),
    (lambda: fleets.Fleet.of([1, 1], [1], [[1, 0]]), "expected"),
    (lambda: shards.shard_parts(shards.random_fleet(4, 2), 3), "3"),
    (lambda: shards.balance(shards.random_fleet(4, 2), np.ones((1, 4)), "pop-x"), "pop-x"),
    (lambda: shards.decision("best"), "best"),
    (lambda: fleets.shard_relaxed(shards.random_fleet(4, 2), -np.ones(4)), "load"),
    (lambda: fleets.whole_shares(np.zeros((2, 2))), "share"),
    (lambda: networks.Network.of([]), "link"),
    (lambda: networks.Network.of([[0, 1]], 0.0), "expected"),
    (lambda: networks.generated_network(5, 3), "found 3 links for 5 routers"),
    (lambda: Pop(Session, parts=0), "parts"),
]
"""Calls that are refused, and a word of the refusal."""


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_refusals_name_what_was_found(call, words):
    with pytest.raises(SolverError, match=words):
        call()
