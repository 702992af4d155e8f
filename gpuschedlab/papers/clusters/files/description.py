"""What a site says of itself: nodes, partitions, accounts, QOS, queues, scheduler and windows."""

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
    """A site on one page; `log` is what `gpuschedlab.intake` takes: `path`, `format` and options."""

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
        """Nodes with GPUs, those that are alike, in the same partitions and follow each other as one group; None without any."""
        alike = groupby((kind, gpus, self._partitions_of(name)) for name, kind, gpus in self.nodes)
        groups = tuple(Nodes(kind, len(list(same)), gpus, parts) for (kind, gpus, parts), same in alike)
        return Cluster(groups) if groups else None

    def _partitions_of(self, node: str) -> tuple[str, ...]:
        """Partitions of a node; none where all partitions have all nodes."""
        names = {name for name, _, _ in self.nodes}
        sets = {p.name: names if p.nodes in ((), ("ALL",)) else set(p.nodes) for p in self.partitions}
        return () if all(names <= nodes for nodes in sets.values()) else tuple(p for p in sets if node in sets[p])

    @property
    def shares(self) -> ShareTree:
        """Accounts and users as a tree."""
        return ShareTree(self.accounts)

    def page(self) -> str:
        """All of it in a few lines, and what was read and not modelled."""
        parts = [f"cluster: {self.cluster}"] if self.nodes else []
        parts += [
            f"partition {p.name}: {len(p.nodes)} nodes, at most {p.max_time / 3600:,.4g} h" for p in self.partitions
        ]
        users = sum(bool(row[1]) for row in self.accounts)
        parts += [f"accounts: {len(self.accounts) - users}, users: {users}"] if self.accounts else []
        parts += [
            f"queue {q.name}: {n:g} GPUs of {kind}, at most {most(self.queues, q.name, kind):g}"
            for q in self.queues
            for kind, n in q.nominal
        ]
        parts += [f"not modelled: {', '.join(self.unmodelled)}"] if self.unmodelled else []
        return "\n".join(parts)


def seconds(value: object, source: str, unit: float = 60.0) -> float:
    """Seconds of a span such as 2-00:00:00, 90 (of `unit`) or UNLIMITED."""
    text = str(value).strip()
    found = 0.0 if re.fullmatch(r"0+", text) else limits(pl.Series([text]), unit=unit, short="MM:SS")[0]
    if found is None:
        raise TraceError(f"{source}: found {text[:80]!r}; expected a time such as 2-00:00:00, 90 or UNLIMITED.")
    return found
