"""UniSched (Gao et al.): one program a cycle gives leases to profiler, best-effort and deadline jobs together."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from gpuschedlab.knobs import Knob
from gpuschedlab.papers.deadlines.chronus import Gap, Guard, Work
from gpuschedlab.papers.deadlines.leases.plan import prove_leases
from gpuschedlab.papers.deadlines.leases.program import LeaseJobs
from gpuschedlab.papers.deadlines.placing import CHOSEN, MUST, chosen_by_count, placed, proved, time_left
from gpuschedlab.sim.policy import Round
from gpuschedlab.sim.rounds.allocation import Allocation
from gpuschedlab.sim.rounds.view import View

CANDIDATES = 2.0
"""Best-effort jobs that enter a program request at most so many times the cluster, the most rewarding ones first."""


@dataclass(frozen=True)
class UniSched(Round):
    """Give leases by the largest sum of rewards: 300 s to profiler and best-effort jobs, 600 s to jobs with deadlines.

    Each job is profiled first, on few GPUs and without progress, for one lease with the delay of its start. A profiler job
    is worth 1, a best-effort job less than 1 and the more the shorter, a job with deadlines the value of its value table (up
    to 100). The program (`lease_program`) says which deadlines are met, and which jobs must run in the first lease for that;
    the room is for the others. Jobs with deadlines take part at their own cycles only. The time that suspensions will cost
    is part of a job's need (5.3).

    Differs from the paper in
    -------------------------
    Durations are the estimator's (`LearningCurve` learns them as the paper does). Plans are made by `plan_leases` and proved
    by the dual of the capacity rows; HiGHS, on growing blocks of leases, is asked where the gap exceeds `gap` and `work`
    allows: not by default, since it changes hardly any decision. On ten workloads at a gap of 1e-3 it proves 1 to 1.4 times as many
    rounds in up to 50 times the CPU time; violations stay as they are in four, and change by -.7 to +.6 points in the six of 64
    GPUs, up in five: later jobs undo the gain of a better plan of now (`make bench BENCH=unisched-program`). A round that
    is not proved follows the cached plan, where that is worth more than a new one: deadlines that jobs aimed at stay, and the others
    are planned around them (the paper runs the cached plan's next lease). Placements: a job is consolidated where that is
    possible now, and spread over free cells if it is not and it will still be in time at its slower speed; the program that
    chooses among all placements is `lease_program` with cells. `partial` lets a job end within its last lease, the paper rounds deadlines
    down and needs up. Jobs that no longer can be in time are worth as much as best-effort jobs; the paper does not say.
    GPUs that no deadline needs go by remaining GPU-time to all jobs, those with deadlines among them, as in Chronus
    (`ahead`; 0: to best effort first, as the paper reads). That keeps room for deadlines that are yet to come. `margin`, as in
    Chronus, multiplies the time left wherever it is used; the paper has none.

    References
    ----------
    Gao et al., UniSched, section III; Gao, PhD thesis, NTU 2025, section 5.3.

    Examples
    --------
    >>> UniSched(profile=0).knobs["lease"]
    600
    """

    lease: Annotated[float, Knob(60, 14_400, log=True, unit="s", help="lease of a job with deadlines")] = 600
    interval: Annotated[float, Knob(60, 3600, log=True, unit="s", help="lease of other jobs")] = 300
    profile: Annotated[float, Knob(0, 3600, unit="s", help="profiling of a new job; 0: none")] = 300
    profile_gpus: Annotated[int, Knob(1, 8, help="most GPUs of a job that is profiled")] = 2
    profile_reward: Annotated[
        float, Knob(0.1, 1000, log=True, help="worth of a profiler job; above 100 deadlines wait for it")
    ] = 1.0
    suspensions: Annotated[bool, Knob(help="whether future suspensions are part of a job's need (5.3)")] = True
    partial: Annotated[bool, Knob(help="whether a job may end within its last lease")] = True
    ahead: Annotated[
        float, Knob(0, 1, help="worth of running ahead of a deadline, over that of best effort; 0: only what is left")
    ] = 1.0
    spread: Annotated[bool, Knob(help="whether a job may be spread where it is still in time")] = True
    margin: Annotated[float, Knob(1, 1.5, unit="x", help="by which durations are stretched")] = 1.0
    gap: Gap = 1e-2
    work: Work = 0
    time_limit: Guard = None
    set_aside: ClassVar = (*Round.set_aside, "gap", "work", "time_limit")

    def begin(self) -> "_Plan":
        """Return the state from round to round, a `_Plan`."""
        return _Plan()

    def allocate(self, view: View) -> Allocation:
        """Solve the program of this cycle, and return the `Allocation` of the jobs that it chose."""
        if len(view) == 0:
            return Allocation(np.empty(0, np.int64), np.empty(0))
        plan_memory = view.memory
        capacity = float(np.floor(view.capacity).sum())
        lease_number = np.floor(view.now / self.lease + 1e-9)
        renew = lease_number > plan_memory.cycle
        plan_memory.cycle = lease_number
        # The start is part of a profiler's lease: otherwise its delay would cost a second one.
        profiling = view.profiled < np.maximum(self.profile - view.restart, min(self.profile, 1.0)) - 1e-6
        gpus = np.where(profiling, np.minimum(view.gpus, self.profile_gpus), view.gpus)
        seconds_left = time_left(view) * self.margin
        need, due = self._needs(view, seconds_left)
        slo = ~profiling & (view.kind > 0) & (need[:, None] <= due).any(axis=1)
        leased = np.isin(view.index, plan_memory.leased) & ~profiling & (not renew)
        # Best effort stops after every other lease.
        stops = np.ceil(seconds_left / self.interval) / 2 if self.suspensions else 0.0
        leases_left = (seconds_left + stops * view.restart) / self.interval
        lease_reward = np.where(profiling, self.profile_reward, 1 / (1 + leases_left))
        joins = ~leased & (renew | ~slo)
        cycle = _Cycle(gpus, need, due, lease_reward, slo, leased)
        must, chosen, program = self._choose(view, np.flatnonzero(joins), cycle, capacity)
        must |= leased | (chosen & slo & renew)  # a job that runs ahead of time has a lease, too
        plan_memory.leased = view.index[must & slo]
        level = np.where(must, MUST, np.where(chosen, CHOSEN, 0))
        density_order = np.argsort(-self._density(lease_reward, gpus, slo), kind="stable")
        split = self._may_spread(view, need, due, slo) if self.spread else None
        answer = placed(view, density_order, level, gpus=gpus, split=split, profiling=profiling)
        mine, jobs, plan = program
        status = {"stopped": "cached", "time limit": "cached, time limit"}.get(plan.status, plan.status)
        bound = plan.bound if (answer.gpus[leased] > 0).all() else np.inf  # the program did not count with their GPUs
        return proved(answer, plan.in_force(jobs, answer.gpus[mine] > 0), bound, status, self.gap)

    def _density(self, value, gpus, slo):
        """Return an array: the reward per GPU of a first lease that is not needed for a deadline."""
        return value * np.where(slo, self.ahead, 1.0) / gpus

    def _needs(self, view, seconds_left):
        """Return two arrays: leases that jobs with deadlines need (n,), and have until each (n, F)."""
        until = np.where(np.isfinite(view.deadlines), view.deadlines - view.now, 0.0)
        if self.suspensions:
            n = np.ceil(seconds_left / self.lease)
            m = np.floor(until.max(axis=1) / self.lease)
            seconds_left = (
                seconds_left + suspensions_slo(n, m) * view.restart + np.where(view.running, view.pause, view.restart)
            )
        need = np.ceil(seconds_left / self.lease - 1e-9).astype(np.int64)
        due = np.floor(np.maximum(until, 0) / self.lease + 1e-9)
        if self.partial:
            last_lease_seconds = seconds_left - (need - 1) * self.lease
            due += last_lease_seconds[:, None] <= until - due * self.lease
        return need, due.astype(np.int64)

    def _choose(self, view, joining, cycle, capacity):
        """Return a tuple: masks (n,) of jobs that must run for deadlines and of others that run; (jobs, `LeaseJobs`, plan)."""
        gpus = cycle.gpus
        lease_reward = cycle.value
        slo = cycle.slo
        leased_gpus = gpus[cycle.leased].sum()
        joining_best_effort = joining[~slo[joining]]
        joining_best_effort = joining_best_effort[
            np.argsort(-lease_reward[joining_best_effort] / gpus[joining_best_effort], kind="stable")
        ]
        joining_best_effort = joining_best_effort[np.cumsum(gpus[joining_best_effort]) <= CANDIDATES * capacity]
        mine = np.sort(np.concatenate([joining[slo[joining]], joining_best_effort]))
        best_effort = ~slo[mine]
        dues = cycle.due[mine]
        deadline_rewards = np.where(np.isfinite(view.deadlines[mine]), view.rewards[mine], 0.0)
        dues[best_effort] = 0
        deadline_rewards[best_effort] = 0.0
        dues[best_effort, 0] = 1
        deadline_rewards[best_effort, 0] = lease_reward[mine[best_effort]]
        jobs = LeaseJobs.of(gpus[mine], np.where(best_effort, 1, cycle.need[mine]), dues, deadline_rewards)
        job_rows = view.index[mine].tolist()
        # A new job aims at its first deadline.
        aim = np.array([view.memory.aim.get(job_row, 0) for job_row in job_rows], np.int64)
        limits = {"gap": self.gap, "work": self.work, "time_limit": self.time_limit}
        plan = prove_leases(jobs, capacity - leased_gpus, aim=aim, **limits)
        view.memory.aim = dict(zip(job_rows, plan.step.tolist(), strict=True))
        must = cycle.leased.copy()
        must[mine[plan.first & ~best_effort]] = True
        fill = np.flatnonzero(~must)
        fill = fill[np.argsort(-self._density(lease_reward, gpus, slo)[fill], kind="stable")]
        chosen = chosen_by_count(fill, gpus, capacity - gpus[must].sum())
        return must, chosen, (mine, jobs, plan)

    def _may_spread(self, view, need, due, slo):
        """Return a mask (n,) of the jobs with deadlines that are in time on twice the nodes, too, by the speed table."""
        many = np.ceil(view.gpus).astype(np.int64)
        speed = np.ones(len(view))
        for count in np.unique(many[slo & (many > 1)]):
            least = int(view.cluster.fewest_nodes(0, count))
            types = np.zeros(2, np.int64)
            nodes = np.array([least, min(2 * least, count)])
            rate = view.rates(types, nodes, np.full(2, count))
            same = many == count
            speed[same] = np.nan_to_num((rate[:, 1] / rate[:, 0])[same], nan=0.0)
        slower = np.ceil(need / np.maximum(speed, 1e-3))
        return slo & (speed > 0) & (slower <= due.max(axis=1))


def suspensions_slo(needed: np.ndarray, leases: np.ndarray) -> np.ndarray:
    r"""Return an array of the suspensions of a job that takes n of the m leases until its deadline, any n as likely (equation 5.3).

    .. math:: \sum_k k \binom{n-1}{k} \binom{m-n+1}{k+1} / \binom{m}{n} = (n - 1) (m - n) / m

    Of each job (j,), n and m; where m is less than n, no lease is spared, and it is never suspended.
    """
    n = np.asarray(needed, float)
    m = np.asarray(leases, float)
    return np.maximum(n - 1, 0) * np.maximum(m - n, 0) / np.maximum(m, 1)


@dataclass(frozen=True, eq=False)
class _Cycle:
    """The n jobs of one cycle, with up to F deadlines each."""

    gpus: np.ndarray  # (n,) GPUs of a lease
    need: np.ndarray  # (n,) leases that it still needs
    due: np.ndarray  # (n, F) leases until each deadline
    value: np.ndarray  # (n,) reward of a lease that is not needed for a deadline
    slo: np.ndarray  # (n,) whether it can still meet a deadline
    leased: np.ndarray  # (n,) whether it has a lease that goes on


@dataclass
class _Plan:
    """State of UniSched: the last cycle, rows of the trace that have a lease, and the deadline that each aims at."""

    cycle: float = -1.0
    leased: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    aim: dict = field(default_factory=dict)
