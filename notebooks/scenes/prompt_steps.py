"""One round of PromptTuner, step by step."""

import numpy as np

from gpuschedlab import plots, widgets
from gpuschedlab.papers.prompttuner.figures import ready_times
from gpuschedlab.widgets import StepPlayer


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
        from gpuschedlab.papers.prompttuner.policy import PromptTuner
        from gpuschedlab.papers.prompttuner.steps import LISTING, busiest_round, cases_of

        scenario = widgets.PromptLab() if scenario is None else scenario
        policy = policy or getattr(scenario, "tuner", PromptTuner())
        self.view = busiest_round(scenario(seed) if callable(scenario) else scenario, policy, most)
        cases, at, job = cases_of(self.view, policy, job)
        super().__init__(LISTING, cases, at, f"deadline of {job}", _ready)


def _ready(step, case) -> plots.Drawing:
    """E of the pool that a step looks at; the axis is that of all its case."""
    state = step.state
    times = [each.state.due for each in case.steps] + [t for each in case.steps for t, _ in each.state.entries]
    until, gpus = (np.array([entry[k] for entry in state.entries], float) for k in (0, 1))
    title = f"E: when GPUs of {state.llm} are ready"
    return ready_times(title, until, gpus, state.latest, state.due, 1.05 * max(times))
