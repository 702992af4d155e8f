"""Eligibility: which nodes jobs may have, of the partitions and GPU types that they ask for, and whether such could ever hold them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster, Nodes
from gpuschedlab.cluster.cluster import bare
from gpuschedlab.cluster.free_gpus import FreeGpus
from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.errors import ClusterError, TraceError


def with_lists(trace: pl.DataFrame, cluster: Cluster, types: str | None) -> pl.DataFrame:
    """The trace with what jobs are bound to as lists, in columns `gpu_types` and `partitions`; null: anything will do."""
    if types not in (None, "requested"):
        raise TraceError(f"types: found {types!r}; expected None (jobs run on any), or 'requested'.")
    bound = {"gpu_types": "gpu_type"} if types else {}
    bound |= {"partitions": "vc"} if partitions_of(cluster) else {}
    for name, single in bound.items():
        lists = [pl.col(name)] if name in trace.columns else []
        lists += [pl.concat_list(single)] if single in trace.columns else []
        if lists:
            some = pl.coalesce(pl.when(found.list.drop_nulls().list.len() > 0).then(found) for found in lists)
            trace = trace.with_columns(some.alias(name))
    return trace


def partitions_of(cluster: Cluster) -> set[str]:
    """Partitions of a cluster."""
    return {name for group in cluster.groups for name in group.partitions}


def eligibility_of(trace: pl.DataFrame, cluster: Cluster, types: str | None) -> np.ndarray | None:
    """Place (n, T) of each type of nodes among those that a job asks for, from 1; 0: it may not have them. None: all are alike.

    -1: nodes of its partition whose GPU type it does not ask for.
    """
    names = [
        n for n, binds in (("gpu_types", types), ("partitions", partitions_of(cluster))) if binds and n in trace.columns
    ]
    if not names:
        return None
    asked = trace.select(pl.col(names).list.join("\0").fill_null(""))
    kinds = asked.unique(maintain_order=True)
    turns = np.array([_turns(cluster, dict(zip(names, row, strict=True))) for row in kinds.iter_rows()], np.int8)
    rows = asked.join(kinds.with_row_index("kind"), on=names, how="left", maintain_order="left")["kind"].to_numpy()
    found = turns.reshape(-1, len(cluster.gpu_types))[rows]
    if not (found > 0).any(axis=1).all():
        raise _lacking(asked.filter(~(found > 0).any(axis=1)), trace.height, cluster)
    return None if (found == 1).all() else found


def _turns(cluster: Cluster, asked: dict[str, str]) -> list[int]:
    """Place of each type of nodes for one request."""
    wanted = asked.get("gpu_types", "").lower().split("\0")
    of = {g.kind: set(g.partitions) for g in cluster.groups}
    parts = set(asked.get("partitions", "").split("\0"))
    here = [parts == {""} or bool(parts & of[kind]) for kind in cluster.gpu_types]
    types = [bare(kind).lower() for kind in cluster.gpu_types]
    turns = []
    for in_partition, gpu_type in zip(here, types, strict=True):
        turn = -1
        if wanted == [""]:
            turn = 1
        elif gpu_type in wanted:
            turn = wanted.index(gpu_type) + 1
        turns.append(turn * in_partition)
    return turns


def _lacking(asked: pl.DataFrame, jobs: int, cluster: Cluster) -> ClusterError:
    """Error that counts the requests that no node meets, the commonest first."""
    from gpuschedlab.sim.setup.unknown_names import commonest

    counts = (
        asked.group_by(asked.columns, maintain_order=True)
        .len()
        .sort("len", *asked.columns, descending=[True, *[False] * asked.width])
    )
    words = ((" in ".join(w.replace("\0", " or ") or "any" for w in row[:-1]), row[-1]) for row in counts.iter_rows())
    return ClusterError(
        f"{asked.height} of {jobs} jobs ask for {' in '.join(c.replace('_', ' ') for c in asked.columns)} that no node has: "
        f"{commonest(words)}; expected {', '.join(cluster.gpu_types)}. Give the cluster such nodes, set what they ask "
        "for to null, or leave the jobs out."
    )


@dataclass(frozen=True)
class Placing:
    """How a policy places jobs: by which rule, how many nodes it sets aside, and whether a job may hold GPUs of several types."""

    rule: str
    spared: int = 0
    across: bool = False


@lru_cache(maxsize=4096)
def can_ever(groups: tuple[Nodes, ...], placing: Placing, types: tuple[str, ...], gpus: float, asked: int) -> bool:
    """Whether a job has room where all nodes are up and empty."""
    spared = placing.spared
    first = np.cumsum([0, *(g.nodes for g in groups)])
    left = [g.nodes - min(max(spared - at, 0), g.nodes) for g, at in zip(groups, first, strict=False)]
    others = tuple(replace(g, nodes=n) for g, n in zip(groups, left, strict=True) if n and g.kind in types)
    if asked:
        enough = [(g.kind, g.nodes) for g in others if g.gpus_per_node >= gpus / asked - 1e-9]
        if placing.across:
            return sum(nodes for _, nodes in enough) >= asked
        return any(sum(n for kind, n in enough if kind == each) >= asked for each in types)
    if placing.across:
        return sum(g.nodes * g.gpus_per_node for g in others) >= gpus - 1e-9
    return bool(others) and bool(FreeGpus(Cluster(others), placing.rule).fits(np.array([gpus]))[0])


def able_to_run(cluster: Cluster, placing: Placing, slots, asked, usable: np.ndarray) -> np.ndarray:
    """Whether jobs (n,) could ever be placed: `slots` (n,) hundredths of a GPU on `asked` (n,) nodes, of the types of `usable` (n, T)."""
    T = len(cluster.gpu_types)
    most = int(asked.max(initial=0)) + 1
    code = slots.astype(np.int64) * most + asked << T | usable @ (1 << np.arange(T))
    kinds, kind = np.unique(code, return_inverse=True)
    able = np.empty(len(kinds), bool)
    for i, found in enumerate(kinds.tolist()):
        types = tuple(name for t, name in enumerate(cluster.gpu_types) if found >> t & 1)
        able[i] = can_ever(cluster.groups, placing, types, (found >> T) // most / SLOTS, (found >> T) % most)
    return able[kind]


def check_eligible(cluster: Cluster, placing: Placing, trace: Mapping, slots, asked, usable: np.ndarray):
    """Raise an error for the jobs of a trace that are not `able_to_run`."""
    able = able_to_run(cluster, placing, slots, asked, usable)
    if not able.all():
        raise _never(cluster, placing, trace, slots, asked, usable, np.flatnonzero(~able))


def _never(cluster: Cluster, placing: Placing, trace, slots, asked, usable, rows) -> ClusterError:
    """Error that names the largest of the jobs (rows) that could never run."""
    spared = placing.spared
    i = int(rows[np.argmax(slots[rows])])
    on = f" on just {asked[i]} node{'s' if asked[i] > 1 else ''}, evenly" if asked[i] else ""
    more = f", and {len(rows) - 1} more jobs ask too much" if len(rows) > 1 else ""
    nodes = f"node{'s' * (spared > 1)} that profiler_nodes sets aside"
    room = np.bincount(cluster.node_type[spared:], cluster.node_gpus[spared:], len(cluster.gpu_types))
    most = (room * usable[i]).max()
    known = " on which its model is known" if most < room.max() else ""
    return ClusterError(
        f"job {trace['job_id'][i]} asks for {trace['gpus'][i]:g} GPUs{on}{more}; the rule {placing.rule!r} could never place it on "
        f"{cluster}, all nodes up and empty: the largest pool of one GPU type{known} has {most:g}"
        f"{f' beside the {spared} {nodes}' if spared else ''}. "
        f"Use a larger cluster,{' fewer profiler_nodes,' if spared else ''}{' null for its nodes,' if on else ''} or drop them: "
        "trace.filter(pl.col('gpus') <= ...)."
    )
