"""What an explorer changes of a site, by its rule: nodes, what is known of run times, weights or quotas."""

from dataclasses import dataclass, replace
from typing import Annotated

from gpuschedlab.knobs import Holds, Knob, Knobbed
from gpuschedlab.papers.clusters.queues import Queue
from gpuschedlab.papers.clusters.queues.kueue import Kueue
from gpuschedlab.papers.clusters.schedulers.slurm import Slurm
from gpuschedlab.policies.simple import Fifo
from gpuschedlab.sim import Policy


@dataclass(frozen=True)
class SiteChange(Knobbed):
    """What is changed of a site: nodes, its rule, and what is known of run times."""

    more: Annotated[int, Knob(0, 8, unit="nodes", help="nodes beyond the site's own, like its first")] = 0
    rule: Annotated[Fifo, Holds(("backfill", "depth"))] = Fifo()
    known: Annotated[bool, Knob(help="whether run times are known exactly, or as requested")] = False

    @property
    def played(self) -> Policy:
        """The rule as it is played."""
        return self.rule


@dataclass(frozen=True)
class PriorityChange(SiteChange):
    """What is changed of a site that weighs priorities."""

    rule: Annotated[Slurm, Holds(("backfill", "depth", "weight_age", "weight_fairshare", "weight_size"))] = Slurm()


@dataclass(frozen=True)
class QuotaChange(SiteChange):
    """What is changed of a site with queues: GPUs of their own that go from the last to the first, too."""

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


RULES = {Fifo: SiteChange, Slurm: PriorityChange, Kueue: QuotaChange}
"""What is changed of a site, by its rule."""
