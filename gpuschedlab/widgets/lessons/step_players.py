"""Players of single rounds: how tasks are merged, and how pending jobs get warm GPUs."""

import numpy as np

from gpuschedlab import plots, widgets
from gpuschedlab.widgets.core.step_player import StepPlayer


class MergerSteps(StepPlayer):
    """One round of Ymir's merger: columns, pairs left out, the plan chosen and the second best; a slider over rounds of a run.

    Parameters
    ----------
    recipe : MergingCluster, optional
        Its scenario is run under its Ymir, and every round is recorded.
    seed : int
    most : int
        Rounds that are shown: those with the most pairs in their program.

    Examples
    --------
    >>> from gpuschedlab.policies.ymir.recipe import MergingCluster
    >>> player = MergerSteps(MergingCluster(nodes=1, hours=1.0))
    >>> player.cases[0].steps[-1].line
    6
    """

    def __init__(self, recipe=None, seed: int = 0, most: int = 8):
        from gpuschedlab.policies.ymir.recipe import MergingCluster
        from gpuschedlab.policies.ymir.steps import LISTING, cases_of, recorded_rounds

        recipe = recipe or MergingCluster()
        self.rounds = recorded_rounds(recipe(seed), recipe.ymir)
        super().__init__(LISTING, *cases_of(self.rounds, most), what="round")


class PromptSteps(StepPlayer):
    """One round of PromptTuner, algorithms 1 and 2, with the pool's ready times; a slider moves a deadline, and all is decided anew.

    Parameters
    ----------
    scenario : Scenario or PromptLab, optional
        Its round with the most pending jobs is shown.
    policy : PromptTuner, optional
    job : str, optional
        Job with the deadline that moves; by default the first that cannot wait for GPUs of its pool.
    seed : int
        Of a recipe.
    most : int
        Pending jobs that the round has at most.

    Examples
    --------
    >>> player = PromptSteps(widgets.PromptLab(gpus=16).with_knobs(load="low"), most=4)
    >>> player.draw(player.cases[0].steps[0], player.cases[0]).draw().layout["xaxis"]["title"]["text"]
    'time from now (s)'
    """

    def __init__(self, scenario=None, policy=None, job: str | None = None, seed: int = 0, most: int = 8):
        from gpuschedlab.policies.prompttuner.policy import PromptTuner
        from gpuschedlab.policies.prompttuner.steps import LISTING, busiest_round, cases_of

        scenario = widgets.PromptLab() if scenario is None else scenario
        policy = policy or getattr(scenario, "tuner", PromptTuner())
        self.view = busiest_round(scenario(seed) if callable(scenario) else scenario, policy, most)
        cases, at, job = cases_of(self.view, policy, job)
        super().__init__(LISTING, cases, at, f"deadline of {job}", _ready)


def _ready(step, case) -> plots.ReadyTimes:
    """E of the pool that a step looks at; the axis is that of all its case."""
    state = step.state
    times = [each.state.due for each in case.steps] + [t for each in case.steps for t, _ in each.state.entries]
    until, gpus = (np.array([entry[k] for entry in state.entries], float) for k in (0, 1))
    title = f"E: when GPUs of {state.llm} are ready"
    return plots.ReadyTimes(title, until, gpus, state.latest, state.due, 1.05 * max(times))
