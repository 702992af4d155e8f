"""A small cluster with a small trace on which placement can be watched."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import polars as pl

from gpuschedlab.cluster import RULES, Cluster
from gpuschedlab.knobs import Holds, Knob
from gpuschedlab.policies import Fifo
from gpuschedlab.sim import Scenario
from gpuschedlab.sim.recipe_base import Jobs, Load, Nodes, Recipe, arriving
from gpuschedlab.speeds import Speeds, placement_speeds


@dataclass(frozen=True)
class SmallCluster(Recipe):
    """Nodes of 8 GPUs, jobs and their sizes, how much a job that is spread over nodes suffers, and the rule that places them.

    `policy` is first come, first served; jobs that fit may pass one that does not.

    Examples
    --------
    >>> small = SmallCluster(nodes=2, jobs=20)
    >>> small(seed=0).run(small.policy).jobs["end"].null_count()
    0
    """

    policy: Annotated[Fifo, Holds(("placement",))] = Fifo(backfill="greedy", placement="pack", patience=3600)
    nodes: Nodes = 6
    jobs: Jobs = 150
    load: Load = 0.85
    large: Annotated[float, Knob(0, 0.5, step=0.05, help="share of jobs that ask for one or two whole nodes")] = 0.15
    odd: Annotated[float, Knob(0, 1, step=0.1, help="share of the other jobs that ask for 3, 5 or 6 GPUs")] = 0.0
    spread_speed: Annotated[
        float, Knob(0.3, 1, step=0.05, help="speed of a job on twice the nodes it needs; 1: spreading costs nothing")
    ] = 0.6

    @property
    def policies(self) -> dict[str, Fifo]:
        """Dict of the policy (`Fifo`) under every placement rule, by rule."""
        return {rule: self.policy.with_knobs(placement=rule) for rule in RULES}

    def scenario(self, seed: int = 0) -> Scenario:
        """Return a `Scenario`: nodes, jobs and their speeds; one seed is the same dice for all values of the knobs."""
        cluster = Cluster.homogeneous(self.nodes, 8)
        return Scenario(jobs_of(self, seed), cluster, speeds=speeds_of(self), seed=seed)


def jobs_of(small: SmallCluster, rng: int) -> pl.DataFrame:
    """Return a frame of jobs of the model "net", of about an hour, that come at random and demand `small.load` of the GPUs."""
    from scipy.special import erfinv

    draw = np.random.default_rng(rng)
    size_draw, odd, pick, gap, duration_draw = (draw.random(small.jobs) for _ in range(5))
    few = np.array([1, 1, 2, 4])[(pick * 4).astype(int)]
    uneven = np.array([3, 5, 6])[(pick * 3).astype(int)]
    gpus_of_large_jobs = np.array([8, 16])[(pick * 2).astype(int)]
    gpus = np.where(size_draw < small.large, gpus_of_large_jobs, np.where(odd < small.odd, uneven, few))
    normal = erfinv(2 * duration_draw.clip(1e-6, 1 - 1e-6) - 1)
    duration = np.round(np.exp(7.7 + 0.9 * np.sqrt(2) * normal), 0).clip(60, 40_000)
    return arriving(gpus, duration, gap, small.load * small.nodes * 8).with_columns(model=pl.lit("net"))


def speeds_of(small: SmallCluster) -> Speeds:
    """Return `Speeds` of the model "net": 1 on the fewest nodes, `small.spread_speed` on twice as many or more."""
    net_slowdown = pl.DataFrame({"model": "net", "n_gpus": [8], "n_nodes": [2], "relative_speed": [small.spread_speed]})
    return placement_speeds(net_slowdown, gpu_types=("v100",), gpus_per_node=8, nodes=small.nodes, gpus=16)
