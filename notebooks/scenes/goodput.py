"""Notebook 05: jobs that gain from GPUs in three ways, on a cluster with two types."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

import gpuschedlab as lab
from gpuschedlab.sim.recipe_base import Jobs, Nodes, Recipe

PACE = {"wide": (1.0, 2.5), "narrow": (1.0, 1.6), "picky": (1.0, 6.0)}
"""Goodput on one slow and on one fast GPU."""
SCALING = {"wide": 0.9, "narrow": 0.35, "picky": 0.6}
"""Power of the number of GPUs by which it grows."""


def goodput(model: str, kind: int, gpus, nodes=1):
    """Progress a second on GPUs of a type; each further node costs a tenth."""
    return PACE[model][kind] * gpus ** SCALING[model] * 0.9 ** (nodes - 1)


@dataclass(frozen=True)
class TwoTypes(Recipe):
    """Jobs of all three kinds that come at random, on slow GPUs and half as many fast ones; each start costs 30 s."""

    noun: ClassVar[str] = "traces"

    jobs: Jobs = 40
    nodes: Nodes = 4

    @property
    def machines(self) -> lab.Cluster:
        """The cluster: nodes of four GPUs."""
        return lab.Cluster.parse(f"{self.nodes}x4:slow,{self.nodes // 2}x4:fast")

    def scenario(self, seed: int = 0) -> lab.Scenario:
        """Draw the jobs of a seed."""
        return jobs_on(self.machines, self.jobs, seed)


def jobs_on(cluster: lab.Cluster, jobs: int, seed: int) -> lab.Scenario:
    """Jobs of all three kinds that come at random; each start costs 30 s."""
    most = sum(group.nodes for group in cluster.groups if group.gpu_type == "slow")
    rows = [
        (model, kind, nodes, gpus, goodput(model, k, gpus, nodes), 4000.0)
        for model in PACE
        for k, kind in enumerate(cluster.gpu_types)
        for gpus in range(1, 17)
        for nodes in range(-(-gpus // 4), min(gpus, most) + 1)
    ]
    columns = ["model", "gpu_type", "n_nodes", "n_gpus", "rate", "progress"]
    speeds = lab.Speeds.from_frame(pl.DataFrame(rows, schema=columns, orient="row"))
    rng = np.random.default_rng(seed)
    trace = pl.DataFrame(
        {
            "job_id": [f"job {i}" for i in range(jobs)],
            "submit": np.sort(rng.uniform(0, 90.0 * jobs, jobs)),
            "model": rng.choice(list(PACE), jobs),
            "gpus": rng.choice([1.0, 2.0, 4.0], jobs),
            "duration": 4000.0,
            "switch": 30.0,
        }
    )
    return lab.Scenario(trace, cluster, speeds=speeds)
