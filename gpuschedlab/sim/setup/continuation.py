"""Warm start: a simulation that begins while jobs already run, and the change of policy under way."""

import numpy as np
import polars as pl

from gpuschedlab.cluster.node_index import index_nodes
from gpuschedlab.errors import RunError
from gpuschedlab.sim.engine.jobs.logs import refresh_active
from gpuschedlab.sim.engine.jobs.records import RUNNING
from gpuschedlab.sim.engine.warm_start import admit, reinsert, seat, seat_on, stop_misfits
from gpuschedlab.sim.setup.arrays import arrange, charge_past

PAST = ("executed", "attained", "progress", "contention", "waiting_since", "started", "stage")
"""What `unfinished` records of a job's past, as in `gpuschedlab.sim.engine.jobs.records.JOB`."""


def unfinished(simulation) -> pl.DataFrame:
    """Return a frame of the jobs submitted and not done, with the service that they have received."""
    active_jobs = refresh_active(simulation.state)
    job = simulation.state.job[active_jobs]
    past_fields = {field_name: job[field_name] for field_name in PAST}
    past_fields["attained"] = job["attained"] * simulation.state.body["jobs"][active_jobs]
    past_fields["running"] = job["state"] == RUNNING
    past_columns = [pl.Series(field_name, past_field) for field_name, past_field in past_fields.items()]
    return simulation.trace[active_jobs].select("job_id").with_columns(past_columns)


def begin(simulation, start: float, initial: pl.DataFrame | None):
    """Set a new simulation to `start`, with the jobs of `initial` in the system."""
    s = simulation.state
    trace = simulation.trace
    initial_ids = []
    if initial is None:
        early_jobs = int(np.searchsorted(s.job["submit"], start, "left"))
        if early_jobs == 0:
            charge_before(simulation)
            return
    else:
        early_jobs = int(np.searchsorted(s.job["submit"], start, "right"))
        initial_ids = initial["job_id"].to_list()
    row_of_name = {job_id: trace_row for trace_row, job_id in enumerate(trace["job_id"][:early_jobs].to_list())}
    if set(initial_ids) != set(row_of_name):
        odd = min(set(initial_ids) ^ set(row_of_name))
        raise RunError(
            f"start={start:g} s: job {odd} is in only one of trace (submitted by then) and `initial`; expected "
            "`initial` to list exactly the jobs submitted by then and not done. Drop those that are done from the trace."
        )
    initial_rows = np.array([row_of_name[job_id] for job_id in initial_ids], np.int64)
    for field_name in ("executed", "attained", "progress"):
        s.job[field_name][initial_rows] = initial[field_name].to_numpy()
    s.job["attained"] /= s.body["jobs"]
    started = initial_rows[initial["executed"].to_numpy() > 0]
    s.job["starts"][started] = 1
    s.body["first"][started] = s.job["submit"][started]
    s.body["segment"][:] = 0
    s.scalar["arrived"] = early_jobs
    initial_stage = np.zeros(len(s.job), int)
    if "stage" in initial.columns:
        initial_stage[initial_rows] = initial["stage"].to_numpy()
    running = np.sort(initial_rows[initial["running"].to_numpy()])
    s.job["starts"][running] = 0
    admit(s)
    if "nodes" in initial.columns:
        _seat_on_nodes(s, initial_rows, initial)
    for stage_number in (0, 1):  # the profiler takes nodes where none of the others run
        seat(s, running[initial_stage[running] == stage_number])
    s.job["starts"][running] = 1
    s.job["stage"][started] = initial_stage[started]
    # How contended their past was, and since when they wait or run: queues are sorted again by it.
    if "contention" in initial.columns:
        past = float(s.scalar["now"][0]) - s.job["submit"][initial_rows]
        s.body["contention0"][initial_rows] = -initial["contention"].to_numpy() * past
    for field_name in ("waiting_since", "started"):
        if field_name in initial.columns:
            s.job[field_name][initial_rows] = initial[field_name].to_numpy()
    rebuild(simulation)


def _seat_on_nodes(state, rows: np.ndarray, initial: pl.DataFrame):
    """Place running jobs on the nodes that `initial` names, those of one node first, as they leave no choice."""
    rows_with_nodes = initial.with_columns(row=pl.Series(rows), wide=pl.col("nodes").list.len())
    rows_with_nodes = rows_with_nodes.filter(pl.col("running"), pl.col("wide") > 0).sort("wide", "row")
    first_node = np.concatenate([[0], np.cumsum(rows_with_nodes["wide"].to_numpy())]).astype(np.int64)
    nodes = rows_with_nodes["nodes"].explode().to_numpy().astype(np.int64)
    if len(nodes) and not 0 <= nodes.min() <= nodes.max() < len(state.nodes):
        raise RunError(
            f"`initial`: found node {nodes.max()}; expected numbers of nodes from 0 to {len(state.nodes) - 1}, in the cluster's order."
        )
    seat_on(state, rows_with_nodes["row"].to_numpy().astype(np.int64), first_node, nodes)


def rebuild(simulation):
    """Rebuild queues, classes and pools for the present policy; jobs and nodes stay as they are."""
    # A profiler keeps its nodes, and takes empty ones at once and others as they become empty: the jobs on them stay.
    state = simulation.state.copy()
    stop_misfits(state)
    refresh_active(state)
    job = state.job
    job_bodies = state.body
    old_nodes = state.nodes
    job_bodies["pos"] = -1
    job_bodies["tick"] = -1
    job_bodies["timer"] = np.inf
    job["points"] = 0.0
    job["standing"] = 0.0
    job_bodies["account"] = -1
    job_bodies["charged"] = 0
    had = state.pools["stage"][old_nodes["pool"]] == 1
    empty = (old_nodes["free"] == old_nodes["size"]) & (old_nodes["down"] == 0)
    ready = np.concatenate([np.flatnonzero(had), np.flatnonzero(empty & ~had)])
    new_arrays = arrange(simulation.prepared, job, job_bodies, simulation.policy, ready)
    nodes = new_arrays["nodes"]
    pools = new_arrays["pools"]
    for field_name in ("free", "down", "mask"):
        nodes[field_name] = old_nodes[field_name]
    up = nodes["down"] == 0
    pools["free"] = np.bincount(nodes["pool"], nodes["free"] * up, len(pools))
    pools["size"] = np.bincount(nodes["pool"], nodes["size"] * up, len(pools))
    new_arrays["count"], new_arrays["member"], new_arrays["sizes"] = index_nodes(nodes, len(pools))
    job_bodies["ranked"] = 0
    state.scalar["exhausted"] = 0
    for field_name in ("timers", "running", "ranked", "waiting", "reservations", "free_promise"):
        state.scalar[field_name] = 0
    state.scalar["stand_at"] = np.inf
    if new_arrays["rule"]["period"][0] > 0:
        state.scalar["stand_at"] = state.scalar["now"]
    simulation.state = state.replace(**new_arrays)
    simulation.serve()
    reinsert(simulation.state)
    charge_past(simulation.state)
    charge_before(simulation)


def charge_before(simulation):
    """Charge accounts for usage from before the simulation began (`Simulation.usage`), as far as it is not forgotten by now."""
    state = simulation.state
    past_usage = simulation.usage
    if past_usage is None or not len(state.ledger):
        return
    account = _accounts_of(simulation, past_usage)
    has_account = account >= 0
    instant = float(state.scalar["now"][0])
    usage_half_life = float(state.rule["half_life"][0])
    held_from = past_usage["started"].to_numpy()
    held_until = past_usage["ended"].to_numpy()
    charged_seconds = held_until - held_from
    if usage_half_life < np.inf:
        decay_rate = np.log(2) / usage_half_life
        decay_of_end = np.exp(-decay_rate * (instant - held_until))
        decay_of_begin = np.exp(-decay_rate * (instant - held_from))
        charged_seconds = (decay_of_end - decay_of_begin) / decay_rate
    usage = past_usage["gpus"].to_numpy() * charged_seconds
    state.ledger["usage"] += np.bincount(account[has_account], usage[has_account], len(state.ledger))


def _accounts_of(simulation, past: pl.DataFrame) -> np.ndarray:
    """Return an array of the account (k,) of each job of the past; -1 if no job of the trace has the account."""
    policy = simulation.policy
    tree = policy.accounts(past)
    if tree is not None:
        return tree[0]
    account_columns = list(policy.charged)
    account = pl.Series("account_row", simulation.state.body["account"], dtype=pl.Int64)
    accounts = simulation.trace.select(account_columns).with_columns(account)
    accounts = accounts.unique(account_columns, keep="first", maintain_order=True)
    account_rows = past.select(account_columns).join(accounts, on=account_columns, how="left", maintain_order="left")[
        "account_row"
    ]
    return account_rows.fill_null(-1).to_numpy()
