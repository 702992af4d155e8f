"""A feasible plan of leases and a proven bound, without a solver: leases are taken as late as they can be.

All jobs are there now, so an early lease is never worth less than a later one. In an optimum jobs hence take the last leases
before their deadlines, and the first lease runs only jobs that must run in it: the room left is for best effort.
"""

from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.errors import OutOfTime
from gpuschedlab.optim import relative_gap, solve
from gpuschedlab.papers.deadlines.leases.prices import lease_prices
from gpuschedlab.papers.deadlines.leases.program import LeaseJobs, growing_blocks, lease_choices, lease_program

RESTORED = 64
"""Jobs given up that are tried once more, at most."""


class LeasePlan(NamedTuple):
    """Which deadline each job meets (`step`, -1: none), and which must run in the first lease."""

    step: np.ndarray
    first: np.ndarray
    objective: float  # sum of rewards
    bound: float  # what no plan can exceed
    # Also "optimal" within the gap asked for, "stopped" (the work allowed was done), "time limit" (the guard struck).
    status: str = "heuristic"  # no gap was asked for

    @property
    def gap(self) -> float:
        """Proven distance from the optimum, relative."""
        return relative_gap(self.objective, self.bound)

    def in_force(self, jobs: LeaseJobs, ran: np.ndarray) -> float:
        """Sum of the rewards that are still to be had, once it is known which of the plan's jobs ran (n,) in the first lease.

        A job that wants the first lease only earns its reward if it has it, whatever the plan says; any other one as planned,
        unless it had to run in the first lease and does not.

        Examples
        --------
        >>> jobs = LeaseJobs.of(gpus=[1, 1, 1], need=[1, 2, 1], due=[2, 2, 1], value=[100, 100, 1])
        >>> plan = plan_leases(jobs, 2.0)  # the second and third job run first
        >>> [plan.in_force(jobs, np.array(ran)) for ran in ([0, 1, 1], [0, 0, 1], [1, 1, 0])]
        [201.0, 101.0, 200.0]
        """
        ran = np.asarray(ran, bool)
        need = jobs.need[:, :1]
        reward = np.where((need > 0) & (need <= jobs.due), jobs.value, 0.0)
        planned = np.take_along_axis(reward, np.maximum(self.step, 0)[:, None], axis=1)[:, 0]
        deadline_kept = (self.step >= 0) & (ran | ~self.first)
        only_now = jobs.due.max(axis=1, initial=0) <= 1
        best_reward = reward.max(axis=1, initial=0.0)
        rewards = np.where(only_now, best_reward * ran, planned * deadline_kept)
        return float(rewards.sum())


@njit
def backward(gpus, need, due, capacity):
    """Give leases from the last to the first, at each to the jobs with the most leases left to take; return three arrays (n,).

    Going backwards, deadlines are release times, and the longest remaining time first is optimal for jobs of one GPU. Jobs (n,) `need`
    so many leases until they are `due`. Returned are, by job, GPUs of the first lease, leases that found no room, and leases
    taken since leases have been full without a break, down to the first.

    Examples
    --------
    >>> first, left, early = backward(np.ones(3), np.array([1, 2, 2]), np.array([3, 2, 3]), 2.0)
    >>> first.tolist(), left.tolist()
    ([False, True, False], [0, 0, 0])
    """
    n = len(gpus)
    leases_left = need.copy()
    early = np.zeros(n, np.int64)
    first_lease = np.zeros(n, np.bool_)
    active = np.empty(n, np.int64)
    horizon = due.max() if n > 0 else 0
    for k in range(horizon - 1, -1, -1):
        active_count = 0
        gpus_in_lease = 0.0
        for i in range(n):
            if due[i] > k and leases_left[i] > 0:
                active[active_count] = i
                active_count += 1
                gpus_in_lease += gpus[i]
        full = gpus_in_lease > capacity
        active_jobs = active[:active_count]
        if full:
            # Longest first; of equals the larger, so that small ones fill the gaps; then in the given order.
            rank = np.empty(active_count)
            for j in range(active_count):
                rank[j] = -(leases_left[active_jobs[j]] + gpus[active_jobs[j]] / (1e6 + gpus[active_jobs[j]]))
            active_jobs = active_jobs[np.argsort(rank, kind="mergesort")]
        else:
            early[:] = 0
        room = capacity
        for i in active_jobs:
            if gpus[i] <= room:
                room -= gpus[i]
                leases_left[i] -= 1
                early[i] += 1
                if k == 0:
                    first_lease[i] = True
    return first_lease, leases_left, early


def plan_leases(jobs: LeaseJobs, capacity: float, aim: np.ndarray | None = None) -> LeasePlan:
    """Return a `LeasePlan` without a solver: deadlines are given up, the least loss per lease first, until the others can be met.

    The first placements of the jobs count. `aim` (n,): deadline that each job aims at to begin with, -1: none; by default the most
    valuable that it can meet.
    """
    need = jobs.need[:, 0]
    bound, cost = lease_prices(jobs, capacity)
    reward = np.where((need[:, None] > 0) & (need[:, None] <= jobs.due), jobs.value, 0.0)
    tried = [_one_plan(jobs, reward, float(capacity), _best(reward) if aim is None else aim)]
    if aim is None and tried[0][2] < bound:
        # What pays at the prices of the dual, first; the others where they still fit.
        tried.append(_one_plan(jobs, reward, float(capacity), _best(np.where(reward > 0, reward - cost, 0.0))))
    step, first_lease, objective = max(tried, key=lambda t: t[2])
    return LeasePlan(step, first_lease, objective, max(bound, objective))


def timetable(jobs: LeaseJobs, step: np.ndarray, capacity: float) -> np.ndarray:
    """Return a mask (n, K) of the leases that jobs have in a plan, each as late as it can be, the first lease first.

    `step` (n,) is the deadline that each meets, -1: none, as of `LeasePlan`; the first placements of the jobs count.
    """
    due = _due(jobs.due, step)
    leases_left = np.where(step >= 0, jobs.need[:, 0], 0)
    leases_of_jobs = np.zeros((len(leases_left), int(due.max(initial=0))), bool)
    for k in range(leases_of_jobs.shape[1]):
        leases_of_jobs[:, k] = backward(jobs.gpus, leases_left, np.maximum(due - k, 0), float(capacity))[0]
        leases_left = leases_left - leases_of_jobs[:, k]
    return leases_of_jobs


def _best(value: np.ndarray) -> np.ndarray:
    """Return an array (n,): deadline of the largest value above 0; -1 if there is none."""
    return np.where(value.max(axis=1, initial=0) > 0, value.argmax(axis=1) if value.size else 0, -1)


def _one_plan(jobs: LeaseJobs, value: np.ndarray, capacity: float, aim: np.ndarray):
    """Return a tuple: arrays (n,), deadlines met and jobs of the first lease; sum of rewards, from aims given up if needed."""
    top = value.max(axis=1, initial=0)
    last_due = jobs.due.max(axis=1, initial=0)
    fills = (last_due <= 1) & (top < top[last_due > 1].min(initial=np.inf))
    step, first_lease = _until_met(
        jobs.gpus, jobs.need[:, 0], jobs.due, value, np.where(fills, -1, aim), fills, capacity
    )
    room = capacity - jobs.gpus[first_lease].sum()
    filling_jobs = np.flatnonzero(fills & (top > 0))
    best_deadline = _best(value)
    for i in filling_jobs[np.argsort(-top[filling_jobs] / np.maximum(jobs.gpus[filling_jobs], 1e-9), kind="stable")]:
        if jobs.gpus[i] <= room:
            room -= jobs.gpus[i]
            step[i] = best_deadline[i]
            first_lease[i] = True
    met = np.flatnonzero(step >= 0)
    rewards = value[met, step[met]]
    return step, first_lease, float(rewards.sum())


def _due(due, step):
    return np.where(step >= 0, due[np.arange(len(step)), step], 0)


def _until_met(gpus, need, due, value, step, fills, capacity):
    """Lower the aims until all are met, and take up some that fit; return two arrays (n,): aims, and jobs of the first lease."""
    step = step.copy()
    while True:
        first_lease, leases_left, early = backward(gpus, np.where(step >= 0, need, 0), _due(due, step), capacity)
        if not leases_left.any():
            break
        _lower(gpus, due, value, step, leases_left, early)
    reward_now = np.where(step >= 0, value[np.arange(len(step)), step], 0.0)
    best_deadline = _best(value)
    gain = np.where(best_deadline >= 0, value.max(axis=1, initial=0) - reward_now, 0.0)
    gain[fills] = 0.0
    raised = np.flatnonzero(gain > 0)
    raised = raised[np.argsort(-gain[raised] / (gpus * need)[raised], kind="stable")]
    for i in raised[:RESTORED]:
        before = step[i]
        step[i] = best_deadline[i]
        again, leases_left, _ = backward(gpus, np.where(step >= 0, need, 0), _due(due, step), capacity)
        if leases_left.any():
            step[i] = before
        else:
            first_lease = again
    return step, first_lease


def _lower(gpus, due, value, step, left, early):
    """Lower aims, the least loss per lease first, until all leases have room."""
    excess = float((gpus * left).sum())
    jobs = np.flatnonzero((step >= 0) & (early + left > 0))
    relief = gpus[jobs] * (early + left)[jobs]
    reward_now = value[jobs, step[jobs]]
    later = np.where(np.arange(due.shape[1]) > step[jobs, None], value[jobs], 0.0)
    follow = np.where(later.max(axis=1) > 0, later.argmax(axis=1), -1)
    gain = np.where(follow >= 0, due[jobs, follow] - due[jobs, step[jobs]], np.iinfo(np.int64).max)
    relief = np.minimum(relief, gpus[jobs] * np.maximum(gain, 1).astype(float))
    loss = (reward_now - np.where(follow >= 0, value[jobs, follow], 0.0)) / np.maximum(relief, 1e-9)
    for j in np.argsort(loss, kind="stable"):
        step[jobs[j]] = follow[j]
        excess -= relief[j]
        if excess <= 0:
            break


def prove_leases(
    jobs: LeaseJobs,
    capacity: float,
    *,
    gap: float = 1e-2,
    work: float | None = 5.0,
    time_limit: float | None = None,
    aim: np.ndarray | None = None,
) -> LeasePlan:
    """Return a `LeasePlan` to a proven relative gap, by `plan_leases` if that is enough, otherwise with HiGHS on growing blocks.

    HiGHS has `work` units of `gpuschedlab.optim.programs.work_limits` (0: it is not asked), and at most `time_limit` seconds, a guard.
    """
    plan = plan_leases(jobs, capacity)
    if plan.gap > gap and aim is not None:
        plan = max(plan, plan_leases(jobs, capacity, aim), key=lambda p: p.objective)
    if plan.gap <= gap:
        return plan._replace(status="optimal")
    if work == 0:
        return plan._replace(status="stopped")
    blocks = growing_blocks(max(int(jobs.due.max(initial=0)), 1))
    one_placement = jobs._replace(need=jobs.need[:, :1])
    try:
        program = lease_program(one_placement, capacity, blocks=blocks)
        lease_solution = solve(program, work=work, time_limit=time_limit, gap=gap / 2)
    except OutOfTime as error:
        return plan._replace(status=error.status)
    job, step, _ = lease_choices(one_placement)
    chosen = lease_solution.x[: len(job)] > 0.5
    aim = np.full(len(jobs.gpus), -1)
    aim[job[chosen]] = step[chosen]
    second = plan_leases(jobs, capacity, aim)
    best_plan = max(plan, second, key=lambda p: p.objective)._replace(bound=min(plan.bound, lease_solution.bound))
    short = "time limit" if lease_solution.status == "time limit" else "stopped"
    return best_plan._replace(status="optimal" if best_plan.gap <= gap else short)
