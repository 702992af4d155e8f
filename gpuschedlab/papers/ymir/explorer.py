"""The YmirExplorer: gains of tasks from each other, their estimates, and the effect of merging on a workload."""

from dataclasses import replace
from typing import ClassVar

from gpuschedlab import plots
from gpuschedlab.papers.ymir.metrics import merged_shares
from gpuschedlab.widgets.parts.explorer_state import Page
from gpuschedlab.widgets.parts.knob_explorer import PAIR, Lineup, RunExplorer


class YmirExplorer(RunExplorer):
    """Merge fine-tuning jobs with sliders, beside the same jobs without merges and under Optimus.

    Parameters
    ----------
    recipe, seed, cache, **knobs
        As for `RunExplorer`; the recipe is a `MergingCluster`.

    Examples
    --------
    >>> explorer = YmirExplorer(nodes=1, hours=2.0)
    >>> explorer.knobs["threshold"].value = 3.0  # as a hand would move the slider
    >>> explorer.runs["Ymir"].jobs.height == explorer.runs["Optimus"].jobs.height
    True
    """

    places = (
        *(plots.Place("lanes", 320, least=220), *PAIR),
        *(plots.Place(name, 380, more=True) for name in ("pairs", "believed", "jct", "done")),
    )
    front = ("threshold", "temporal", "spatial", "load")
    kept: ClassVar = {"threshold": (0.5, 1.1, 2.0), "temporal": (False, True), "spatial": (False, True)}

    @staticmethod
    def begin():
        """Return the recipe at which the knobs begin, a `MergingCluster`."""
        from gpuschedlab.papers.ymir.recipe import MergingCluster

        return MergingCluster()

    def _lineup(self, recipe) -> Lineup:
        # Without merges, no policy asks what a pair gains.
        unasked = replace(recipe, estimator=type(recipe)().estimator)

        def matters(name: str) -> tuple:
            return self.matter_of(recipe if name == "Ymir" else unasked)

        return replace(super()._lineup(recipe), matters=matters)

    def _page(self, recipe) -> Page:
        gains = recipe.gains()
        mode = "transfer" if recipe.ymir.temporal else "merged"
        figures = {
            "pairs": plots.pair_map(gains, mode),
            "believed": plots.believed(gains),
            "lanes": plots.gantt(self.runs["Ymir"], 0.0, by="model", name="Ymir"),
            "jct": plots.metric_bars(self.runs, "jct_mean"),
            "done": plots.jct_cdf(self.runs),
        }
        shares = merged_shares(self.runs["Ymir"])
        merge_words = f"{shares['temporal']:.0%} of the jobs are merged in time, {shares['spatial']:.0%} in space."
        page = super()._page(recipe)
        return replace(page, figures=page.figures | figures, words=merge_words)
