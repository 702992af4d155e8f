"""Kueue: quotas of queues that borrow from, lend to and reclaim from each other within a cohort."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from gpuschedlab.errors import PolicyError
from gpuschedlab.knobs import Knob
from gpuschedlab.papers.clusters.queues import NEXT, Queue
from gpuschedlab.papers.clusters.queues.admission import admit, may_take
from gpuschedlab.papers.clusters.queues.laws import quotas_hold
from gpuschedlab.policies.remaining import long_enough, requested_rates
from gpuschedlab.policies.simple import Placement
from gpuschedlab.sim.policy import Round
from gpuschedlab.sim.rounds.allocation import Allocation

RECLAIM = ("Never", "LowerPriority", "Any", "LowerOrNewerEqualPriority")
JOB = {"queue": np.int64, "able": np.int64, "priority": float, "since": float, "admitted": float}
"""Of each job: number of its queue, a bit for each type that it can run on, priority, instants (s) of its place and of its last start."""


class _Seen:
    """The queues as arrays, made when they are first asked for, and the jobs seen so far, by their rows in the trace."""

    def __init__(self):
        self.tables = None
        self.rows = 0
        self.evicted = np.zeros(0, np.int64)
        self.jobs = {name: np.zeros(0, kind) for name, kind in JOB.items()}

    def arrays(self, queues: tuple[Queue, ...], cluster) -> tuple:
        """`quota, flavors, cohort, rules, weight` of `admission.admit`."""
        if self.tables is None:
            types = cluster.gpu_types
            queues = queues or (Queue("all", nominal=tuple(zip(types, cluster.capacity.tolist(), strict=True))),)
            listed = [[types.index(t) for t, _ in q.nominal if t in types] for q in queues]
            if none := next((q.name for q, known in zip(queues, listed, strict=True) if not known), None):
                raise PolicyError(
                    f"Kueue.queues: found no quota of {none!r} for any of {', '.join(types)}; expected one, such as "
                    f"Queue({none!r}, nominal=(({types[0]!r}, 8),))."
                )
            flavors = [each + [-1] * (len(types) - len(each)) for each in listed]
            cohorts = [q.cohort or f" {i}" for i, q in enumerate(queues)]
            rules = [
                (
                    q.strict,
                    RECLAIM.index(q.reclaim),
                    RECLAIM.index(q.within),
                    q.when_can_borrow == NEXT,
                    q.when_can_preempt != NEXT,
                    RECLAIM.index(q.borrow_within),
                    int(min(q.threshold, 2**53)),
                )
                for q in queues
            ]
            quota = np.array([[q.quota(t) for t in types] for q in queues])
            cohort = np.unique(cohorts, return_inverse=True)[1]
            weight = np.array([q.weight for q in queues], float)
            self.tables = (quota, np.array(flavors, np.int64), cohort, np.array(rules, np.int64), weight)
        return self.tables


@dataclass(frozen=True)
class Kueue(Round):
    """Admit jobs by quotas: each has its queue, each queue GPUs of its own by type, and a cohort that lends what nobody uses.

    At arrivals and completions there are cycles: the heads of all queues are looked at together, those that do not borrow first, then
    by priority, then by age. Each gets the first type of its queue's list on which it fits, if need be by borrowing
    (`Queue.when_can_borrow`, `Queue.when_can_preempt`). A job of no more than the nominal quota that lacks room evicts jobs of queues that
    borrow, if its queue stays within nominal (`Queue.reclaim`), and of its own queue (`Queue.within`): others' first, of these those of
    the lowest priority, of these those that were admitted last; what turns out not to be needed is given back.

    Parameters
    ----------
    queues : tuple of Queue
        (): one queue with all GPUs, as in the guide "Administer Cluster Quotas": each job that fits starts, in order.
    column : str
        Text column of the trace that names each job's queue; a job whose queue is not there is in the first.
    priorities : tuple of (str, float)
        Priority by value of `by`; others have 0. (): the trace's numbers `priority`, where it has them.
    by : str
        Text column of the priorities.
    fair : bool
        Whether heads go, and queues lose jobs, by their share: GPUs beyond nominal, of all types together, over the GPUs that the cohort
        lends, over the queue's weight. The least share is admitted first, and the greatest is evicted first while it stays above that of
        the queue that gains.
    resume : bool
        Whether an evicted job goes on from where it was; otherwise it begins anew.

    Raises
    ------
    PolicyError
        A queue occurs twice.

    Differs from the paper in
    -------------------------
    Evictions take no time of their own; an evicted job goes behind its queue, and is not admitted at the same instant. Of a cohort's
    own quotas, cohorts of cohorts and admission checks nothing is modelled; a job's GPUs are of one type. Among fair sharing's
    strategies of preemption is only LessThanOrEqualToFinalShare; shares are not rounded to thousandths, and the weights of types that
    KEP-8902 proposes are not there.

    References
    ----------
    Kueue documentation (v0.13), pages "ClusterQueue", "Cohort", "Preemption", "Fair sharing"; KEP-1714; KEP-8902, on what a share is today.

    Examples
    --------
    >>> Kueue((Queue("a", "team", (("t4", 4),)), Queue("b", "team", (("t4", 4),), reclaim="Any"))).on_event
    True
    """

    queues: tuple[Queue, ...] = ()
    column: str = "vc"
    priorities: tuple[tuple[str, float], ...] = ()
    by: str = "user"
    fair: Annotated[bool, Knob(help="whether queues go by their share of what is lent")] = False
    resume: Annotated[bool, Knob(help="whether evicted jobs go on from where they were, or begin anew")] = True
    placement: Placement = "pack"
    on_event = True
    interval = 0.0

    def __post_init__(self):
        super().__post_init__()
        names = [queue.name for queue in self.queues]
        if twice := next((name for i, name in enumerate(names) if name in names[:i]), None):
            raise PolicyError(f"{self.name}.queues: found {twice!r} twice; expected each queue once.")

    @property
    def laws(self) -> tuple:
        """What `check_policy` holds its runs to besides the laws of all policies."""
        return (partial(quotas_hold, self.queues, self.column),) if self.queues else ()

    def begin(self) -> _Seen:
        """What is known of jobs."""
        return _Seen()

    def allocate(self, view) -> Allocation:
        """Keep what runs, admit what fits, evict where a queue takes back what is its own."""
        # What a policy before this one gave other GPUs than requested, or the same as another job, is admitted anew.
        own = (np.abs(view.running_gpus - view.gpus) <= 0.01) & (view.partner < 0)
        seen = view.memory
        rows = view.index
        held = np.where(own, view.gpu_type, -1)
        if len(rows) and rows[-1] >= seen.rows:
            self._look(view, seen)
        if not (held < 0).any():
            return Allocation(held, view.gpus)
        of_jobs = (rows, held, view.gpus, *seen.jobs.values())
        kind = admit(view.now, *of_jobs, *seen.arrays(self.queues, view.cluster), view.capacity, self.fair)
        # Only what Kueue itself evicts begins anew: what fails with its node goes on from its checkpoint.
        anew = np.isin(rows, seen.evicted) & (kind >= 0)
        seen.evicted = np.union1d(np.setdiff1d(seen.evicted, rows[anew]), rows[(view.gpu_type >= 0) & (kind < 0)])
        source = None if self.resume else np.where(anew & (view.executed > 0), rows, -1)
        why = partial(self._why, seen, kind, view.gpus, rows, view.cluster)
        return Allocation(np.maximum(kind, 0), np.where(kind < 0, 0.0, view.gpus), source=source, why=why)

    def _why(self, seen, kind, gpus, rows, cluster) -> list[str]:
        """What its queue holds, of its own and of what the cohort lends, beside each job that waits."""
        quota, flavors, cohort, *_ = seen.arrays(self.queues, cluster)
        names = [queue.name for queue in self.queues] or ["all"]
        queue = seen.jobs["queue"][rows]
        used = np.zeros(quota.shape[:2])
        np.add.at(used, (queue[kind >= 0], kind[kind >= 0]), gpus[kind >= 0])
        said = []
        for q, own in zip(queue, kind, strict=True):
            parts = (
                f"{used[q, t]:g} GPUs of {cluster.gpu_types[t]} of its own {quota[q, t, 0]:g}, and may take "
                f"{max(0.0, may_take(quota, cohort, used, q, t)):g} more"
                for t in flavors[q]
                if t >= 0
            )
            said.append("" if own >= 0 else f"its queue {names[q]} holds {'; '.join(parts)}")
        return said

    def _look(self, view, seen: _Seen):
        """Look at jobs that were not seen before."""
        new = np.arange(np.searchsorted(view.index, seen.rows), len(view))
        rows = view.index[new]
        size = view.cluster.capacity
        seen.rows = int(rows[-1]) + 1
        jobs = seen.jobs
        if seen.rows > len(jobs["queue"]):
            seen.jobs = jobs = {name: long_enough(values, rows) for name, values in jobs.items()}
        possible = (view.gpus[new, None] <= size) & view.allowed[new]
        if view.speeds is not None:
            possible = requested_rates(view.take(new, size)) > 0
        jobs["able"][rows] = possible @ (1 << np.arange(len(size)))
        jobs["since"][rows] = view.submit[new]
        if len(self.queues) > 1:
            number = {q.name: i for i, q in enumerate(self.queues)}
            jobs["queue"][rows] = [number.get(name, 0) for name in view.texts(self.column)[new]]
        jobs["priority"][rows] = view.declared("priority", 0.0)[new]
        if self.priorities:
            of = dict(self.priorities)
            jobs["priority"][rows] = [of.get(name, 0.0) for name in view.texts(self.by)[new]]
