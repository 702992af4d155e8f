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
    """Return the trace (frame) with lists of each job's types and partitions, `gpu_types` and `partitions`; null: any will do."""
    if types not in (None, "requested"):
        raise TraceError(f"types: found {types!r}; expected None (jobs run on any), or 'requested'.")
    bound = {}
    if types:
        bound["gpu_types"] = "gpu_type"
    if partitions_of(cluster):
        bound["partitions"] = "vc"
    for list_column, single in bound.items():
        lists = []
        if list_column in trace.columns:
            lists.append(pl.col(list_column))
        if single in trace.columns:
            lists.append(pl.concat_list(single))
        if lists:
            full_lists = [
                pl.when(names_column.list.drop_nulls().list.len() > 0).then(names_column) for names_column in lists
            ]
            trace = trace.with_columns(pl.coalesce(full_lists).alias(list_column))
    return trace


def partitions_of(cluster: Cluster) -> set[str]:
    """Return the set of the names of a cluster's partitions."""
    return {partition for group in cluster.groups for partition in group.partitions}


def eligibility_of(trace: pl.DataFrame, cluster: Cluster, types: str | None) -> np.ndarray | None:
    """Return an array (n, T): the turn of each type of nodes for a job, from 1; 0: it may not have them. None: all are alike.

    -1: nodes of its partition whose GPU type it does not ask for.
    """
    request_columns = []
    if types and "gpu_types" in trace.columns:
        request_columns.append("gpu_types")
    if "partitions" in trace.columns and partitions_of(cluster):
        request_columns.append("partitions")
    if not request_columns:
        return None
    requests = trace.select(pl.col(request_columns).list.join("\0").fill_null(""))
    distinct_requests = requests.unique(maintain_order=True)
    turns_of_kinds = [_turns(cluster, request) for request in distinct_requests.iter_rows(named=True)]
    numbered = distinct_requests.with_row_index("kind")
    request_kind = requests.join(numbered, on=request_columns, how="left", maintain_order="left")["kind"].to_numpy()
    turns = np.array(turns_of_kinds, np.int8).reshape(-1, len(cluster.gpu_types))[request_kind]
    has_nodes = (turns > 0).any(axis=1)
    if not has_nodes.all():
        raise _lacking(requests.filter(~has_nodes), trace.height, cluster)
    if (turns == 1).all():
        return None
    return turns


def _turns(cluster: Cluster, request: dict[str, str]) -> list[int]:
    """Return a list of ints, the turn of each type of nodes for one request: 0 or less if the job may not run there."""
    wanted_types = request.get("gpu_types", "").lower().split("\0")
    wanted_partitions = set(request.get("partitions", "").split("\0"))
    partitions = {group.kind: set(group.partitions) for group in cluster.groups}
    turns = []
    for node_kind in cluster.gpu_types:
        bare_type = bare(node_kind).lower()
        if wanted_partitions != {""} and not wanted_partitions & partitions[node_kind]:
            turns.append(0)
        elif wanted_types == [""]:
            turns.append(1)
        elif bare_type in wanted_types:
            turns.append(wanted_types.index(bare_type) + 1)
        else:
            turns.append(-1)
    return turns


def _lacking(requests: pl.DataFrame, jobs: int, cluster: Cluster) -> ClusterError:
    """Return the `ClusterError` that counts the requests that no node meets, the commonest first."""
    from gpuschedlab.sim.setup.unknown_names import commonest

    request_columns = requests.columns
    jobs_by_request = requests.group_by(request_columns, maintain_order=True).len()
    jobs_by_request = jobs_by_request.sort("len", *request_columns, descending=[True, *[False] * len(request_columns)])
    named_counts = []
    for *requested_names, job_count in jobs_by_request.iter_rows():
        alternatives = [requested_name.replace("\0", " or ") or "any" for requested_name in requested_names]
        named_counts.append((" in ".join(alternatives), job_count))
    nouns = " in ".join(request_column.replace("_", " ") for request_column in request_columns)
    return ClusterError(
        f"{requests.height} of {jobs} jobs ask for {nouns} that no node has: "
        f"{commonest(named_counts)}; expected {', '.join(cluster.gpu_types)}. Give the cluster such nodes, set what they ask "
        "for to null, or leave the jobs out."
    )


@dataclass(frozen=True)
class Placing:
    """How a policy places jobs."""

    rule: str  # the placement rule
    spared: int = 0  # the first nodes, which a profiler has and other jobs do not
    across: bool = False  # whether a job may hold GPUs of several types


@dataclass(frozen=True)
class EmptyCluster:
    """A cluster whose nodes are all up and empty, and how jobs are placed on it."""

    cluster: Cluster
    placing: Placing


@dataclass(frozen=True)
class Requests:
    """Requests of jobs, or demands that several jobs have in common: rows (n,)."""

    slots: np.ndarray  # (n,) hundredths of a GPU
    nodes: np.ndarray  # (n,) nodes over which they are to be spread evenly; 0: any number
    usable: np.ndarray  # (n, T) whether they may have nodes of a type


@lru_cache(maxsize=4096)
def can_ever(groups: tuple[Nodes, ...], placing: Placing, types: tuple[str, ...], gpus: float, asked: int) -> bool:
    """Whether a job has room if all nodes are up and empty."""
    usable_groups = []
    spared = placing.spared
    for group in groups:
        spared_of_group = min(spared, group.nodes)
        spared -= spared_of_group
        if spared_of_group < group.nodes and group.kind in types:
            usable_groups.append(replace(group, nodes=group.nodes - spared_of_group))
    if asked:
        gpus_of_node = gpus / asked - 1e-9
        nodes_of_type = dict.fromkeys(types, 0)
        for group in usable_groups:
            if group.gpus_per_node >= gpus_of_node:
                nodes_of_type[group.kind] += group.nodes
        if placing.across:
            return sum(nodes_of_type.values()) >= asked
        return any(node_count >= asked for node_count in nodes_of_type.values())
    if not usable_groups:
        return False
    if placing.across:
        return sum(group.nodes * group.gpus_per_node for group in usable_groups) >= gpus - 1e-9
    free_gpus = FreeGpus(Cluster(tuple(usable_groups)), placing.rule)
    return bool(free_gpus.fits(np.array([gpus]))[0])


def able_to_run(empty: EmptyCluster, requests: Requests) -> np.ndarray:
    """Return an array (n,) of bools: whether jobs could ever be placed on an empty cluster."""
    cluster = empty.cluster
    T = len(cluster.gpu_types)
    nodes = requests.nodes
    most_nodes = int(nodes.max(initial=0)) + 1
    demand = requests.slots.astype(np.int64) * most_nodes + nodes
    type_bits = requests.usable @ (1 << np.arange(T))
    codes, code_of_job = np.unique(demand << T | type_bits, return_inverse=True)
    able = np.empty(len(codes), bool)
    for demand_row, code in enumerate(codes.tolist()):
        types = tuple(gpu_type for type_number, gpu_type in enumerate(cluster.gpu_types) if code >> type_number & 1)
        slots, node_count = divmod(code >> T, most_nodes)
        able[demand_row] = can_ever(cluster.groups, empty.placing, types, slots / SLOTS, node_count)
    return able[code_of_job]


def check_eligible(empty: EmptyCluster, requests: Requests, trace: Mapping):
    """Raise an error for the jobs of a trace that are not `able_to_run`."""
    able = able_to_run(empty, requests)
    if not able.all():
        raise _never(empty, requests, trace, np.flatnonzero(~able))


def _never(empty: EmptyCluster, requests: Requests, trace: Mapping, rows: np.ndarray) -> ClusterError:
    """Return the `ClusterError` that names the largest of the jobs (rows) that could never run."""
    cluster = empty.cluster
    spared = empty.placing.spared
    largest_job = int(rows[np.argmax(requests.slots[rows])])
    advice = ""
    beside = ""
    if spared:
        advice = " fewer profiler_nodes,"
        beside = f" beside the {_nodes(spared)} that profiler_nodes sets aside"
    request = f"{trace['gpus'][largest_job]:g} GPUs"
    if requests.nodes[largest_job]:
        advice += " null for its nodes,"
        request += f" on just {_nodes(requests.nodes[largest_job])}, evenly"
    if len(rows) > 1:
        request += f", and {len(rows) - 1} more jobs ask too much"
    room = np.bincount(cluster.node_type[spared:], cluster.node_gpus[spared:], len(cluster.gpu_types))
    most_slots = (room * requests.usable[largest_job]).max()
    pool = "the largest pool of one GPU type"
    if most_slots < room.max():
        pool += " on which its model is known"
    return ClusterError(
        f"job {trace['job_id'][largest_job]} asks for {request}; the rule {empty.placing.rule!r} could never place it on "
        f"{cluster}, all nodes up and empty: {pool} has {most_slots:g}{beside}. "
        f"Use a larger cluster,{advice} or drop them: trace.filter(pl.col('gpus') <= ...)."
    )


def _nodes(node_count: int) -> str:
    """Write a number of nodes in words."""
    if node_count == 1:
        return "1 node"
    return f"{node_count} nodes"
