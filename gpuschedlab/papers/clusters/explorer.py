"""The SiteExplorer: a site's own log with something changed, beside what was recorded and what the replay misses."""

from dataclasses import replace

from gpuschedlab import plots
from gpuschedlab.estimators import Oracle
from gpuschedlab.widgets.parts.cache import Cache
from gpuschedlab.widgets.parts.knob_explorer import KnobExplorer


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
    >>> explorer.outcome.table["verdict"].to_list()
    ['no verdict', 'no verdict', 'no verdict']
    """

    places = (plots.Place("waits", 400, wide=True),)

    def __init__(self, calibration=None, cache: Cache | None = None):
        from gpuschedlab.papers.clusters.changes import RULES
        from gpuschedlab.papers.clusters.recipe import Site
        from gpuschedlab.papers.clusters.replay import replay

        self.calibration = calibration or replay(Site.sample())
        own = self.calibration.site.own
        as_it_is = RULES[type(own)](rule=own)
        self.before = self._waits(as_it_is)
        super().__init__(as_it_is, cache)

    def _scenario(self, change):
        scenario = replace(self.calibration.site, more=self.calibration.site.more + change.more)()
        return scenario.replace(estimator=Oracle()) if change.known else scenario

    def _waits(self, change):
        """Waits of the jobs that count (`whatif`)."""
        from gpuschedlab.papers.clusters.whatif import played

        return played(((self._scenario(change), change.played),))[0]

    def _answer(self, thing) -> tuple:
        from gpuschedlab.papers.clusters.replay import launched_by
        from gpuschedlab.papers.clusters.whatif import compared

        starts = launched_by(self._scenario(thing), thing.played, self.calibration.launch)
        trace = self.calibration.scenario.trace
        missing = self.calibration.site.explanation.missing
        return compared(self.before, self._waits(thing), self.calibration, missing), starts.filter(
            trace["started"].is_not_null()
        )

    def _numbers(self, answer) -> dict:
        self.outcome, changed = answer
        jobs = self.calibration.starts
        starts = {"recorded": jobs["started"], "replayed": self.calibration.launched, "changed": changed}
        return {"waits": plots.waits_by_day(jobs["submit"].to_numpy(), starts)}

    def _words(self, answer) -> str:
        return "<br>".join(self.outcome.lines("<b>{}</b>"))
