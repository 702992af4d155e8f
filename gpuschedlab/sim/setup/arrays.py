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
from gpuschedlab.sim.setup.eligibility import EmptyCluster, Placing, Requests, able_to_run, check_eligible
from gpuschedlab.sim.setup.prepared import NEW_BODY, NEW_JOB, Prepared, constant


def _classes(prepared: Prepared, job, rule):
    """Group jobs by demand (`Prepared.demands`); return a tuple: the classes, the class of each job, and their total size.

    Each class has the one that its jobs join later.
    """
    tight = (rule["placement"][0] == RELAX) & (job["spread"] < rule["skew"][0])
    demands = prepared.demands(bool(rule["sharing"][0]))
    # One number a demand: of jobs that are to be profiled, that insist on few nodes, and that are relaxed.
    relaxed_code = demands.of_job * 4
    insisting_code = relaxed_code
    if tight.any():
        insisting_code = relaxed_code + tight
    profiled_code = insisting_code
    if job["stage"].any():
        profiled_code = insisting_code + 2 * job["stage"]
    codes = (profiled_code, insisting_code, relaxed_code)
    demand_sizes = sum(_once_each(codes, lambda code: np.bincount(code, minlength=4 * len(demands.slots))))
    used_demands = np.flatnonzero(demand_sizes)
    class_number = np.zeros(len(demand_sizes), np.int32)
    class_number[used_demands] = np.arange(len(used_demands))
    first_class, base, relaxed = _once_each(codes, lambda code: class_number[code])
    cls = np.zeros(len(used_demands), records.CLASS)
    demand_of_class = used_demands // 4
    cls["tight"] = used_demands & 1
    cls["stage"] = used_demands >> 1 & 1
    cls["slots"] = demands.slots[demand_of_class]
    cls["model"] = demands.model[demand_of_class]
    cls["asked"] = demands.nodes[demand_of_class]
    cls["relaxed"] = cls["next"] = np.arange(len(cls))
    cls["relaxed"][base] = relaxed
    cls["next"][first_class] = base
    room = demand_sizes[used_demands]
    cls["room"] = room
    cls["base"] = cls["first"] = cls["head"] = np.cumsum(room) - room
    return cls, first_class, int(demand_sizes.sum())


def _once_each(codes: tuple[np.ndarray, ...], function) -> list[np.ndarray]:
    """Return a list of a function's result for each array; arrays that are the same object are computed once."""
    results = {}
    for code in codes:
        if id(code) not in results:
            results[id(code)] = function(code)
    return [results[id(code)] for code in codes]


def _classed(prepared: Prepared, job, body, rule):
    """Put jobs into classes; return a tuple: the classes, an array, and heaps' size. Those without started jobs are made once."""
    fresh = (job["state"] <= records.WAITING) & (job["starts"] == 0)
    # `place_in_queue` skips the stage where no profiler is large enough
    profiled = rule["profile"][0] > 0
    if profiled or job["stage"].any():
        job["stage"] = (fresh | (job["stage"] == 1)) & profiled
    if not fresh.all():
        cls, first_class, heap_size = _classes(prepared, job, rule)
    else:
        rule_of_classes = (rule["sharing"][0], rule["placement"][0], rule["skew"][0], profiled)
        cache_key = ("classes",)  # a word alone is a column of the trace
        cached_rule, classes = prepared.cache.get(cache_key, (None, None))
        if cached_rule != rule_of_classes:
            classes = _classes(prepared, job, rule)
            prepared.cache[cache_key] = (rule_of_classes, classes)
        cls, first_class, heap_size = classes
    body["base"] = body["cls"] = first_class
    return copied(cls), heap_size


def build_state(prepared: Prepared, policy, ready=None) -> State:
    """Make the `State` of a simulation at its beginning: 0, or the first submission of a warm job; `ready` as in `arrange`."""
    job = filled(NEW_JOB, prepared.trace.frame.height, prepared.job)
    body = filled(NEW_BODY, len(job), prepared.body)
    ruled = arrange(prepared, job, body, policy, ready)
    job_count = len(job)
    capacity = int(ruled["nodes"]["size"].sum())
    nodes_by_level, member, sizes = index_nodes(ruled["nodes"], len(ruled["pools"]))
    node_count = len(ruled["nodes"])
    # Twice: within a decision, jobs that start already hold what preempted ones vacated.
    busy = 2 * (capacity // _smallest(prepared))
    entry = np.zeros(busy + node_count + 1, records.ENTRY)
    entry["next"] = np.arange(1, len(entry) + 1)
    scalar = np.zeros(1, records.SCALARS)
    scalar["capacity"] = capacity
    scalar["decide_at"] = np.inf
    scalar["culprit"] = -1
    scalar["head"] = -1
    scalar["now"] = min(0.0, float(job["submit"].min(initial=0.0)))
    scalar["stand_at"] = np.inf
    if ruled["rule"]["period"][0] > 0:
        scalar["stand_at"] = scalar["now"]
    work_length = max(job_count, node_count) + 2
    work_space = {array_name: np.zeros(work_length, np.int32) for array_name in WORK_SPACE}
    return State(
        job=job,
        body=body,
        entry=entry,
        timers=np.zeros(job_count + 1, np.int32),
        running=np.zeros(job_count + 1, np.int32),
        rank=np.zeros(job_count + 1, np.int32),
        ticks=new_log(3 * job_count + 1024, records.TICK),
        stretches=new_log(2 * job_count + 8 * len(entry) + 64, records.STRETCH),
        scalar=scalar,
        seconds_on=np.zeros((job_count, len(prepared.cluster.gpu_types))),
        count=nodes_by_level,
        member=member,
        sizes=sizes,
        **work_space,
        **ruled,
        **prepared.constant,
    )


def _smallest(prepared: Prepared) -> int:
    """Return the number of slots of the smallest job, at most those of a GPU."""
    return min(SLOTS, int(prepared.body["slots"].min(initial=SLOTS)))


def arrange(prepared: Prepared, job: np.ndarray, body: np.ndarray, policy, ready=None) -> dict:
    """Make a dict of the arrays that depend on the policy: rule, nodes by pool, demand classes; jobs are put into the classes."""
    # `ready`: the nodes that a profiler may take now, in order; None: all.
    cluster = prepared.cluster
    checkpoint = prepared.delays.checkpoint
    rule = policy.rule()
    rule["checkpoint"] = np.inf
    if checkpoint is not None:
        rule["checkpoint"] = checkpoint
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
    """Return the rows a plan needs, a tuple: for jobs, nodes that it promises (linked), and steps of GPUs that will be free."""
    if rule["backfill"] != records.PLAN:
        return 1, np.zeros(1, records.ENTRY), 1
    slots = prepared.body["slots"]
    job_count = len(slots)
    whole_gpus = -(-slots // SLOTS)
    nodes_of_jobs = np.sort(np.minimum(whole_gpus, len(nodes)))
    depth = int(min(job_count, rule["depth"] * pools))
    promised_nodes = int(nodes_of_jobs[job_count - depth :].sum())
    promised = np.zeros(promised_nodes + 1, records.ENTRY)
    promised["next"] = np.arange(1, len(promised) + 1)
    # One a node, one for each part of a running job, two for each of a job that starts, is promised a start, or a window.
    busy = int(nodes["size"].sum()) // _smallest(prepared)
    plans = 1
    if rule["keep"]:
        plans = 2
    twice = busy + plans * promised_nodes + len(prepared.constant["window"])
    return job_count + 1, promised, len(nodes) + busy + 2 * twice


def _check_eligible(prepared: Prepared, placing: Placing, every: bool):
    """Check once that each job could ever be placed; `every`: on types without a speed, too, as rounds choose other GPUs."""
    cache_key = ("placeable", placing, every)
    if cache_key in prepared.cache:
        return
    empty = EmptyCluster(prepared.cluster, placing)
    slots = prepared.body["slots"]
    if every and prepared.turns is not None:
        check_eligible(empty, Requests(slots, prepared.asked, prepared.turns > 0), prepared.trace)
    else:
        usable = prepared.constant["known"] > 0
        if every:
            usable = np.ones_like(usable)
        demands = prepared.demands(False)
        requests = Requests(demands.slots, demands.nodes, usable[demands.known])
        if not able_to_run(empty, requests).all():
            check_eligible(empty, Requests(slots, prepared.asked, usable[prepared.body["knows"]]), prepared.trace)
    prepared.cache[cache_key] = True


def _nodes(prepared: Prepared, profiler_nodes: int, ready):
    """Return the arrays of `_divided`, a tuple; those of nodes that may be any are made once."""
    if ready is not None and profiler_nodes:
        return _divided(prepared.cluster, profiler_nodes, ready)
    cache_key = ("nodes", profiler_nodes)
    if cache_key not in prepared.cache:
        prepared.cache[cache_key] = _divided(prepared.cluster, profiler_nodes, np.arange(prepared.cluster.total_nodes))
    return tuple(copied(node_array) for node_array in prepared.cache[cache_key])


def _divided(cluster: Cluster, profiler_nodes: int, ready: np.ndarray):
    """Return a tuple of three arrays: nodes, pools, and the nodes that each lacks.

    A profiler has nodes like the first ones, so many of each kind.
    """
    nodes = np.zeros(cluster.total_nodes, NODE)
    nodes["size"] = nodes["free"] = cluster.node_gpus * SLOTS
    nodes["type"] = cluster.node_type
    types = len(cluster.gpu_types)
    nodes_alike = cluster.node_type * LEVELS + cluster.node_gpus
    wanted = np.bincount(nodes_alike[:profiler_nodes], minlength=types * LEVELS)
    node_stage = np.zeros(len(nodes), int)
    for node_kind in np.flatnonzero(wanted):
        ready_of_kind = ready[nodes_alike[ready] == node_kind]
        node_stage[ready_of_kind[: wanted[node_kind]]] = 1
    purpose = node_stage * types + nodes["type"]
    profiled_types = np.flatnonzero(wanted) // LEVELS
    purposes = np.unique(np.concatenate([purpose, types + profiled_types]))
    nodes["pool"] = np.searchsorted(purposes, purpose)
    pools = np.zeros(len(purposes), records.POOL)
    pools["stage"], pools["type"] = np.divmod(purposes, types)
    pools["free"] = pools["size"] = pools["total"] = np.bincount(nodes["pool"], nodes["size"], len(purposes))
    nodes_taken = np.bincount(nodes_alike[node_stage == 1], minlength=len(wanted))
    missing = (wanted - nodes_taken).reshape(types, LEVELS)
    lacking_nodes = np.where(pools["stage"][:, None] == 1, missing[pools["type"]], 0)
    return nodes, pools, lacking_nodes.astype(np.int32)


def open_ledger(prepared, policy, job: np.ndarray, body: np.ndarray) -> dict[str, np.ndarray]:
    """Return a dict of two arrays: the `ledger` of a policy's accounts, nothing used yet, and their `tree`.

    Accounts and points are put into jobs, which have none yet.
    """
    trace = prepared.trace.frame
    accounts = policy.accounts(trace)
    if accounts is None:
        accounts = _charged_accounts(trace, policy.charged)
    account, (parent, shares, of_row) = accounts
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


def _charged_accounts(trace: pl.DataFrame, charged_columns) -> tuple:
    """Return a pair: the account (n,) of each job, an array, and their tree as `Ordered.accounts` returns it.

    Jobs that are alike in all columns that are charged have an account, and each account one share. Without such columns no job has one.
    """
    account_of_job = constant(-1, trace.height)
    if charged_columns and not set(charged_columns) - set(trace.columns):
        complete = pl.all_horizontal(pl.col(charged_columns).is_not_null())
        ranks = trace.select(pl.when(complete).then(pl.struct(charged_columns).rank("dense"))).to_series()
        account_of_job = ranks.rank("dense").fill_null(0).to_numpy().astype(np.int64) - 1
    account_numbers = np.arange(account_of_job.max(initial=-1) + 1)
    parent = np.append(-1, np.zeros_like(account_numbers))
    shares = np.append(0.0, np.ones(len(account_numbers)))
    return account_of_job, (parent, shares, np.append(-1, account_numbers))


def open_quotas(prepared, policy) -> dict[str, np.ndarray]:
    """Return a dict of two arrays: the quotas of a policy, and the claims of jobs on them."""
    trace = prepared.trace.frame
    no_quotas = (np.zeros((trace.height, 0), CLAIM), np.zeros(0))
    claims, quota_limits = policy.quotas(trace, prepared.cluster) or no_quotas
    return {"claim": np.ascontiguousarray(claims), "quota": np.array(quota_limits, float)}


def charge_past(state: State):
    """Charge the accounts of a new ledger by the logs of a state, and for the GPUs that its jobs hold."""
    if not len(state.ledger):
        return
    instant = state.scalar["now"][0]
    body = state.body
    usage_half_life = state.rule["half_life"][0]
    log = state.stretches[: state.scalar["stretches"][0]]
    runs = state.running[: state.scalar["running"][0]]
    job = np.concatenate([log["job"], runs])
    slots = np.concatenate([log["slots"], body["got"][runs]])
    shared = np.concatenate([log["partner"], body["partner"][runs]]) >= 0
    held_from = np.concatenate([log["start"], body["stretch"][runs]])
    held_until = np.append(log["end"], np.full(len(runs), instant))
    charged_seconds = held_until - held_from
    if usage_half_life != math.inf:
        remembered = -np.expm1(-math.log(2) * charged_seconds / usage_half_life)
        charged_seconds = usage_half_life / math.log(2) * remembered
    gpus = slots / SLOTS * np.where(shared, 0.5, 1.0)
    decay = 0.5 ** ((instant - held_until) / usage_half_life)
    body["charged"][runs] = body["got"][runs] * np.where(body["partner"][runs] >= 0, 1, 2)
    state.ledger["since"] = instant
    state.ledger["usage"] = _sums(body["account"][job], gpus * charged_seconds * decay, len(state.ledger))
    state.ledger["held"] = _sums(body["account"][runs], body["charged"][runs], len(state.ledger))


def _sums(account: np.ndarray, values: np.ndarray, accounts: int) -> np.ndarray:
    """Return an array of the sums of values (n,) in each account; those of account -1 are in none."""
    has_account = account >= 0
    return np.bincount(account[has_account], values[has_account], accounts)
