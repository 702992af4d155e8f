"""A price of a GPU in the first leases: the dual of the capacity rows, which bounds every plan without a solver."""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.papers.deadlines.leases.program import LeaseJobs

SPANS = 16
SWEEPS = 40
"""Spans of first leases that have a price, and passes over them, at most."""


@njit
def _taken(need, due, span):
    """Leases among the first `span` of a job that takes its last ones before a deadline."""
    return max(0, need - max(0, due - span))


@njit
def _line(gpus, need, due, value, cost, span, price, fixed):
    """Bound at a price of a GPU in each of the first `span` leases, on top of the present payments of jobs (`cost`, `fixed`)."""
    total = fixed
    for i in range(len(gpus)):
        best = 0.0
        for f in range(due.shape[1]):
            if 0 < need[i] <= due[i, f]:
                best = max(best, value[i, f] - cost[i, f] - price * gpus[i] * _taken(need[i], due[i, f], span))
        total += best
    return total


@njit
def _descend(gpus, need, due, value, capacity, spans):
    """Bound, and payments of jobs (n, F), at prices of a GPU in the first leases, span by span, made better one at a time."""
    price = np.zeros(len(spans))
    cost = np.zeros(value.shape)
    bound = np.inf
    most = 0.0
    for i in range(len(gpus)):
        most = max(most, value[i].max() / max(gpus[i], 1e-9))
    for _ in range(SWEEPS):
        before = bound
        for s in range(len(spans)):
            _pay(gpus, need, due, cost, spans[s], -price[s])
            fixed = capacity * (price * spans).sum() - capacity * price[s] * spans[s]
            low = 0.0
            high = most
            for _ in range(30):
                a = low + (high - low) / 3
                b = high - (high - low) / 3
                first = _line(gpus, need, due, value, cost, spans[s], a, fixed + a * capacity * spans[s])
                if first <= _line(gpus, need, due, value, cost, spans[s], b, fixed + b * capacity * spans[s]):
                    high = b
                else:
                    low = a
            price[s] = low  # 0 where that is best
            bound = min(bound, _line(gpus, need, due, value, cost, spans[s], low, fixed + low * capacity * spans[s]))
            _pay(gpus, need, due, cost, spans[s], low)
        if bound > before - 1e-5 * abs(before):
            break
    return bound, cost


@njit
def _pay(gpus, need, due, cost, span, price):
    """Add payments of jobs at a price of the first `span` leases."""
    for i in range(len(gpus)):
        for f in range(due.shape[1]):
            cost[i, f] += price * gpus[i] * _taken(need[i], due[i, f], span)


@njit
def _overfull(gpus, need, due, value, capacity, spans):
    """Which numbers of leases, from the first, could not hold all that would have to run in them."""
    out = np.zeros(len(spans), np.bool_)
    for k in range(len(spans)):
        load = 0.0
        for i in range(len(gpus)):
            best = 0.0
            at = -1
            for f in range(due.shape[1]):
                if 0 < need[i] <= due[i, f] and value[i, f] > best:
                    best = value[i, f]
                    at = f
            if at >= 0:
                load += gpus[i] * _taken(need[i], due[i, at], spans[k])
        out[k] = load > capacity * spans[k]
    return out


def lease_prices(jobs: LeaseJobs, capacity: float) -> tuple[float, np.ndarray]:
    """Dual of the capacity rows: a bound on the sum of rewards, and the payment of each job (n, F) for each deadline.

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
    arrays = (jobs.gpus, jobs.need[:, 0], jobs.due, jobs.value, float(capacity))
    all_spans = np.unique(np.append(jobs.due[jobs.due > 0], 1))
    full = all_spans[_overfull(*arrays, all_spans)]
    wanted = np.geomspace(1, full.max(initial=1), SPANS)
    chosen = np.unique(full[np.abs(full[:, None] - wanted).argmin(axis=0)]) if len(full) else np.array([1])
    bound, cost = _descend(*arrays, chosen[::-1].astype(np.int64))
    return float(bound), cost
