"""Slurm: multifactor priorities, fair share by decayed usage, and a plan that backfills."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import PolicyError
from gpuschedlab.knobs import Knob
from gpuschedlab.papers.clusters.schedulers.fairshare import RULES, ShareTree, classic, fair_tree
from gpuschedlab.papers.clusters.schedulers.limits import Limit, claims_of
from gpuschedlab.papers.clusters.schedulers.priority import DAY, WEEK, nice_of, size_factor
from gpuschedlab.papers.clusters.schedulers.slurm_plan import Running, Site, SlurmRule, waiting_jobs
from gpuschedlab.papers.clusters.schedulers.slurm_plan import plan as slurm_plan
from gpuschedlab.policies.simple import Backfill, Depth, Placement
from gpuschedlab.sim.ordered import Ordered, Plan

TREE = RULES.index("tree")
MOST = 4_294_967_295
TIER = 2.0**36
"""Of a tier of partitions, more than any priority."""
FIXED = ("fairshare", "damping", "small", "relative")
"""Knobs that say what factors mean."""


def points_of(factor: str) -> Knob:
    """Return the `Knob` of the points of a factor of 1."""
    return Knob(0, MOST, tuned=(0, 20_000), help=f"points of the factor of {factor}, 0 to 1")


def _values_of(names: pl.Series, values: dict[str, float], default: float) -> np.ndarray:
    """Return an array (n,) of the value of each name."""
    return names.replace_strict(values, default=default, return_dtype=pl.Float64).to_numpy()


@dataclass(frozen=True)
class Slurm(Ordered):
    """Highest priority first, as a weighted sum of a job's factors; later jobs are backfilled by a plan; no job is suspended.

    P = int(W_age min(age / max_age, 1) + W_fairshare F + W_size s + W_partition p + W_qos q - nice), at least 0. F is the
    fair-share factor of the job's user (`ShareTree.factors`) by usage that decays; s is as `size_factor` says; p and q are priorities
    over the largest of any partition and QOS. Priorities are counted at submission and recalculated each `recalculated` seconds;
    equal ones go by submission.

    Parameters
    ----------
    tree : ShareTree, optional
        Accounts and users, which the trace's columns `account` and `user` name; jobs of others have F = 0. None: all users of the
        trace have one share each.
    own : bool
        Whether jobs start by Slurm's own rule, as slurmctld 22.05 has it: the main loop at each event, then a pass of backfill, whose
        promises hold nodes whole; on the run of neighbouring nodes that has least room. Otherwise by the general plan and `placement`.
    gres : bool
        Whether jobs ask for GPUs as GRES, as on a site with GPUs. Slurm's own rule then takes nodes that have room for the job as alike:
        the run of fewest such nodes, from its first. Otherwise cores stand for GPUs, and it takes the nodes with least room.
    epoch : float
        Seconds since 1970 of the trace's zero, of which Slurm's own rule sees what is over multiples of 30.
    limits : tuple of Limit
        What users, accounts and QOS may hold at once, and what a job may ask for. A job whose owner has reached a limit is passed over: it
        keeps no nodes from later ones, and is promised none. A job that asks for more than it may never starts. If the trace has a
        column `throttle`, so many tasks of a job's array run at once.
    partitions, tiers, qos : tuple of (str, float)
        Priorities of partitions (column `vc`), their tiers, of which higher ones go first (without: 1), and priorities of QOS (column
        `qos`), not below 0; those of no such name have the factor 0.

    Raises
    ------
    PolicyError
        A knob is out of range, `tree` is no ShareTree, a priority of a partition or QOS is below 0, or a limit cannot be kept to.

    References
    ----------
    Slurm documentation, pages "Multifactor Priority Plugin", "Fair Tree Fairshare Algorithm", "Classic Fairshare Algorithm" and
    "Scheduling Configuration Guide", read in 2026; priority_multifactor.c.

    Differs from the paper in
    -------------------------
    Slurm's weights are 0 by default. Size is GPUs in place of CPUs, and the fewest nodes that hold them. Age counts from submission,
    not from eligibility. Usage decays continuously; Slurm's steps leave 0.50007 in place of 0.5 after a half-life. No
    weights of further resources (TRES), no shares "parent". A job beyond what a job may have stays in the queue, as without
    DenyOnLimit. Plans are exact and made at each
    event, 500 jobs deep at most, unless `plan` has Slurm's window, interval and resolution. With `own=False` nodes of
    one job have one GPU type. Column `nice` counts where the trace has it.

    Examples
    --------
    >>> import gpuschedlab as lab
    >>> jobs = {"job_id": ["a", "b", "c"], "user": ["x", "x", "y"], "submit": [0.0, 1, 2], "gpus": [1.0] * 3, "duration": [600.0] * 3}
    >>> lab.simulate(pl.DataFrame(jobs), lab.Cluster.homogeneous(1, 1), Slurm()).jobs["start"].to_list()
    [0.0, 1200.0, 600.0]
    """

    weight_age: Annotated[float, points_of("age")] = 1_000
    weight_fairshare: Annotated[float, points_of("fair share")] = 10_000
    weight_size: Annotated[float, points_of("size")] = 1_000
    weight_partition: Annotated[float, points_of("the partition")] = 1_000
    weight_qos: Annotated[float, points_of("the QOS")] = 1_000
    max_age: Annotated[float, Knob(60, 1e8, log=True, unit="s", help="waiting at which the factor of age is 1")] = WEEK
    fairshare: Annotated[str, Knob(choices=RULES, help="Fair Tree, or the classic formula")] = "tree"
    half_life: Annotated[
        float, Knob(60, 1e9, log=True, unlimited=True, unit="s", help="after which half of a usage is forgotten")
    ] = WEEK
    recalculated: Annotated[float, Knob(1, DAY, log=True, unit="s", help="time between recalculations")] = 300.0
    damping: Annotated[
        float, Knob(0.01, 1000, log=True, help="of the classic formula: how much usage is tolerated")
    ] = 1.0
    small: Annotated[bool, Knob(help="whether small jobs are favoured, not large ones")] = False
    relative: Annotated[bool, Knob(help="whether size is relative to the requested time")] = False
    backfill: Backfill = "plan"
    own: Annotated[
        bool, Knob(help="whether jobs start by Slurm's own rule, or by the general plan and a placement rule")
    ] = True
    gres: Annotated[
        bool, Knob(help="whether jobs ask for GPUs as GRES, or for cores that stand for GPUs: what a free node counts")
    ] = False
    epoch: Annotated[
        float, Knob(0, 1e10, unit="s", help="of the trace's zero since 1970: Slurm's own rule groups ends by it")
    ] = 0.0
    placement: Placement = "consolidate"
    depth: Depth = math.inf
    plan: Plan = Plan(tested=500)
    tree: ShareTree | None = None
    partitions: tuple[tuple[str, float], ...] = ()
    tiers: tuple[tuple[str, float], ...] = ()
    qos: tuple[tuple[str, float], ...] = ()
    limits: tuple[Limit, ...] = ()
    moving = "none"
    charged = ("user",)
    set_aside: ClassVar = (
        "placement",
        "own",
        "gres",
        "epoch",
        "interval",
        "backfill",
        "half_life",
        "recalculated",
        *FIXED,
    )

    def __post_init__(self):
        super().__post_init__()
        for pairs_name in ("partitions", "tiers", "qos"):
            wrong = next((pair for pair in getattr(self, pairs_name) if not 0 <= pair[1] < math.inf), None)
            if wrong:
                raise PolicyError(
                    f"Slurm.{pairs_name}: found priority {wrong[1]!r} of {wrong[0]!r}; expected a number, 0 or more."
                )
        if self.limits and not self.own:
            raise PolicyError(
                "Slurm.limits: found limits and own=False; expected own=True: the general plan keeps to none."
            )
        if timed := next((limit for limit in self.limits if limit.timed), None):
            raise PolicyError(f"Slurm.limits: found {timed}; expected limits of GPUs, jobs, and what a job asks for.")

    @property
    def planned(self) -> bool:
        """Whether jobs start by Slurm's own rule."""
        return self.own

    @property
    def across(self) -> bool:
        """Whether a job that names no GPU type may hold several: Slurm's own rule asks for none."""
        return self.own

    @property
    def period(self) -> float:
        """Seconds between recalculations, if any factor changes, as a float."""
        if self.weight_fairshare or self.weight_age:
            return self.recalculated
        return 0.0

    def accounts(self, trace: pl.DataFrame) -> tuple[np.ndarray, tuple] | None:
        """Return a tuple: each job's place (n,) among the tree's users, and the tree's arrays; None without a tree.

        See `Policy.accounts`.
        """
        if self.tree is None:
            return None
        if not {"account", "user"} <= set(trace.columns):
            return np.full(trace.height, -1), self.tree.arrays
        return self.tree.places(trace["account"], trace["user"]), self.tree.arrays

    def quotas(self, trace: pl.DataFrame, cluster: Cluster) -> tuple[np.ndarray, np.ndarray] | None:
        """Return a tuple of arrays: claims of jobs on the limits, as of `Policy.quotas`; None if they claim nothing."""
        if not self.own:
            return None
        return claims_of(self.limits, trace, cluster)

    def points(self, trace: pl.DataFrame, cluster: Cluster) -> np.ndarray:
        """Return an array (n,): points that size, partition, QOS and nice give each job."""
        gpus = trace["gpus"].to_numpy()
        trace_columns = trace.columns
        limit = None
        if self.relative:
            limit = np.full(len(gpus), math.inf)
            if "requested_time" in trace_columns:
                limit = trace["requested_time"].fill_null(math.inf)
        nodes = cluster.fewest_nodes(0, gpus)
        size = size_factor(nodes, gpus, cluster.total_nodes, cluster.total_gpus, limit, small=self.small)
        points = self.weight_size * size
        of_qos = ("qos", self.qos, self.weight_qos)
        of_partition = ("vc", self.partitions, self.weight_partition)
        for column, pairs, weight in (of_partition, of_qos):
            most = max((factor for _, factor in pairs), default=0.0)
            if most > 0 and column in trace_columns:
                points_of_name = {name: weight * factor / most for name, factor in pairs}
                points += _values_of(trace[column], points_of_name, 0.0)
        if self.tiers and "vc" in trace_columns:
            points += TIER * _values_of(trace["vc"], dict(self.tiers), 1.0)
        return points - nice_of(trace)

    @staticmethod
    def standing(now: float, usage: np.ndarray, tree: np.ndarray, knobs: np.void) -> np.ndarray:
        """Return an array (U,) of the fair-share factors of the users."""
        if knobs.fairshare == TREE:
            return fair_tree(tree["parent"], tree["shares"], tree["account"], usage)
        return classic(tree["parent"], tree["shares"], tree["account"], usage, knobs.damping)

    @staticmethod
    def key(now: float, job: np.void, knobs: np.void) -> float:
        """Minus the priority, jobs of a higher tier of partitions first.

        Return it, a float.
        """
        aged = min((now - job.submit) / knobs.max_age, 1.0)
        tier = math.floor(job.points / TIER + 0.5) * TIER
        points = job.points - tier
        priority = knobs.weight_age * aged + knobs.weight_fairshare * job.standing + points
        return -tier - math.floor(max(0.0, priority))

    @staticmethod
    def planner(now, nodes, runs, queue, windows, rule, cells, allowed, reach, wake, claims, spare, knobs):
        """Return an array of the cells of jobs that start, by Slurm's own rule: the main loop, and the pass of backfill."""
        site = Site(nodes, allowed, reach, windows)
        waiting = waiting_jobs(queue, claims, spare)
        slurm_rule = SlurmRule(rule[0], knobs.epoch, knobs.backfill, knobs.gres > 0)
        return slurm_plan(now, site, Running(runs, cells), waiting, slurm_rule, wake)
