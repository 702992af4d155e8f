"""The PromptExplorer: warm pools over time under two policies, late jobs and dollars."""

from dataclasses import replace
from typing import ClassVar

from gpuschedlab import plots, widgets
from gpuschedlab.metrics import cost, slo_attainment
from gpuschedlab.widgets.parts.explorer_state import Page
from gpuschedlab.widgets.parts.knob_explorer import PAIR, Lineup, RunExplorer


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

    def _lineup(self, recipe) -> Lineup:
        return replace(super()._lineup(recipe), names=list(dict.fromkeys((recipe.chosen, recipe.beside))))

    def _page(self, recipe) -> Page:
        self.outcome = {
            policy_name: (1 - slo_attainment(run), cost(run, recipe.price)) for policy_name, run in self.runs.items()
        }
        last_instants = (run.timeline["time"].max() for run in self.runs.values())
        last_instant = float(max(last_instants))
        titles = {
            policy_name: f"{policy_name}: {late:.1%} late, ${paid:.0f}"
            for policy_name, (late, paid) in self.outcome.items()
        }
        policy_names = {"chosen": recipe.chosen, "beside": recipe.beside}
        pools = {
            pool_place: plots.pools(self.runs[policy_name], titles[policy_name], end=last_instant)
            for pool_place, policy_name in policy_names.items()
        }
        page = super()._page(recipe)
        price_words = f"{recipe.gpus} GPUs at ${recipe.price:g} an hour, while held, warming, or idle in a pool."
        return replace(page, figures=page.figures | pools, words=price_words)
