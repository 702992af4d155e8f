"""Small clusters whose mechanisms are believed to be other than they are.

A world is 4 nodes of 8 GPUs, two weeks like Venus' (200 jobs a day at load .8) that an operator logs, and a fresh week after them. One
to three of five mechanisms are secret, drawn by its seed:

restart : 600 to 1,800 s; believed to take 0 or 60 s, as in all worlds.
first start : each start, the first as well, takes 600 to 1,800 s more; believed 0.
failures : a node fails every 1 to 5 days, and is repaired in 1 to 12 h; believed never.
lost work : nodes fail like that, and a job goes back to its last checkpoint, of which one is taken every 2 to 12 h; believed: none is lost.
slow nodes : half of the nodes run at .4 to .8 of the speed of the others; believed alike.

The operator sets the threshold of Tiresias by the load, every two hours, so that the log is confounded. What is believed takes the
seconds that a job held its GPUs for its work; that is all that a log has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl

from gpuschedlab.autosched import Rule, Twin, twin
from gpuschedlab.autosched.logbook.play import played
from gpuschedlab.cluster import Cluster, Nodes
from gpuschedlab.policies import Tiresias
from gpuschedlab.sim import Run, Scenario
from gpuschedlab.speeds import Delays, Speeds
from gpuschedlab.traces import generate

HOUR = 3600.0
DAY = 86_400.0
NODES = 4
LOGGED = 14
FRESH = 7
JOBS = 200
"""Nodes of 8 GPUs; days of the log, days after it, and jobs a day."""
LOAD = 0.8
EVERY = 2 * HOUR
THRESHOLDS = (1e4, 1e5, 1e6)
"""Seconds from one setting of the operator's threshold to the next, and its values (GPU-s)."""
RESTART = "restart"
FIRST_START = "first start"
FAILURES = "failures"
LOST_WORK = "lost work"
SLOW_NODES = "slow nodes"
MECHANISMS = (RESTART, FIRST_START, FAILURES, LOST_WORK, SLOW_NODES)
MOST = 3
"""Mechanisms that are secret at once, at most."""
FAST = "v100"
SLOW = "v100-slow"
MODEL = "job"
"""GPU types of nodes at full speed and of slow ones, and the model that all jobs are of."""
AFTERWARDS = 3 * DAY
"""Seconds after the last submission in which nodes still fail."""


@dataclass(frozen=True)
class Mechanics:
    """How a cluster behaves, or is believed to.

    Parameters
    ----------
    restart, start : float
        Seconds without progress at a start after a preemption or failure, and at every start.
    between, repair : float
        Mean seconds between failures of a node (inf: never), and to its repair.
    checkpoint : float
        Seconds between checkpoints; 0: a failure loses no work.
    speed : float
        Of the slow half of the nodes; 1: they are like the others.
    """

    restart: float = 0.0
    start: float = 0.0
    between: float = math.inf
    repair: float = HOUR
    checkpoint: float = 0.0
    speed: float = 1.0


@dataclass(frozen=True)
class Secret:
    """Mechanisms that are secret in a world, how it behaves, and how it is believed to."""

    mechanisms: tuple[str, ...]
    true: Mechanics
    believed: Mechanics


def secret(seed: int) -> Secret:
    """Secret of a seed."""
    rng = np.random.default_rng([seed, 84])
    count = int(rng.integers(1, MOST + 1))
    chosen = sorted(rng.choice(len(MECHANISMS), count, replace=False))
    mechanisms = tuple(MECHANISMS[place] for place in chosen)
    believed = Mechanics(restart=float(rng.choice((0.0, 60.0))))
    drawn = {
        RESTART: {"restart": log_uniform(rng, 600.0, 1800.0)},
        FIRST_START: {"start": log_uniform(rng, 600.0, 1800.0)},
        FAILURES: {"between": log_uniform(rng, DAY, 5 * DAY), "repair": log_uniform(rng, HOUR, 12 * HOUR)},
        SLOW_NODES: {"speed": float(rng.uniform(0.4, 0.8))},
    }
    drawn[LOST_WORK] = drawn[FAILURES] | {"checkpoint": log_uniform(rng, 2 * HOUR, 12 * HOUR)}
    values = {"restart": believed.restart}
    for name in mechanisms:
        values |= drawn[name]
    return Secret(mechanisms, Mechanics(**values), believed)


def log_uniform(rng, low: float, high: float) -> float:
    """Number drawn evenly in the logarithm."""
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))


def cluster_of(mechanisms: tuple[str, ...]) -> Cluster:
    """Cluster: in two groups of nodes, if some are slow."""
    if SLOW_NODES not in mechanisms:
        return Cluster.homogeneous(NODES, 8)
    return Cluster((Nodes(FAST, NODES // 2, 8), Nodes(SLOW, NODES // 2, 8)))


@cache
def speeds_of(speed: float) -> Speeds:
    """Speeds of jobs on nodes of both groups, however many nodes they are on."""
    rows = {
        "model": [MODEL] * 2,
        "gpu_type": [FAST, SLOW],
        "n_gpus": [None] * 2,
        "n_nodes": [None] * 2,
        "rate": [1.0, speed],
    }
    types = {"n_gpus": pl.Int64, "n_nodes": pl.Int64}
    return Speeds.from_frame(pl.DataFrame(rows, schema_overrides=types), relative=True)


def jobs_of(seed: int) -> pl.DataFrame:
    """Jobs of the log and of the fresh days after it, which begin at 0."""
    days = LOGGED + FRESH
    gpus = 8 * NODES
    jobs = generate("venus", days=days, jobs=days * JOBS, load=LOAD, cluster_gpus=gpus, rng=seed)
    jobs = jobs.filter(pl.col("gpus") <= gpus // 2)
    return jobs.with_columns(submit=pl.col("submit") - LOGGED * DAY, model=pl.lit(MODEL))


def behaving(scenario: Scenario, mechanics: Mechanics, draw: int) -> Scenario:
    """A scenario whose cluster behaves so; `draw` is the seed of failures."""
    cluster = Cluster(scenario.cluster.groups)
    if math.isfinite(mechanics.between):
        until = float(scenario.trace["submit"].max()) + AFTERWARDS
        cluster = cluster.with_failures(mechanics.between, mechanics.repair, until, rng=draw)
    delays = Delays(restart=mechanics.restart, switch=mechanics.start, checkpoint=mechanics.checkpoint)
    return scenario.replace(cluster=cluster, delays=delays, speeds=speeds_of(mechanics.speed))


@dataclass(frozen=True, eq=False)
class World:
    """A cluster with a secret, what its operator logged, and the days after it.

    Parameters
    ----------
    seed : int
    secret : Secret
    fresh : Scenario
        Days after the log as they truly are. Its history has what a log has: the seconds that jobs held their GPUs.
    work : polars.DataFrame
        History with the true work of each job.
    log : Run
        The logged weeks under the operator's rule.
    """

    seed: int
    secret: Secret
    fresh: Scenario
    work: pl.DataFrame
    log: Run

    def believed(self, scenario: Scenario) -> Scenario:
        """A scenario as it is believed to be."""
        return behaving(scenario, self.secret.believed, self.seed)

    def exact(self, scenario: Scenario) -> Scenario:
        """A scenario with the mechanisms as they are; failures are drawn anew, so that none to come is known."""
        return behaving(scenario, self.secret.true, self.seed + 1_000_000)

    def shown(self) -> Twin:
        """Twin that the log shows."""
        return twin(self.log, self.believed(self.fresh.past))


def world_of(seed: int) -> World:
    """World of a seed: its secret and jobs, and the log that its operator writes."""
    drawn = secret(seed)
    jobs = jobs_of(seed)
    history = jobs.filter(pl.col("submit") < 0)
    trace = jobs.filter(pl.col("submit") >= 0)
    logged = Scenario(history.with_columns(pl.col("submit") + LOGGED * DAY), cluster_of(drawn.mechanisms), seed=seed)
    log = operated(behaving(logged, drawn.true, seed + 3_000_000))
    fresh = Scenario(trace, logged.cluster, history=with_held_seconds(history, log), seed=seed)
    return World(seed, drawn, behaving(fresh, drawn.true, seed + 2_000_000), history, log)


def with_other_jobs(world: World) -> Scenario:
    """Fresh days of a world with jobs and failures of another seed, and the same history."""
    jobs = jobs_of(world.seed + 10_000).filter(pl.col("submit") >= 0)
    return behaving(world.fresh.replace(trace=jobs), world.secret.true, world.seed + 4_000_000)


def with_held_seconds(history: pl.DataFrame, log: Run) -> pl.DataFrame:
    """Jobs of a log, whose work is taken to be the seconds that they held their GPUs."""
    seconds = log.jobs.select("job_id", duration=pl.col("executed").clip(1.0))
    return history.drop("duration").join(seconds, on="job_id", how="inner", maintain_order="left")


def operated(scenario: Scenario) -> Run:
    """The logged weeks, under an operator who sets the threshold by the load."""
    rule = Rule(Tiresias(), "thresholds", THRESHOLDS, seed=scenario.seed)
    simulation = scenario.simulation(rule.at(THRESHOLDS[0]))
    for _ in played(simulation, rule, EVERY, float(scenario.trace["submit"].max())):
        pass
    simulation.advance(np.inf)
    return simulation.result(last=True)
