"""Mechanisms that a log shows, put into scenarios: cost of starts, loss by failures, and slow nodes."""

from dataclasses import replace
from itertools import groupby

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.sim import Scenario
from gpuschedlab.sim.setup.eligibility import with_lists
from gpuschedlab.speeds import Delays, Speeds
from gpuschedlab.speeds.slower import scaled_type

ANY_MODEL = "job"
"""Model of jobs that have none, so that the speed of a node can be said of them."""
SLOWER = "-slow"
"""Ends the name of the GPU type of slow nodes, where others of the same type are not slow."""


def with_checkpoints(delays: Delays, period: float) -> Delays:
    """Return `Delays` with so many seconds between checkpoints; inf: none is taken while a job runs."""
    if np.isinf(period):
        return replace(delays, checkpoint=None)
    return replace(delays, checkpoint=float(period))


def numbers_of(names: tuple[str, ...], shown: list[str], cluster: Cluster) -> tuple[int, ...] | None:
    """Return a sorted tuple of the numbers of a cluster's nodes by the names that a log has of them.

    Names that are numbers are those of the cluster; of other names the last nodes stand for these, if all nodes are alike. None if
    neither helps.
    """
    plain = all(node_name.isdigit() and int(node_name) < cluster.total_nodes for node_name in shown)
    if plain:
        return tuple(sorted(int(node_name) for node_name in names))
    if len(cluster.groups) == 1 and len(names) <= cluster.total_nodes:
        return tuple(range(cluster.total_nodes - len(names), cluster.total_nodes))
    return None


def with_slow_nodes(scenario: Scenario, nodes: tuple[int, ...], speed: float) -> Scenario:
    """Return a `Scenario` in which some nodes have so many times the speed of the others.

    Nodes of a GPU type of which others are not slow become a type of their own; a job runs on nodes of one type.
    """
    nodes = [node for node in nodes if node < scenario.cluster.total_nodes]
    slow = np.zeros(scenario.cluster.total_nodes, bool)
    slow[nodes] = True
    split = _split_types(scenario.cluster, slow)
    groups = []
    first_node = 0
    for group in scenario.cluster.groups:
        for is_slow, run in groupby(slow[first_node : first_node + group.nodes].tolist()):
            node_count = len(list(run))
            gpu_type = group.gpu_type
            if is_slow and gpu_type in split:
                gpu_type += SLOWER
            groups.append(replace(group, gpu_type=gpu_type, nodes=node_count))
        first_node += group.nodes
    cluster = Cluster(tuple(groups), scenario.cluster.events)
    trace = scenario.trace
    history = scenario.history
    speeds = scenario.speeds
    if speeds is None:
        trace = _with_models(trace)
        if history is not None:
            history = _with_models(history)
        speeds = _plain_speeds(trace, scenario.cluster)
    for gpu_type in sorted(_types_of(scenario.cluster, slow)):
        slow_type = None
        if gpu_type in split:
            slow_type = gpu_type + SLOWER
        speeds = scaled_type(speeds, gpu_type, speed, slow_type)
    if history is not None:  # of the trace alone a scenario has lists of types
        history = _allowed_on(with_lists(history, scenario.cluster, scenario.types), split)
    changes = {"trace": _allowed_on(trace, split), "history": history, "cluster": cluster, "speeds": speeds}
    return scenario.replace(**changes)


def _types_of(cluster: Cluster, nodes: np.ndarray) -> set[str]:
    """Set of the GPU types of some nodes (N,)."""
    type_of_node = np.repeat([group.gpu_type for group in cluster.groups], [group.nodes for group in cluster.groups])
    return set(type_of_node[nodes].tolist())


def _split_types(cluster: Cluster, slow: np.ndarray) -> set[str]:
    """Set of the GPU types of which some nodes are slow (N,) and some are not."""
    return _types_of(cluster, slow) & _types_of(cluster, ~slow)


def _with_models(trace: pl.DataFrame) -> pl.DataFrame:
    """Frame of the jobs, of which each has a model."""
    if "model" not in trace.columns:
        return trace.with_columns(model=pl.lit(ANY_MODEL))
    return trace.with_columns(pl.col("model").fill_null(ANY_MODEL))


def _plain_speeds(trace: pl.DataFrame, cluster: Cluster) -> Speeds:
    """`Speeds` of the models of a trace that are the same on all nodes of a cluster."""
    models = trace.select(model=pl.col("model").unique(maintain_order=True))
    gpu_types = dict.fromkeys(group.gpu_type for group in cluster.groups)
    types = pl.DataFrame({"gpu_type": list(gpu_types)})
    none = pl.lit(None, pl.Int64)
    speed_rows = models.join(types, how="cross").with_columns(n_gpus=none, n_nodes=none, rate=pl.lit(1.0))
    return Speeds.from_frame(speed_rows, relative=True)


def _allowed_on(trace: pl.DataFrame, split: set[str]) -> pl.DataFrame:
    """Return the frame of jobs: those that ask for a GPU type of which some nodes are slow have these as second choice."""
    if "gpu_types" not in trace.columns or not split:
        return trace
    lists = []
    for gpu_types in trace["gpu_types"].to_list():
        if gpu_types is None:
            lists.append(None)
            continue
        type_choices = []
        for gpu_type in gpu_types:
            type_choices.append(gpu_type)
            if gpu_type in split:
                type_choices.append(gpu_type + SLOWER)
        lists.append(type_choices)
    return trace.with_columns(gpu_types=pl.Series(lists, dtype=pl.List(pl.String)))
