"""The rule by which a log is explained, played: first come, first served, with limits, hours, tiers and windows."""

from dataclasses import dataclass, replace

import numpy as np

from gpuschedlab.cluster import Cluster
from gpuschedlab.papers.clusters.explains.record import RULES, fewest, in_slots, rules_of, spread, whole_windows
from gpuschedlab.papers.clusters.explains.sweep import END, HALF_HOUR, KNOWN, Jobs, Rules, start_some
from gpuschedlab.papers.clusters.schedulers.limits import Limit
from gpuschedlab.papers.clusters.schedulers.slurm import Slurm
from gpuschedlab.policies.simple import Backfill, Fifo
from gpuschedlab.sim import Policy
from gpuschedlab.sim.policy import Round
from gpuschedlab.sim.rounds.allocation import Allocation

KEEPING = "limits, to which Slurm's own rule keeps, and on GPUs of one type EASY, greedy and strict FIFO"
"""Why there is no verdict where another rule would have to keep to limits."""
KEEPING_HOURS = "hours and tiers, to which EASY, greedy and strict FIFO keep on GPUs of one type"


def becomes_limited(policy: Policy, cluster: Cluster) -> bool:
    """Whether a rule keeps to limits and hours on a cluster as `Limited`."""
    return isinstance(policy, Fifo) and policy.backfill != "plan" and len(cluster.gpu_types) == 1


def within(policy: Policy, limits: tuple[Limit, ...], cluster: Cluster, day: float) -> Policy:
    """Return a `Policy` within limits, if it can keep to any; Slurm's own rule leaves out hours and tiers."""
    if not limits:
        return policy
    if isinstance(policy, Slurm) and policy.own:
        untimed = tuple(limit for limit in limits if not limit.timed)
        return replace(policy, limits=untimed)
    if becomes_limited(policy, cluster):
        return Limited(limits, policy.backfill, day)
    return policy


def broken(policy: Policy, limits: tuple[Limit, ...]) -> str:
    """Return a phrase that says which limits a policy within them (`within`) does not keep; a string, "" if it keeps to all."""
    if isinstance(policy, Limited) or not limits:
        return ""
    if not isinstance(policy, Slurm) or not policy.own:
        return KEEPING
    if any(limit.timed for limit in limits):
        return KEEPING_HOURS
    return ""


@dataclass(frozen=True)
class Limited(Round):
    """First come, first served, as far as limits allow; a job at a limit, or outside its hours, holds up no other.

    By the K-th limit a job counts for the owner in column `limitK` of the trace (`Limit.owners`). Windows are those of all nodes.

    Differs from the paper in
    -------------------------
    Nothing known.
    """

    limits: tuple[Limit, ...] = ()
    backfill: Backfill = "easy"
    day: float = 0.0
    on_event = True
    interval = 0.0
    placement = "pack"

    @property
    def has_hours(self) -> bool:
        """Whether a limit has hours."""
        return any(limit.hours for limit in self.limits)

    def allocate(self, view) -> Allocation:
        """Return the `Allocation` that starts jobs that may start now, beside those that run."""
        waits = view.gpu_type < 0
        gpus = np.where(waits, 0.0, view.gpus)
        gpu_type = np.maximum(view.gpu_type, 0)
        wake = None
        if self.has_hours:
            half_hours = np.floor((view.now + self.day) / HALF_HOUR)
            wake = (half_hours + 1) * HALF_HOUR - self.day
        if not (view.gpus[waits] <= view.free.sum()).any():
            return Allocation(gpu_type, gpus, wake=wake)
        unit, slots = in_slots(view.gpus)
        jobs = self._jobs(view, unit, slots)
        free = np.asarray(view.free * unit).round()
        starts = start_some(jobs, self._rules(view, unit, jobs.qos), free.astype(np.int64), view.now)
        cells_of_job = np.diff(jobs.first)
        starting_cells = np.repeat(starts, cells_of_job) & (jobs.held > 0)
        job = np.repeat(np.arange(len(view)), cells_of_job)[starting_cells]
        cells = np.stack([job, jobs.node[starting_cells], jobs.held[starting_cells] / unit], 1)
        return Allocation(gpu_type, np.where(starts, view.gpus, gpus), nodes=cells, wake=wake)

    def _jobs(self, view, unit: int, slots: np.ndarray) -> Jobs:
        """Return the `Jobs` that wait or run, in order of submission."""
        runs = view.gpu_type >= 0
        largest = max(group.gpus_per_node for group in view.cluster.groups) * unit
        wide = fewest(slots, largest)
        cells_of_job = wide.copy()
        job_of_cell, node_of_cell, gpus_of_cell = view.nodes.T
        cells_of_job[runs] = np.bincount(job_of_cell.astype(int), minlength=len(view))[runs]
        of_runs = np.repeat(runs, cells_of_job)
        node = np.zeros(len(of_runs), np.int64)
        node[of_runs] = node_of_cell
        held_slots = spread(slots, fewest(slots, wide), cells_of_job)
        held_slots[of_runs] = (gpus_of_cell * unit).round()
        start = np.where(runs, view.now - view.executed, np.inf)
        qos = np.zeros(len(view), np.int64)
        if self.has_hours:
            qos = np.maximum(view.codes("qos"), 0)
        return Jobs(
            submit=view.submit,
            eligible=view.submit,
            start=start,
            end=start + view.estimate,
            asked=view.estimate,
            slots=slots,
            part=np.zeros(len(view), np.int64),
            wide=wide,
            each=fewest(slots, wide),
            first=np.concatenate([[0], np.cumsum(cells_of_job)]),
            node=node,
            held=held_slots,
            qos=qos,
            time=np.zeros(0),
            kind=np.zeros(0, np.int8),
            job=np.zeros(0, np.int64),
        )

    def _rules(self, view, unit: int, qos: np.ndarray) -> Rules:
        """Return the `Rules` by which jobs of such QOS start now."""
        owner = np.zeros((len(self.limits), len(view)), np.int64)
        for k in range(len(self.limits)):
            owner[k] = view.codes(f"limit{k}")
        if "windows" not in view.memory:
            view.memory["windows"] = whole_windows(view.cluster)
        windows = view.memory["windows"]
        announced = (windows[:, END] > view.now) & (windows[:, KNOWN] <= view.now)
        groups = view.cluster.groups
        return rules_of(self.limits, owner, qos, unit, self.day)._replace(
            rule=RULES[self.backfill],
            size=np.repeat([group.gpus_per_node for group in groups], [group.nodes for group in groups]) * unit,
            masks=(view.up > 0)[None],
            windows=windows[announced],
        )
