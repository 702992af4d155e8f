"""Kueue: quotas of queues that borrow from, lend to and reclaim from each other within a cohort."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from gpuschedlab.errors import PolicyError
from gpuschedlab.knobs import Knob
from gpuschedlab.papers.clusters.queues import Queue
from gpuschedlab.papers.clusters.queues.admission import admit
from gpuschedlab.papers.clusters.queues.cohorts import JobTable, Quotas, Requests, Rules, may_take
from gpuschedlab.papers.clusters.queues.laws import quotas_hold
from gpuschedlab.papers.clusters.queues.tables import no_jobs, quotas_of, rules_of
from gpuschedlab.policies.remaining import long_enough, requested_rates
from gpuschedlab.policies.simple import Placement
from gpuschedlab.sim.policy import Round
from gpuschedlab.sim.rounds.allocation import Allocation


class _Seen:
    """The queues as arrays, made when they are first asked for, and the jobs seen so far, by their rows in the trace."""

    def __init__(self):
        self.tables = None
        self.rows = 0
        self.evicted = np.zeros(0, np.int64)
        self.jobs = no_jobs()

    def arrays(self, policy: "Kueue", cluster) -> tuple[Quotas, Rules]:
        """Return a tuple: the `Quotas` and `Rules` of a policy's queues on a cluster."""
        if self.tables is None:
            types = cluster.gpu_types
            queues = policy.queues
            if not queues:
                nominal = zip(types, cluster.capacity.tolist(), strict=True)
                queues = (Queue("all", nominal=tuple(nominal)),)
            rules = rules_of(queues, types, policy.fair)
            self.tables = (quotas_of(queues, types), rules)
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
        queue_names = [queue.name for queue in self.queues]
        if twice := next(
            (queue_name for i, queue_name in enumerate(queue_names) if queue_name in queue_names[:i]), None
        ):
            raise PolicyError(f"{self.name}.queues: found {twice!r} twice; expected each queue once.")

    @property
    def laws(self) -> tuple:
        """Tuple of laws to which `check_policy` holds its runs besides those of all policies; empty without queues."""
        if not self.queues:
            return ()
        return (partial(quotas_hold, self.queues, self.column),)

    def begin(self) -> _Seen:
        """Return the memory of a run that has seen no job, a `_Seen`."""
        return _Seen()

    def allocate(self, view) -> Allocation:
        """Return the `Allocation`: jobs that run stay, jobs that fit are admitted.

        Jobs are evicted if a queue takes back its own GPUs.
        """
        # What a policy before this one gave other GPUs than requested, or the same as another job, is admitted anew.
        as_requested = (np.abs(view.running_gpus - view.gpus) <= 0.01) & (view.partner < 0)
        seen_queues = view.memory
        job_rows = view.index
        held_types = np.where(as_requested, view.gpu_type, -1)
        if len(job_rows) and job_rows[-1] >= seen_queues.rows:
            self._look(view, seen_queues)
        if not (held_types < 0).any():
            return Allocation(held_types, view.gpus)
        quotas, rules = seen_queues.arrays(self, view.cluster)
        admitted_types = admit(
            view.now, Requests(job_rows, held_types, view.gpus), seen_queues.jobs, quotas, rules, view.capacity
        )
        waits = admitted_types < 0
        # Only what Kueue itself evicts begins anew: what fails with its node goes on from its checkpoint.
        restarted = np.isin(job_rows, seen_queues.evicted) & ~waits
        evicted_rows = job_rows[(view.gpu_type >= 0) & waits]
        seen_queues.evicted = np.union1d(np.setdiff1d(seen_queues.evicted, job_rows[restarted]), evicted_rows)
        source = None
        if not self.resume:
            source = np.where(restarted & (view.executed > 0), job_rows, -1)
        why = partial(self._why, seen_queues, admitted_types, view.gpus, job_rows, view.cluster)
        return Allocation(np.maximum(admitted_types, 0), np.where(waits, 0.0, view.gpus), source=source, why=why)

    def _why(self, seen, kind, gpus, rows, cluster) -> list[str]:
        """Return a list of sentences, one per job: what its queue holds, of its own and borrowed. It is "" if the job does not wait."""
        quotas, rules = seen.arrays(self, cluster)
        queue_names = [queue.name for queue in self.queues] or ["all"]
        queues = seen.jobs.queue[rows]
        runs = kind >= 0
        used = np.zeros(quotas.nominal.shape)
        np.add.at(used, (queues[runs], kind[runs]), gpus[runs])
        reasons = []
        for q, starts in zip(queues, runs, strict=True):
            if starts:
                reasons.append("")
                continue
            holdings = []
            for t in rules.flavors[q]:
                if t >= 0:
                    more = max(0.0, may_take(quotas, used, q, t))
                    holdings.append(
                        f"{used[q, t]:g} GPUs of {cluster.gpu_types[t]} of its own {quotas.nominal[q, t]:g}, and may take {more:g} more"
                    )
            reasons.append(f"its queue {queue_names[q]} holds {'; '.join(holdings)}")
        return reasons

    def _look(self, view, seen: _Seen):
        """Look at jobs that were not seen before."""
        new_jobs = np.arange(np.searchsorted(view.index, seen.rows), len(view))
        new_rows = view.index[new_jobs]
        size = view.cluster.capacity
        seen.rows = int(new_rows[-1]) + 1
        if seen.rows > len(seen.jobs.queue):
            seen.jobs = JobTable(*(long_enough(job_column, new_rows) for job_column in seen.jobs))
        jobs = seen.jobs
        possible = (view.gpus[new_jobs, None] <= size) & view.allowed[new_jobs]
        if view.speeds is not None:
            possible = requested_rates(view.take(new_jobs, size)) > 0
        jobs.able[new_rows] = possible @ (1 << np.arange(len(size)))
        jobs.since[new_rows] = view.submit[new_jobs]
        if len(self.queues) > 1:
            numbers = {queue.name: q for q, queue in enumerate(self.queues)}
            jobs.queue[new_rows] = [numbers.get(queue_name, 0) for queue_name in view.texts(self.column)[new_jobs]]
        jobs.priority[new_rows] = view.declared("priority", 0.0)[new_jobs]
        if self.priorities:
            priorities = dict(self.priorities)
            jobs.priority[new_rows] = [priorities.get(class_name, 0.0) for class_name in view.texts(self.by)[new_jobs]]
