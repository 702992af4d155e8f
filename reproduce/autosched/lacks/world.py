"""Clusters with one mechanism that nobody believes in, or with none, and the log that an operator writes of them.

A world has 4, 8 or 16 nodes of 8 GPUs and two weeks like Venus' (load .8 to 1). In all of them a restart takes 60 to 1,800 s, and is
believed to take 0 or 60; users predict how long their jobs take, with an error that is drawn; in half of the worlds nodes fail,
and go back to where a job last started or stopped, as is believed. The operator sets the threshold of Tiresias by the load. One
mechanism may come on top:

lost work : nodes fail, and a job goes back to its last checkpoint, one every 2 to 12 h; believed: none is lost, or all since the start.
first start : every start, the first as well, takes 600 to 1,800 s more.
varied restarts : the delay differs from job to job, with a deviation of its logarithm of .5 to 1.
slow node : one node runs at .4 to .65 of the speed of the others.
failing node : one node fails 8 to 16 times as often as the others.
honesty : users ask for different multiples of the time that their jobs take, or predict with errors of different size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from gpuschedlab.autosched import Twin, twin
from gpuschedlab.cluster import Cluster, Nodes
from gpuschedlab.estimators import Noisy
from gpuschedlab.sim import Run, Scenario
from gpuschedlab.speeds import Delays
from gpuschedlab.traces import generate
from reproduce.autosched.cause.world import AFTERWARDS, DAY, FAST, HOUR, MODEL, SLOW, log_uniform, operated, speeds_of

DAYS = 14
"""Of a log."""
SIZES = (4, 8, 16)
GPUS = 8
"""Nodes of a cluster, and GPUs of each."""
LOST_WORK = "lost work"
FIRST_START = "first start"
VARIED = "varied restarts"
SLOW_NODE = "slow node"
FAILING_NODE = "failing node"
HONESTY = "honesty"
NONE = "none"
MECHANISMS = (LOST_WORK, FIRST_START, VARIED, SLOW_NODE, FAILING_NODE, HONESTY)


@dataclass(frozen=True)
class Secret:
    """What is true of a world.

    Parameters
    ----------
    mechanism : str
        The one that nobody believes in, or `NONE`.
    nodes : int
    load : float
    restart, believed_restart : float
        Seconds of a restart, on top of `start`; the mean, if it differs by job with deviation `scatter` of its logarithm.
    start : float
        Seconds of every start.
    scatter : float
    between, repair : float
        Mean seconds between failures of a node (inf: never), and to its repair.
    checkpoint, believed_checkpoint : float or None
        As `Delays.checkpoint`.
    odd_node : int
        The one that is slow, or fails.
    speed : float
        Of the odd node.
    often : float
        How many times as often the odd node fails.
    error : float
        Of predictions, as `Noisy.error`.
    bias, spread : float
        Deviation over users of the logarithm of what they ask for, and of that of their error.
    """

    mechanism: str
    nodes: int
    load: float
    restart: float
    believed_restart: float
    start: float = 0.0
    scatter: float = 0.0
    between: float = math.inf
    repair: float = HOUR
    checkpoint: float | None = 0.0
    believed_checkpoint: float | None = 0.0
    odd_node: int = 0
    speed: float = 1.0
    often: float = 1.0
    error: float = 0.5
    bias: float = 0.0
    spread: float = 0.0


def secret(mechanism: str, seed: int) -> Secret:
    """Secret of a seed with one mechanism, or with `NONE`."""
    rng = np.random.default_rng([seed, 87, (*MECHANISMS, NONE).index(mechanism)])
    nodes = int(rng.choice(SIZES))
    values = {
        "nodes": nodes,
        "load": float(rng.uniform(0.8, 1.0)),
        "restart": log_uniform(rng, 60.0, 1800.0),
        "believed_restart": float(rng.choice((0.0, 60.0))),
        "error": log_uniform(rng, 0.1, 1.5),
        "odd_node": int(rng.integers(nodes)),
    }
    rate = {"between": log_uniform(rng, nodes / 4 * DAY, nodes * DAY), "repair": log_uniform(rng, HOUR, 12 * HOUR)}
    kept = (0.0, None)[int(rng.integers(2))]
    rate |= {"checkpoint": kept, "believed_checkpoint": kept}
    if mechanism in (LOST_WORK, FAILING_NODE) or rng.random() < 0.5:
        values |= rate
    drawn = {
        LOST_WORK: {"checkpoint": log_uniform(rng, 2 * HOUR, 12 * HOUR)},
        FIRST_START: {"start": log_uniform(rng, 600.0, 1800.0)},
        VARIED: {"scatter": float(rng.uniform(0.5, 1.0)), "restart": log_uniform(rng, 300.0, 1800.0)},
        SLOW_NODE: {"speed": float(rng.uniform(0.4, 0.65))},
        FAILING_NODE: {"between": log_uniform(rng, 8 * DAY, 16 * DAY), "often": float(rng.uniform(8.0, 16.0))},
        HONESTY: ({"bias": float(rng.uniform(0.5, 1.0))}, {"spread": float(rng.uniform(0.7, 1.2))})[
            int(rng.integers(2))
        ],
        NONE: {},
    }
    return Secret(mechanism, **(values | drawn[mechanism]))


@dataclass(frozen=True, eq=False)
class World:
    """A secret, the scenario as it is and as it is believed, and the log of its operator."""

    secret: Secret
    true: Scenario
    believed: Scenario
    log: Run

    def shown(self) -> Twin:
        """Twin that the log shows."""
        return twin(self.log, self.believed)


def world_of(mechanism: str, seed: int) -> World:
    """World of a seed with a mechanism, or with `NONE`."""
    drawn = secret(mechanism, seed)
    jobs = predicted(jobs_of(drawn, seed), drawn, seed)
    plain = Cluster.homogeneous(drawn.nodes, GPUS, FAST)
    delays = Delays(restart=drawn.believed_restart, checkpoint=drawn.believed_checkpoint)
    believed = Scenario(jobs, plain, delays=delays, seed=seed)
    true = behaving(believed, drawn, seed)
    return World(drawn, true, believed, operated(true))


def jobs_of(drawn: Secret, seed: int) -> pl.DataFrame:
    """Jobs of the logged weeks, each with the seconds that its restart takes."""
    gpus = GPUS * drawn.nodes
    jobs = generate("venus", days=DAYS, jobs=DAYS * 200, load=drawn.load, cluster_gpus=gpus, rng=seed)
    jobs = jobs.filter(pl.col("gpus") <= gpus // 2)
    normal = np.random.default_rng([seed, 871]).standard_normal(jobs.height)
    factor = np.exp(drawn.scatter * normal - drawn.scatter**2 / 2)
    return jobs.with_columns(model=pl.lit(MODEL), restart=drawn.restart * factor)


def predicted(jobs: pl.DataFrame, drawn: Secret, seed: int) -> pl.DataFrame:
    """Jobs with the seconds that their users predict."""
    rng = np.random.default_rng([seed, 872])
    users = jobs.select(pl.col("user").unique(maintain_order=True))
    users = users.with_columns(
        multiple=np.exp(drawn.bias * rng.standard_normal(users.height)),
        error=drawn.error * np.exp(drawn.spread * rng.standard_normal(users.height)),
    )
    normal = np.log(Noisy(error=1.0, rng=seed).predict(jobs) / jobs["duration"].to_numpy())
    normal = normal / math.sqrt(math.log(2)) + math.sqrt(math.log(2)) / 2
    known = jobs.select("user").join(users, on="user", how="left", maintain_order="left")
    deviation = np.sqrt(np.log1p(known["error"].to_numpy() ** 2))
    factor = known["multiple"].to_numpy() * np.exp(deviation * normal - deviation**2 / 2)
    return jobs.with_columns(predicted=pl.col("duration") * factor)


def behaving(scenario: Scenario, drawn: Secret, draw: int) -> Scenario:
    """A scenario as the secret has it; `draw` is the seed of failures."""
    cluster = scenario.cluster
    if drawn.speed != 1.0:
        groups = (
            Nodes(FAST, drawn.odd_node, GPUS) if drawn.odd_node else None,
            Nodes(SLOW, 1, GPUS),
            Nodes(FAST, drawn.nodes - drawn.odd_node - 1, GPUS) if drawn.odd_node < drawn.nodes - 1 else None,
        )
        cluster = Cluster(tuple(group for group in groups if group))
    until = float(scenario.trace["submit"].max()) + AFTERWARDS
    if math.isfinite(drawn.between):
        events = cluster.with_failures(drawn.between, drawn.repair, until, rng=draw).events
        if drawn.often > 1:
            alone = Cluster.homogeneous(drawn.nodes, GPUS).with_failures(
                drawn.between / drawn.often, drawn.repair, until, rng=draw + 1
            )
            events = [event for event in events if event.node != drawn.odd_node]
            events += [event for event in alone.events if event.node == drawn.odd_node]
        cluster = Cluster(cluster.groups, tuple(sorted(events, key=lambda event: (event.start, event.node))))
    delays = Delays(switch=drawn.start, checkpoint=drawn.checkpoint)
    return scenario.replace(cluster=cluster, delays=delays, speeds=speeds_of(drawn.speed))
