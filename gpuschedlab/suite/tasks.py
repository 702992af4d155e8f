"""The tasks of the suite: each a recipe that nothing changes any more, its metric, and who is good at it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, ClassVar

import polars as pl

from gpuschedlab._extras import need
from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import TraceError
from gpuschedlab.estimators import Noisy
from gpuschedlab.knobs import Knob
from gpuschedlab.parse import loaded_of_papers
from gpuschedlab.scenarios.task import Task
from gpuschedlab.scenarios.week import Week
from gpuschedlab.sim import Scenario
from gpuschedlab.sim.recipe_base import Recipe
from gpuschedlab.speeds import Delays
from gpuschedlab.traces.generator.generate import Amount
from gpuschedlab.traces.intake.read import read

DAY = 86_400.0
CLUSTER = "32x8"
"""What weeks run on."""


@dataclass(frozen=True)
class HarderWeek(Recipe):
    """A generated week with failures of nodes, or with estimates that err."""

    noun: ClassVar = "weeks"

    week: Week = Week(amount=Amount(days=7, jobs=4000, load=0.9, cluster_gpus=256), cluster=CLUSTER, warm=0.0)
    mtbf: Annotated[float, Knob(0, 365, unit="d", help="mean time between failures of a node; 0: none fails")] = 0.0
    mttr: Annotated[float, Knob(0.01, 30, unit="d", help="mean time to repair")] = 0.1
    error: Annotated[float, Knob(0, 3, help="of estimates: standard deviation of their logarithm")] = 0.0

    def scenario(self, seed: int = 0) -> Scenario:
        """Return the `Scenario` of a seed: trace, cluster, and failures."""
        scenario = self.week.scenario(seed).replace(delays=Delays(restart=60.0, checkpoint=1800.0))
        if self.mtbf:
            cluster = scenario.cluster.with_failures(self.mtbf * DAY, self.mttr * DAY, 14 * DAY, seed)
            scenario = scenario.replace(cluster=cluster)
        if self.error:
            return scenario.replace(estimator=Noisy(error=self.error, rng=seed))
        return scenario


@dataclass(frozen=True)
class Fetched(Recipe):
    """A week of a published log, as `gpuschedlab trace fetch helios` brings it: the seed says which."""

    drawn: ClassVar = False

    name: Annotated[str, Knob(choices=("Venus", "Earth", "Saturn", "Uranus"), help="cluster of Helios")] = "Venus"

    def scenario(self, seed: int = 0) -> Scenario:
        """Return the `Scenario` of a week's jobs on 70 nodes of 8 GPUs."""
        trace = _helios(self.name)
        week_start = seed * 7 * DAY
        week_end = (seed + 1) * 7 * DAY
        week = trace.filter(pl.col("submit").is_between(week_start, week_end, closed="left"))
        if week.is_empty():
            week_count = int(trace["submit"].max() / DAY / 7) + 1
            raise TraceError(f"suite: found no jobs in week {seed} of {self.name}; expected a seed below {week_count}.")
        return Scenario(week.with_columns(pl.col("submit") - week_start), Cluster.homogeneous(70, 8), seed=seed)


def helios_folder() -> Path | None:
    """Return the path of the folder of Helios' logs if it has been fetched; None otherwise."""
    logs = sorted(Path(need("pooch").os_cache("gpuschedlab")).joinpath("helios").rglob("cluster_log.csv"))
    if not logs:
        return None
    return logs[0].parent.parent


def _why_no_helios() -> str:
    """Say in a text why the task of Helios' log cannot be run on this machine; "" if it can."""
    if helios_folder():
        return ""
    return "not on this machine; gpuschedlab trace fetch helios brings it (36 MB)"


@cache
def _helios(cluster_name: str) -> pl.DataFrame:
    """Return a frame of the jobs of a cluster of Helios with at most 64 GPUs."""
    trace = read("helios", helios_folder() / cluster_name)
    return trace.filter(pl.col("gpus") <= 64).drop(
        [column_name for column_name in ("model", "gpu_type") if column_name in trace.columns]
    )


def _week(preset: str, load: float) -> Callable[[], Recipe]:
    """Return a function that makes the `Recipe` of a generated week at a load."""
    amount = Amount(days=7, jobs=4000, load=load, cluster_gpus=256)
    return lambda: Week(preset, amount, cluster=CLUSTER, warm=0.0)


OF_PAPERS = ("goodput", "deadlines", "finetuning", "prompts")
"""The order of the papers' tasks; others come after them."""


def _tasks_of_papers() -> list[Task]:
    """Return a list of each `Task` that papers bring, in the order of `OF_PAPERS`."""
    tasks = [module.TASK for module in loaded_of_papers("task")]
    return sorted(tasks, key=lambda task: (*OF_PAPERS, task.name).index(task.name))


TASKS = (
    Task("venus-0.7", 1, _week("venus", 0.7), "lucid", "a quiet week as in Helios Venus"),
    Task("venus-0.9", 1, _week("venus", 0.9), "lucid", "a busy week as in Helios Venus"),
    Task("venus-1.1", 1, _week("venus", 1.1), "lucid", "more work than the cluster does, as in Helios Venus"),
    Task(
        "philly-0.9",
        1,
        _week("philly", 0.9),
        "tiresias",
        "a busy week as in Microsoft Philly: few jobs are most of the work",
    ),
    Task("pai-0.9", 1, _week("pai", 0.9), "tiresias", "a busy week as in Alibaba PAI: fractions of GPUs"),
    Task(
        "failures",
        1,
        lambda: HarderWeek(mtbf=5.0),
        "tiresias",
        "nodes fail every five days; checkpoints every half hour",
    ),
    Task("estimates", 1, lambda: HarderWeek(error=1.0), "tiresias", "estimates that err by a factor of e, commonly"),
    *_tasks_of_papers(),
    Task("helios", 1, Fetched, "lucid", "weeks of the log of Helios Venus itself", there=_why_no_helios),
)
"""All tasks, in the order in which they are shown."""
