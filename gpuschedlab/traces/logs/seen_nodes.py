"""The cluster that a log shows: the nodes on which its jobs ran, their GPU types, and the most GPUs that were in use on one."""

from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster, Nodes
from gpuschedlab.errors import TraceError
from gpuschedlab.traces.logs.hosts import hosts

MOST_ON_A_NODE = 64
"""GPUs; more in use at once are no node, such as a name that stands for many."""
NAMED = ("nodelist", "started")
"""Columns that a trace needs."""


def cluster_seen(trace: pl.DataFrame) -> Cluster | None:
    """Return the `Cluster` of the nodes that the jobs of a trace ran on, by GPU type; or None.

    None if the log does not say on which, or when, or if more than `MOST_ON_A_NODE` GPUs were in use at once on one of them.

    All nodes of a type have as many GPUs as were in use at once on the busiest of them. A job's GPUs are taken to be spread evenly
    over its nodes. A node on which no job asked for a type is of the type that is most frequent.

    Examples
    --------
    >>> jobs = {"gpus": [16.0, 4.0], "started": [0.0, 5.0], "duration": [9.0, 9.0], "nodelist": ["a[1-2]", "v1"]}
    >>> print(cluster_seen(pl.DataFrame(jobs | {"gpu_type": ["a100", "v100"]})))
    2x8:a100,1x4:v100
    """
    if not {*NAMED} <= set(trace.columns):
        return None
    jobs = trace.drop_nulls(list(NAMED))
    if not jobs.height:
        return None
    try:
        texts = jobs["nodelist"].unique().to_list()
        hosts_of_list = {nodelist: list(hosts(nodelist, "nodelist")) for nodelist in texts}
    except TraceError:  # names of another notation
        return None
    held_by_nodes = _held_by_node(jobs, hosts_of_list)
    if not held_by_nodes.height:
        return None
    groups = _groups(held_by_nodes, _types_of_nodes(held_by_nodes))
    if not groups or any(group.gpus_per_node > MOST_ON_A_NODE for group in groups):
        return None
    return Cluster(tuple(Nodes(*group) for group in groups))


def _held_by_node(jobs: pl.DataFrame, lists: dict[str, list[str]]) -> pl.DataFrame:
    """Return a frame of one row per job and node: `node`, `type`, `gpus`, `start`, `end`."""
    kinds = pl.DataFrame({"nodelist": list(lists), "node": list(lists.values())})
    kind = pl.col("gpu_type") if "gpu_type" in jobs.columns else pl.lit(None, pl.String)
    node_count = pl.col("node").list.len()
    held_frame = jobs.join(kinds, on="nodelist", how="left", maintain_order="left")
    held_frame = held_frame.filter(node_count > 0)
    end = pl.col("started") + pl.col("duration")
    held_frame = held_frame.select("node", type=kind, gpus=pl.col("gpus") / node_count, start="started", end=end)
    return held_frame.explode("node")


def _types_of_nodes(held_by_nodes: pl.DataFrame) -> dict[str, str]:
    """Return a dict of the GPU type of each node: the one that most of its jobs asked for."""
    named = held_by_nodes.drop_nulls("type")
    usual = Cluster.homogeneous(1, 1).gpu_types[0]
    if named.height:
        usual = named["type"].mode().sort()[0]
    type_counts = named.group_by("node", "type", maintain_order=True).len()
    type_counts = type_counts.sort(["node", "len", "type"], descending=[False, True, False])
    most = type_counts.unique("node", keep="first", maintain_order=True)
    of_node = dict(most.select("node", "type").iter_rows())
    nodes = held_by_nodes["node"].unique().sort()
    return {node: of_node.get(node, usual) for node in nodes.to_list()}


class Group(NamedTuple):
    """Nodes of a type."""

    gpu_type: str
    nodes: int
    gpus_per_node: int


def _groups(held_by_nodes: pl.DataFrame, type_of: dict[str, str]) -> list[Group]:
    """Return a list of nodes by type, each a `Group`, the most first."""
    busiest: dict[str, float] = {}
    for node, most in most_in_use(held_by_nodes).items():
        kind = type_of[node]
        busiest[kind] = max(busiest.get(kind, 0.0), most)
    kinds, node_counts = np.unique(list(type_of.values()), return_counts=True)
    order = np.argsort(-node_counts, kind="stable")
    groups = []
    for i in order:
        kind = str(kinds[i])
        gpus = int(np.ceil(busiest[kind] - 1e-6))
        groups.append(Group(kind, int(node_counts[i]), max(1, gpus)))
    return groups


def most_in_use(held: pl.DataFrame) -> dict[str, float]:
    """Return a dict of the most GPUs in use at once on each node; if a job ends as another begins, its GPUs are free."""
    begins = held.select("node", at="start", change="gpus")
    ends = held.select("node", at="end", change=-pl.col("gpus"))
    changes = pl.concat([ends, begins]).sort("node", "at", "change")
    in_use = pl.col("change").cum_sum()
    level = changes.with_columns(in_use.over("node"))
    most = level.group_by("node", maintain_order=True).agg(pl.col("change").max())
    return dict(most.iter_rows())
