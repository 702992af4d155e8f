"""A price of a GPU in the first leases: the dual of the capacity rows, which bounds every plan without a solver."""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.papers.deadlines.leases.program import LeaseJobs

SPANS = 16
SWEEPS = 40
"""Spans of first leases that have a price, and passes over them, at most."""


@njit
def _taken(need, due, span):
    """Return the number of leases among the first `span` of a job that takes its last ones before a deadline."""
    return max(0, need - max(0, due - span))


@njit
def _line(jobs, cost, span, price, fixed):
    """Return the bound (float) at a price of a GPU in each of the first `span` leases, beside payments (`cost`, `fixed`)."""
    total = fixed
    for i in range(len(jobs.gpus)):
        need = jobs.need[i, 0]
        best = 0.0
        for f in range(jobs.due.shape[1]):
            due = jobs.due[i, f]
            if 0 < need <= due:
                paid = price * jobs.gpus[i] * _taken(need, due, span)
                best = max(best, jobs.value[i, f] - cost[i, f] - paid)
        total += best
    return total


@njit
def _descend(jobs, capacity, spans):
    """Return a tuple: bound, and payments of jobs, an array (n, F), at prices in the first leases, made better one at a time."""
    price = np.zeros(len(spans))
    cost = np.zeros(jobs.value.shape)
    bound = np.inf
    most = 0.0
    for i in range(len(jobs.gpus)):
        most = max(most, jobs.value[i].max() / max(jobs.gpus[i], 1e-9))
    for _ in range(SWEEPS):
        before = bound
        for s in range(len(spans)):
            span = spans[s]
            _pay(jobs, cost, span, -price[s])
            fixed = capacity * (price * spans).sum() - capacity * price[s] * span
            low = 0.0
            high = most
            for _ in range(30):
                a = low + (high - low) / 3
                b = high - (high - low) / 3
                bound_at_a = _line(jobs, cost, span, a, fixed + a * capacity * span)
                bound_at_b = _line(jobs, cost, span, b, fixed + b * capacity * span)
                if bound_at_a <= bound_at_b:
                    high = b
                else:
                    low = a
            price[s] = low  # 0 where that is best
            bound = min(bound, _line(jobs, cost, span, low, fixed + low * capacity * span))
            _pay(jobs, cost, span, low)
        if bound > before - 1e-5 * abs(before):
            break
    return bound, cost


@njit
def _pay(jobs, cost, span, price):
    """Add payments of jobs at a price of the first `span` leases."""
    for i in range(len(jobs.gpus)):
        for f in range(jobs.due.shape[1]):
            cost[i, f] += price * jobs.gpus[i] * _taken(jobs.need[i, 0], jobs.due[i, f], span)


@njit
def _overfull(jobs, capacity, spans):
    """Return a mask: whether the first leases, of each number in `spans`, cannot hold the jobs that would have to run in them."""
    overfull_spans = np.zeros(len(spans), np.bool_)
    for k in range(len(spans)):
        load = 0.0
        for i in range(len(jobs.gpus)):
            need = jobs.need[i, 0]
            best = 0.0
            best_due = -1
            for f in range(jobs.due.shape[1]):
                if 0 < need <= jobs.due[i, f] and jobs.value[i, f] > best:
                    best = jobs.value[i, f]
                    best_due = jobs.due[i, f]
            if best_due >= 0:
                load += jobs.gpus[i] * _taken(need, best_due, spans[k])
        overfull_spans[k] = load > capacity * spans[k]
    return overfull_spans


def lease_prices(jobs: LeaseJobs, capacity: float) -> tuple[float, np.ndarray]:
    """Return a tuple: a bound on the sum of rewards, and an array (n, F) of each job's payments for its deadlines.

    They are the dual of the capacity rows.

    Prices never rise with time, so a job takes its last leases before a deadline, and its cost has a closed form. They are
    sums of a price for each of some spans of first leases that cannot hold the jobs that would have to run in them.

    The first placements of the jobs count.

    Examples
    --------
    >>> bound, cost = lease_prices(LeaseJobs.of([1, 1, 1], [1, 1, 1], [1, 1, 1], [5, 4, 3]), 2.0)
    >>> round(bound, 3), bool((cost >= 3 - 1e-6).all())
    (9.0, True)
    """
    if not len(jobs.gpus):
        return 0.0, np.zeros(jobs.value.shape)
    capacity = float(capacity)
    all_spans = np.unique(np.append(jobs.due[jobs.due > 0], 1))
    full = all_spans[_overfull(jobs, capacity, all_spans)]
    chosen = np.array([1])
    if len(full):
        wanted = np.geomspace(1, full.max(), SPANS)
        nearest = np.abs(full[:, None] - wanted).argmin(axis=0)
        chosen = np.unique(full[nearest])
    longest_first = chosen[::-1].astype(np.int64)
    bound, cost = _descend(jobs, capacity, longest_first)
    return float(bound), cost
