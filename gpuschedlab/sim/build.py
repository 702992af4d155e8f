"""From a scenario and a policy to the arrays of a state."""

import numpy as np

from gpuschedlab.cluster import Cluster
from gpuschedlab.cluster.placement import NODE, RELAX, SLOTS, index_nodes
from gpuschedlab.errors import ClusterError
from gpuschedlab.sim.engine.state import CLASS, ENTRY, POOL, SCALARS, STRETCH, TICK, WAITING, WORK_SPACE, State
from gpuschedlab.sim.prepared import Prepared


def _classes(prepared: Prepared, job, body, rule):
    """Group jobs by demand (`Prepared.demands`), each with the class they join later; the heaps' size."""
    fresh = (job["state"] <= WAITING) & (job["starts"] == 0)
    # `place_in_queue` skips the stage where no profiler is large enough
    job["stage"] = (fresh | (job["stage"] == 1)) & (rule["profile"] > 0)
    tight = (rule["placement"][0] == RELAX) & (job["spread"] < rule["skew"][0])
    demand, slots, model = prepared.demands(bool(rule["sharing"][0]))
    chain = ((job["stage"], tight), (0, tight), (0, 0))  # to be profiled, insisting, relaxed: one number a demand
    codes = [(demand * 2 + stage) * 2 + t for stage, t in chain]
    size = sum(np.bincount(code, minlength=4 * len(slots)) for code in codes)
    rows = np.flatnonzero(size)
    number = np.zeros(len(size), np.int32)
    number[rows] = np.arange(len(rows))
    first, base, relaxed = (number[code] for code in codes)
    cls = np.zeros(len(rows), CLASS)
    cls["tight"], cls["stage"] = rows & 1, rows >> 1 & 1
    cls["slots"], cls["model"] = slots[rows // 4], model[rows // 4]
    cls["relaxed"] = cls["next"] = np.arange(len(cls))
    cls["relaxed"][base] = relaxed
    cls["next"][first] = base
    cls["first"] = np.cumsum(size[rows]) - size[rows]
    body["base"] = body["cls"] = first
    return cls, int(size.sum())


def _check_sizes(trace, slots: np.ndarray, room: np.ndarray, profiler_nodes: int):
    """Raise ClusterError for the largest job of more slots than the room (n,) of the pools that it may use."""
    large = np.flatnonzero(slots > room)
    if len(large):
        i = int(large[np.argmax(slots[large])])
        more = f", and {len(large) - 1} more jobs ask too much" if len(large) > 1 else ""
        nodes = f"node{'s' * (profiler_nodes > 1)} that profiler_nodes sets aside"
        kept = f" beside the {profiler_nodes} {nodes}" if profiler_nodes else ""
        known = " on which its model is known" if room[i] < room.max() else ""
        fewer = " fewer profiler_nodes," if profiler_nodes else ""
        raise ClusterError(
            f"job {trace['job_id'][i]} asks for {trace['gpus'][i]:g} GPUs{more}; "
            f"the largest pool of one GPU type{known} has {room[i] / SLOTS:g}{kept}. "
            f"Use a larger cluster,{fewer} or drop them: trace.filter(pl.col('gpus') <= ...)."
        )


def build_state(prepared: Prepared, policy, ready=None) -> State:
    """Make the arrays of a simulation at time 0, before anything happened; `ready` as in `arrange`."""
    job, body = prepared.jobs()
    ruled = arrange(prepared, job, body, policy, ready)
    n, capacity = len(job), int(ruled["nodes"]["size"].sum())
    count, member = index_nodes(ruled["nodes"], len(ruled["pools"]))
    smallest = min(SLOTS, int(prepared.body["slots"].min(initial=SLOTS)))
    # Twice: within a decision, jobs that start already hold what preempted ones vacated.
    entry = np.zeros(2 * (capacity // smallest) + len(ruled["nodes"]) + 1, ENTRY)
    entry["next"] = np.arange(1, len(entry) + 1)
    scalar = np.zeros(1, SCALARS)
    scalar["capacity"], scalar["decide_at"], scalar["culprit"], scalar["head"] = capacity, np.inf, -1, -1
    return State(
        job=job,
        body=body,
        entry=entry,
        timers=np.zeros(n + 1, np.int32),
        running=np.zeros(n + 1, np.int32),
        rank=np.zeros(n + 1, np.int32),
        ticks=np.zeros(3 * n + 1024, TICK),
        stretches=np.zeros(2 * n + 8 * len(entry) + 64, STRETCH),
        scalar=scalar,
        seconds_on=np.zeros((n, len(prepared.cluster.gpu_types))),
        count=count,
        member=member,
        **{name: np.zeros(max(n, len(ruled["nodes"])) + 2, np.int32) for name in WORK_SPACE},
        **ruled,
        **prepared.constant,
    )


def arrange(prepared: Prepared, job: np.ndarray, body: np.ndarray, policy, ready=None) -> dict:
    """Make the arrays that depend on the policy: rule, nodes by pool, demand classes; jobs are put into the classes.

    `ready`: the nodes that a profiler may take now, in order; None: all.
    """
    cluster, checkpoint, known = prepared.cluster, prepared.delays.checkpoint, prepared.constant["known"]
    rule = policy.rule()
    rule["checkpoint"] = np.inf if checkpoint is None else checkpoint
    profiler_nodes = getattr(policy, "profiler_nodes", 0)
    if profiler_nodes >= cluster.total_nodes:
        raise ClusterError(
            f"found profiler_nodes={profiler_nodes}; expected fewer than the nodes of the cluster "
            f"({cluster.total_nodes}), or jobs would have none left to run on. Use a larger cluster, or set the policy's "
            "profiler_nodes to 0."
        )
    others = slice(profiler_nodes, None)
    sizes = np.bincount(cluster.node_type[others], cluster.node_gpus[others] * SLOTS, len(cluster.gpu_types))
    usable = (
        known if rule["rounds"][0] == 0 else np.ones_like(known)
    )  # a round may give a job other GPUs than it requests
    room = (usable * sizes).max(axis=1, initial=0)
    _check_sizes(prepared.trace, prepared.body["slots"], room[prepared.body["knows"]], profiler_nodes)
    nodes, pools = _nodes(cluster, profiler_nodes, ready)
    cls, heap_size = _classes(prepared, job, body, rule)
    return {"rule": rule, "nodes": nodes, "pools": pools, "cls": cls, "heap": np.zeros(heap_size + 1, np.int32)}


def _nodes(cluster: Cluster, profiler_nodes: int, ready):
    """Nodes, each in the pool of its type and purpose. A profiler has the types of the first nodes, so many of each."""
    nodes = np.zeros(cluster.total_nodes, NODE)
    nodes["size"] = nodes["free"] = cluster.node_gpus * SLOTS
    nodes["type"] = cluster.node_type
    types = len(cluster.gpu_types)
    ready = np.arange(len(nodes)) if ready is None else ready
    wanted = np.bincount(nodes["type"][:profiler_nodes], minlength=types)
    stage = np.zeros(len(nodes), int)
    for kind in np.flatnonzero(wanted):
        stage[ready[nodes["type"][ready] == kind][: wanted[kind]]] = 1
    place = stage * types + nodes["type"]
    kinds = np.unique(np.concatenate([place, types + np.flatnonzero(wanted)]))
    nodes["pool"] = np.searchsorted(kinds, place)
    pools = np.zeros(len(kinds), POOL)
    pools["stage"], pools["type"] = np.divmod(kinds, types)
    pools["free"] = pools["size"] = pools["total"] = np.bincount(nodes["pool"], nodes["size"], len(kinds))
    np.maximum.at(pools["largest"], nodes["pool"], nodes["size"])
    pools["lacking"] = pools["stage"] * (wanted[pools["type"]] - np.bincount(nodes["pool"], minlength=len(kinds)))
    return nodes, pools
