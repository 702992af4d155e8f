"""Golden answers of COpter: shards, traffic, its solvers, their figures and explorers."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from golden_answers import digest, drawn, golden, moved, refusal
from scenes import scale
from scenes import shards_and_links as problems
from scenes.network_figures import link_map, server_blocks

from gpuschedlab.optim import MultipleChoice, Program, Session, solve
from gpuschedlab.optim.programs.shims import possible_cells
from gpuschedlab.papers.copter.explorers.copter_explorer import trace_lines
from gpuschedlab.papers.copter.explorers.similar_rounds import SimilarRounds, residuals
from gpuschedlab.papers.copter.shards import methods as shards
from gpuschedlab.papers.copter.shards import program as fleets
from gpuschedlab.papers.copter.solver import bound, groups, proximal, sift
from gpuschedlab.papers.copter.solver.partition import Pop
from gpuschedlab.papers.copter.solver.relaxed import Relaxed
from gpuschedlab.papers.copter.solver.rounds import bound_at
from gpuschedlab.papers.copter.traffic import methods as traffic
from gpuschedlab.papers.copter.traffic import networks
from gpuschedlab.papers.copter.traffic import program as flows


def round_of(found) -> list:
    """Rounds without their seconds."""
    return [{k: v for k, v in each._asdict().items() if k not in ("seconds", "longest")} for each in found]


def uneven_fleet(shards_: int, servers: int, seed: int) -> fleets.Fleet:
    """Servers of unequal memory, shards with up to three replicas."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 5, shards_).astype(float)
    placed = rng.random((servers, shards_)) < 0.2
    placed[rng.integers(0, servers, shards_), np.arange(shards_)] = True
    return fleets.Fleet.of(size, 1.0 + size.sum() * rng.uniform(0.6, 1.2, servers), placed)


@golden
def test_shards():
    fleet = shards.random_fleet(20, 4, 3)
    tight = uneven_fleet(12, 3, 5)
    loads = {s: shards.zipf_loads(5, 20, stateful=s, rng=2) for s in (True, False)}
    found = {"fleet": fleet, "tight": tight, "loads": loads[True], "free loads": loads[False]}
    found["narrow loads"] = shards.zipf_loads(9, 6, stateful=True, rng=4, z=(0.4, 0.5))
    for way in ("exact", "relaxed", "pop-2", "e-store"):
        options = {"method": "simplex"} if way == "relaxed" else {}
        found[way] = round_of(shards.balance(fleet, loads[True], way, **options))
    found["parts"] = shards.shard_parts(tight, 2, 3)
    load = np.random.default_rng(1).random(12)
    found["greedy"] = shards.e_store(tight, load, 0.1)
    found["programs"] = [digest(make(tight, load, 0.2)) for make in (fleets.shard_program, fleets.shard_relaxed)]
    return found


@golden
def test_shims_of_shards():
    found = {}
    for seed in range(8):
        rng = np.random.default_rng(seed)
        fleet = uneven_fleet(10, 4, seed)
        load = rng.random(10)
        fleet = fleet._replace(memory=fleet.memory * 0.5)
        share = rng.random((4, 10)) * (rng.random((4, 10)) < 0.6)
        share[0] += 1e-9
        share[1] += np.where(share.max(axis=0) < 1e-6, 0.5, 0.0)
        try:
            found[f"{seed}"] = fleets.fit_memory(fleet, load, share)
        except Exception as error:
            found[f"{seed}"] = error
        found[f"uneven {seed}"] = fleets.unevenness(load, fleets.whole_shares(share))
    return found


def square() -> tuple:
    """A network, its routes, and demands of four rounds."""
    network = networks.generated_network(9, 14, 2)
    pairs, demand = networks.bimodal_demands(network, 24, (0, 200), (400, 900), 3)
    rng = np.random.default_rng(4)
    demands = np.array([demand, *(networks.changed_demands(demand, rng, 0.3) for _ in range(2))])
    return network, flows.network_routes(network, pairs), demands


@golden
def test_traffic():
    network, routes, demands = square()
    found = {"network": network, "links": networks.Network.of([[0, 1], [1, 2], [2, 0], [0, 1]], [3.0, 4.0, 5.0, 9.0])}
    found["routes"], found["few"] = routes, flows.network_routes(network, np.array([[0, 5], [2, 3]]), 2)
    for way in ("all", "top", "pop-2", "pop-3"):
        found[way] = round_of(traffic.allocate_flow(routes, network.capacity, demands, way, rng=1))
    found["split"] = traffic.split_demands(routes, demands[0], 3, np.random.default_rng(0))
    flow = np.random.default_rng(5).uniform(0, 400, len(routes.pair))
    for name, do in (("fitted", flows.fitted_flow), ("filled", flows.filled_flow), ("excess", flows.excess)):
        found[name] = do(routes, network.capacity, demands[0], flow * (0.1 if name == "filled" else 1.0))
    found["top routes"] = flows.top_routes(routes, demands[0], 0.2)
    found["some"] = flows.some_routes(routes, found["top routes"])
    found["program"] = digest(flows.flow_program(routes, network.capacity, demands[0]))
    return found


@golden
def test_refusals():
    fleet, (network, routes, demands) = shards.random_fleet(4, 2), square()
    calls = [
        lambda: fleets.Fleet.of([1], [1, 2], [[1]]),
        lambda: fleets.Fleet.of([0], [1], [[1]]),
        lambda: fleets.Fleet.of([1, 1], [1], [[1, 0]]),
        lambda: shards.shard_parts(fleet, 3),
        lambda: shards.balance(fleet, np.ones((1, 4)), "pop-x"),
        lambda: shards.decision("best"),
        lambda: fleets.shard_relaxed(fleet, -np.ones(4)),
        lambda: fleets.whole_shares(np.zeros((2, 2))),
        lambda: networks.Network.of([]),
        lambda: networks.Network.of([[0, 1]], 0.0),
        lambda: networks.generated_network(5, 3),
        lambda: traffic.allocate_flow(routes, network.capacity, demands, "pop-0"),
    ]
    return [refusal(call) for call in calls]


def programs(seed: int) -> list:
    """A linear program with bounds of all kinds, and rounds."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((6, 12), density=0.4, rng=rng, format="csc") * 3
    c = rng.normal(size=12)
    low = np.where(rng.random(12) < 0.3, -1.0, 0.0)
    upper = np.where(rng.random(6) < 0.7, rng.uniform(1, 4, 6), np.inf)
    lower = np.where(np.isfinite(upper) & (rng.random(6) < 0.3), -2.0, -np.inf)
    one = Program(c, A, lower, upper, low, low + rng.uniform(0.5, 3, 12), maximize=bool(seed % 2))
    worth = np.where(rng.random((9, 6)) < 0.8, rng.uniform(0.2, 5, (9, 6)), np.nan)
    return [one, MultipleChoice(worth, [0, 0, 0, 1, 1, 2], [1, 2, 4, 1, 2, 8], [6, 5, 8])]


@pytest.mark.parametrize("seed", range(3))
@golden
def test_solvers(seed):
    found = {}
    one, several = programs(seed)
    for word, problem in (("copter", one), ("sift", one), ("copter", several), ("relaxed", several)):
        answer = solve(problem, word)
        said = [f"{answer.objective:.4g}", answer.status, f"{problem.violation(answer.x):.3f}"]
        found[f"{word} {type(problem).__name__}"] = said
    session = Session("copter")
    again = []
    for k in range(3):
        session.update(dataclasses.replace(one, c=one.c * (1 + 0.1 * k)))
        again.append(f"{session.solve().objective:.4g}")
    cells = possible_cells(several)
    prices = np.array([0.3, 0.5, 0.1])
    found |= {"again": again, "bound at": bound_at(several, cells, prices)}
    found["bound"] = [f"{bound.proved_bound(one, y):.6g}" for y in (np.zeros(6), np.linspace(-1, 1, 6))]
    found["grouped"] = digest(groups.grouped(several)._asdict())
    found["typical"] = [groups.typical(np.array(p)) for p in ([1.0, 2.0, 9.0], [0.0, 4.0], [])]
    found["misses"] = sift._misses(one)
    return found


@golden
def test_rounds_of_copter():
    found = []
    warm = Session("copter")
    relaxed = Relaxed()
    for k in range(4):
        problem = programs(7)[1]
        problem = MultipleChoice(problem.utility * (1 + 0.2 * k), problem.kinds, problem.gpus, problem.capacity + k)
        warm.update(problem)
        found.append([f"{answer.objective:.4g}" for answer in (warm.solve(), relaxed.solve(problem))])
    return found


@golden
def test_figures():
    similar = SimilarRounds(jobs=12)
    one, two = similar.programs()
    lines = residuals(similar)
    load = np.random.default_rng(0).random((3, 8))
    new = np.random.default_rng(1).random((3, 8)) < 0.3
    network, routes, demands = square()
    flow = solve(flows.flow_program(routes, network.capacity, demands[0]))
    used = routes.uses @ flow.x
    links = np.stack([network.tails, network.heads], axis=1)
    return {
        "programs": [digest([p.utility, p.kinds, p.gpus, p.capacity]) for p in (one, two)],
        "replaced": digest(SimilarRounds(jobs=12, replaced=0.7).programs()[1].utility),
        "lines": [drawn(trace_lines({"cold": lines["cold"]}, what))["words"] for what in ("worst", "primal")],
        "parts": [drawn(each) for each in (scale.parts_lost(np.array([0.1, 0.02, 0.3])),)],
        "blocks": drawn(server_blocks(load, new, (2.0, 5.0), "exact")),
        "map": drawn(link_map(network.place, links, used, np.linspace(0, 1, len(used)), "all")),
    }


@golden
def test_explorers():
    return {
        "shards": moved(problems.ShardExplorer(16)),
        "links": moved(problems.LinkExplorer(8, 20)),
    }


@golden
def test_steps_of_copter():
    one = programs(1)[0]
    worker = proximal.Copter(tol=1e-6)
    found = worker.solve(one)
    return {
        "objective": f"{found.objective:.5g}",
        "bound": f"{found.bound:.4g}",
        "status": found.status,
        "first": f"{worker.trace[0].worst:.4g}",
    }


@pytest.mark.parametrize("seed", range(4))
@golden
def test_rounds_in_parts(seed):
    rng = np.random.default_rng(seed)
    worth = rng.uniform(0.1, 3, (14, 5)) * np.array([1, 1.6, 2.4, 1.3, 3])
    worth[rng.random(worth.shape) < 0.15] = np.nan
    one = MultipleChoice(worth, [0, 0, 0, 1, 1], [1, 2, 4, 1, 3], [9.0, 7], mandatory=rng.random(14) < 0.1)
    found = {f"{k}": f"{Pop(Session, parts=k, inner='prices').solve(one).objective:.5g}" for k in (1, 2, 3)}
    return found | {"refused": refusal(Pop, Session, parts=0)}


@golden
def test_generated_networks():
    """Links, and links of each router, of networks with few routers and many, no links to spare and all there can be."""
    sizes = ((2, 1), (5, 4), (5, 10), (12, 16), (30, 36), (30, 60), (60, 72), (60, 140))
    found = {}
    for nodes, links in sizes:
        for seed in range(3):
            made = networks.generated_network(nodes, links, seed)
            found[f"{nodes} {links} {seed}"] = [digest(made), np.diff(made.starts).max()]
    return found
