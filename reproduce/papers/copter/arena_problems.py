"""Problems of the solver arena: streams of similar programs, linear and whole, from sizes and seeds."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gpuschedlab.optim import MultipleChoice, Program, solve
from gpuschedlab.optim.programs.shims import Cells, possible_cells, relaxed
from gpuschedlab.papers.copter.shards.methods import random_fleet, zipf_loads
from gpuschedlab.papers.copter.shards.program import Fleet, fit_memory, shard_program, shard_relaxed
from gpuschedlab.papers.copter.traffic.networks import changed_demands, generated_network
from gpuschedlab.papers.copter.traffic.program import Routes, flow_program, network_routes
from gpuschedlab.papers.deadlines.leases.program import LeaseJobs, growing_blocks, lease_program
from reproduce.papers.copter import methods, mix

SIZES = {
    "rounds": ((2, 10, 40, 100), ("p=.5", "p=-.5")),
    "shards": ((128, 1024, 2048), ("stateless", "stateful")),
    "flows": ((1500, 5000, 20_000), ("poisson", "bimodal")),
    "leases": ((50, 200, 700), ("crowd",)),
}
"""Sizes and variants of each kind: times 256 GPUs; shards, 8 a server; demands; jobs."""

SERVERS = {16: 4, 128: 16, 1024: 128, 2048: 256}
SEED = 7

TINY = {"rounds": 1, "shards": 16, "flows": 20, "leases": 6}
"""Sizes on which solvers are run before they are measured: what they compile and load is no part of their time."""


class Instance(NamedTuple):
    """One program of a stream, in the forms that solvers take.

    Parameters
    ----------
    linear : Program
    whole : Program or None
        With whole variables; None where the problem has none.
    names : (n,) and (m,) int arrays
        What variables and rows of the linear program are called: the same in each program of the stream.
    choices : (MultipleChoice, Cells), optional
        The compact form of `whole`, of rounds; the cells are the variables of `linear`.
    fleet : (Fleet, (D,) float array), optional
        Of shards, with their load.
    routes : (Routes, capacities, demands), optional
        Of flows.
    """

    linear: Program
    whole: Program | None
    names: tuple[np.ndarray, np.ndarray]
    choices: tuple[MultipleChoice, Cells] | None = None
    fleet: tuple[Fleet, np.ndarray] | None = None
    routes: tuple[Routes, np.ndarray, np.ndarray] | None = None


def stream(data_dir, kind: str, size: int, variant: str, programs: int) -> list[Instance]:
    """The first so many programs of a stream."""
    make = {"rounds": rounds, "shards": shards, "flows": flows, "leases": leases}[kind]
    return make(data_dir, size, variant, programs)


def rounds(data_dir, scale: int, variant: str, programs: int) -> list[Instance]:
    """Rounds of Sia's program (`mix`), 5 % of the jobs replaced from one to the next; the answers between are `prices`'."""
    of = mix.mix(data_dir, scale)
    room = mix.capacity(scale)
    rng = np.random.default_rng(scale)
    jobs = mix.sample(of, 40 * scale, rng)
    made = []
    while len(made) < programs:
        problem = mix.build(of, jobs, room, float(variant.removeprefix("p=")))
        cells = possible_cells(problem)
        linear = relaxed(problem, cells)
        cell = problem.keys[cells.job] * 2**30 + problem.kinds[cells.config] * 2**20 + problem.gpus[cells.config]
        names = cell, np.concatenate([problem.keys, -1 - np.arange(len(room))])
        made.append(Instance(linear, replace(linear, integrality=True), names, choices=(problem, cells)))
        if len(made) < programs:
            table = solve(problem, "prices").table
            choice = np.where(table.max(axis=1, initial=0.0) > 0.5, table.argmax(axis=1), -1)
            jobs = mix.next_round(of, jobs, choice, rng)
    return made


def shards(data_dir, count: int, variant: str, programs: int) -> list[Instance]:
    """Rounds of shards, each from the placement of simplex and the shim in the round before."""
    fleet = random_fleet(count, SERVERS[count], rng=SEED)
    made = []
    stateful = variant == "stateful"
    for load in zipf_loads(programs, count, stateful, rng=SEED + stateful):
        linear = shard_relaxed(fleet, load)
        made.append(Instance(linear, shard_program(fleet, load), _numbered(linear), fleet=(fleet, load)))
        if len(made) < programs:
            placed, _ = fit_memory(fleet, load, solve(linear, method="simplex").table)
            fleet = fleet._replace(placed=placed)
    return made


def flows(data_dir, demands: int, variant: str, programs: int) -> list[Instance]:
    """Flows on the generated network; each demand changes by up to 10 % from one program to the next."""
    network = generated_network(methods.CONSTANTS["routers"], methods.CONSTANTS["links"])
    pairs, asked = methods.some_demands(network, variant, demands)
    routes = network_routes(network, pairs, methods.CONSTANTS["paths"])
    demand = asked[0]
    rng = None
    made = []
    while len(made) < programs:
        linear = flow_program(routes, network.capacity, demand)
        made.append(Instance(linear, None, _numbered(linear), routes=(routes, network.capacity, demand)))
        rng = rng or np.random.default_rng(SEED)
        demand = changed_demands(demand, rng)
    return made


def leases(data_dir, count: int, variant: str, programs: int) -> list[Instance]:
    """UniSched's program of leases, on growing blocks: others jobs in each program of the stream.

    A third of the jobs has one deadline, a third a second one at half the reward, a third none. Deadlines leave 1.1 to 3 times
    the leases needed, and there are .6 GPUs a job.
    """
    made = []
    for k in range(programs):
        rng = np.random.default_rng([SEED, count, k])
        gpus = rng.choice([1.0, 2.0, 4.0, 8.0], count, p=[0.5, 0.1, 0.2, 0.2])
        need = np.ceil(2 * rng.lognormal(0.5, 1.3, count).clip(0.5, 100)).astype(int)
        first = np.ceil(need * rng.uniform(1.1, 3.0, count)).astype(int)
        due = np.stack([first, 2 * first], axis=1)
        value = np.outer(gpus * need, [1.0, 0.5])
        part = np.arange(count) % 3
        due[part == 0, 1] = 0
        value[part == 0, 1] = 0.0
        need[part == 2] = 1
        due[part == 2] = [1, 0]
        value[part == 2] = [1.0, 0.0]
        jobs = LeaseJobs.of(gpus, need, due, value.round(3))
        whole = lease_program(jobs, float(round(0.6 * count)), blocks=growing_blocks(int(due.max())))
        linear = replace(whole, integrality=False)
        made.append(Instance(linear, whole, _numbered(linear)))
    return made


def _numbered(program: Program) -> tuple[np.ndarray, np.ndarray]:
    return tuple(np.arange(size) for size in program.A.shape[::-1])
