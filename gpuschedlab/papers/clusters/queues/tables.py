"""Queues as the arrays that compiled code reads."""

import numpy as np

from gpuschedlab.errors import PolicyError
from gpuschedlab.papers.clusters.queues import NEXT, Queue
from gpuschedlab.papers.clusters.queues.cohorts import JobTable, Quotas, Rules

RECLAIM = ("Never", "LowerPriority", "Any", "LowerOrNewerEqualPriority")
"""Whose jobs may be evicted, in the order of the numbers of `cohorts`."""


def quotas_of(queues: tuple[Queue, ...], types: tuple[str, ...]) -> Quotas:
    """Return the `Quotas` of queues by GPU type."""
    shape = (len(queues), len(types))
    nominal = np.zeros(shape)
    borrowing = np.zeros(shape)
    lending = np.zeros(shape)
    for q, queue in enumerate(queues):
        for t, gpu_type in enumerate(types):
            nominal[q, t], borrowing[q, t], lending[q, t] = queue.quota(gpu_type)
    cohorts = [queue.cohort or f" {q}" for q, queue in enumerate(queues)]
    numbers = np.unique(cohorts, return_inverse=True)[1]
    weight = np.array([queue.weight for queue in queues], float)
    return Quotas(nominal, borrowing, lending, numbers, weight)


def rules_of(queues: tuple[Queue, ...], types: tuple[str, ...], fair: bool) -> Rules:
    """Return the `Rules` of queues, and the GPU types that each searches.

    Raises
    ------
    PolicyError
        A queue has no quota for any of the types.
    """
    flavors = np.full((len(queues), len(types)), -1)
    for q, queue in enumerate(queues):
        searched = [types.index(gpu_type) for gpu_type, _ in queue.nominal if gpu_type in types]
        if not searched:
            raise PolicyError(
                f"Kueue.queues: found no quota of {queue.name!r} for any of {', '.join(types)}; expected one, such as "
                f"Queue({queue.name!r}, nominal=(({types[0]!r}, 8),))."
            )
        flavors[q, : len(searched)] = searched
    reclaim = [RECLAIM.index(queue.reclaim) for queue in queues]
    within = [RECLAIM.index(queue.within) for queue in queues]
    borrow_within = [RECLAIM.index(queue.borrow_within) for queue in queues]
    threshold = [int(min(queue.threshold, 2**53)) for queue in queues]
    return Rules(
        flavors=flavors,
        strict=np.array([queue.strict for queue in queues]),
        reclaim=np.array(reclaim),
        within=np.array(within),
        borrow_within=np.array(borrow_within),
        threshold=np.array(threshold),
        goes_on_to_borrow=np.array([queue.when_can_borrow == NEXT for queue in queues]),
        ends_to_evict=np.array([queue.when_can_preempt != NEXT for queue in queues]),
        fair=fair,
    )


def no_jobs() -> JobTable:
    """Return a `JobTable` of no jobs."""
    return JobTable(
        queue=np.zeros(0, np.int64),
        able=np.zeros(0, np.int64),
        priority=np.zeros(0),
        since=np.zeros(0),
        admitted=np.zeros(0),
    )
