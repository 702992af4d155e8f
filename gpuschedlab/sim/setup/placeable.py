"""Whether the cluster, whole and empty, could ever place each job: asked before a run, and at each change of policy."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from gpuschedlab.cluster import Cluster, Nodes
from gpuschedlab.cluster.free_gpus import FreeGpus
from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.errors import ClusterError


@lru_cache(maxsize=4096)
def can_ever(groups: tuple[Nodes, ...], rule: str, spared: int, types: tuple[str, ...], gpus: float) -> bool:
    """Whether a placement rule finds room for a job where all nodes are up and empty.

    Parameters
    ----------
    groups : tuple of Nodes
        As of a cluster.
    rule : str
        A rule of `gpuschedlab.cluster.RULES`.
    spared : int
        Nodes, from the first, that are kept for profiling.
    types : tuple of str
        GPU types that the job may have.
    gpus : float
        GPUs that it requests.

    Examples
    --------
    >>> groups = Cluster.parse("1x8:v100,2x4:v100").groups
    >>> [can_ever(groups, "consolidate", 0, ("v100",), gpus) for gpus in (8.0, 12.0, 16.0, 17.0)]
    [True, True, True, False]
    """
    first = np.cumsum([0, *(g.nodes for g in groups)])
    left = [g.nodes - min(max(spared - at, 0), g.nodes) for g, at in zip(groups, first, strict=False)]
    others = tuple(replace(g, nodes=n) for g, n in zip(groups, left, strict=True) if n and g.kind in types)
    return bool(others) and bool(FreeGpus(Cluster(others), rule).fits(np.array([gpus]))[0])


def check_placeable(cluster: Cluster, rule: str, spared: int, trace: Mapping, slots: np.ndarray, usable: np.ndarray):
    """Check all jobs of a trace (its columns), which request `slots` (n,) hundredths of a GPU, of the types of `usable` (n, T).

    Raises
    ------
    ClusterError
        A job could never run: the message names it, what it requests, the rule, the cluster, and what to do.
    """
    T = len(cluster.gpu_types)
    code = slots.astype(np.int64) << T | usable @ (1 << np.arange(T))
    kinds, kind = np.unique(code, return_inverse=True)
    able = np.empty(len(kinds), bool)
    for i, found in enumerate(kinds.tolist()):
        types = tuple(name for t, name in enumerate(cluster.gpu_types) if found >> t & 1)
        able[i] = can_ever(cluster.groups, rule, spared, types, (found >> T) / SLOTS)
    if not able.all():
        raise _never(cluster, rule, spared, trace, slots, usable, np.flatnonzero(~able[kind]))


def _never(cluster, rule, spared, trace, slots, usable, rows) -> ClusterError:
    """Error that names the largest of the jobs (rows) that could never run."""
    i = int(rows[np.argmax(slots[rows])])
    more = f", and {len(rows) - 1} more jobs ask too much" if len(rows) > 1 else ""
    nodes = f"node{'s' * (spared > 1)} that profiler_nodes sets aside"
    room = np.bincount(cluster.node_type[spared:], cluster.node_gpus[spared:], len(cluster.gpu_types))
    most = (room * usable[i]).max()
    known = " on which its model is known" if most < room.max() else ""
    return ClusterError(
        f"job {trace['job_id'][i]} asks for {trace['gpus'][i]:g} GPUs{more}; the rule {rule!r} could never place it on "
        f"{cluster}, all nodes up and empty: the largest pool of one GPU type{known} has {most:g}"
        f"{f' beside the {spared} {nodes}' if spared else ''}. "
        f"Use a larger cluster,{' fewer profiler_nodes,' if spared else ''} or drop them: "
        "trace.filter(pl.col('gpus') <= ...)."
    )
