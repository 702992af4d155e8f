"""The PromptExplorer: warm pools over time under two policies, late jobs and dollars."""

from gpuschedlab import plots, widgets
from gpuschedlab.metrics import cost, slo_attainment
from gpuschedlab.widgets.core.knob_explorer import RunExplorer


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
    places = (plots.Place("chosen", 360, wide=True), plots.Place("beside", 360, wide=True))

    begin = staticmethod(lambda: widgets.PromptLab())

    def _names(self, recipe) -> list[str]:
        return list(dict.fromkeys((recipe.chosen, recipe.beside)))

    def _numbers(self, recipe) -> dict:
        self.outcome = {name: (1 - slo_attainment(run), cost(run, recipe.price)) for name, run in self.runs.items()}
        last = max(float(run.timeline["time"].max()) for run in self.runs.values())
        titles = {name: f"{name}: {late:.1%} late, ${paid:.0f}" for name, (late, paid) in self.outcome.items()}
        shown = {"chosen": recipe.chosen, "beside": recipe.beside}
        return {place: plots.pools(self.runs[name], titles[name], end=last) for place, name in shown.items()}

    def _words(self, recipe) -> str:
        each = [f"<b>{name}: {late:.1%} late, ${paid:.2f}</b>" for name, (late, paid) in self.outcome.items()]
        return f"{'; '.join(each)}. {recipe.gpus} GPUs at ${recipe.price:g} an hour, while held, warming, or idle in a pool."
