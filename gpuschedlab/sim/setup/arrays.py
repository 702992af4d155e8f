"""From a scenario and a policy to the arrays of a state."""

import math

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.cluster.node_index import CLAIM, LEVELS, NODE, SLOTS, index_nodes
from gpuschedlab.cluster.placement import RELAX
from gpuschedlab.errors import ClusterError
from gpuschedlab.sim.engine.jobs import records
from gpuschedlab.sim.engine.jobs.records import LEDGER, TREE
from gpuschedlab.sim.engine.jobs.state import WORK_SPACE, State, copied, filled, new_log
from gpuschedlab.sim.setup.eligibility import Placing, able_to_run, check_eligible
from gpuschedlab.sim.setup.prepared import NEW_BODY, NEW_JOB, Prepared, constant


def _classes(prepared: Prepared, job, rule):
    """Group jobs by demand (`Prepared.demands`): the classes, each with the one that its jobs join later, and the class of each."""
    tight = (rule["placement"][0] == RELAX) & (job["spread"] < rule["skew"][0])
    demand, slots, model, asked, _ = prepared.demands(bool(rule["sharing"][0]))
    # To be profiled, insisting, relaxed: one number a demand.
    last = demand * 4
    middle = last + tight if tight.any() else last
    stage = job["stage"]
    codes = (middle + 2 * stage if stage.any() else middle, middle, last)
    sizes = {id(code): np.bincount(code, minlength=4 * len(slots)) for code in codes}
    size = sum(sizes[id(code)] for code in codes)
    rows = np.flatnonzero(size)
    number = np.zeros(len(size), np.int32)
    number[rows] = np.arange(len(rows))
    numbers = {id(code): number[code] for code in codes}
    first, base, relaxed = (numbers[id(code)] for code in codes)
    cls = np.zeros(len(rows), records.CLASS)
    cls["tight"] = rows & 1
    cls["stage"] = rows >> 1 & 1
    cls["slots"] = slots[rows // 4]
    cls["model"] = model[rows // 4]
    cls["asked"] = asked[rows // 4]
    cls["relaxed"] = cls["next"] = np.arange(len(cls))
    cls["relaxed"][base] = relaxed
    cls["next"][first] = base
    cls["room"] = size[rows]
    cls["base"] = cls["first"] = cls["head"] = np.cumsum(size[rows]) - size[rows]
    return cls, first, int(size.sum())


def _classed(prepared: Prepared, job, body, rule):
    """Put jobs into classes; those of the last run in which no job had started are made once. The classes, and the heaps' size."""
    fresh = (job["state"] <= records.WAITING) & (job["starts"] == 0)
    # `place_in_queue` skips the stage where no profiler is large enough
    profiled = rule["profile"][0] > 0
    if profiled or job["stage"].any():
        job["stage"] = (fresh | (job["stage"] == 1)) & profiled
    if not fresh.all():
        cls, first, size = _classes(prepared, job, rule)
    else:
        of = (rule["sharing"][0], rule["placement"][0], rule["skew"][0], profiled)
        key = ("classes",)  # a word alone is a column of the trace
        made = prepared.made.get(key)
        if made is None or made[0] != of:
            made = prepared.made[key] = (of, _classes(prepared, job, rule))
        cls, first, size = made[1]
    body["base"] = body["cls"] = first
    return copied(cls), size


def build_state(prepared: Prepared, policy, ready=None) -> State:
    """Make the arrays of a simulation at its beginning, which is 0 or the first submission of a warm job; `ready` as in `arrange`."""
    job = filled(NEW_JOB, prepared.trace.frame.height, prepared.job)
    body = filled(NEW_BODY, len(job), prepared.body)
    ruled = arrange(prepared, job, body, policy, ready)
    n = len(job)
    capacity = int(ruled["nodes"]["size"].sum())
    count, member, sizes = index_nodes(ruled["nodes"], len(ruled["pools"]))
    smallest = _smallest(prepared)
    # Twice: within a decision, jobs that start already hold what preempted ones vacated.
    entry = np.zeros(2 * (capacity // smallest) + len(ruled["nodes"]) + 1, records.ENTRY)
    entry["next"] = np.arange(1, len(entry) + 1)
    scalar = np.zeros(1, records.SCALARS)
    scalar["capacity"] = capacity
    scalar["decide_at"] = np.inf
    scalar["culprit"] = -1
    scalar["head"] = -1
    scalar["now"] = min(0.0, float(job["submit"].min(initial=0.0)))
    scalar["stand_at"] = scalar["now"] if ruled["rule"]["period"][0] > 0 else np.inf
    return State(
        job=job,
        body=body,
        entry=entry,
        timers=np.zeros(n + 1, np.int32),
        running=np.zeros(n + 1, np.int32),
        rank=np.zeros(n + 1, np.int32),
        ticks=new_log(3 * n + 1024, records.TICK),
        stretches=new_log(2 * n + 8 * len(entry) + 64, records.STRETCH),
        scalar=scalar,
        seconds_on=np.zeros((n, len(prepared.cluster.gpu_types))),
        count=count,
        member=member,
        sizes=sizes,
        **{name: np.zeros(max(n, len(ruled["nodes"])) + 2, np.int32) for name in WORK_SPACE},
        **ruled,
        **prepared.constant,
    )


def _smallest(prepared: Prepared) -> int:
    """Slots of the smallest job, at most those of a GPU."""
    return min(SLOTS, int(prepared.body["slots"].min(initial=SLOTS)))


def arrange(prepared: Prepared, job: np.ndarray, body: np.ndarray, policy, ready=None) -> dict:
    """Make the arrays that depend on the policy: rule, nodes by pool, demand classes; jobs are put into the classes."""
    # `ready`: the nodes that a profiler may take now, in order; None: all.
    cluster = prepared.cluster
    checkpoint = prepared.delays.checkpoint
    rule = policy.rule()
    rule["checkpoint"] = np.inf if checkpoint is None else checkpoint
    profiler_nodes = getattr(policy, "profiler_nodes", 0)
    if profiler_nodes >= cluster.total_nodes:
        raise ClusterError(
            f"found profiler_nodes={profiler_nodes}; expected fewer than the nodes of the cluster "
            f"({cluster.total_nodes}), or jobs would have none left to run on. Use a larger cluster, or set the policy's "
            "profiler_nodes to 0."
        )
    placing = Placing(policy.placement, profiler_nodes, across=bool(rule["across"][0]))
    _check_eligible(prepared, placing, every=bool(rule["rounds"][0]))
    nodes, pools, lacking = _nodes(prepared, profiler_nodes, ready)
    cls, heap_size = _classed(prepared, job, body, rule)
    heap = np.zeros(heap_size + 1, np.int32)
    planned, promised, steps = _planned(prepared, rule[0], nodes, len(pools))
    return (
        {
            "rule": rule,
            "nodes": nodes,
            "pools": pools,
            "lacking": lacking,
            "cls": cls,
            "heap": heap,
            "reservation": np.zeros(planned, records.RESERVATION),
            "promised": promised,
            "line": np.zeros(len(nodes), records.LINE),
            "step": np.zeros(steps, records.STEP),
            "until": np.zeros((len(cls), len(pools))),
        }
        | open_ledger(prepared, policy, job, body)
        | open_quotas(prepared, policy)
    )


def _planned(prepared: Prepared, rule, nodes: np.ndarray, pools: int):
    """Rows that a plan needs: for jobs, for the nodes that it promises (linked), and for steps of what will be free."""
    if rule["backfill"] != records.PLAN:
        return 1, np.zeros(1, records.ENTRY), 1
    n = len(prepared.body["slots"])
    parts = np.sort(np.minimum(-(-prepared.body["slots"] // SLOTS), len(nodes)))
    parts = int(parts[n - int(min(n, rule["depth"] * pools)) :].sum())
    promised = np.zeros(parts + 1, records.ENTRY)
    promised["next"] = np.arange(1, len(promised) + 1)
    # One a node, one for each part of a running job, two for each of a job that starts, is promised a start, or a window.
    busy = int(nodes["size"].sum()) // _smallest(prepared)
    twice = busy + (2 if rule["keep"] else 1) * parts + len(prepared.constant["window"])
    return n + 1, promised, len(nodes) + busy + 2 * twice


def _check_eligible(prepared: Prepared, placing: Placing, every: bool):
    """Check once that each job could ever be placed; `every`: on types without a speed, too, as rounds choose other GPUs."""
    key = ("placeable", placing, every)
    if key not in prepared.made:
        usable = prepared.constant["known"] > 0
        if every:
            usable = np.ones_like(usable)
        _, slots, _, asked, knows = prepared.demands(False)
        by_job = every and prepared.turns is not None
        if by_job or not able_to_run(prepared.cluster, placing, slots, asked, usable[knows]).all():
            usable = prepared.turns > 0 if by_job else usable[prepared.body["knows"]]
            jobs = prepared.trace, prepared.body["slots"], prepared.asked
            check_eligible(prepared.cluster, placing, *jobs, usable)
        prepared.made[key] = True


def _nodes(prepared: Prepared, profiler_nodes: int, ready):
    """Nodes, each in the pool of its type and purpose, made once for those that may be any."""
    if ready is not None and profiler_nodes:
        return _divided(prepared.cluster, profiler_nodes, ready)
    key = ("nodes", profiler_nodes)
    if key not in prepared.made:
        prepared.made[key] = _divided(prepared.cluster, profiler_nodes, np.arange(prepared.cluster.total_nodes))
    return tuple(copied(part) for part in prepared.made[key])


def _divided(cluster: Cluster, profiler_nodes: int, ready: np.ndarray):
    """Nodes, pools, and the nodes that each lacks. A profiler has nodes like the first ones, so many of each kind."""
    nodes = np.zeros(cluster.total_nodes, NODE)
    nodes["size"] = nodes["free"] = cluster.node_gpus * SLOTS
    nodes["type"] = cluster.node_type
    types = len(cluster.gpu_types)
    alike = cluster.node_type * LEVELS + cluster.node_gpus
    wanted = np.bincount(alike[:profiler_nodes], minlength=types * LEVELS)
    stage = np.zeros(len(nodes), int)
    for kind in np.flatnonzero(wanted):
        stage[ready[alike[ready] == kind][: wanted[kind]]] = 1
    place = stage * types + nodes["type"]
    kinds = np.unique(np.concatenate([place, types + np.flatnonzero(wanted) // LEVELS]))
    nodes["pool"] = np.searchsorted(kinds, place)
    pools = np.zeros(len(kinds), records.POOL)
    pools["stage"], pools["type"] = np.divmod(kinds, types)
    pools["free"] = pools["size"] = pools["total"] = np.bincount(nodes["pool"], nodes["size"], len(kinds))
    short = (wanted - np.bincount(alike[stage == 1], minlength=len(wanted))).reshape(types, LEVELS)
    return nodes, pools, np.where(pools["stage"][:, None] == 1, short[pools["type"]], 0).astype(np.int32)


def open_ledger(prepared, policy, job: np.ndarray, body: np.ndarray) -> dict[str, np.ndarray]:
    """Ledger of a policy's accounts, nothing used yet, and their tree; accounts and points are put into jobs, which have none yet."""
    trace = prepared.trace.frame
    found = policy.accounts(trace)
    if found is None:  # jobs that are alike in all columns that are charged have an account, and each account one share
        account = constant(-1, trace.height)
        columns = policy.charged
        if columns and not set(columns) - set(trace.columns):
            whole = pl.all_horizontal(pl.col(columns).is_not_null())
            ranks = trace.select(pl.when(whole).then(pl.struct(columns).rank("dense"))).to_series()
            account = ranks.rank("dense").fill_null(0).to_numpy().astype(np.int64) - 1
        each = np.arange(account.max(initial=-1) + 1)
        found = account, (np.append(-1, 0 * each), np.append(0.0, 1.0 + 0 * each), np.append(-1, each))
    account, (parent, shares, of_row) = found
    tree = np.zeros(len(parent), TREE)
    tree["parent"] = parent
    tree["shares"] = shares
    tree["account"] = of_row
    points = policy.points(trace, prepared.cluster)
    if np.any(points):
        job["points"] = points
    if (account >= 0).any():
        body["account"] = account
    return {"ledger": np.zeros(1 + max(of_row, default=-1), LEDGER), "tree": tree}


def open_quotas(prepared, policy) -> dict[str, np.ndarray]:
    """Quotas of a policy, and what jobs claim of them."""
    trace = prepared.trace.frame
    claims, most = policy.quotas(trace, prepared.cluster) or (np.zeros((trace.height, 0), CLAIM), np.zeros(0))
    return {"claim": np.ascontiguousarray(claims), "quota": np.array(most, float)}


def charge_past(state: State):
    """Charge the accounts of a new ledger for what the logs of a state say, and for what its jobs hold."""
    if not len(state.ledger):
        return
    now = state.scalar["now"][0]
    body = state.body
    h = state.rule["half_life"][0]
    log = state.stretches[: state.scalar["stretches"][0]]
    runs = state.running[: state.scalar["running"][0]]
    job = np.concatenate([log["job"], runs])
    slots = np.concatenate([log["slots"], body["got"][runs]])
    shared = np.concatenate([log["partner"], body["partner"][runs]]) >= 0
    start = np.concatenate([log["start"], body["stretch"][runs]])
    end = np.append(log["end"], np.full(len(runs), now))
    worth = end - start if h == math.inf else h / math.log(2) * -np.expm1(-math.log(2) * (end - start) / h)
    usage = slots / SLOTS * np.where(shared, 0.5, 1.0) * worth * 0.5 ** ((now - end) / h)
    account = body["account"]
    body["charged"][runs] = body["got"][runs] * np.where(body["partner"][runs] >= 0, 1, 2)
    state.ledger["since"] = now
    for name, of, values in (("usage", account[job], usage), ("held", account[runs], body["charged"][runs])):
        state.ledger[name] = np.bincount(of[of >= 0], values[of >= 0], len(state.ledger))
