"""The PromptExplorer: warm pools over time under two policies, late jobs and dollars."""

from typing import ClassVar

import numpy as np

from gpuschedlab import plots, widgets
from gpuschedlab.metrics import cost, slo_attainment
from gpuschedlab.papers.prompttuner.figures import ready_times
from gpuschedlab.widgets.parts.knob_explorer import PAIR, RunExplorer
from gpuschedlab.widgets.parts.step_player import StepPlayer


class PromptExplorer(RunExplorer):
    """Watch busy, idle and warming GPUs of each LLM under two policies, with each late job as a red tick.

    Parameters
    ----------
    recipe, seed, cache, **knobs
        As for `RunExplorer`; the recipe is a `PromptLab`.

    Examples
    --------
    >>> from gpuschedlab.widgets import PromptLab
    >>> explorer = PromptExplorer(PromptLab().with_knobs(load="low"))
    >>> explorer.knobs["window"].value = 15.0  # as a hand would move the slider
    >>> len(explorer.outcome)
    2
    """

    idle = ("chosen", "beside")
    measures = ("late", "cost")
    places = (plots.Place("chosen", 320, least=220), *PAIR, plots.Place("beside", 320, more=True))
    front = ("chosen", "beside", "load", "slo")
    kept: ClassVar = {"load": ("low", "medium", "high"), "slo": (0.5, 1.0)}

    begin = staticmethod(lambda: widgets.PromptLab())

    def _names(self, recipe) -> list[str]:
        return list(dict.fromkeys((recipe.chosen, recipe.beside)))

    def _numbers(self, recipe) -> dict:
        self.outcome = {name: (1 - slo_attainment(run), cost(run, recipe.price)) for name, run in self.runs.items()}
        last = max(float(run.timeline["time"].max()) for run in self.runs.values())
        titles = {name: f"{name}: {late:.1%} late, ${paid:.0f}" for name, (late, paid) in self.outcome.items()}
        shown = {"chosen": recipe.chosen, "beside": recipe.beside}
        return super()._numbers(recipe) | {
            place: plots.pools(self.runs[name], titles[name], end=last) for place, name in shown.items()
        }

    def _words(self, recipe) -> str:
        return f"{recipe.gpus} GPUs at ${recipe.price:g} an hour, while held, warming, or idle in a pool."


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
