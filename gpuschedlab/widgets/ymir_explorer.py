"""The YmirExplorer: what tasks gain from each other, what is believed of it, and what merging does to a workload."""

from dataclasses import replace
from typing import TYPE_CHECKING

from gpuschedlab.metrics.merged import merged_shares
from gpuschedlab.plots.web import Place
from gpuschedlab.widgets.core.cache import Cache
from gpuschedlab.widgets.core.knob_explorer import KnobExplorer

if TYPE_CHECKING:
    from gpuschedlab.policies.ymir.recipe import MergingCluster


class YmirExplorer(KnobExplorer):
    """Merge fine-tuning jobs with sliders, beside the same jobs without merges and under Optimus.

    Parameters
    ----------
    small : MergingCluster, optional
        Where the knobs begin.
    nodes, hours : optional
        Knobs of `small` that differ from its own.
    seed : int
        Seed of the jobs.
    cache : Cache, optional
        Where runs are kept.

    Examples
    --------
    >>> explorer = YmirExplorer(nodes=1, hours=2.0)
    >>> explorer.knobs["threshold"].value = 3.0  # as a hand would move the slider
    >>> explorer.runs["Ymir"].jobs.height == explorer.runs["Optimus"].jobs.height
    True
    """

    places = (Place("pairs", 380), Place("believed", 380), Place("lanes", 420, wide=True), Place("jct"), Place("done"))

    def __init__(
        self,
        small: "MergingCluster | None" = None,
        *,
        nodes: int | None = None,
        hours: float | None = None,
        seed: int = 0,
        cache: Cache | None = None,
    ):
        from gpuschedlab.policies.ymir.recipe import MergingCluster

        self.seed = seed
        sizes = {name: value for name, value in {"nodes": nodes, "hours": hours}.items() if value is not None}
        super().__init__((small or MergingCluster()).with_knobs(**sizes), cache)

    def runs_of(self, small: "MergingCluster") -> dict:
        """Runs of the three policies on the jobs of some knobs, kept."""
        scenario, runs, begin = small(self.seed), {}, type(small)()
        asked = replace(small, ymir=begin.ymir, estimator=begin.estimator)
        for name, policy in small.policies.items():
            key = (asked, small.estimator if name == "Ymir" else None, policy)
            runs[name] = self.cache.get(key, lambda policy=policy: scenario.run(policy)).value
        return runs

    def _compute(self):
        small = self.knobs.thing
        runs = self.runs_of(small)
        self.seconds = sum(float(run.info["seconds"]) for run in runs.values())
        return small, runs

    def _numbers(self, found) -> dict:
        from gpuschedlab import plots

        small, self.runs = found
        gains = small.gains()
        mode = "transfer" if small.ymir.temporal else "merged"
        return {
            "pairs": plots.pair_map(gains, mode),
            "believed": plots.believed(gains, small.ymir.threshold),
            "lanes": plots.job_lanes(self.runs["Ymir"], name="Ymir"),
            "jct": plots.metric_bars(self.runs, "jct_mean"),
            "done": plots.jct_cdf(self.runs),
        }

    def _words(self, found) -> str:
        mean = {name: float(run.jobs["jct"].mean()) for name, run in self.runs.items()}
        shares = merged_shares(self.runs["Ymir"])
        return (
            f"{self.runs['Ymir'].jobs.height} jobs, {shares['temporal']:.0%} merged in time and {shares['spatial']:.0%} in "
            f"space: they end {mean['Ymir, no merges'] / mean['Ymir']:.2f} times as soon as without merges, "
            f"{mean['Optimus'] / mean['Ymir']:.2f} times as soon as under Optimus."
        )
