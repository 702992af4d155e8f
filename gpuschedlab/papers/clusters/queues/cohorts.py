"""Compiled: quotas of queues that lend to each other, and the GPUs that a queue may take by them.

Arrays have a row for each job (n,) or queue (Q,), and a column for each GPU type (T,). i and k are jobs, q is a queue, t a GPU type.
"""

from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import bare

NEVER, LOWER, ANY, NEWER = range(4)
"""Whose jobs may be evicted: nobody's, those of lower priority, any, those of lower priority or newer of the same."""

EPS = 1e-9
"""GPUs that do not count."""


class Quotas(NamedTuple):
    """Quotas of all queues."""

    nominal: np.ndarray  # (Q, T) GPUs of its own
    borrowing: np.ndarray  # (Q, T) GPUs that it may take beyond nominal, at most
    lending: np.ndarray  # (Q, T) GPUs of nominal that it lends, at most
    cohort: np.ndarray  # (Q,) number of the cohort
    weight: np.ndarray  # (Q,) weight in fair sharing


class Rules(NamedTuple):
    """Rules by which queues search for GPUs (see `Queue`)."""

    flavors: np.ndarray  # (Q, T) GPU types in the order of the search, filled up with -1
    strict: np.ndarray  # (Q,) whether the first job that does not fit blocks the queue
    reclaim: np.ndarray  # (Q,) whose jobs are evicted in other queues
    within: np.ndarray  # (Q,) whose jobs are evicted in the queue itself
    borrow_within: np.ndarray  # (Q,) whose jobs are evicted in other queues while the queue borrows
    threshold: np.ndarray  # (Q,) largest priority of the jobs that `borrow_within` evicts
    goes_on_to_borrow: np.ndarray  # (Q,) whether the search goes on after a type on which the job borrows
    ends_to_evict: np.ndarray  # (Q,) whether the search ends at a type on which the job evicts
    fair: bool  # whether heads go, and queues lose jobs, by their share


class JobTable(NamedTuple):
    """All jobs seen so far, by their rows in the trace (R,)."""

    queue: np.ndarray  # (R,) number of the queue
    able: np.ndarray  # (R,) bit t is set if the job can run on type t
    priority: np.ndarray  # (R,)
    since: np.ndarray  # (R,) instant of the place in the queue (s)
    admitted: np.ndarray  # (R,) instant of the last start (s)


class Requests(NamedTuple):
    """Jobs that wait or run now."""

    rows: np.ndarray  # (n,) row in the `JobTable`
    held: np.ndarray  # (n,) GPU type on which the job runs; -1 if it waits
    gpus: np.ndarray  # (n,) GPUs requested


class Jobs(NamedTuple):
    """Jobs of one pass."""

    queue: np.ndarray  # (n,) number of the queue
    able: np.ndarray  # (n,) bit t is set if the job can run on type t
    priority: np.ndarray  # (n,)
    since: np.ndarray  # (n,) instant of the place in the queue (s)
    admitted: np.ndarray  # (n,) instant of the last start (s)
    gpus: np.ndarray  # (n,) GPUs requested
    kind: np.ndarray  # (n,) GPU type that the job is given so far; -1 if none


class Pool(NamedTuple):
    """GPUs in use and free."""

    used: np.ndarray  # (Q, T) GPUs that the queue's jobs hold
    free: np.ndarray  # (T,) GPUs that no job holds


@bare()
def lent(quotas, used, q, t):
    """Return the number (float) of GPUs of a type that a queue's cohort lends and nobody uses."""
    unused = 0.0
    for lender in range(len(quotas.cohort)):
        if quotas.cohort[lender] == quotas.cohort[q]:
            lending = quotas.lending[lender, t]
            unlent = quotas.nominal[lender, t] - lending
            unused += lending - max(0.0, used[lender, t] - unlent)
    return unused


@bare()
def may_take(quotas, used, q, t):
    """Return how many GPUs of a type (float) a queue may take: unlent and lent ones, within nominal + borrowing limit."""
    nominal = quotas.nominal[q, t]
    unlent = max(0.0, nominal - quotas.lending[q, t] - used[q, t])
    limit = nominal + quotas.borrowing[q, t] - used[q, t]
    return min(unlent + lent(quotas, used, q, t), limit)


@bare()
def share(quotas, used, q):
    """Return a float: a queue's GPUs beyond nominal, over those that its cohort lends, over its weight; 0 if none is borrowed."""
    beyond = 0.0
    lendable = 0.0
    for t in range(used.shape[1]):
        beyond += max(0.0, used[q, t] - quotas.nominal[q, t])
        lent_of_type = 0.0
        for lender in range(len(quotas.cohort)):
            if quotas.cohort[lender] == quotas.cohort[q]:
                lent_of_type += quotas.lending[lender, t]
        lendable += lent_of_type
    if beyond <= EPS or lendable <= 0:
        return 0.0
    if quotas.weight[q] <= 0:
        return np.inf
    return beyond / lendable / quotas.weight[q]


@bare()
def share_after(quotas, used, q, t, gpus):
    """Return the share (float) of a queue whose jobs would hold so many GPUs more, or fewer if negative."""
    used[q, t] += gpus
    share_then = share(quotas, used, q)
    used[q, t] -= gpus
    return share_then


@bare()
def take(jobs, pool, i, t):
    """Give a job its GPUs."""
    pool.used[jobs.queue[i], t] += jobs.gpus[i]
    pool.free[t] -= jobs.gpus[i]


@bare()
def give_back(jobs, pool, i, t):
    """Take a job's GPUs back."""
    pool.used[jobs.queue[i], t] -= jobs.gpus[i]
    pool.free[t] += jobs.gpus[i]


@bare()
def fits(i, t, jobs, quotas, pool, may_borrow):
    """Return whether a job fits on free GPUs, by borrowing too or within nominal alone."""
    q = jobs.queue[i]
    gpus = jobs.gpus[i]
    if not may_borrow and pool.used[q, t] + gpus > quotas.nominal[q, t] + EPS:
        return False
    return gpus <= pool.free[t] + EPS and gpus <= may_take(quotas, pool.used, q, t) + EPS
