"""Notebook 06: rounds that change, requests that come and go, shards and flows."""

import time
from collections.abc import Iterable

import numpy as np
import polars as pl

from gpuschedlab import Table, plots
from gpuschedlab.optim import EditedProgram, solve
from gpuschedlab.optim.programs.shims import possible_cells, relaxed
from gpuschedlab.papers.copter.explorers.similar_rounds import SimilarRounds
from gpuschedlab.papers.copter.shards.methods import balance, random_fleet, zipf_loads
from gpuschedlab.papers.copter.shards.program import SLACK, fit_memory, shard_relaxed
from gpuschedlab.papers.copter.solver.proximal import Copter
from gpuschedlab.papers.copter.traffic.methods import allocate_flow
from gpuschedlab.papers.copter.traffic.networks import (
    bimodal_demands,
    changed_demands,
    generated_network,
)
from gpuschedlab.papers.copter.traffic.program import network_routes
from scenes.network_figures import server_blocks


def solver_times(jobs: int, seed: int) -> plots.Lines:
    """CPU time of a round of a quarter, half and all of the jobs, by four solvers."""
    sizes = np.array([jobs // 4, jobs // 2, jobs])
    taken = {name: [] for name in ("prices", "copter", "relaxed", "highs")}
    for count in map(int, sizes):
        one = SimilarRounds(jobs=count, seed=seed).programs()[0]
        for name, each in taken.items():
            solve(one, name, gap=1e-3)  # what is loaded at the first use
            begin = time.process_time()
            solve(one, name, gap=1e-3)
            each.append(1000 * (time.process_time() - begin))
    return plots.Lines("CPU time of a round", "jobs", "ms", sizes, taken)


def possible(problem, seed: int) -> int:
    """How many configurations are left where a job may have twice the GPUs that it holds: 1, 2 or 4, at random."""
    held = np.random.default_rng(seed).choice([1, 2, 4], len(problem.utility))
    cells = np.where(problem.gpus <= 2 * held[:, None], problem.utility, np.nan)
    return len(possible_cells(type(problem)(cells, problem.kinds, problem.gpus, problem.capacity)).job)


def shares_changed(jobs: int, seed: int) -> plots.Lines:
    """Share of the variables that differ between the exact answers of two rounds, by the share of jobs replaced."""

    def shares(problem):
        cells = possible_cells(problem)
        table = np.zeros(problem.shape)
        table[cells.job, cells.config] = solve(relaxed(problem, cells), method="ipm").x
        return table

    replaced, changed = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0]), []
    for share in replaced:
        before, after = map(shares, SimilarRounds(jobs=jobs, seed=seed, replaced=share).programs())
        changed.append(100 * np.mean(np.abs(before - after) > 1e-3))
    return plots.Lines("Shares that change", "jobs replaced, %", "%", 100 * replaced, {"changed": np.array(changed)})


def edits(first, seed: int, count: int = 8) -> dict:
    """Evaluations after each edit, cold and warm: a job leaves, another comes; at the last, a quarter of a type fails."""
    uses = {t: first.gpus * (first.kinds == t) for t in range(len(first.capacity))}
    program = EditedProgram({t: float(first.capacity[t]) for t in uses})
    for job, worth in enumerate(first.utility):
        program.add_request(job, worth, uses)
    warm, evaluations = Copter(tol=1e-5), {"cold": [], "warm": []}
    program.solved_by(warm)
    others = SimilarRounds(seed=seed + 1).programs()[0].utility
    for job in range(count):
        program.remove_request(job)
        program.add_request(len(first.utility) + job, others[job], uses)
        if job == count - 1:
            program.change_resource(0, -float(first.capacity[0] // 4))
        cold = Copter(tol=1e-5)
        cold.solve(program.program())
        program.solved_by(warm)
        for name, copter in (("cold", cold), ("warm", warm)):
            evaluations[name].append(copter.trace[-1].evaluations)
    return evaluations


def means(found: dict, columns: dict) -> Table:
    """Means over the rounds after the first, one row for each way."""

    def mean(each: Iterable, field: str) -> float:
        return round(float(np.mean([getattr(one, field) for one in each[1:]])), 3)

    rows = [{"way": way} | {name: mean(each, field) for name, field in columns.items()} for way, each in found.items()]
    return Table(pl.DataFrame(rows))


def shard_ways(shards: int, servers: int, seed: int) -> Table:
    """Eight rounds of loads on one fleet, balanced in four ways."""
    fleet, loads = random_fleet(shards, servers, seed), zipf_loads(8, shards, stateful=True, rng=seed)
    ways = {
        "e-store": {},
        "relaxed": {"method": "simplex"},
        "pop-4": {"gap": 0.01},
        "exact": {"gap": 0.01, "work": 10.0},
    }
    found = {way: balance(fleet, loads, way, **options) for way, options in ways.items()}
    columns = {"replicas copied": "moved", "memory copied": "copied", "unevenness": "uneven"}
    return means(found, columns | {"CPU of a round (s)": "seconds"})


def two_optima(seed: int) -> tuple[plots.Figures, dict]:
    """Two answers of one program, one between the vertices and one at a vertex; and the replicas that each copies."""
    few, load = random_fleet(32, 6, seed), zipf_loads(1, 32, False, seed, (0.6, 0.6))[0]
    program, figures, moved = shard_relaxed(few, load), [], {}
    band = tuple((1 + sign * SLACK) / 6 for sign in (-1, 1))
    for solver, words in (("copter", "between"), ("sift", "at a vertex")):
        answer = solve(program, solver)
        placed, share = fit_memory(few, load, answer.table)
        new = placed & ~few.placed
        moved[solver] = int(new.sum())
        title = f"{solver}, {words}: {moved[solver]} replicas copied"
        figures.append(plots.figure(server_blocks(share * load, new, band, title)))
    return plots.Figures(figures, columns=2), moved


def flow_ways(routers: int, pairs: int, seed: int) -> Table:
    """Four rounds of demands on one network, each a tenth off the last; the largest flow in three ways."""
    network = generated_network(routers, routers + routers // 6 + 8, seed)
    ends, demand = bimodal_demands(network, pairs, (0, 10), (40, 60), seed)
    rng, demands = np.random.default_rng(seed), [demand]
    for _ in range(3):
        demands.append(changed_demands(demands[-1], rng))
    routes = network_routes(network, ends)
    ways = {"all": {}, "top": {}, "pop-4": {}}
    for way in ways:
        ways[way] = allocate_flow(routes, network.capacity, np.array(demands), way, method="simplex")
    columns = {"flow (Mb/s)": "flow", "demand (Mb/s)": "asked", "CPU of a round (s)": "seconds"}
    return means(ways, columns | {"CPU of its longest part (s)": "longest"})


def small_network(seed: int):
    """A network with full links, its routes, and the demands on it."""
    links = generated_network(16, 24, seed)
    ends, demand = bimodal_demands(links, 120, (0, 10), (300, 450), seed)
    return links, network_routes(links, ends), demand
