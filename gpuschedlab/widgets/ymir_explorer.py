"""The YmirExplorer: Ymir's knobs, and what merging brings to one workload."""

from dataclasses import replace

import numpy as np

from gpuschedlab import plots
from gpuschedlab.policies import Ymir
from gpuschedlab.sim import Scenario
from gpuschedlab.widgets.core.knob_explorer import KnobExplorer


class YmirExplorer(KnobExplorer):
    """Move Ymir's knobs, and see its schedule beside that without merging.

    Parameters
    ----------
    scenario : Scenario
        With `Speeds.transfer` or `Speeds.merged`.
    policy : Ymir, optional
        Where it begins.

    Examples
    --------
    See notebooks/12_ymir.ipynb.
    """

    places = (plots.Place("lanes", 420, wide=True), plots.Place("mean", 280), plots.Place("done", 280))

    def __init__(self, scenario: Scenario, policy: Ymir | None = None):
        self.scenario = scenario
        super().__init__(policy or Ymir())

    def _run(self, policy):
        return self.cache.get(repr(policy), lambda: self.scenario.run(policy)).value

    def _compute(self) -> dict:
        policy = self.knobs.thing
        return {"merged": self._run(policy), "alone": self._run(replace(policy, temporal=False, spatial=False))}

    def _numbers(self, runs) -> dict:
        ends = {name: np.sort(run.jobs["end"].to_numpy()) for name, run in runs.items()}
        x = np.arange(1, len(ends["merged"]) + 1)
        done = plots.Lines("Jobs done", "jobs", "seconds", x, ends)
        return {"lanes": plots.job_lanes(runs["merged"]), "mean": plots.metric_bars(runs, "jct_mean"), "done": done}

    def _words(self, runs) -> str:
        mean = {name: run.jobs["jct"].mean() for name, run in runs.items()}
        return f"Merging: average completion time {mean['alone'] / mean['merged']:.2f}x shorter."
