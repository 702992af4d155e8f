"""Sia's placer (thesis 3.3.1): which nodes give the GPUs of jobs of one type; who must make room restarts elsewhere."""

import numpy as np

from gpuschedlab.cluster.free_gpus import FreeGpus
from gpuschedlab.policies.kept_placement import repacked


def orderly(size: np.ndarray, gpus: np.ndarray) -> np.ndarray:
    """Return a mask: whether jobs of these GPUs fit on nodes of these sizes, largest first, whenever the sum of all such jobs does.

    So it is if nodes are alike and each job has a power of two below a node that is one itself, or whole nodes. `size` (n,):
    that of the nodes of a job's type, as of `node_sizes`.
    """
    size = size.astype(np.int64)
    whole_gpus = np.ceil(gpus).astype(np.int64)
    over = np.where(whole_gpus < size, whole_gpus & (whole_gpus - 1), whole_gpus % np.maximum(size, 1))
    return (size > 0) & (over == 0)


def node_sizes(cluster, up: np.ndarray) -> np.ndarray:
    """Return an array (T,): GPUs of each node of a type that are up; 0 if they are not alike, or no power of two."""
    size_of_type = np.zeros(len(cluster.gpu_types), np.int64)
    for t in range(len(size_of_type)):
        sizes_up = np.unique(cluster.node_gpus[(cluster.node_type == t) & up])
        if len(sizes_up) == 1 and not sizes_up[0] & (sizes_up[0] - 1):
            size_of_type[t] = sizes_up[0]
    return size_of_type


def place_types(view, sizes, gpu_type, gpus, nodes, pinned, first) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of arrays that name the nodes of jobs on types on which the order of sizes alone does not make sure that all fit.

    Rules: (a) a job that fits into a node is not split; (b) beyond, the largest empty nodes, and the rest on one node; (c) if that leaves
    a job without a place, others are evicted: all are placed anew, largest first, each where it was if that is still free.

    `sizes` (T,) are from `node_sizes`; each job (n,) gets a type, GPUs (0: nothing), a number of nodes; it may be pinned to its
    nodes, or be placed before all others. Returned are rows as of `Allocation.nodes`, and whether a job (n,) has no place.
    """
    placed_rows = [np.zeros((0, 3))]
    without_place = np.zeros(len(gpus), bool)
    doubtful = (gpus > 0) & (pinned | ~orderly(sizes[gpu_type], gpus))
    for t in np.unique(gpu_type[doubtful]):
        mine = (gpus > 0) & (gpu_type == t)
        same = mine & (view.gpu_type == gpu_type) & (view.running_gpus == gpus)
        placing_order = np.lexsort((~same, -gpus, ~first))
        placed, lost = repacked(
            view,
            [i for i in placing_order.tolist() if mine[i]],
            same,
            pinned,
            lambda: FreeGpus(view.cluster, up=view.up),
            lambda free, i: _find(view.cluster, free, gpus[i], nodes[i], gpu_type[i]),
        )
        placed_rows.append(placed)
        without_place[lost] = True
    return np.concatenate(placed_rows), without_place


def _find(cluster, free: FreeGpus, gpus: float, nodes: int, kind: int) -> np.ndarray:
    """Take nodes for a job, so many of a type, and return an array of rows (node, GPUs). Alike empty nodes come before any others."""
    if nodes > 1:
        sizes = cluster.node_gpus
        alike = np.flatnonzero((cluster.node_type == kind) & (free.free == sizes) & (sizes * nodes == gpus))[:nodes]
        node_rows = np.column_stack([alike, sizes[alike]]).astype(float)
        if len(alike) == nodes and free.hold(node_rows):
            return node_rows
        if nodes > cluster.fewest_nodes(kind, gpus):  # others would hold it on fewer nodes, which is another speed
            return node_rows[:0]
    return free.take(gpus, np.arange(len(cluster.gpu_types)) == kind)
