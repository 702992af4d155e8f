"""The YmirExplorer: what tasks gain from each other, what is believed of it, and what merging does to a workload."""

from dataclasses import replace
from typing import ClassVar

from gpuschedlab import plots
from gpuschedlab.papers.ymir.metrics import merged_shares
from gpuschedlab.widgets.parts.knob_explorer import PAIR, RunExplorer


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
        """Recipe at which the knobs begin."""
        from gpuschedlab.papers.ymir.recipe import MergingCluster

        return MergingCluster()

    def _matters(self, recipe, name: str) -> tuple:
        # Without merges, no policy asks what a pair gains.
        known = recipe if name == "Ymir" else replace(recipe, estimator=type(recipe)().estimator)
        return super()._matters(known, name)

    def _numbers(self, recipe) -> dict:
        gains = recipe.gains()
        mode = "transfer" if recipe.ymir.temporal else "merged"
        return super()._numbers(recipe) | {
            "pairs": plots.pair_map(gains, mode),
            "believed": plots.believed(gains),
            "lanes": plots.gantt(self.runs["Ymir"], 0.0, by="model", name="Ymir"),
            "jct": plots.metric_bars(self.runs, "jct_mean"),
            "done": plots.jct_cdf(self.runs),
        }

    def _words(self, recipe) -> str:
        shares = merged_shares(self.runs["Ymir"])
        return f"{shares['temporal']:.0%} of the jobs are merged in time, {shares['spatial']:.0%} in space."
