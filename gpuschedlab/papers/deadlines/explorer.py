"""The UniSchedExplorer: leases and deadlines on a few nodes, the trade-off of all policies, and when a curve gets there."""

import numpy as np

from gpuschedlab import plots, widgets
from gpuschedlab.metrics import slo_violation
from gpuschedlab.metrics.who_pays import compared
from gpuschedlab.widgets.parts.controls import control, row
from gpuschedlab.widgets.parts.knob_explorer import RunExplorer

EPOCHS = 60


class UniSchedExplorer(RunExplorer):
    """Watch leases being given: who holds GPUs when, which deadlines are met, and what best effort pays for it.

    Parameters
    ----------
    recipe, seed, cache, **knobs
        As for `RunExplorer`; the recipe is a `SmallLeases`, and the learning curve has the seed, too.

    Examples
    --------
    >>> from gpuschedlab.widgets import SmallLeases
    >>> explorer = UniSchedExplorer(SmallLeases(nodes=2, jobs=12))
    >>> explorer.knobs["policy"].value = "Chronus"
    >>> explorer.board.drawings["leases"].live["title_text"].split(":")[0]
    'Leases under Chronus'
    """

    idle = ("policy",)
    places = (plots.Place("leases", 420, wide=True), plots.Place("trade", 340), plots.Place("arrival", 340))

    begin = staticmethod(lambda: widgets.SmallLeases())

    def __init__(self, recipe=None, seed: int = 0, cache=None, **knobs):
        self.curve = learning_curve(seed)
        self.seen = control("IntSlider", "epochs seen", 330, 84, min=6, max=EPOCHS, value=15)
        self.target = control("FloatSlider", "target", 330, 84, min=0.5, max=0.95, step=0.01, value=0.88)
        for slider in (self.seen, self.target):
            slider.observe(lambda _: self._redraw("arrival", self._arrival), "value")
        super().__init__(recipe, seed, cache, **knobs)

    def _numbers(self, recipe) -> dict:
        self.run = self.runs[recipe.policy]
        return {
            "leases": plots.lease_board(self.run, recipe.unisched.lease, name=recipe.policy),
            "trade": plots.trade_off(self.runs, recipe.policy),
            "arrival": self._arrival(),
        }

    def _arrival(self):
        """Numbers of the learning curve, kept."""
        seen, target = self.seen.value, round(self.target.value, 2)
        return self.cache.get(("arrival", seen, target), lambda: plots.arrival(self.curve, seen, target)).value

    def _words(self, recipe) -> str:
        jobs = self.run.jobs
        slo = jobs["kind"] != "best_effort"
        others = [name for name in self.runs if name != recipe.policy]
        best = min(others, key=lambda name: slo_violation(self.runs[name]))
        late = compared(self.run, self.runs[best], (recipe.policy, best), measure="late")
        profiled = f"; profiling took {jobs['profiled'].mean():.0f} s per job" if recipe.unisched.profile else ""
        return (
            f"{late.main} {late.rest} {100 * slo_violation(self.run):.1f}% of the value of {int(slo.sum())} jobs with deadlines is "
            f"lost, {int(jobs.filter(slo)['restarts'].sum())} suspensions{profiled}."
        )

    def _controls(self) -> list:
        return [*super()._controls(), row(self.seen, self.target)]


def learning_curve(rng: int) -> np.ndarray:
    """(EPOCHS,) made-up metric that rises towards 0.92, with noise."""
    x = np.arange(1.0, EPOCHS + 1)
    noise = np.random.default_rng(rng).normal(0, 0.004, EPOCHS)
    return np.maximum.accumulate(0.92 - 0.6 * x**-0.75 + noise)
