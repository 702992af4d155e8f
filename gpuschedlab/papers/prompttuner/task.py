"""The task of prompts."""

from dataclasses import dataclass

import polars as pl

from gpuschedlab.scenarios import recipe_of
from gpuschedlab.scenarios.task import Task
from gpuschedlab.sim import Scenario
from gpuschedlab.sim.recipe_base import Recipe


@dataclass(frozen=True)
class ColdPrompts(Recipe):
    """Prompt tuning where every start is cold, unless a policy keeps GPUs warm and says so."""

    def scenario(self, seed: int = 0) -> Scenario:
        """Return the `Scenario` of `promptlab`; each job loses the seconds of a cold start of its model."""
        scenario = recipe_of("promptlab:gpus=16")(seed)
        cold = dict(dict(scenario.delays.kinds)["cold"])
        switch = pl.col("model").replace_strict(cold, return_dtype=pl.Float64)
        return scenario.replace(trace=scenario.trace.with_columns(switch=switch))


TASK = Task("prompts", 1, ColdPrompts, "prompttuner", "prompt tuning with a bank of prompts, and dates", "late")
