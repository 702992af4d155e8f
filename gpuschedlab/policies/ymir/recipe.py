"""A small cluster of fine-tuning jobs on which merging can be watched; no widgets here."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.estimators import Estimator, Oracle
from gpuschedlab.knobs import Knob, Knobbed
from gpuschedlab.policies.optimus import Optimus
from gpuschedlab.policies.ymir.estimators.transfers import Transfers
from gpuschedlab.policies.ymir.policy import Ymir
from gpuschedlab.policies.ymir.speeds.switching import loader_switch
from gpuschedlab.policies.ymir.speeds.tasks import FOUNDATIONS, GPUS_PER_NODE, finetuning_jobs, task_speeds
from gpuschedlab.sim import Scenario
from gpuschedlab.speeds import Delays, Speeds

LOADING = 5.0
"""Seconds that a job takes to load what it needs, beside its data."""


@dataclass(frozen=True)
class MergingCluster(Knobbed):
    """Tasks, jobs and what is known of them, and Ymir's knobs.

    Examples
    --------
    >>> small = MergingCluster(data_sets=3)
    >>> small.scenario(nodes=1, hours=2.0).run(small.policy).jobs["end"].null_count()
    0
    """

    foundation: Annotated[str, Knob(choices=FOUNDATIONS, help="foundation model that all jobs fine-tune")] = (
        "roberta-base"
    )
    data_sets: Annotated[int, Knob(3, 9, help="tasks that jobs are of")] = 9
    load: Annotated[float, Knob(0.3, 3, step=0.1, help="GPU-time demanded, over what is there")] = 1.5
    modes: Annotated[str, Knob(choices=("both", "in time", "in space"), help="how jobs may be merged")] = "both"
    threshold: Annotated[float, Knob(0.8, 3, step=0.1, unit="x", help="least gain of a merge")] = 1.1
    known: Annotated[
        str,
        Knob(
            choices=("true gains", "mean of the task"), help="what Ymir knows of a pair: all, or what other pairs say"
        ),
    ] = "true gains"
    noise: Annotated[float, Knob(0, 1, step=0.1, help="largest relative error on gains")] = 0.0
    interval: Annotated[float, Knob(30, 600, step=30, unit="s", help="between rounds")] = 120.0
    prepare: Annotated[float, Knob(0, 120, step=5, unit="s", help="preparing a data loader at a start")] = 30.0
    notice: Annotated[float, Knob(0, 60, step=5, unit="s", help="how long before a start that may begin")] = 30.0
    literal: Annotated[bool, Knob(help="whether the objective is the printed one, which starves")] = False

    @property
    def policy(self) -> Ymir:
        """Ymir with these knobs."""
        return Ymir(
            temporal=self.modes != "in space",
            spatial=self.modes != "in time",
            threshold=self.threshold,
            interval=self.interval,
            literal=self.literal,
        )

    @property
    def estimator(self) -> Estimator:
        """What policies know."""
        if self.known == "true gains" and not self.noise:
            return Oracle()
        return Transfers(method="oracle" if self.known == "true gains" else "target", noise=self.noise)

    @property
    def speeds(self) -> Speeds:
        """Measured speeds and gains of the tasks."""
        return _speeds(self.foundation, self.data_sets)

    def scenario(self, nodes: int = 2, hours: float = 4.0, seed: int = 0) -> Scenario:
        """Jobs on nodes of 4 V100.

        Parameters
        ----------
        nodes : int
        hours : float
            Time over which jobs come.
        seed : int
        """
        jobs = finetuning_jobs(self.speeds, gpus=GPUS_PER_NODE * nodes, hours=hours, load=self.load, rng=seed)
        delays = Delays(switch=loader_switch(LOADING, self.prepare, self.notice))
        cluster = Cluster.homogeneous(nodes, GPUS_PER_NODE, "v100")
        return Scenario(jobs, cluster, speeds=self.speeds, delays=delays, estimator=self.estimator, seed=seed)

    def policies(self) -> dict:
        """Ymir with these knobs, without merging, and Optimus at the same interval."""
        alone = self.policy.with_knobs(temporal=False, spatial=False)
        return {"Ymir": self.policy, "Ymir, no merges": alone, "Optimus": Optimus(interval=self.interval)}

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


@lru_cache(maxsize=16)
def _speeds(fm: str, tasks: int) -> Speeds:
    return task_speeds(fm, tasks)
