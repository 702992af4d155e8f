"""The UniSchedExplorer: leases and deadlines on a few nodes, the trade-off of all policies, and when a curve gets there."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpuschedlab._extras import need
from gpuschedlab.plots.web import Place
from gpuschedlab.widgets.core.cache import Cache
from gpuschedlab.widgets.core.knob_explorer import KnobExplorer

if TYPE_CHECKING:
    from gpuschedlab.policies.deadlines.recipe import SmallLeases

EPOCHS = 60


class UniSchedExplorer(KnobExplorer):
    """Watch leases being given: who holds GPUs when, which deadlines are met, and what best effort pays for it.

    Parameters
    ----------
    small : SmallLeases, optional
        Where the knobs begin.
    jobs : int, optional
        Jobs of the trace; default: those of `small`.
    seed : int
        Seed of the trace and of the learning curve.
    cache : Cache, optional
        Where runs are kept.

    Examples
    --------
    >>> from gpuschedlab.widgets import SmallLeases
    >>> explorer = UniSchedExplorer(SmallLeases(nodes=2, jobs=12))
    >>> explorer.knobs["policy"].value = "Chronus"
    >>> explorer.board.drawings["leases"].live["title_text"].split(":")[0]
    'Leases under Chronus'
    """

    places = (Place("leases", 420, wide=True), Place("trade", 340), Place("arrival", 340))

    def __init__(
        self, small: "SmallLeases | None" = None, *, jobs: int | None = None, seed: int = 0, cache: Cache | None = None
    ):
        from gpuschedlab.policies.deadlines.recipe import SmallLeases

        w = need("ipywidgets")
        self.seed, self.curve = seed, learning_curve(seed)
        style, wide = {"description_width": "84px"}, w.Layout(width="330px")
        self.seen = w.IntSlider(description="epochs seen", min=6, max=EPOCHS, value=15, style=style, layout=wide)
        self.target = w.FloatSlider(
            description="target", min=0.5, max=0.95, step=0.01, value=0.88, style=style, layout=wide
        )
        for slider in (self.seen, self.target):
            slider.observe(lambda _: self.guarded(self._draw_arrival), "value")
        small = small or SmallLeases()
        super().__init__(small if jobs is None else small.with_knobs(jobs=jobs), cache)

    def _compute(self):
        small = self.knobs.thing
        scenario, begin = small(self.seed), type(small)()
        key = replace(
            small, policy=begin.policy, unisched=begin.unisched
        )  # runs do not depend on them but by the policy
        runs = {
            name: self.cache.get((key, policy), lambda p=policy: scenario.run(p)).value
            for name, policy in small.policies.items()
        }
        self.seconds = sum(float(run.info["seconds"]) for run in runs.values())
        return small, runs

    def _numbers(self, found) -> dict:
        from gpuschedlab import plots

        small, self.runs = found
        self.run = self.runs[small.policy]
        return {
            "leases": plots.lease_board(self.run, small.unisched.lease, name=small.policy),
            "trade": plots.trade_off(self.runs, small.policy),
            "arrival": self._arrival(),
        }

    def _arrival(self):
        """Numbers of the learning curve, kept."""
        from gpuschedlab import plots

        seen, target = self.seen.value, round(self.target.value, 2)
        return self.cache.get(("arrival", seen, target), lambda: plots.arrival(self.curve, seen, target)).value

    def _draw_arrival(self):
        """Redraw the learning curve alone."""
        if self.board is not None:
            self._draw({"arrival": self._arrival()})

    def _words(self, found) -> str:
        from gpuschedlab.metrics import slo_violation

        small, runs = found
        jobs = self.run.jobs
        slo = jobs["kind"] != "best_effort"
        best = min(runs, key=lambda name: slo_violation(runs[name]))
        profiled = f"; profiling took {jobs['profiled'].mean():.0f} s per job" if small.unisched.profile else ""
        return (
            f"{small.policy}: {100 * slo_violation(self.run):.1f} % of the value of {int(slo.sum())} jobs with deadlines is "
            f"lost, {int(jobs.filter(slo)['restarts'].sum())} suspensions{profiled}. The least is lost under {best}."
        )

    def _controls(self) -> list:
        w = need("ipywidgets")
        return [*super()._controls(), w.Box([self.seen, self.target], layout=w.Layout(flex_flow="row wrap"))]


def learning_curve(rng: int) -> np.ndarray:
    """(EPOCHS,) made-up metric that rises towards 0.92, with noise.

    Examples
    --------
    >>> curve = learning_curve(0)
    >>> bool(curve[0] < 0.4 < 0.85 < curve[-1] < 0.95)
    True
    """
    x = np.arange(1.0, EPOCHS + 1)
    noise = np.random.default_rng(rng).normal(0, 0.004, EPOCHS)
    return np.maximum.accumulate(0.92 - 0.6 * x**-0.75 + noise)
