"""A small cluster of fine-tuning jobs on which merging can be watched."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated

import numpy as np
import polars as pl

from gpuschedlab import policies as known
from gpuschedlab._data import path
from gpuschedlab.cluster import Cluster
from gpuschedlab.knobs import Holds, Knob
from gpuschedlab.papers.ymir.estimators.tasks import YmirEstimator
from gpuschedlab.papers.ymir.estimators.transfers import Transfers
from gpuschedlab.papers.ymir.policy import Ymir
from gpuschedlab.papers.ymir.speeds.switching import loader_switch
from gpuschedlab.papers.ymir.speeds.tasks import (
    DIGITS,
    FOUNDATIONS,
    GPUS_PER_NODE,
    finetuning_jobs,
    task_curves,
    task_speeds,
)
from gpuschedlab.sim import Policy, Scenario
from gpuschedlab.sim.recipe_base import Load, Nodes, Recipe
from gpuschedlab.speeds import Delays, Speeds

LOADING = 5.0
"""Seconds that a job takes to load everything it needs beside its data."""


@dataclass(frozen=True)
class MergingCluster(Recipe):
    """Tasks, jobs on nodes of 4 V100 the knowledge of them, and Ymir's knobs.

    Of the foundation model ``digits`` all is measured, the tasks' embeddings, too: there the estimator's method may be ``fitted``.
    """

    foundation: Annotated[str, Knob(choices=FOUNDATIONS, help="foundation model of all jobs")] = "roberta-base"
    data_sets: Annotated[int, Knob(3, 14, help="tasks that jobs are of, at most")] = 9
    nodes: Nodes = 2
    hours: Annotated[float, Knob(0.5, 48, step=0.5, unit="h", help="time over which jobs come")] = 4.0
    load: Load = 1.5
    ymir: Annotated[Ymir, Holds(("temporal", "spatial", "threshold", "interval", "literal"))] = Ymir()
    estimator: Annotated[Transfers, Holds(("method", "noise"))] = Transfers(method="oracle")
    measured: Annotated[float, Knob(0.05, 1, step=0.05, help="share of pairs with a measured gain")] = 0.5
    prepare: Annotated[float, Knob(0, 120, step=5, unit="s", help="preparing a data loader at a start")] = 30.0
    notice: Annotated[float, Knob(0, 60, step=5, unit="s", help="how long before a start that may begin")] = 30.0

    @property
    def speeds(self) -> Speeds:
        """Measured `Speeds` and gains of the tasks."""
        return task_speeds(self.foundation, min(self.data_sets, 14 if self.foundation == DIGITS else 9))

    @property
    def policies(self) -> dict[str, Policy]:
        """Dict of each `Policy` by name: Ymir with these knobs, without merging, Optimus, if there, at the same interval."""
        # Its threshold says nothing without merges: one run serves all of them.
        alone = self.ymir.with_knobs(temporal=False, spatial=False, threshold=Ymir().threshold)
        beside = {"Optimus": known.Optimus(interval=self.ymir.interval)} if hasattr(known, "Optimus") else {}
        return {"Ymir": self.ymir, "Ymir, no merges": alone} | beside

    def scenario(self, seed: int = 0) -> Scenario:
        """Return the `Scenario` of jobs on nodes."""
        cluster = Cluster.homogeneous(self.nodes, GPUS_PER_NODE, "v100")
        jobs = finetuning_jobs(self.speeds, gpus=cluster.total_gpus, hours=self.hours, load=self.load, rng=seed)
        delays = Delays(switch=loader_switch(LOADING, self.prepare, self.notice))
        return Scenario(jobs, cluster, speeds=self.speeds, delays=delays, estimator=self.known(seed), seed=seed)

    def known(self, seed: int = 0) -> Transfers:
        """Return the estimator, a `Transfers`, fitted on the tasks of ``digits`` if its method is ``fitted`` and it is not."""
        if self.estimator.method != "fitted" or self.estimator.fitted or self.foundation != DIGITS:
            return self.estimator
        return replace(self.estimator, fitted=digits_estimator(self.measured, seed))

    def gains(self, seed: int = 0) -> pl.DataFrame:
        """Return a frame of factors by pair: `mode, other, task, true, expected`; pairs that were not measured are left out."""
        speeds = self.speeds
        estimator = self.known(seed)
        gain_rows = []
        task_names = [model.split("@")[1] for model in speeds.models]
        for mode, true in (("merged", speeds.merged), ("transfer", speeds.transfer)):
            if true is None:
                continue
            expected_factors = estimator.factors(mode, true, speeds.models)
            for i, task in enumerate(task_names):
                for j, other_task in enumerate(task_names):
                    pair_cell = (i, j) if mode == "merged" else (j, i)
                    if true[pair_cell] == true[pair_cell]:
                        gain_rows.append(
                            (mode, other_task, task, float(true[pair_cell]), float(expected_factors[pair_cell]))
                        )
        return pl.DataFrame(gain_rows, ["mode", "other", "task", "true", "expected"], orient="row")


@lru_cache(maxsize=64)  # a recipe asks for its own again and again
def digits_estimator(
    measured: float = 0.5, seed: int = 0, gain: str = "gain", score: str = "embedding", seen: int = 5
) -> YmirEstimator:
    """Return a `YmirEstimator` fitted on the tasks of ``digits``.

    It knows so large a share of the pairs' gains, and the first values of losses.

    Gains (``gain``: of the best accuracy, ``early``: of that after 20 epochs) are predicted from embeddings, or from another score
    of pairs: ``leep`` or ``feature``.
    """
    goals = pl.read_csv(path("zoo/goals.csv"))
    task_name = pl.format(f"{DIGITS}@{{}}", "task").alias("task")
    own_curves = task_curves(DIGITS, goals["task"]).filter(mode="own").rename({"model": "task"})
    losses = own_curves.join(goals.with_columns(task_name), on="task", maintain_order="left").select(
        "task", "samples", k="progress", loss=1 - pl.col("metric"), goal=1 - pl.col("goal")
    )
    pairs = digits_pairs(measured, seed, gain)
    if score != "embedding":
        return YmirEstimator(seen=seen).fit(losses, pairs=pairs.rename({score: "score"}))
    with np.load(path("zoo/embeddings.npz")) as embedding_file:
        embeddings = {f"{DIGITS}@{task}": embedding_file[task] for task in embedding_file.files}
    return YmirEstimator(seen=seen).fit(losses, embeddings, pairs)


def digits_pairs(measured: float, seed: int, gain: str = "gain") -> pl.DataFrame:
    """Return a frame of the pairs of ``digits``.

    Columns: `mode, source, target, gain` (null: to be predicted), `true` (all gains), and scores `leep` and `feature`.
    """
    pairs = pl.read_csv(path("zoo/pairs.csv"))
    pair_names = [pl.format(f"{DIGITS}@{{}}", c).alias(c) for c in ("source", "target")]
    chances = np.random.default_rng(seed).random(pairs.height)
    drawn = pl.Series(chances < measured)
    return pairs.with_columns(*pair_names, true=gain, gain=pl.when(drawn).then(gain))
