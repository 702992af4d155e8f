"""Chronus (Gao et al., SoCC'21): leases for jobs with deadlines, admitted where they can be kept, and spare time for the others."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from gpuschedlab.knobs import Knob
from gpuschedlab.papers.deadlines.leases.plan import backward, prove_leases
from gpuschedlab.papers.deadlines.leases.program import LeaseJobs
from gpuschedlab.papers.deadlines.placing import CHOSEN, MUST, chosen_by_count, placed, proved, time_left
from gpuschedlab.policies.remaining import long_enough
from gpuschedlab.sim.policy import Round
from gpuschedlab.sim.rounds.allocation import Allocation
from gpuschedlab.sim.rounds.view import View

NEW, ACCEPTED, DEMOTED = range(3)

Gap = Annotated[float, Knob(1e-9, 0.5, log=True, help="relative gap that a lease program is proved to")]
Work = Annotated[float, Knob(0, 600, help="units of the solver, counted, about a second each; 0: never asked")]
Guard = Annotated[float | None, Knob(1e-3, 3600, log=True, unit="s", help="guard of a round's solver; none: no limit")]


@dataclass(frozen=True)
class Chronus(Round):
    """Jobs with deadlines get leases of 20 minutes by a program; best-effort jobs, every 5 minutes, the rest.

    A new job is accepted for the first deadline that, by a packing test, can be met beside those of all accepted jobs;
    otherwise it is demoted, and served like best effort. Accepted jobs have the last leases before their deadlines while
    demoted or best-effort jobs wait, and the earliest otherwise. Spare GPUs go to those with the least remaining GPU-time,
    accepted jobs ahead of their leases among them. A job has the fewest nodes, always: demands are rounded up to powers of
    two, and to whole nodes.

    Differs from the paper in
    -------------------------
    The time-outs of its solver depend on the machine: here plans are made by `plan_leases`, with a proven gap, and HiGHS is
    asked where that exceeds `gap` (only when nodes have failed or jobs outlived their estimates). The packing test goes
    backwards from the deadlines. New jobs are seen every `interval`, the artifact looks once a minute. No nodes are
    reserved for profiling: the artifact needs them in its dry run only. A job that is past all hope later is demoted, too.

    References
    ----------
    Gao et al., Chronus, SoCC'21, sections 4.2 and 4.3, and its artifact; Gao, PhD thesis, NTU 2025, section 5.4.6.

    Examples
    --------
    >>> Chronus(lease=600).knobs["lease"]
    600
    """

    lease: Annotated[float, Knob(60, 14_400, log=True, unit="s", help="lease of a job with deadlines")] = 1200
    interval: Annotated[float, Knob(60, 3600, log=True, unit="s", help="slot of best-effort jobs")] = 300
    margin: Annotated[float, Knob(1, 3, unit="x", help="by which durations are stretched")] = 1.1
    gap: Gap = 1e-2
    work: Work = 5
    time_limit: Guard = None
    set_aside: ClassVar = (*Round.set_aside, "gap", "work", "time_limit")

    def begin(self) -> "_Leases":
        """Return the state from round to round, a `_Leases`."""
        return _Leases()

    def allocate(self, view: View) -> Allocation:
        """Return the `Allocation`: admit, renew leases when they end, and fill."""
        n = len(view)
        if n == 0:
            return Allocation(np.empty(0, np.int64), np.empty(0))
        lease_memory = view.memory
        seconds_left = time_left(view)
        by_type = rounded_up(view)
        room = np.where(by_type <= view.cluster.capacity, by_type, np.inf).min(axis=1)
        capacity = float(np.floor(view.capacity).sum())
        cycle = np.floor(view.now / self.lease + 1e-9)
        start = view.now if cycle > lease_memory.cycle else (cycle + 1) * self.lease
        lease_memory.state = long_enough(lease_memory.state, view.index, NEW)
        lease_memory.aim = long_enough(lease_memory.aim, view.index, -1)
        state = lease_memory.state[view.index]
        aim = lease_memory.aim[view.index]
        state[~((view.kind > 0) & np.isfinite(view.deadlines[:, 0]))] = DEMOTED
        restarts = 1 + view.restart / self.lease
        leases = seconds_left * self.margin * restarts / self.lease
        need = np.ceil(leases).astype(np.int64)
        due = np.floor(np.where(np.isfinite(view.deadlines), view.deadlines - start, 0) / self.lease + 1e-9)
        jobs = LeaseJobs.of(room, need, np.maximum(due, 0), view.rewards)
        _admit(jobs, state, aim, capacity)
        program = None
        if cycle > lease_memory.cycle:
            lease_memory.cycle = cycle
            program = self._renew(view, jobs, state, aim, capacity)
        lease_memory.state[view.index] = state
        lease_memory.aim[view.index] = aim
        leased = np.isin(view.index, lease_memory.leased)
        spare = np.argsort(seconds_left * room, kind="stable")
        filling = ~leased & chosen_by_count(spare[~leased[spare]], room, capacity - room[leased].sum())
        level = np.where(leased, MUST, np.where(filling, CHOSEN, 0))
        lease_order = np.concatenate([np.flatnonzero(leased), spare[~leased[spare]]])
        answer = placed(view, lease_order, level, room=by_type)
        if program is None:
            return answer
        leased_rows, mine, plan = program
        return proved(answer, plan.in_force(mine, answer.gpus[leased_rows] > 0), plan.bound, plan.status, self.gap)

    def _renew(self, view, jobs, state, aim, capacity) -> tuple:
        """Solve the program of the accepted jobs, note which have the first lease, and return a tuple: rows, its jobs and its plan."""
        accepted_rows = np.flatnonzero(state == ACCEPTED)
        mine = LeaseJobs(*(a[accepted_rows] for a in jobs))
        # All accepted jobs must finish, and count the same but for their rewards.
        plan = prove_leases(
            mine, capacity, gap=self.gap, work=self.work, time_limit=self.time_limit, aim=aim[accepted_rows]
        )
        aim[accepted_rows] = plan.step
        late = plan.step < 0
        state[accepted_rows[late]] = DEMOTED
        first_lease = plan.first.copy()
        if not (state == DEMOTED).any():
            ahead = np.flatnonzero(~first_lease & ~late)
            laxity = mine.due[ahead, plan.step[ahead]] - mine.need[ahead, 0]
            ahead = ahead[np.argsort(laxity, kind="stable")]
            first_lease |= chosen_by_count(ahead, mine.gpus, capacity - mine.gpus[first_lease].sum())
        view.memory.leased = view.index[accepted_rows[first_lease]]
        return accepted_rows, mine, plan


def rounded_up(view: View) -> np.ndarray:
    """Return an array (n, T) of GPUs that must be free on a job's nodes of each type.

    They are powers of two up to the type's largest node, then whole nodes.
    """
    gpus = view.gpus
    by_type = []
    power = 2.0 ** np.ceil(np.log2(np.maximum(gpus, 1)))
    for t, largest_node in enumerate(view.cluster.largest_nodes):
        nodes = np.minimum(view.cluster.fewest_nodes(t, gpus), len(largest_node))
        room = np.where(
            gpus > largest_node[0], np.maximum(largest_node[nodes - 1], gpus), np.minimum(power, largest_node[0])
        )
        by_type.append(np.where(gpus < 1, gpus, room))
    return np.stack(by_type, axis=1)


def _admit(jobs: LeaseJobs, state: np.ndarray, aim: np.ndarray, capacity: float):
    """Accept new jobs, in order, for the first deadline that can be met beside those of all accepted jobs."""
    n = np.arange(len(state))
    new_jobs = np.flatnonzero(state == NEW)
    if not len(new_jobs):
        return
    able = (jobs.need <= jobs.due) & (jobs.value > 0)
    first_met = np.where(able.any(axis=1), able.argmax(axis=1), -1)

    def met(aims, of):
        due = np.where(of, jobs.due[n, np.maximum(aims, 0)], 0)
        need = np.where(of, jobs.need[:, 0], 0)
        _, lacking, _ = backward(jobs.gpus, need, due, capacity)
        return not lacking.any()

    hopeful = new_jobs[first_met[new_jobs] >= 0]
    state[new_jobs] = DEMOTED
    together = aim.copy()
    together[hopeful] = first_met[hopeful]
    both = (state == ACCEPTED) | np.isin(n, hopeful)
    if met(together, both):
        aim[hopeful] = first_met[hopeful]
        state[hopeful] = ACCEPTED
        return
    for i in hopeful:
        for f in np.flatnonzero(able[i]):
            aim[i] = f
            if met(aim, (state == ACCEPTED) | (n == i)):
                state[i] = ACCEPTED
                break


@dataclass
class _Leases:
    """State of Chronus: the last cycle, rows of the trace that have a lease, state and aim of each row."""

    cycle: float = -1.0
    leased: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    state: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    aim: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
