"""The UniSchedExplorer: leases and deadlines on a few nodes, and the trade-off of all policies."""

from dataclasses import replace
from typing import ClassVar

from gpuschedlab import plots, widgets
from gpuschedlab.metrics import slo_violation
from gpuschedlab.widgets.parts.explorer_state import Page
from gpuschedlab.widgets.parts.knob_explorer import PAIR, Lineup, RunExplorer


class UniSchedExplorer(RunExplorer):
    """Watch leases being given: who holds GPUs when, which deadlines are met, and the cost for best effort.

    Parameters
    ----------
    recipe, seed, cache, **knobs
        As for `RunExplorer`; the recipe is a `SmallLeases`.

    Examples
    --------
    >>> from gpuschedlab.widgets import SmallLeases
    >>> explorer = UniSchedExplorer(SmallLeases(nodes=2, jobs=12))
    >>> explorer.knobs["policy"].value = "Chronus"
    >>> explorer.board.drawings["leases"].live["title_text"].split(":")[0]
    'Leases under Chronus'
    """

    idle = ("policy",)
    measures = ("late", "jct")
    places = (
        *(plots.Place("leases", 320, least=220), *PAIR),
        plots.Place("trade", 340, more=True),
    )
    front = ("policy", "lease", "load", "slack")
    kept: ClassVar = {"policy": (), "lease": (300, 600, 1800), "load": (0.8, 1.2)}

    begin = staticmethod(lambda: widgets.SmallLeases())

    def _lineup(self, recipe) -> Lineup:
        def pair(runs) -> list[str]:
            rival_policies = [policy_name for policy_name in runs if policy_name != recipe.policy]
            return [recipe.policy, min(rival_policies, key=lambda policy_name: slo_violation(runs[policy_name]))]

        return replace(super()._lineup(recipe), pair=pair)

    def _page(self, recipe) -> Page:
        self.run = self.runs[recipe.policy]
        page = super()._page(recipe)
        leases = plots.lease_board(self.run, recipe.unisched.lease, name=recipe.policy)
        trade = plots.trade_off(self.runs, recipe.policy)
        return replace(page, figures=page.figures | {"leases": leases, "trade": trade}, words=self._losses(recipe))

    def _losses(self, recipe) -> str:
        """Return a sentence on the loss by the policy's leases."""
        jobs = self.run.jobs
        slo = jobs["kind"] != "best_effort"
        profiled = f"; profiling took {jobs['profiled'].mean():.0f} s per job" if recipe.unisched.profile else ""
        restarts = jobs.filter(slo)["restarts"]
        return (
            f"{100 * slo_violation(self.run):.1f}% of the value of {int(slo.sum())} jobs with deadlines is lost, "
            f"{int(restarts.sum())} suspensions{profiled}."
        )
