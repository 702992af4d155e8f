"""From a trace, a cluster and a policy to the arrays of a state."""

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.cluster.placement import NODE, RELAX, SLOTS, index_nodes
from gpuschedlab.errors import ClusterError, SpeedError
from gpuschedlab.sim.engine.state import (
    BODY,
    CLASS,
    ENTRY,
    JOB,
    OUTAGE,
    POOL,
    SCALARS,
    STRETCH,
    TICK,
    WAITING,
    WORK_SPACE,
    State,
)
from gpuschedlab.speeds import Delays
from gpuschedlab.speeds.codes import ANY

PAIRS = ("sharing", "merged", "transfer")
"""Tables of a speed table by pairs of models."""

KINDS = {"best_effort": 0, "strict": 1, "soft": 2}


def _column(trace: pl.DataFrame, name: str, default):
    return trace[name].fill_null(default).to_numpy() if name in trace.columns else np.full(trace.height, default)


def text_codes(trace: pl.DataFrame, name: str) -> np.ndarray:
    """Small integers for the values of a text column, in order of name; -1 for null or no column."""
    if name not in trace.columns:
        return np.full(trace.height, -1, np.int32)
    names = pl.Enum(trace[name].drop_nulls().unique().sort())
    return trace[name].cast(names).to_physical().cast(pl.Int32).fill_null(-1).to_numpy()


def model_codes(trace: pl.DataFrame, speeds) -> np.ndarray:
    """(n,) index of each job's model in the speed table, -1 without one."""
    if speeds is None or "model" not in trace.columns:
        return np.full(trace.height, -1, np.int32)
    known = {m: i for i, m in enumerate(speeds.models)}
    return trace["model"].replace_strict(known, default=-1, return_dtype=pl.Int32).fill_null(-1).to_numpy()


def _spread(speeds, model: np.ndarray, gpus: np.ndarray, cluster: Cluster, type_map) -> np.ndarray:
    """(n,) speed on twice the least number of nodes, relative to the least; 1 where either is unknown."""
    if speeds is None or len(type_map) == 0 or type_map[0] < 0:
        return np.ones(len(model))
    (models, m), (counts, c) = (np.unique(x, return_inverse=True) for x in (model, gpus.astype(int)))
    least = np.maximum(1, -(-counts // int(cluster.node_gpus[0])))
    kinds, nodes = np.full(2 * len(counts), type_map[0]), np.concatenate([least, 2 * least])
    near, far = np.hsplit(speeds.rates(models, np.zeros(len(models)), kinds, nodes, np.tile(counts, 2)), 2)
    ratio = np.where(counts > 1, far / near, 1.0)
    return np.where(np.isfinite(ratio), ratio, 1.0)[m, c]


def _known(speeds, job, body, type_map) -> tuple[np.ndarray, np.ndarray]:
    """GPU types (K, T) on which jobs have a speed on the GPUs that they request (`Speeds.usable`), and the row of each job (n,)."""
    if speeds is None:
        return np.ones((1, len(type_map)), np.int8), np.zeros(len(job), np.int32)
    each = body["slots"] / SLOTS / body["jobs"]  # as the engine looks speeds up
    gpus = np.maximum(1, np.where(body["jobs"] > 1, np.rint(each), np.floor(each))).astype(np.int64)
    model = job["model"].astype(np.int64)
    _, one, demand = np.unique(model * (ANY + 1) + gpus, return_index=True, return_inverse=True)
    rows, kind = np.unique(speeds.usable(model[one], gpus[one], type_map), axis=0, return_inverse=True)
    return rows.astype(np.int8), kind.ravel()[demand].astype(np.int32)


def _work(trace: pl.DataFrame, speeds, model: np.ndarray) -> np.ndarray:
    """(n,) true work: duration, or target, or the model's whole progress."""
    duration = trace["duration"].to_numpy()
    if speeds is None:
        return duration
    total = np.append(speeds.seg_end[speeds.seg_first[1:] - 1], np.inf)[model]
    target = np.where(np.isnan(t := _column(trace, "target", np.nan).astype(float)), total, t)
    rigid = (model < 0) | np.append(speeds.relative, True)[model]
    work = np.where(rigid, duration, target)
    if not np.isfinite(work).all():
        i = int(np.flatnonzero(~np.isfinite(work))[0])
        raise SpeedError(
            f"job {trace['job_id'][i]}: model {trace['model'][i]} has no end in the speed table; "
            "expected a value in column `target`."
        )
    return work


def _jobs(trace: pl.DataFrame, speeds, estimates: np.ndarray, delays: Delays, cluster: Cluster, type_map):
    n = trace.height
    job, body = np.zeros(n, JOB), np.zeros(n, BODY)
    job["submit"], body["jobs"] = trace["submit"], _column(trace, "jobs", 1.0)
    job["gpus"] = trace["gpus"] / body["jobs"]
    job["estimate"] = estimates
    job["deadline"] = job["submit"] + _column(trace, "deadline", np.inf)
    job["reward"] = _column(trace, "reward", 1.0)
    job["user"], job["vc"] = text_codes(trace, "user"), text_codes(trace, "vc")
    job["model"] = model_codes(trace, speeds)
    job["contention"] = 1.0
    if "kind" in trace.columns:
        job["kind"] = trace["kind"].replace_strict(KINDS, default=0, return_dtype=pl.Int32).to_numpy()
    job["spread"] = _spread(speeds, job["model"], job["gpus"], cluster, type_map)
    body["slots"] = np.ceil(trace["gpus"].to_numpy() * SLOTS - 1e-6)
    body["work"] = _work(trace, speeds, job["model"])
    for name in ("restart", "switch"):
        body[name] = np.nan_to_num(_column(trace, name, np.nan).astype(float), nan=getattr(delays, name))
    body["rate"] = 1.0
    for name in ("timer", "finish", "first", "end", "key", "leaves"):
        body[name] = np.inf
    body["gain"] = 1.0
    for name in ("head", "partner", "pos", "tick", "row", "type", "source", "delay"):
        body[name] = -1
    return job, body


def _classes(job, body, rule):
    """Group jobs by demand and usable types (and model, where jobs share GPUs), each with the class they join later; the heaps' size."""
    n = len(job)
    fresh = (job["state"] <= WAITING) & (job["starts"] == 0)
    job["stage"] = (fresh | (job["stage"] == 1)) & (
        rule["profile"] > 0
    )  # `place_in_queue` skips it where no profiler is large enough
    kinds, knows = int(body["knows"].max(initial=0)) + 1, body["knows"].astype(np.int64)
    tight = (rule["placement"][0] == RELAX) & (job["spread"] < rule["skew"][0])
    model = job["model"] if rule["sharing"][0] else np.full(n, -1)
    models = int(model.max(initial=0)) + 2
    chain = ((job["stage"], tight), (0, tight), (0, 0))  # to be profiled, insisting, relaxed: one number a demand
    demand = (body["slots"].astype(np.int64) * models + model + 1) * kinds + knows
    codes = [(demand * 2 + stage) * 2 + t for stage, t in chain]
    rows, index = np.unique(np.concatenate(codes), return_inverse=True)
    first, base, relaxed = index.reshape(3, n)
    cls = np.zeros(len(rows), CLASS)
    cls["tight"], cls["stage"] = rows & 1, rows >> 1 & 1
    cls["slots"], cls["model"] = rows // 4 // kinds // models, rows // 4 // kinds % models - 1
    cls["relaxed"] = cls["next"] = np.arange(len(cls))
    cls["relaxed"][base] = relaxed
    cls["next"][first] = base
    size = np.bincount(index, minlength=len(cls))
    cls["first"] = np.concatenate([[0], np.cumsum(size)[:-1]])
    body["base"] = body["cls"] = first
    return cls, int(size.sum())


def _check_sizes(trace: pl.DataFrame, slots: np.ndarray, room: np.ndarray, profiler_nodes: int):
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


def build_state(
    trace: pl.DataFrame, cluster: Cluster, policy, speeds, estimates: np.ndarray, delays: Delays, ready=None
) -> State:
    """Make the arrays of a simulation at time 0, before anything happened; `ready` as in `arrange`."""
    types = cluster.gpu_types
    type_map = np.array(
        [speeds.gpu_types.index(t) if speeds and t in speeds.gpu_types else -1 for t in types], np.int64
    )
    job, body = _jobs(trace, speeds, estimates, delays, cluster, type_map)
    known, body["knows"] = _known(speeds, job, body, type_map)
    ruled = arrange(job, body, trace, cluster, policy, delays, known, ready)
    n, capacity = len(job), int(ruled["nodes"]["size"].sum())
    count, member = index_nodes(ruled["nodes"], len(ruled["pools"]))
    smallest = min(SLOTS, int(body["slots"].min(initial=SLOTS)))
    # Twice: within a decision, jobs that start already hold what preempted ones vacated.
    entry = np.zeros(2 * (capacity // smallest) + len(ruled["nodes"]) + 1, ENTRY)
    entry["next"] = np.arange(1, len(entry) + 1)
    scalar = np.zeros(1, SCALARS)
    scalar["capacity"], scalar["decide_at"], scalar["culprit"], scalar["head"] = capacity, np.inf, -1, -1
    return State(
        job=job,
        body=body,
        entry=entry,
        outage=_outages(cluster),
        timers=np.zeros(n + 1, np.int32),
        running=np.zeros(n + 1, np.int32),
        rank=np.zeros(n + 1, np.int32),
        ticks=np.zeros(3 * n + 1024, TICK),
        stretches=np.zeros(2 * n + 8 * len(entry) + 64, STRETCH),
        scalar=scalar,
        seconds_on=np.zeros((n, len(types))),
        count=count,
        member=member,
        **{name: np.zeros(max(n, len(ruled["nodes"])) + 2, np.int32) for name in WORK_SPACE},
        known=known,
        type_map=type_map,
        **ruled,
        **_tables(speeds),
    )


def arrange(
    job: np.ndarray,
    body: np.ndarray,
    trace: pl.DataFrame,
    cluster: Cluster,
    policy,
    delays: Delays,
    known: np.ndarray,
    ready=None,
) -> dict:
    """Make the arrays that depend on the policy: rule, nodes by pool, demand classes; jobs are put into the classes.

    `known`: (K, T), 1 for GPU types on which a job has a speed; `ready`: the nodes that a profiler may take now, in order; None: all.
    """
    rule = policy.rule()
    rule["checkpoint"] = np.inf if delays.checkpoint is None else delays.checkpoint
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
    _check_sizes(trace, body["slots"], room[body["knows"]], profiler_nodes)
    nodes, pools = _nodes(cluster, profiler_nodes, ready)
    cls, heap_size = _classes(job, body, rule)
    return {"rule": rule, "nodes": nodes, "pools": pools, "cls": cls, "heap": np.zeros(heap_size + 1, np.int32)}


def _tables(speeds) -> dict:
    """Arrays of the speed table; a table of pairs that there is none of has no rows."""
    if speeds is None:
        none = np.zeros(0, np.int64)
        nothing = dict.fromkeys(("code", "row"), none) | {name: np.zeros(0) for name in ("rate", "seg_end")}
        nothing |= dict.fromkeys(("first", "seg_first"), np.zeros(1, np.int64)) | {"rounding": np.zeros(1)}
        return nothing | {name: np.zeros((0, 0)) for name in PAIRS}
    names = ("first", "code", "row", "rate", "seg_first", "seg_end")
    pairs = {name: getattr(speeds, name) for name in PAIRS}
    pairs = {name: np.zeros((0, 0)) if table is None else np.ascontiguousarray(table) for name, table in pairs.items()}
    return {name: getattr(speeds, name) for name in names} | pairs | {"rounding": np.array([speeds.rounding])}


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


def _outages(cluster: Cluster) -> np.ndarray:
    moments = [(e.start, e.node, 1) for e in cluster.events]
    moments += [(e.end, e.node, -1) for e in cluster.events if np.isfinite(e.end)]
    return np.array(sorted(moments, key=lambda m: (m[0], m[2], m[1])), OUTAGE)
