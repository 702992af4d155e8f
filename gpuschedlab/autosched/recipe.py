"""Some days on which a scheduler is tuned, and as many before them that a tuner may learn from."""

from dataclasses import dataclass
from typing import Annotated

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.knobs import Knob
from gpuschedlab.sim import Scenario
from gpuschedlab.sim.recipe_base import Jobs, Load, Nodes, Recipe
from gpuschedlab.speeds import Delays, default_speeds
from gpuschedlab.traces import generate

DAY = 86_400.0


@dataclass(frozen=True)
class TunedDays(Recipe):
    """Twice as many days and jobs as are played, generated like Venus' on nodes of 8 GPUs; the first half is the history.

    Jobs of more than half of the GPUs are left out.

    Examples
    --------
    >>> scenario = TunedDays(days=1, jobs=100, nodes=4)(seed=3)
    >>> scenario.history["submit"].max() < 0 <= scenario.trace["submit"].min()
    True
    """

    days: Annotated[float, Knob(0.1, 365, log=True, unit="d", help="days that are played")] = 3
    jobs: Jobs = 2500
    nodes: Nodes = 16
    load: Load = 1.1
    restart: Annotated[float, Knob(0, 3600, unit="s", help="time without progress of a preempted job's next start")] = (
        60.0
    )

    def scenario(self, seed: int = 0) -> Scenario:
        """Return the `Scenario`: its trace from 0 on, and the history before it on the same clock."""
        cluster = Cluster.homogeneous(self.nodes, 8)
        amount = {"days": 2 * self.days, "jobs": 2 * self.jobs, "load": self.load}
        generated_days = generate("venus", **amount, cluster_gpus=cluster.total_gpus, rng=seed)
        generated_days = generated_days.filter(pl.col("gpus") <= cluster.total_gpus // 2)
        generated_days = generated_days.with_columns(pl.col("submit") - self.days * DAY)
        scenario_parts = {"speeds": default_speeds, "delays": Delays(restart=self.restart), "seed": seed}
        history = generated_days.filter(pl.col("submit") < 0)
        trace = generated_days.filter(pl.col("submit") >= 0)
        return Scenario(trace, cluster, history=history, **scenario_parts)
