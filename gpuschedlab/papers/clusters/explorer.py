"""The SiteExplorer: a site's own log with something changed, beside what was recorded and what the replay misses."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import polars as pl

from gpuschedlab import plots
from gpuschedlab.estimators import Oracle
from gpuschedlab.metrics import who_pays
from gpuschedlab.plots.job_changes import Compared
from gpuschedlab.widgets.parts.cache import Cache
from gpuschedlab.widgets.parts.explorer_state import Page
from gpuschedlab.widgets.parts.knob_explorer import KnobExplorer


class SiteExplorer(KnobExplorer):
    """Change a site with sliders: mean waits day by day, recorded, replayed and changed; dots of jobs; paired differences with intervals.

    Parameters
    ----------
    calibration : Calibration, optional
        What `replay(site)` found; default: of the site that ships.
    cache : Cache, optional
        Where results are kept.

    Examples
    --------
    >>> explorer = SiteExplorer()
    >>> explorer.knobs["more"].value = 2  # as a hand would move the slider
    >>> explorer.outcome.table["verdict"].to_list()
    ['lower, whatever the model misses', 'no verdict', 'no verdict']
    """

    places = tuple(plots.Place(name, 360, least=220) for name in ("waits", "change"))
    kept: ClassVar = {"more": (0, 1, 2, 4, 8), "backfill": ("none", "easy", "greedy"), "known": (False, True)}

    def __init__(self, calibration=None, cache: Cache | None = None):
        from gpuschedlab.papers.clusters.changes import RULES
        from gpuschedlab.papers.clusters.recipe import Site
        from gpuschedlab.papers.clusters.replay import replay
        from gpuschedlab.papers.clusters.whatif import misses

        self.calibration = calibration or replay(Site.sample())
        site_rule = self.calibration.site.rule
        as_it_is = RULES[type(site_rule)](rule=site_rule)
        self.before = self._waits(as_it_is)
        self.missed = misses(self.calibration.site, self.calibration.scenario.trace, self.before)
        super().__init__(replace(as_it_is, more=2), cache)

    def _scenario(self, change):
        site = self.calibration.site
        changed_site = replace(site, more=site.more + change.more)
        changed_site.__dict__["log"] = site.log  # read once
        scenario = changed_site.recorded()
        if change.known:
            return scenario.replace(estimator=Oracle())
        return scenario

    def _waits(self, change):
        """Return the frame of the waits of jobs that count (`whatif`)."""
        from gpuschedlab.papers.clusters.whatif import played

        policy = self.calibration.site.within(change.played)
        (waits,) = played(((self._scenario(change), policy),))
        return waits

    def _jobs(self, waits) -> pl.DataFrame:
        """Return a frame of the jobs that count, as the sentence compares them."""
        gpus = self.calibration.scenario.trace.select("job_id", "gpus")
        end = pl.col("submit") + pl.col("wait") + pl.col("ran")
        named = {"duration": "ran", "queueing": "wait", "end": end}
        return waits.join(gpus, on="job_id", maintain_order="left").select("job_id", "submit", "gpus", **named)

    def _compute(self, thing) -> tuple:
        from gpuschedlab.papers.clusters.playing.eligible import launched_by
        from gpuschedlab.papers.clusters.whatif import compared

        starts = launched_by(self._scenario(thing), self.calibration.site.within(thing.played), self.calibration.launch)
        trace = self.calibration.scenario.trace
        waits = self._waits(thing)
        both = [self._jobs(waits_of_side) for waits_of_side in (waits, self.before)]
        payers = who_pays.compared(*both, ("this change", "the site as it is"), measure="wait")
        outcome = compared(self.before, waits, self.calibration, self.missed)
        return outcome, starts.filter(trace["started"].is_not_null()), both, payers

    def _changes(self, both, payers):
        """Return a `Drawing` with one dot a job that counts: how much later or sooner it ends."""
        columns = (both[0][column_name].to_numpy() for column_name in ("gpus", "submit", "duration"))
        took = ((jobs["end"] - jobs["submit"]).to_numpy() for jobs in both)
        moved = np.zeros(both[0].height, int)
        moved[payers.later.rows] = 1
        moved[payers.sooner.rows] = -1
        return Compared(payers.names, *columns, *took, moved, None).changes()._replace(record=None)

    def _page(self, answer) -> Page:
        self.outcome, changed, *compared = answer
        jobs = self.calibration.starts
        starts = {"recorded": jobs["started"], "replayed": self.calibration.launched, "changed": changed}
        waits = plots.waits_by_day(jobs["submit"].to_numpy(), starts)
        comparisons = ()
        if not self.outcome.missing:
            comparisons = answer[3:]
        change_table = self.outcome.shown()
        return Page(
            {"waits": waits, "change": self._changes(*compared)},
            comparisons=comparisons,
            words=self.outcome.sentence,
            below=change_table._repr_html_(),
        )
