"""ElasticFlow (Gu et al., ASPLOS'23): deadlines by admission, minimum satisfactory shares, and elastic scaling."""

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from gpuschedlab.knobs import Knob
from gpuschedlab.papers.prompttuner.shares import DatedJobs, satisfactory_shares
from gpuschedlab.papers.prompttuner.warm_pools import EPS, Demand, Late, Most, demand_of
from gpuschedlab.sim.policy import Round
from gpuschedlab.sim.rounds.allocation import Allocation
from gpuschedlab.sim.rounds.view import View

SLOTS = 400
"""Slots of a plan; they are longer where these do not reach the last deadline."""

BEYOND = 1.2
"""Slots reach so many times as far as the last deadline."""


@dataclass
class _Admitted:
    """Rows of the trace that were admitted, and those that were declined."""

    admitted: set[int] = field(default_factory=set)
    declined: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class ElasticFlow(Round):
    """Admit a job if all deadlines can then be met, give each its minimum satisfactory share, and the rest by marginal gain.

    Jobs are planned by deadline. The minimum satisfactory share of a job is the least level of its speed table at which, slot
    by slot, the smaller of the level and the free GPUs finishes it by its deadline. A newcomer is admitted if all jobs still
    have one. GPUs that are left go, level by level, to the job that thereby saves most time per GPU-second more. Every start
    and every change of a job's GPUs is a cold start. The whole cluster is billed, whatever is used of it.

    Models and kinds of start are as for `PromptTuner`; jobs without a deadline have the rest.

    Differs from the paper in
    -------------------------
    Slots have 5 s, for jobs of seconds (its artifact: 60 or 240 s). Plans are made at arrivals, completions, and where a
    planned level changes, not at each slot: events in between change no plan. Placement is by packing, not in buddy
    sets: speeds of prompt tuning do not depend on it. The artifact's overhead of 2 s (cached) or 4 + 2 log2 n s is the cold
    start of `Delays`. There are two readings. With `aware`, as a careful operator would have it, plans reckon with that start,
    and a job is given more GPUs only if it ends sooner so. Without, as published (the artifact's planner), each plan is as if
    changes cost nothing. In both, the earliest deadline is first, and declined jobs run last, with the rest: on
    the GPUs that they hold or on their fewest, or never (`late`); they count as late either way. The marginal gain is the
    paper's (least growth of GPU-time per GPU); the artifact's code sorts the other way round.

    References
    ----------
    Gu et al., ElasticFlow, ASPLOS'23, sections 4.1 to 4.3, algorithms 1 and 2, and its artifact; Gao, PhD thesis, NTU 2025,
    sections 4.3.1 and 4.6.1.

    Examples
    --------
    >>> ElasticFlow(aware=False).slot
    5.0
    """

    aware: Annotated[
        bool,
        Knob(
            help="careful: plans reckon with what a start and a change of GPUs cost; otherwise as published: blind to it"
        ),
    ] = True
    slot: Annotated[float, Knob(0.1, 3600, log=True, unit="s", help="length of a slot of a plan")] = 5.0
    most: Most = 8
    late: Late = "last"
    placement = "pack"
    on_event = True

    @property
    def interval(self) -> float:
        """Seconds of a slot: planned levels change on its grid, other rounds are at events."""
        return self.slot

    def begin(self) -> _Admitted:
        """Return the jobs that were admitted, an `_Admitted` that is empty."""
        return _Admitted()

    def allocate(self, view: View) -> Allocation:
        """Plan, admit newcomers, give out the rest, type by type, and return the `Allocation`."""
        demand = demand_of(view, self.most)
        n = len(view)
        T = len(view.capacity)
        level = np.full(n, -1)
        wake = np.inf
        room = np.asarray(view.capacity, float).copy()
        # Seconds that a start or a change costs in a plan.
        setup = demand.begin + demand.warm_up if self.aware else np.zeros(n)
        for t in range(T):
            wake = min(wake, view.now + self._plan(view, demand, setup, room, t, level))
        gpus = np.where(level >= 0, demand.gpus[np.arange(n), np.maximum(level, 0)], 0.0) if n else np.zeros(0)
        idle_cluster = {"idle cluster": room} if n and room.any() else {}
        return Allocation(
            demand.gpu_type, gpus, delay=demand.cold, reserved=idle_cluster, wake=max(wake, view.now + 1e-3)
        )

    def _plan(self, view, demand: Demand, setup, room, t: int, level) -> float:
        """Write the levels of the jobs of one type, and the rest into `room`. Return the seconds until a planned level changes."""
        admissions = view.memory
        jobs_of_type = np.flatnonzero(demand.gpu_type == t)
        due_order = jobs_of_type[np.lexsort((jobs_of_type, demand.due[jobs_of_type]))]
        dated = due_order[np.isfinite(demand.due[due_order])]
        decided_rows = admissions.admitted | admissions.declined
        newcomers = [
            i for i in jobs_of_type.tolist() if view.index[i] not in decided_rows and np.isfinite(demand.due[i])
        ]
        mine = [i for i in dated.tolist() if view.index[i] in admissions.admitted]
        for i in newcomers:
            tried_jobs = [j for j in dated.tolist() if j in {*mine, i}]
            share, _, _ = self._shares(view, demand, setup, tried_jobs, float(room[t]))
            admitted = bool((share >= 0).all())
            (admissions.admitted if admitted else admissions.declined).add(int(view.index[i]))
            mine = tried_jobs if admitted else mine
        share, first_level, turn = self._shares(view, demand, setup, mine, float(room[t]))
        level[mine] = first_level
        room[t] -= demand.gpus[mine, level[mine]][level[mine] >= 0].sum()
        failing = [i for i, s in zip(mine, share) if s < 0]
        self._grow(view, demand, setup, [i for i in mine if i not in failing], level, room, t)
        unplanned = [i for i in due_order.tolist() if i not in mine]
        if self.late == "drop":
            unplanned = [i for i in unplanned if not np.isfinite(demand.due[i])]
        self._serve(view, demand, failing + unplanned, level, room, t)
        return float(turn)

    def _shares(self, view, demand, setup, jobs, room: float):
        """Return the minimum satisfactory shares of jobs in order, on some GPUs: the tuple of `satisfactory_shares`."""
        jobs = np.asarray(jobs, np.int64)
        due = demand.due[jobs] - view.now
        slot = max(self.slot, BEYOND * float(due.max(initial=0.0)) / SLOTS)
        free = np.full(SLOTS, room)
        running_gpus = view.running_gpus[jobs]
        owed = view.pause[jobs]
        dated = DatedJobs(demand.gpus[jobs], demand.work[jobs], setup[jobs], running_gpus, owed, due)
        return satisfactory_shares(dated, free, slot)

    @staticmethod
    def _grow(view, demand, setup, jobs, level, room, t: int):
        """Give the rest, level by level, to the job whose GPU-time grows least per GPU; to jobs without GPUs first."""
        same = np.abs(view.running_gpus[:, None] - demand.gpus) < EPS
        ends = demand.work + np.where(same, view.pause[:, None], setup[:, None])  # with what a change to a level costs
        while jobs:
            steps = [step for i in jobs if (step := _step(demand, ends[i], i, int(level[i]), room[t]))]
            if not steps:
                return
            _, i, up, more = min(steps)
            level[i] = up
            room[t] -= more

    @staticmethod
    def _serve(view, demand, jobs, level, room, t: int):
        """Jobs that cannot be in time, and those without a deadline, in order: their present GPUs, or their fewest."""
        for i in sorted(jobs, key=lambda i: (view.running_gpus[i] == 0, demand.due[i])):
            if level[i] >= 0:
                continue
            same = np.flatnonzero(np.abs(demand.gpus[i] - view.running_gpus[i]) < EPS)
            for k in (*same.tolist(), demand.fewest(i)):
                if k >= 0 and np.isfinite(demand.seconds[i, k]) and demand.gpus[i, k] <= room[t] + EPS:
                    level[i] = k
                    room[t] -= float(demand.gpus[i, k])
                    break


def _step(demand, ends, i: int, level: int, room: float):
    """Return a tuple: growth of GPU-time per GPU, job, next level and its further GPUs; None: there is no such step."""
    present_gpus = float(demand.gpus[i, level]) if level >= 0 else 0.0
    for up in range(level + 1, demand.gpus.shape[1]):
        more = float(demand.gpus[i, up]) - present_gpus
        if not np.isfinite(demand.seconds[i, up]) or more <= EPS:
            continue
        if more > room + EPS:
            return None
        if level < 0:
            return (-np.inf, i, up, more)
        present_end = float(ends[level])
        end_after_step = float(ends[up])
        if end_after_step >= present_end - EPS:
            continue
        growth = float(demand.gpus[i, up]) * end_after_step - present_gpus * present_end
        return (growth / more, i, up, more)
    return None
