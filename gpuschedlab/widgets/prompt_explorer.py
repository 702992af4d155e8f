"""The PromptExplorer: warm pools over time under two policies, late jobs and dollars."""

from typing import TYPE_CHECKING

from gpuschedlab.metrics import cost, slo_attainment
from gpuschedlab.plots.web import Place
from gpuschedlab.widgets.core.cache import Cache
from gpuschedlab.widgets.core.knob_explorer import KnobExplorer

if TYPE_CHECKING:
    from gpuschedlab.policies.prompttuner.recipe import PromptLab


class PromptExplorer(KnobExplorer):
    """Watch busy, idle and warming GPUs of each LLM under two policies, with each late job as a red tick.

    Parameters
    ----------
    lab : PromptLab, optional
        Where the knobs begin.
    seed : int
        Seed of the trace.
    cache : Cache, optional
        Where runs are kept.

    Examples
    --------
    >>> from gpuschedlab.widgets import PromptLab
    >>> explorer = PromptExplorer(PromptLab().with_knobs(load="low"))
    >>> explorer.knobs["window"].value = 15.0  # as a hand would move the slider
    >>> len(explorer.outcome)
    2
    """

    places = (Place("chosen", 360, wide=True), Place("beside", 360, wide=True))

    def __init__(self, lab: "PromptLab | None" = None, *, seed: int = 0, cache: Cache | None = None):
        from gpuschedlab.policies.prompttuner.recipe import PromptLab

        self.seed = seed
        super().__init__(lab or PromptLab(), cache)

    def _compute(self):
        lab = self.knobs.thing
        scenario = self.cache.get(("scenario", lab, self.seed), lambda: lab(self.seed)).value
        runs = {
            name: self.cache.get((lab, name, self.seed), lambda name=name: scenario.run(lab.policies[name])).value
            for name in dict.fromkeys((lab.chosen, lab.beside))
        }
        self.seconds = sum(float(run.info["seconds"]) for run in runs.values())
        return lab, runs

    def _numbers(self, found) -> dict:
        from gpuschedlab import plots

        lab, self.runs = found
        self.outcome = {name: (1 - slo_attainment(run), cost(run, lab.price)) for name, run in self.runs.items()}
        last = max(float(run.timeline["time"].max()) for run in self.runs.values())
        titles = {name: f"{name}: {late:.1%} late, ${paid:.0f}" for name, (late, paid) in self.outcome.items()}
        shown = {"chosen": lab.chosen, "beside": lab.beside}
        return {place: plots.pools(self.runs[name], titles[name], end=last) for place, name in shown.items()}

    def _words(self, found) -> str:
        each = [f"<b>{name}: {late:.1%} late, ${paid:.2f}</b>" for name, (late, paid) in self.outcome.items()]
        return f"{'; '.join(each)}. {found[0].gpus} GPUs at ${found[0].price:g} an hour, while held, warming, or idle in a pool."
