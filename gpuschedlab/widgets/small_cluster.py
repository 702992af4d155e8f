"""A small cluster with a small trace on which placement can be watched; no widgets here."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import polars as pl

from gpuschedlab.cluster import RULES, Cluster
from gpuschedlab.knobs import Knob, Knobbed
from gpuschedlab.policies import Fifo
from gpuschedlab.sim import Scenario
from gpuschedlab.speeds import Speeds, placement_speeds


@dataclass(frozen=True)
class SmallCluster(Knobbed):
    """Nodes, what jobs ask for, how much a job that is spread over nodes suffers, and the rule that places them.

    Examples
    --------
    >>> small = SmallCluster(nodes=2)
    >>> small.scenario(jobs=20).run(small.policy).jobs["end"].null_count()
    0
    """

    rule: Annotated[str, Knob(choices=tuple(RULES), help="which nodes a job is given")] = "pack"
    nodes: Annotated[int, Knob(2, 12, help="nodes of 8 GPUs")] = 6
    load: Annotated[float, Knob(0.3, 1.2, step=0.05, help="GPU-time demanded, over what is there")] = 0.85
    large: Annotated[float, Knob(0, 0.5, step=0.05, help="share of jobs that ask for one or two whole nodes")] = 0.15
    odd: Annotated[float, Knob(0, 1, step=0.1, help="share of the other jobs that ask for 3, 5 or 6 GPUs")] = 0.0
    spread_speed: Annotated[
        float, Knob(0.3, 1, step=0.05, help="speed of a job on twice the nodes it needs; 1: spreading costs nothing")
    ] = 0.6

    @property
    def policy(self) -> Fifo:
        """First come, first served, placed by the rule; jobs that fit may pass one that does not."""
        return Fifo(backfill="greedy", placement=self.rule, patience=3600)

    def scenario(self, jobs: int = 150, seed: int = 0) -> Scenario:
        """Nodes, jobs and their speeds; the rule is not part of it (`policy`).

        Parameters
        ----------
        jobs : int
            How many.
        seed : int
            One seed, the same dice for all values of the knobs.
        """
        cluster = Cluster.homogeneous(self.nodes, 8)
        return Scenario(jobs_of(self, jobs, seed), cluster, speeds=speeds_of(self), seed=seed)


def jobs_of(small: SmallCluster, jobs: int, rng: int) -> pl.DataFrame:
    """Make jobs that come at random and demand `small.load` of the GPUs.

    Returns
    -------
    polars.DataFrame
        Durations are log-normal with a mean of about an hour; all are of the model "net".
    """
    draw = np.random.default_rng(rng)
    kind, odd, pick, gap, size = (draw.random(jobs) for _ in range(5))
    few = np.array([1, 1, 2, 4])[(pick * 4).astype(int)]
    uneven = np.array([3, 5, 6])[(pick * 3).astype(int)]
    whole = np.array([8, 16])[(pick * 2).astype(int)]
    gpus = np.where(kind < small.large, whole, np.where(odd < small.odd, uneven, few))
    duration = np.round(np.exp(7.7 + 0.9 * np.sqrt(2) * _normal(size)), 0).clip(60, 40_000)
    work = float((gpus * duration).sum())
    gaps = -np.log1p(-gap)
    submit = np.cumsum(gaps) / gaps.sum() * work / (small.load * small.nodes * 8)
    return pl.DataFrame(
        {"job_id": [f"{i}" for i in range(jobs)], "submit": submit.round(0), "gpus": gpus, "duration": duration}
    ).with_columns(model=pl.lit("net"))


def _normal(uniform: np.ndarray) -> np.ndarray:
    from scipy.special import erfinv

    return erfinv(2 * uniform.clip(1e-6, 1 - 1e-6) - 1)


def speeds_of(small: SmallCluster) -> Speeds:
    """Speeds of the model "net": 1 on the fewest nodes, `small.spread_speed` on twice as many or more."""
    table = pl.DataFrame({"model": "net", "n_gpus": [8], "n_nodes": [2], "relative_speed": [small.spread_speed]})
    return placement_speeds(table, gpu_types=("v100",), gpus_per_node=8, nodes=small.nodes, gpus=16)
