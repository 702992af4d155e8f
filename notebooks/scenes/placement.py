"""The ClusterExplorer: where jobs are placed, what that leaves free, and what each rule costs."""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from gpuschedlab import plots
from gpuschedlab.scenarios.small_cluster import SmallCluster
from gpuschedlab.widgets.parts.controls import control, quiet
from gpuschedlab.widgets.parts.explorer_state import Controls, Page
from gpuschedlab.widgets.parts.knob_explorer import PAIR, Lineup, RunExplorer

MOMENTS = 8
"""Moments after the first that a page without a kernel holds of each rule, or a few more."""


class ClusterExplorer(RunExplorer):
    """Step through placement in time on a small cluster: cells that split and merge, free GPUs, and all rules compared.

    Parameters
    ----------
    recipe, seed, cache, **knobs
        As for `RunExplorer`; the recipe is a `SmallCluster`.

    Examples
    --------
    >>> explorer = ClusterExplorer(SmallCluster(nodes=2, jobs=20))
    >>> explorer.knobs["placement"].value = "buddy"
    >>> "started; free cells of " in explorer.cells.live["title_text"]  # the first moment: what it did to a node's cells
    True
    """

    measures = ("wait",)
    places = (
        *(plots.Place("cells", 320, least=220), *PAIR),
        *(plots.Place(name, more=True) for name in ("free", "rules")),
    )
    front = ("placement", "load", "large", "nodes")
    kept: ClassVar = {"placement": ()}

    begin = SmallCluster

    def __init__(self, *given, **options):
        self.moment = control(
            "IntSlider", "moment", 520, 84, min=0, max=1, tooltip="arrow keys step through the moments"
        )
        self.moment.observe(lambda _: self._redraw("cells", self._cells), "value")
        super().__init__(*given, **options)

    def _lineup(self, recipe) -> Lineup:
        rule = recipe.policy.placement
        other = next(name for name in ("pack", "consolidate") if name != rule)
        return replace(super()._lineup(recipe), pair=lambda runs: [rule, other])

    def _controls(self) -> Controls:
        controls = super()._controls()

        def kept() -> dict:
            last = min(len(plots.seats(run).moments) for run in self.runs.values()) - 1  # of all rules
            moments = {*range(0, last + 1, max(1, last // MOMENTS)), self.moment.value}
            return controls.kept() | {"moment": (sorted(moments), self.moment.value)}

        def put(values: dict):
            controls.put(values)
            with quiet(self):
                self.moment.value = values["moment"]

        return replace(controls, row=[*controls.row, self.moment], kept=kept, put=put)

    def _page(self, recipe) -> Page:
        rule = recipe.policy.placement
        self.run = self.runs[rule]
        self.seats = plots.seats(self.run)
        with quiet(self):
            self.moment.max = len(self.seats.moments) - 1
        # The chosen rule is marked in words: bars are distinguished without colour.
        marked = {f"{name} (chosen)" if name == rule else name: run for name, run in self.runs.items()}
        rules = plots.metric_bars(marked, "jct_mean")
        figures = {"cells": self._cells(), "free": plots.free_space(self.run), "rules": rules}
        page = super()._page(recipe)
        return replace(page, figures=page.figures | figures, words=self._spread(rule))

    def _cells(self):
        """Numbers of the cells at the chosen moment."""
        self.cells = plots.cells(self.seats, self.moment.value)
        return self.cells

    def _spread(self, rule: str) -> str:
        """How many jobs ran on more nodes than they needed."""
        jobs = self.run.jobs
        needed = np.ceil(jobs["gpus"].to_numpy() / 8)
        spread = int((jobs["nodes"].to_numpy() > needed).sum())
        return f"Under {rule} {spread} of {jobs.height} jobs ran on more nodes than they needed."
