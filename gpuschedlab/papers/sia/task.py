"""The task of elastic jobs."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.scenarios.task import Task
from gpuschedlab.sim import Scenario
from gpuschedlab.sim.recipe_base import Jobs, Recipe
from gpuschedlab.speeds import Speeds


@dataclass(frozen=True)
class Goodput(Recipe):
    """Elastic jobs of three models on slow and fast GPUs: each goes at its own pace, and gains its own part from more GPUs."""

    jobs: Jobs = 60

    def scenario(self, seed: int = 0) -> Scenario:
        """Return the `Scenario` of jobs that come at random on four slow and two fast nodes of four GPUs."""
        draw = np.random.default_rng(seed)
        cluster = Cluster.parse("4x4:slow,2x4:fast")
        trace = pl.DataFrame(
            {
                "job_id": [f"{i}" for i in range(self.jobs)],
                "submit": np.sort(draw.uniform(0, 120.0 * self.jobs, self.jobs)),
                "model": draw.choice(["wide", "narrow", "picky"], self.jobs),
                "gpus": draw.choice([1.0, 2.0, 4.0], self.jobs),
                "duration": 4000.0,
                "switch": 30.0,
            }
        )
        return Scenario(trace, cluster, speeds=_goodput(), seed=seed)


@cache
def _goodput() -> Speeds:
    """Return the `Speeds`: progress a second by model, type, nodes and GPUs.

    It is a power of the GPUs, less a tenth for each further node.
    """
    fast = {"wide": 2.5, "narrow": 1.6, "picky": 6.0}
    power = {"wide": 0.9, "narrow": 0.35, "picky": 0.6}
    goodput_rows = [
        (model, kind, nodes, gpus, pace * gpus ** power[model] * 0.9 ** (nodes - 1), 4000.0)
        for model in fast
        for kind, pace in (("slow", 1.0), ("fast", fast[model]))
        for gpus in range(1, 17)
        for nodes in range(-(-gpus // 4), min(gpus, 4) + 1)
    ]
    columns = ["model", "gpu_type", "n_nodes", "n_gpus", "rate", "progress"]
    return Speeds.from_frame(pl.DataFrame(goodput_rows, schema=columns, orient="row"))


TASK = Task("goodput", 1, Goodput, "sia", "elastic jobs on two types of GPU")
