"""The rule by which a log is explained, played: first come, first served, with limits, hours, tiers and windows."""

from dataclasses import dataclass, replace

import numpy as np

from gpuschedlab.cluster import Cluster
from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.papers.clusters.explains.record import RULES, rules_of, whole_windows
from gpuschedlab.papers.clusters.explains.sweep import HALF_HOUR, Jobs, start_some
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
    """A policy within limits, if it can keep to any; Slurm's own rule leaves out hours and tiers."""
    if not limits:
        return policy
    if isinstance(policy, Slurm) and policy.own:
        return replace(policy, limits=tuple(limit for limit in limits if not limit.timed))
    if becomes_limited(policy, cluster):
        return Limited(limits, policy.backfill, day)
    return policy


def broken(policy: Policy, limits: tuple[Limit, ...]) -> str:
    """To which of the limits a policy within them (`within`) does not keep; "" if it keeps to all."""
    if isinstance(policy, Limited) or not limits:
        return ""
    if not isinstance(policy, Slurm) or not policy.own:
        return KEEPING
    return KEEPING_HOURS if any(limit.timed for limit in limits) else ""


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

    def allocate(self, view) -> Allocation:
        """Start what may start now, beside what runs."""
        waits = view.gpu_type < 0
        gpus = np.where(waits, 0.0, view.gpus)
        wake = None
        if any(limit.hours for limit in self.limits):
            wake = (np.floor((view.now + self.day) / HALF_HOUR) + 1) * HALF_HOUR - self.day
        if not (view.gpus[waits] <= view.free.sum()).any():
            return Allocation(np.maximum(view.gpu_type, 0), gpus, wake=wake)
        unit = 1 if (view.gpus % 1 == 0).all() else SLOTS
        jobs, rules, free = self._arrays(view, unit)
        starts = start_some(jobs, rules, free, view.now)
        rows = np.repeat(starts, np.diff(jobs.first)) & (jobs.held > 0)
        job = np.repeat(np.arange(len(view)), np.diff(jobs.first))[rows]
        cells = np.stack([job, jobs.node[rows], jobs.held[rows] / unit], 1)
        return Allocation(np.maximum(view.gpu_type, 0), np.where(starts, view.gpus, gpus), nodes=cells, wake=wake)

    def _arrays(self, view, unit: int) -> tuple:
        """Jobs that wait or run, in order of submission, rules, and free slots of the nodes."""
        n = len(view)
        runs = view.gpu_type >= 0
        slots = np.maximum(1, (view.gpus * unit).round()).astype(np.int64)
        size = np.repeat([g.gpus_per_node for g in view.cluster.groups], [g.nodes for g in view.cluster.groups]) * unit
        wide = -(-slots // size.max())
        each = -(-slots // wide)
        count = wide.copy()
        count[runs] = np.bincount(view.nodes[:, 0].astype(int), minlength=n)[runs]
        first = np.concatenate([[0], np.cumsum(count)])
        before = np.arange(first[-1]) - np.repeat(first[:-1], count)
        node = np.zeros(first[-1], np.int64)
        of_runs = np.repeat(runs, count)
        held = np.clip(np.repeat(slots, count) - before * np.repeat(each, count), 0, np.repeat(each, count))
        node[of_runs], held[of_runs] = view.nodes[:, 1], (view.nodes[:, 2] * unit).round()
        start = np.where(runs, view.now - view.executed, np.inf)
        qos = np.maximum(view.codes("qos"), 0) if any(limit.hours for limit in self.limits) else np.zeros(n, np.int64)
        none = np.zeros(0)
        kinds = np.zeros(0, np.int64)
        jobs = Jobs(view.submit, view.submit, start, start + view.estimate, view.estimate, slots, np.zeros(n, np.int64), wide, each,
                    first, node, held, qos, none, kinds.astype(np.int8), kinds)  # fmt: skip
        owner = np.array([view.codes(f"limit{k}") for k in range(len(self.limits))], np.int64).reshape(-1, n)
        if "windows" not in view.memory:
            view.memory["windows"] = whole_windows(view.cluster)
        windows = view.memory["windows"]
        windows = windows[(windows[:, 1] > view.now) & (windows[:, 2] <= view.now)]
        rules = rules_of(self.limits, owner, qos, unit, self.day)
        rule = RULES[self.backfill]
        masks = (view.up > 0)[None]
        free = np.asarray(view.free * unit).round().astype(np.int64)
        return jobs, rules._replace(rule=rule, size=size, masks=masks, windows=windows), free
