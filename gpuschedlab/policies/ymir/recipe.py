"""A small cluster of fine-tuning jobs on which merging can be watched."""

from dataclasses import dataclass
from typing import Annotated

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.knobs import Holds, Knob
from gpuschedlab.policies.optimus import Optimus
from gpuschedlab.policies.ymir.estimators.transfers import Transfers
from gpuschedlab.policies.ymir.policy import Ymir
from gpuschedlab.policies.ymir.speeds.switching import loader_switch
from gpuschedlab.policies.ymir.speeds.tasks import FOUNDATIONS, GPUS_PER_NODE, finetuning_jobs, task_speeds
from gpuschedlab.sim import Policy, Scenario
from gpuschedlab.sim.recipe import Load, Nodes, Recipe
from gpuschedlab.speeds import Delays, Speeds

LOADING = 5.0
"""Seconds that a job takes to load what it needs, beside its data."""


@dataclass(frozen=True)
class MergingCluster(Recipe):
    """Tasks, jobs on nodes of 4 V100 and what is known of them, and Ymir's knobs.

    Examples
    --------
    >>> small = MergingCluster(data_sets=3, nodes=1, hours=2.0)
    >>> small(seed=0).run(small.ymir).jobs["end"].null_count()
    0
    """

    foundation: Annotated[str, Knob(choices=FOUNDATIONS, help="foundation model of all jobs")] = "roberta-base"
    data_sets: Annotated[int, Knob(3, 9, help="tasks that jobs are of")] = 9
    nodes: Nodes = 2
    hours: Annotated[float, Knob(0.5, 48, step=0.5, unit="h", help="time over which jobs come")] = 4.0
    load: Load = 1.5
    ymir: Annotated[Ymir, Holds(("temporal", "spatial", "threshold", "interval", "literal"))] = Ymir()
    estimator: Annotated[Transfers, Holds(("method", "noise"))] = Transfers(method="oracle")
    prepare: Annotated[float, Knob(0, 120, step=5, unit="s", help="preparing a data loader at a start")] = 30.0
    notice: Annotated[float, Knob(0, 60, step=5, unit="s", help="how long before a start that may begin")] = 30.0

    @property
    def speeds(self) -> Speeds:
        """Measured speeds and gains of the tasks."""
        return task_speeds(self.foundation, self.data_sets)

    @property
    def policies(self) -> dict[str, Policy]:
        """Ymir with these knobs, without merging, and Optimus at the same interval."""
        alone = self.ymir.with_knobs(temporal=False, spatial=False)
        return {"Ymir": self.ymir, "Ymir, no merges": alone, "Optimus": Optimus(interval=self.ymir.interval)}

    def scenario(self, seed: int = 0) -> Scenario:
        """Jobs on nodes."""
        cluster = Cluster.homogeneous(self.nodes, GPUS_PER_NODE, "v100")
        jobs = finetuning_jobs(self.speeds, gpus=cluster.total_gpus, hours=self.hours, load=self.load, rng=seed)
        delays = Delays(switch=loader_switch(LOADING, self.prepare, self.notice))
        return Scenario(jobs, cluster, speeds=self.speeds, delays=delays, estimator=self.estimator, seed=seed)

    def gains(self) -> pl.DataFrame:
        """Factors by pair: `mode, other, task, true, expected`; pairs that were not measured are left out."""
        speeds, rows = self.speeds, []
        names = [model.split("@")[1] for model in speeds.models]
        for mode, true in (("merged", speeds.merged), ("transfer", speeds.transfer)):
            if true is None:
                continue
            said = self.estimator.factors(mode, true, speeds.models)
            for i, task in enumerate(names):
                for j, other in enumerate(names):
                    at = (i, j) if mode == "merged" else (j, i)
                    if true[at] == true[at]:
                        rows.append((mode, other, task, float(true[at]), float(said[at])))
        return pl.DataFrame(rows, ["mode", "other", "task", "true", "expected"], orient="row")
