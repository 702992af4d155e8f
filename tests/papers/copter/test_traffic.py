"""Traffic engineering: the program against another form of it, paths against a search for each, shims, networks and demands."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuschedlab.errors import SolverError
from gpuschedlab.optim import Program, solve
from gpuschedlab.papers.copter.traffic.methods import CLIENTS, allocate_flow, split_demands
from gpuschedlab.papers.copter.traffic.networks import (
    CAPACITY,
    Network,
    bimodal_demands,
    changed_demands,
    generated_network,
)
from gpuschedlab.papers.copter.traffic.program import (
    Routes,
    excess,
    filled_flow,
    fitted_flow,
    flow_program,
    network_routes,
    some_routes,
    top_routes,
)
from reproduce.papers.copter.methods import poisson_demands


def some_case(seed: int, nodes: int = 12, count: int = 60):
    network = generated_network(nodes, nodes + nodes // 2, seed)
    pairs, demand = bimodal_demands(network, count, (0, 200), (400, 900), seed)
    return network, pairs, demand, network_routes(network, pairs)


def largest_flow_by_links(network: Network, pair, demand: float) -> float:
    """Largest flow of one pair, by the flow on each link: no paths."""
    s, t = pair
    tails = network.tails
    heads = network.heads
    links = len(network.heads)
    keep = sp.csr_array(
        (np.r_[np.ones(links), -np.ones(links)], (np.r_[tails, heads], np.tile(np.arange(links), 2))),
        shape=(network.nodes, links),
    )
    out = keep[[s]].toarray()[0]
    balance = np.zeros(network.nodes)
    low = balance.copy()
    high = balance.copy()
    low[s] = 0
    high[s] = demand
    low[t] = -demand
    high[t] = 0
    return solve(Program(out, keep, low, high, upper=network.capacity, maximize=True), method="simplex").objective


@pytest.mark.parametrize("seed", range(12))
def test_one_pair_gets_what_a_flow_by_links_gets(seed):
    # A ring: its two paths are all that there are, so that both programs have the same optimum.
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 9))
    network = Network.of([[i, (i + 1) % n] for i in range(n)], rng.uniform(1, 9, n))
    pair = rng.choice(n, 2, replace=False)
    found = solve(flow_program(network_routes(network, pair[None]), network.capacity, [8.0])).objective
    assert found == pytest.approx(largest_flow_by_links(network, pair, 8.0))


@pytest.mark.parametrize("seed", range(20))
def test_the_dual_is_as_small_as_the_flow_is_large(seed):
    network, _, demand, routes = some_case(seed)
    program = flow_program(routes, network.capacity, demand)
    dual = Program(program.row_upper, program.A.T, row_lower=1.0)
    flow = solve(program, method="simplex")
    assert flow.objective == pytest.approx(solve(dual, method="simplex").objective)
    assert flow.objective < demand.sum()  # some link is full: the case is no trivial one


@pytest.mark.parametrize("seed", range(6))
def test_paths_share_no_link_the_first_is_shortest_and_no_more_are_left(seed):
    from scipy.sparse.csgraph import shortest_path

    network, pairs, _, routes = some_case(seed, 25, 60)
    tails = network.tails
    heads = network.heads
    graph = sp.csr_array((np.ones(len(heads)), (tails, heads)), shape=(network.nodes,) * 2)
    hops = shortest_path(graph, unweighted=True)
    first = set(routes.first().tolist())
    for k, (s, t) in enumerate(pairs):
        paths = np.flatnonzero(routes.pair == k)
        free = graph.copy()
        for p in paths:
            links = routes.uses.indices[routes.uses.indptr[p] : routes.uses.indptr[p + 1]]
            left = shortest_path(free, unweighted=True, indices=s)[t]
            assert len(links) == left
            at = s  # the links, in some order, lead from s to t
            steps = dict(zip(tails[links].tolist(), heads[links].tolist(), strict=True))
            for _ in links:
                at = steps[at]
            assert at == t
            assert (p in first) == (len(links) == hops[s, t] and p == paths[0])
            free[tails[links], heads[links]] = 0
            free = sp.csr_array(free)
            free.eliminate_zeros()
        assert len(paths) == 4 or np.isinf(shortest_path(free, unweighted=True, indices=s)[t])
    assert network_routes(network, pairs, paths=1).pair.tolist() == list(range(len(pairs)))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_any_flow_is_cut_to_a_feasible_one_and_filled_to_a_larger_one(seed):
    network, _, demand, routes = some_case(seed % 5)
    flow = np.random.default_rng(seed).normal(50, 200, len(routes.pair))
    cut = fitted_flow(routes, network.capacity, demand, flow)
    full = filled_flow(routes, network.capacity, demand, cut)
    for answer in (cut, full):
        assert excess(routes, network.capacity, demand, answer) < 1e-12
    assert (full >= cut).all()
    assert np.array_equal(fitted_flow(routes, network.capacity, demand, full * (1 - 1e-9)), full * (1 - 1e-9))
    room = network.capacity - routes.uses @ full
    left = demand - np.bincount(routes.pair, full, len(demand))
    for p in routes.first():
        links = routes.uses.indices[routes.uses.indptr[p] : routes.uses.indptr[p + 1]]
        assert min(left[routes.pair[p]], room[links].min()) < 1e-9  # nothing more fits on a first path


def test_a_dead_link_and_no_demand_carry_nothing():
    routes = Routes(np.array([0, 1, 2]), sp.csc_array([[1.0, 0, 0], [0, 1, 1]]))
    cut = fitted_flow(routes, np.array([0.0, 1.0]), np.array([1.0, 0.0, 2.0]), np.array([1.0, 1.0, 2.0]))
    assert cut.tolist() == [0.0, 0.0, 1.0]
    with np.errstate(invalid="ignore"):
        endless = fitted_flow(routes, np.array([1.0, 1.0]), np.array([1.0, 0.0, 2.0]), np.array([1.0, 0.0, np.inf]))
    assert endless.tolist() == [1.0, 0.0, 0.0]  # what cannot be fitted carries nothing


def test_the_largest_demands_are_taken_with_all_their_paths():
    routes = Routes(np.array([0, 0, 1, 2, 2]), sp.csc_array(np.eye(5)))
    paths = top_routes(routes, np.array([1.0, 5.0, 9.0]), share=0.5)
    assert paths.tolist() == [2, 3, 4]
    some, pairs = some_routes(routes, paths)
    assert pairs.tolist() == [1, 2]
    assert some.pair.tolist() == [0, 1, 1]
    assert np.array_equal(some.uses.toarray(), routes.uses.toarray()[:, paths])


def test_the_generated_network_is_at_the_scale_of_kdl_and_whole():
    from scipy.sparse.csgraph import connected_components

    network = generated_network()
    graph = sp.csr_array((np.ones(1790), network.heads, network.starts), shape=(754, 754))
    assert (network.nodes, len(network.heads)) == (754, 2 * 895)
    assert connected_components(graph)[0] == 1
    assert (graph != graph.T).nnz == 0
    small = [generated_network(40, 50, seed).heads for seed in (0, 0, 1)]
    assert np.array_equal(small[0], small[1])
    assert not np.array_equal(small[0], small[2])
    assert len(generated_network(5, 10).heads) == 20  # all pairs
    for nodes, links in ((5, 3), (5, 11), (1, 0)):
        with pytest.raises(SolverError, match="no pair twice"):
            generated_network(nodes, links)


def test_demands_are_of_the_kind_that_their_name_says():
    network = generated_network(60, 75)
    pairs, demand = poisson_demands(network, 500, 100.0, 0.2)
    assert (np.diff(demand) <= 0).all()
    assert demand[:150].sum() > 0.6 * demand.sum()  # few make up much
    pairs, demand = bimodal_demands(network, 3000, (0, 2), (8, 10))
    assert len({tuple(p) for p in pairs.tolist()}) == 3000
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert set(np.unique(pairs)) == set(range(60))
    assert 0.45 < (demand >= 8).mean() < 0.55
    assert not ((demand > 2) & (demand < 8)).any()
    after = changed_demands(demand, np.random.default_rng(0))
    assert 0.9 <= (after / demand).min() < 0.91 < 1.09 < (after / demand).max() <= 1.1


def test_wrong_arrays_say_so():
    network, pairs, demand, routes = some_case(0)
    with pytest.raises(SolverError, match="expected them to fit together"):
        flow_program(routes, network.capacity[1:], demand)
    with pytest.raises(SolverError, match="below 0 or nan"):
        flow_program(routes, network.capacity, -demand)
    with pytest.raises(SolverError, match="expected two each"):
        network_routes(network, pairs * 0)
    with pytest.raises(SolverError, match="not above 0"):
        Network.of([[0, 1]], 0.0)


def test_splitting_keeps_demands_and_deals_the_clients_of_a_large_one_to_different_parts():
    _, _, _, routes = some_case(0)
    rng = np.random.default_rng(3)
    demand = rng.pareto(1.2, 60) * 10
    parts = split_demands(routes, demand, 8, rng)
    assert np.allclose(np.sum(parts, axis=0), demand)
    held = (np.array(parts) > 0).sum(axis=0)
    large = demand > np.sort(demand)[-6:].mean()
    assert large.any()
    assert (held[large] == CLIENTS).all()
    assert (held[~large] == 1).all()
    assert [np.array_equal(p, demand) for p in split_demands(routes, demand, 1, rng)] == [True]


def test_the_ways_are_feasible_and_none_beats_the_whole_program():
    network, _, demand, routes = some_case(2, 40, 400)
    demands = np.array([demand, changed_demands(demand, np.random.default_rng(0))])
    found = {w: allocate_flow(routes, network.capacity, demands, w, method="simplex") for w in ("all", "top", "pop-4")}
    alone = [solve(flow_program(routes, network.capacity, d), method="simplex").objective for d in demands]
    assert [r.flow for r in found["all"]] == pytest.approx(alone)
    assert [r.bound for r in found["all"]] == pytest.approx(alone)
    for rounds in found.values():
        assert all(r.excess < 1e-12 and r.status == "optimal" for r in rounds)
        assert all(0.5 * best < r.flow < best * (1 + 1e-9) for r, best in zip(rounds, alone, strict=True))
        assert [r.asked for r in rounds] == pytest.approx(demands.sum(axis=1))
    assert found["top"][0].flow < 0.999 * alone[0]
    assert found["pop-4"][0].flow < 0.999 * alone[0]
    (one,) = allocate_flow(routes, network.capacity, demand, "pop-1", method="simplex")
    assert one.flow == pytest.approx(alone[0])
    with pytest.raises(SolverError, match="expected all, top or pop-K"):
        allocate_flow(routes, network.capacity, demands, "some")


def test_top_is_the_program_of_the_largest_and_then_what_fits():
    network, _, demand, routes = some_case(4)
    (found,) = allocate_flow(routes, network.capacity, demand, "top", method="simplex")
    paths = top_routes(routes, demand)
    some, pairs = some_routes(routes, paths)
    largest = solve(flow_program(some, network.capacity, demand[pairs]), method="simplex")
    flow = np.zeros(len(routes.pair))
    flow[paths] = largest.x
    others = np.where(np.isin(np.arange(len(demand)), pairs), 0.0, demand)
    assert found.flow == pytest.approx(filled_flow(routes, network.capacity, others, flow).sum())
    assert found.flow > largest.objective


def test_a_cut_link_costs_at_least_its_price_times_its_capacity():
    pytest.importorskip("ipywidgets", reason="ipywidgets, of the extra lab, is not installed")
    from scenes.shards_and_links import LinkExplorer

    explorer = LinkExplorer(12, 60, seed=1)
    whole = explorer.flow
    dear = 0
    for number in range(1, 15):
        explorer.knobs["cut"].value = number
        _, _, answers, chosen = explorer._answer()
        assert not explorer.error.outputs
        price = np.abs(answers["whole"][2])
        ends = {(int(explorer.network.tails[e]), int(explorer.network.heads[e])): e for e in range(len(price))}
        back = ends[int(explorer.network.heads[chosen]), int(explorer.network.tails[chosen])]
        least = (price[chosen] + price[back]) * CAPACITY
        assert whole - explorer.flow >= least - 1e-6  # the flow is concave in the capacities
        dear += least > 1
    assert dear


def test_the_rows_of_the_bench_share_the_best_flow(monkeypatch):
    from gpuschedlab.errors import OutOfTime
    from gpuschedlab.papers.copter.traffic import methods as traffic_ways
    from reproduce.papers.copter import methods as problems

    rows = {row["way"]: row for row in problems.flow_rows("bimodal", ("all", "top"), demands=2000, nodes=40)}
    assert rows["all"]["of_all"] == pytest.approx(1)
    assert rows["top"]["of_all"] == pytest.approx(rows["top"]["flow"] / rows["all"]["flow"])
    whole = traffic_ways.allocate_flow

    def late(routes, capacity, demands, way, *rest, **options):
        if way == "all":
            raise OutOfTime("no point in time")
        return whole(routes, capacity, demands, way, *rest, **options)

    monkeypatch.setattr(traffic_ways, "allocate_flow", late)
    failed, top = problems.flow_rows("bimodal", ("all", "top"), demands=2000, nodes=40)
    assert failed["failed"] == "no point in time"
    assert top["of_all"] == pytest.approx(top["flow"] / top["asked"])  # no bound but the demand
