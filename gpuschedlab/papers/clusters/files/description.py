"""Description of a site by itself: nodes, partitions, accounts, QOS, queues, scheduler and windows."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby

import polars as pl

from gpuschedlab.cluster import Cluster, Nodes
from gpuschedlab.errors import TraceError
from gpuschedlab.papers.clusters.queues import Queue, most
from gpuschedlab.papers.clusters.schedulers.fairshare import ShareTree
from gpuschedlab.papers.clusters.schedulers.limits import INF, Limit
from gpuschedlab.papers.clusters.schedulers.priority import WEEK, Weights
from gpuschedlab.traces.logs.instants import limits


@dataclass(frozen=True)
class Partition:
    """A named set of nodes, or all: limits in seconds; jobs of a higher `tier` go first; `factor` is its priority, not yet normalised."""

    name: str
    nodes: tuple[str, ...] = ()
    max_time: float = INF
    default_time: float | None = None
    tier: float = 1
    factor: float = 1
    qos: str = ""  # whose limits its jobs have, before those of their own QOS


@dataclass(frozen=True)
class Window:
    """Time for which some nodes, or all, are set aside for some users, or for none: s of the trace, or since 1970 by the log's clock."""

    start: float
    end: float
    nodes: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    announced: float = -INF


@dataclass(frozen=True)
class Scheduler:
    """How jobs are started.

    `backfill` is none, easy, greedy or plan; of a plan `depth` reservations, `tested` jobs, a `window` (s), made `every` so many
    seconds in slots of `resolution` (s), reservations for jobs of at least `min_age` (s); then priorities, and usage that decays.
    `gres`: whether Slurm knows GPUs as GRES, or the cores that stand for them alone (`Slurm.gres`).
    """

    backfill: str = "easy"
    depth: float = INF
    tested: float = INF
    window: float = INF
    every: float = 0.0
    resolution: float = 0.0
    min_age: float = 0.0
    over: float = 0.0
    weights: Weights = Weights()
    fairshare: str = "tree"
    damping: float = 1.0
    half_life: float = WEEK
    recalculated: float = 300.0
    gres: bool = False


@dataclass(frozen=True)
class Description:
    """A site on one page; `log` has the arguments of `gpuschedlab.intake`: `path`, `format` and options."""

    nodes: tuple[tuple[str, str, int], ...] = ()  # name, GPU type and GPUs of each node with GPUs
    partitions: tuple[Partition, ...] = ()
    accounts: tuple[tuple[str, str, str, float], ...] = ()  # rows of a `ShareTree`
    qos: tuple[tuple[str, float], ...] = ()  # name and priority
    queues: tuple[Queue, ...] = ()
    scheduler: Scheduler = Scheduler()
    windows: tuple[Window, ...] = ()
    limits: tuple[Limit, ...] = ()
    log: Mapping[str, object] = field(default_factory=dict)
    # Seconds: `launch`, from a decision to the start that a log records, `restart`, more at each start after the first.
    delays: Mapping[str, float] = field(default_factory=dict)
    unmodelled: tuple[str, ...] = ()  # keys of the files read that nothing here stands for

    @property
    def cluster(self) -> Cluster | None:
        """The `Cluster` of the nodes with GPUs; None without any.

        Nodes that are alike, in the same partitions and follow each other are one group.
        """
        partitions_of = self._partitions_of_nodes()
        alike = groupby((kind, gpus, partitions_of[name]) for name, kind, gpus in self.nodes)
        groups = tuple(Nodes(kind, len(list(same)), gpus, partitions) for (kind, gpus, partitions), same in alike)
        if not groups:
            return None
        return Cluster(groups)

    def _partitions_of_nodes(self) -> dict[str, tuple[str, ...]]:
        """Return a dict of the partitions of each node, a tuple of names; it is empty if all partitions have all nodes."""
        node_names = {node_name for node_name, _, _ in self.nodes}
        nodes_of = {}
        for partition in self.partitions:
            nodes_of[partition.name] = set(partition.nodes)
            if partition.nodes in ((), ("ALL",)):
                nodes_of[partition.name] = node_names
        if all(node_names <= nodes for nodes in nodes_of.values()):
            return dict.fromkeys(node_names, ())
        return {
            node_name: tuple(partition for partition in nodes_of if node_name in nodes_of[partition])
            for node_name in node_names
        }

    @property
    def shares(self) -> ShareTree:
        """Accounts and users as a `ShareTree`."""
        return ShareTree(self.accounts)

    def page(self) -> str:
        """Return all of it as a text of a few lines, with the keys that were read and are not modelled."""
        site_lines = []
        if self.nodes:
            site_lines.append(f"cluster: {self.cluster}")
        for partition in self.partitions:
            hours = partition.max_time / 3600
            site_lines.append(f"partition {partition.name}: {len(partition.nodes)} nodes, at most {hours:,.4g} h")
        if self.accounts:
            users = sum(bool(user) for _, user, *_ in self.accounts)
            site_lines.append(f"accounts: {len(self.accounts) - users}, users: {users}")
        for queue in self.queues:
            for kind, gpus in queue.nominal:
                limit = most(self.queues, queue.name, kind)
                site_lines.append(f"queue {queue.name}: {gpus:g} GPUs of {kind}, at most {limit:g}")
        if self.unmodelled:
            site_lines.append(f"not modelled: {', '.join(self.unmodelled)}")
        return "\n".join(site_lines)


def seconds(value: object, source: str, unit: float = 60.0) -> float:
    """Return the seconds of a span such as 2-00:00:00, 90 (of `unit`) or UNLIMITED."""
    span_text = str(value).strip()
    if re.fullmatch(r"0+", span_text):
        return 0.0
    span = limits(pl.Series([span_text]), unit=unit, short="MM:SS")[0]
    if span is None:
        raise TraceError(f"{source}: found {span_text[:80]!r}; expected a time such as 2-00:00:00, 90 or UNLIMITED.")
    return span
