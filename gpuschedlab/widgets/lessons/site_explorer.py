"""The SiteExplorer: a site's own log with something changed, beside what was recorded and what the replay misses."""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import polars as pl

from gpuschedlab import plots
from gpuschedlab.estimators import Oracle
from gpuschedlab.knobs import Holds, Knob, Knobbed
from gpuschedlab.policies.simple import Fifo
from gpuschedlab.policies.site.kueue import Kueue
from gpuschedlab.policies.site.queues import Queue
from gpuschedlab.policies.site.slurm import Slurm
from gpuschedlab.sim import Policy
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

    @property
    def played(self) -> Policy:
        """The rule as it is played."""
        return self.rule


@dataclass(frozen=True)
class PriorityChange(SiteChange):
    """What is changed of a site that weighs priorities.

    Examples
    --------
    >>> PriorityChange().with_knobs(weight_size=0).rule.weight_size
    0
    """

    rule: Annotated[Slurm, Holds(("backfill", "depth", "weight_age", "weight_fairshare", "weight_size"))] = Slurm()


@dataclass(frozen=True)
class QuotaChange(SiteChange):
    """What is changed of a site with queues: GPUs of their own that go from the last to the first, too.

    Examples
    --------
    >>> from gpuschedlab.policies.site.queues import Queue
    >>> two = Kueue((Queue("a", "team", (("t4", 9),)), Queue("b", "team", (("t4", 12),))))
    >>> [queue.nominal for queue in QuotaChange(rule=two, moved=4).played.queues]
    [(('t4', 13.0),), (('t4', 8.0),)]
    """

    rule: Annotated[Kueue, Holds(("fair", "resume"))] = Kueue()
    moved: Annotated[
        int, Knob(-64, 64, unit="GPUs", help="of the last queue's quota, as far as it has them, that the first gets")
    ] = 0

    @property
    def played(self) -> Kueue:
        """The rule with these quotas."""
        if len(self.rule.queues) < 2:
            return self.rule
        first, *between, last = self.rule.queues
        kind, own = first.nominal[0]
        more = min(dict(last.nominal).get(kind, 0.0), self.moved) if self.moved > 0 else max(-own, self.moved)
        return replace(self.rule, queues=(_with_quota(first, kind, more), *between, _with_quota(last, kind, -more)))


def _with_quota(queue: Queue, kind: str, more: float) -> Queue:
    """A queue with so many GPUs of a type more of its own."""
    return replace(queue, nominal=tuple((t, n + more * (t == kind)) for t, n in queue.nominal))


CHANGES = {Fifo: SiteChange, Slurm: PriorityChange, Kueue: QuotaChange}
"""What is changed of a site, by its rule."""


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
        own = self.calibration.site.own
        as_it_is = CHANGES[type(own)](rule=own)
        self.before = self._weeks(as_it_is)
        super().__init__(as_it_is, cache)

    def _scenario(self, change: SiteChange):
        scenario = replace(self.calibration.site, more=self.calibration.site.more + change.more)()
        return scenario.replace(estimator=Oracle()) if change.known else scenario

    def _weeks(self, change: SiteChange):
        """Waits of the jobs of all weeks (`whatif`)."""
        from gpuschedlab.policies.site.whatif import played

        return played(((self._scenario(change), change.played),))[0]

    def _answer(self, thing: SiteChange) -> tuple:
        from gpuschedlab.policies.site.replay import launched_by
        from gpuschedlab.policies.site.whatif import compared

        starts = launched_by(self._scenario(thing), thing.played, self.calibration.launch)
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
