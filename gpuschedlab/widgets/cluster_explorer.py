"""The ClusterExplorer: where jobs are placed, what that leaves free, and what each rule costs."""

import numpy as np

from gpuschedlab._extras import need
from gpuschedlab.plots.web import Place
from gpuschedlab.scenarios.small_cluster import SmallCluster
from gpuschedlab.widgets.core.cache import Cache
from gpuschedlab.widgets.core.knob_explorer import KnobExplorer

HOUR = 3600.0


class ClusterExplorer(KnobExplorer):
    """Play placement through time on a small cluster: cells that split and merge, free GPUs, and all rules compared.

    Parameters
    ----------
    small : SmallCluster, optional
        Where the knobs begin.
    jobs : int, optional
        Jobs of the trace; default: those of `small`.
    seed : int
        Seed of the trace.
    cache : Cache, optional
        Where runs are kept.

    Examples
    --------
    >>> explorer = ClusterExplorer(SmallCluster(nodes=2, jobs=20))
    >>> explorer.knobs["placement"].value = "buddy"
    >>> explorer.cells.event.split(";")[0].endswith("started")  # the first moment: what started, and what it did to a node's cells
    True
    """

    places = (Place("cells", 400, wide=True), Place("free"), Place("rules"))

    def __init__(
        self, small: SmallCluster | None = None, *, jobs: int | None = None, seed: int = 0, cache: Cache | None = None
    ):
        w = need("ipywidgets")
        self.seed = seed
        style = {"description_width": "84px"}
        self.moment = w.IntSlider(description="moment", min=0, max=1, style=style, layout=w.Layout(width="520px"))
        self.play = w.Play(min=0, max=1, interval=600, tooltip="play the moments one by one")
        self._link = w.jslink((self.play, "value"), (self.moment, "value"))
        self.moment.observe(self._stepped, "value")
        small = small or SmallCluster()
        super().__init__(small if jobs is None else small.with_knobs(jobs=jobs), cache)

    def run_of(self, small: SmallCluster):
        """Run of a small cluster under its rule, kept."""
        return self.cache.get(small, lambda: small(self.seed).run(small.policy)).value

    def _compute(self):
        small = self.knobs.thing
        runs = {rule: self.run_of(small.with_knobs(placement=rule)) for rule in small.policies}
        self.seconds = sum(float(run.info["seconds"]) for run in runs.values())
        return small, runs

    def _numbers(self, found) -> dict:
        from gpuschedlab import plots

        small, self.runs = found
        self.run = self.runs[small.policy.placement]
        self.seats = plots.seats(self.run)
        self._quiet = True
        try:
            self.moment.max = self.play.max = len(self.seats.moments) - 1
        finally:
            self._quiet = False
        self.cells = plots.cells(self.seats, self.moment.value)
        # The chosen rule is marked in words: bars are distinguished without colour.
        marked = {
            f"{rule} (chosen)" if rule == small.policy.placement else rule: run for rule, run in self.runs.items()
        }
        return {"cells": self.cells, "free": plots.free_space(self.run), "rules": plots.metric_bars(marked, "jct_mean")}

    def _stepped(self, change):
        if not self._quiet:
            self.guarded(self._draw_cells)

    def _draw_cells(self):
        from gpuschedlab import plots

        self.cells = plots.cells(self.seats, self.moment.value)
        self._draw({"cells": self.cells})

    def go(self, hours: float):
        """Go to the last moment up to a time, h since the trace's start."""
        self.moment.value = int(np.searchsorted(self.seats.moments, hours * HOUR, side="right") - 1)

    def _words(self, found) -> str:
        jobs = self.run.jobs
        asked, wide = np.ceil(jobs["gpus"].to_numpy() / 8), jobs["nodes"].to_numpy()
        return (
            f"Rule {self.knobs.thing.policy.placement}: jobs waited {float(jobs['queueing'].mean()) / 60:.0f} min on average; "
            f"{int((wide > asked).sum())} of {jobs.height} ran on more nodes than they needed."
        )

    def _controls(self) -> list:
        w = need("ipywidgets")
        return [*super()._controls(), w.HBox([self.play, self.moment])]

    def close(self):
        """Free all widgets, here and in the browser."""
        self._link.close()
        super().close()
