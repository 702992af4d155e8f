"""The SiteExplorer: a site's own log with something changed, beside what was recorded and what the replay misses."""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import polars as pl

from gpuschedlab import plots
from gpuschedlab.estimators import Oracle
from gpuschedlab.knobs import Holds, Knob, Knobbed
from gpuschedlab.policies.simple import Fifo
from gpuschedlab.widgets.core.cache import Cache
from gpuschedlab.widgets.core.knob_explorer import KnobExplorer


@dataclass(frozen=True)
class SiteChange(Knobbed):
    """What is changed of a site: nodes, its rule, and what is known of run times.

    Examples
    --------
    >>> SiteChange(more=2).with_knobs(depth=4).rule.depth
    4
    """

    more: Annotated[int, Knob(0, 8, unit="nodes", help="nodes beyond the site's own, like its first")] = 0
    rule: Annotated[Fifo, Holds(("backfill", "depth"))] = Fifo(placement="pack")
    known: Annotated[bool, Knob(help="whether run times are known exactly, or as requested")] = False


class SiteExplorer(KnobExplorer):
    """Change a site with sliders: mean waits day by day, recorded, replayed and changed, and paired differences with intervals.

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
    >>> explorer.outcome.table["verdict"][0]
    'lower'
    """

    places = (plots.Place("waits", 400, wide=True),)

    def __init__(self, calibration=None, cache: Cache | None = None):
        self.calibration = calibration or replayed_sample()
        self.before = self._weeks(SiteChange(rule=self.calibration.site.own))
        super().__init__(SiteChange(rule=self.calibration.site.own), cache)

    def _scenario(self, change: SiteChange):
        scenario = replace(self.calibration.site, more=self.calibration.site.more + change.more)()
        return scenario.replace(estimator=Oracle()) if change.known else scenario

    def _weeks(self, change: SiteChange):
        """Waits of the jobs of all weeks (`whatif`)."""
        from gpuschedlab.policies.site.whatif import played

        return played(((self._scenario(change), change.rule),))[0]

    def _answer(self, thing: SiteChange) -> tuple:
        from gpuschedlab.policies.site.replay import launched_by
        from gpuschedlab.policies.site.whatif import compared

        starts = launched_by(self._scenario(thing), thing.rule, self.calibration.launch)
        trace = self.calibration.scenario.trace
        return compared(self.before, self._weeks(thing), self.calibration), starts.filter(
            trace["started"].is_not_null()
        )

    def _numbers(self, answer) -> dict:
        self.outcome, changed = answer
        jobs = self.calibration.starts
        starts = {"recorded": jobs["started"], "replayed": self.calibration.launched, "changed": changed}
        starts = {name: column.cast(pl.Float64).fill_null(np.nan).to_numpy() for name, column in starts.items()}
        return {"waits": plots.waits_by_day(jobs["submit"].to_numpy(), starts)}

    def _words(self, answer) -> str:
        return "<br>".join(self.outcome.lines("<b>{}</b>"))


def replayed_sample():
    """The site that ships, replayed."""
    from gpuschedlab.policies.site.recipe import Site
    from gpuschedlab.policies.site.replay import replay

    return replay(Site.sample())
