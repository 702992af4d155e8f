"""A feasible plan of leases and a proven bound, without a solver: leases are taken as late as they can be.

All jobs are there now, so an early lease is never worth less than a later one. In an optimum jobs hence take the last leases
before their deadlines, and the first lease runs only what must run in it: the room left is for best effort.
"""

from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.errors import SolverError
from gpuschedlab.optim import relative_gap, solve
from gpuschedlab.problems.leases import LeaseJobs, growing_blocks, lease_choices, lease_program

RESTORED = 16
"""Jobs given up that are tried once more, at most."""


class LeasePlan(NamedTuple):
    """Which deadline each job meets, and which run in the first lease.

    Parameters
    ----------
    step : (n,) int array
        Deadline, -1: none.
    first : (n,) bool array
        Whether it must run in the first lease.
    objective, bound : float
        Sum of rewards, and what no plan can exceed.
    status : str
        "optimal" within the gap asked for, "time limit", or "heuristic" where no solver was asked.
    """

    step: np.ndarray
    first: np.ndarray
    objective: float
    bound: float
    status: str = "heuristic"

    @property
    def gap(self) -> float:
        """Proven distance from the optimum, relative."""
        return relative_gap(self.objective, self.bound)


@njit
def backward(gpus, need, due, capacity):
    """Give leases from the last to the first, at each to the jobs with the most leases left to take.

    Going backwards, deadlines are release times, and the longest remaining time first is optimal for jobs of one GPU.

    Parameters
    ----------
    gpus : (n,) float array
    need, due : (n,) int arrays
        Leases needed, and until when.
    capacity : float

    Returns
    -------
    first : (n,) bool array
        What runs in the first lease.
    left : (n,) int array
        Leases that found no room.
    early : (n,) int array
        Leases taken since leases have been full without a break, down to the first.

    Examples
    --------
    >>> first, left, early = backward(np.ones(3), np.array([1, 2, 2]), np.array([3, 2, 3]), 2.0)
    >>> first.tolist(), left.tolist()
    ([False, True, False], [0, 0, 0])
    """
    n = len(gpus)
    left, early = need.copy(), np.zeros(n, np.int64)
    first, active = np.zeros(n, np.bool_), np.empty(n, np.int64)
    horizon = due.max() if n > 0 else 0
    for k in range(horizon - 1, -1, -1):
        count, total = 0, 0.0
        for i in range(n):
            if due[i] > k and left[i] > 0:
                active[count] = i
                count += 1
                total += gpus[i]
        full = total > capacity
        order = active[:count]
        if full:
            # Longest first; of equals the larger, so that small ones fill the gaps; then in the given order.
            rank = np.empty(count)
            for j in range(count):
                rank[j] = -(left[order[j]] + gpus[order[j]] / (1e6 + gpus[order[j]]))
            order = order[np.argsort(rank, kind="mergesort")]
        else:
            early[:] = 0
        room = capacity
        for i in order:
            if gpus[i] <= room:
                room -= gpus[i]
                left[i] -= 1
                early[i] += 1
                if k == 0:
                    first[i] = True
    return first, left, early


@njit
def _dual(gpus, need, due, value, capacity, first_price, price, span):
    """Bound at a price of the first lease's GPUs and one of those up to `span`."""
    total = first_price * capacity + price * capacity * (span - 1)
    for i in range(len(gpus)):
        best = 0.0
        for f in range(due.shape[1]):
            if need[i] == 0 or need[i] > due[i, f]:
                continue
            taken = max(0, need[i] - max(0, due[i, f] - span))
            cost = price * taken + ((first_price - price) if need[i] == due[i, f] else 0.0)
            best = max(best, value[i, f] - gpus[i] * cost)
        total += best
    return total


@njit
def _least(gpus, need, due, value, capacity, floor, span):
    """Least bound over the price of leases up to `span`, and that price; the first one costs at least `floor`."""
    low, high = 0.0, 0.0
    for i in range(len(gpus)):
        high = max(high, value[i].max() / max(gpus[i], 1e-9))
    for _ in range(40):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        if _dual(gpus, need, due, value, capacity, max(a, floor), a, span) <= _dual(
            gpus, need, due, value, capacity, max(b, floor), b, span
        ):
            high = b
        else:
            low = a
    at = (low + high) / 2
    found = _dual(gpus, need, due, value, capacity, max(at, floor), at, span)
    free = _dual(gpus, need, due, value, capacity, floor, 0.0, span)
    return (free, 0.0) if free < found else (found, at)


@njit
def _overfull(gpus, need, due, value, capacity):
    """Numbers of leases, from the first, that could not hold all that would have to run in them."""
    spans = np.unique(due)
    out = np.zeros(len(spans), np.bool_)
    for k in range(len(spans)):
        load = 0.0
        for i in range(len(gpus)):
            best, at = 0.0, -1
            for f in range(due.shape[1]):
                if 0 < need[i] <= due[i, f] and value[i, f] > best:
                    best, at = value[i, f], f
            if at >= 0:
                load += gpus[i] * max(0, need[i] - max(0, due[i, at] - spans[k]))
        out[k] = spans[k] > 1 and load > capacity * spans[k]
    return spans[out]


def lease_bound(jobs: LeaseJobs, capacity: float, most: int = 12) -> float:
    """Sum of rewards that no plan exceeds: the dual, with a price of the first lease and one of the first so many.

    Parameters
    ----------
    jobs : LeaseJobs
        Their first placement counts.
    capacity : float
        GPUs.
    most : int
        Spans of leases that are tried, at most.

    Examples
    --------
    >>> round(lease_bound(LeaseJobs.of([1, 1, 1], [1, 1, 1], [1, 1, 1], [5, 4, 3]), 2.0), 6)
    9.0
    """
    arrays = (jobs.gpus, jobs.need[:, 0], jobs.due, jobs.value, float(capacity))
    if not len(jobs.gpus):
        return 0.0
    bound, floor = _least(*arrays, 0.0, 1)
    spans = _overfull(*arrays)
    for span in spans[np.unique(np.linspace(0, len(spans) - 1, min(most, len(spans))).astype(int))]:
        bound = min(bound, _least(*arrays, floor, span)[0], _least(*arrays, 0.0, span)[0])
    return float(bound)


def plan_leases(jobs: LeaseJobs, capacity: float, aim: np.ndarray | None = None) -> LeasePlan:
    """Plan without a solver: deadlines are given up, the least loss per lease first, until the others can all be met.

    Parameters
    ----------
    jobs : LeaseJobs
        Their first placement counts.
    capacity : float
        GPUs.
    aim : (n,) int array, optional
        Deadline that each job aims at to begin with, -1: none; default: the most valuable that it can meet.

    Returns
    -------
    LeasePlan

    Examples
    --------
    >>> jobs = LeaseJobs.of(gpus=[1, 1, 1], need=[1, 2, 1], due=[2, 2, 1], value=[100, 100, 1])
    >>> plan = plan_leases(jobs, 2.0)
    >>> plan.first.tolist(), plan.objective, plan.gap < 1e-9
    ([False, True, True], 201.0, True)
    """
    need = jobs.need[:, 0]
    value = np.where((need[:, None] > 0) & (need[:, None] <= jobs.due), jobs.value, 0.0)
    best = np.where(value.max(axis=1, initial=0) > 0, value.argmax(axis=1) if value.size else 0, -1)
    waits = jobs.due.max(axis=1, initial=0) > 1
    least = jobs.value.max(axis=1, initial=0)[waits].min(initial=np.inf)
    fills = ~waits & (jobs.value.max(axis=1, initial=0) < least)
    step = np.where(fills, -1, best if aim is None else aim)
    step, first = _until_met(jobs.gpus, need, jobs.due, value, step, float(capacity))
    room = capacity - jobs.gpus[first].sum()
    density = value.max(axis=1, initial=0) / np.maximum(jobs.gpus, 1e-9)
    for i in np.flatnonzero(fills & (best >= 0))[np.argsort(-density[fills & (best >= 0)], kind="stable")]:
        if jobs.gpus[i] <= room:
            room -= jobs.gpus[i]
            step[i], first[i] = best[i], True
    met = np.flatnonzero(step >= 0)
    return LeasePlan(step, first, float(value[met, step[met]].sum()), max(lease_bound(jobs, capacity), 0.0))


def _due(due, step):
    return np.where(step >= 0, due[np.arange(len(step)), step], 0)


def _until_met(gpus, need, due, value, step, capacity):
    """Lower the aims (n,) until all are met; some that turn out to fit are taken up again."""
    step, given_up = step.copy(), []
    while True:
        aims = _due(due, step)
        first, left, early = backward(gpus, np.where(step >= 0, need, 0), aims, capacity)
        if not left.any():
            break
        given_up += _lower(gpus, due, value, step, left, early)
    for i, before in given_up[: -RESTORED - 1 : -1]:
        if step[i] >= before >= 0:
            continue
        now, step[i] = step[i], before
        again, left, _ = backward(gpus, np.where(step >= 0, need, 0), _due(due, step), capacity)
        if left.any():
            step[i] = now
        else:
            first = again
    return step, first


def _lower(gpus, due, value, step, left, early):
    """Lower aims, the least loss per lease first, until what found no room is made up for; (job, aim before) of each."""
    excess = float((gpus * left).sum())
    jobs = np.flatnonzero((step >= 0) & (early + left > 0))
    relief = gpus[jobs] * (early + left)[jobs]
    now = value[jobs, step[jobs]]
    later = np.where(np.arange(due.shape[1]) > step[jobs, None], value[jobs], 0.0)
    follow = np.where(later.max(axis=1) > 0, later.argmax(axis=1), -1)
    gain = np.where(follow >= 0, due[jobs, follow] - due[jobs, step[jobs]], np.iinfo(np.int64).max)
    relief = np.minimum(relief, gpus[jobs] * np.maximum(gain, 1).astype(float))
    loss = (now - np.where(follow >= 0, value[jobs, follow], 0.0)) / np.maximum(relief, 1e-9)
    lowered = []
    for j in np.argsort(loss, kind="stable"):
        lowered.append((jobs[j], step[jobs[j]]))
        step[jobs[j]] = follow[j]
        excess -= relief[j]
        if excess <= 0:
            break
    return lowered


def prove_leases(
    jobs: LeaseJobs,
    capacity: float,
    *,
    gap: float = 1e-2,
    time_limit: float | None = 5.0,
    aim: np.ndarray | None = None,
) -> LeasePlan:
    """Plan to a proven gap: by `plan_leases` where that is enough, otherwise with HiGHS on growing blocks of leases.

    Parameters
    ----------
    jobs, capacity, aim
        As for `plan_leases`; the aim is what a cached plan says.
    gap : float
        Relative gap that is asked for.
    time_limit : float, optional
        Seconds for HiGHS; 0: it is not asked.

    Returns
    -------
    LeasePlan

    Examples
    --------
    >>> prove_leases(LeaseJobs.of([1, 2], [1, 1], [1, 1], [5, 4]), 2.0).status
    'optimal'
    """
    plan = plan_leases(jobs, capacity)
    if plan.gap > gap and aim is not None:
        plan = max(plan, plan_leases(jobs, capacity, aim), key=lambda p: p.objective)
    if plan.gap <= gap:
        return plan._replace(status="optimal")
    if time_limit == 0:
        return plan._replace(status="time limit")
    blocks = growing_blocks(max(int(jobs.due.max(initial=0)), 1))
    one = jobs._replace(need=jobs.need[:, :1])
    try:
        found = solve(lease_program(one, capacity, blocks=blocks), time_limit=time_limit, gap=gap / 2)
    except SolverError:
        return plan._replace(status="time limit")
    job, step, _ = lease_choices(one)
    chosen = found.x[: len(job)] > 0.5
    aim = np.full(len(jobs.gpus), -1)
    aim[job[chosen]] = step[chosen]
    second = plan_leases(jobs, capacity, aim)
    best = max(plan, second, key=lambda p: p.objective)._replace(bound=min(plan.bound, found.bound))
    return best._replace(status="optimal" if best.gap <= gap else found.status)
