"""Accounts that are charged for GPUs: which one each job has, how they share, and what they had used when a policy takes over."""

import math

import numpy as np
import polars as pl

from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.sim.engine.jobs.records import LEDGER, TREE
from gpuschedlab.sim.engine.jobs.state import State


def open_ledger(prepared, policy, job: np.ndarray, body: np.ndarray) -> dict[str, np.ndarray]:
    """Ledger of a policy's accounts, nothing used yet, and their tree; each job's account and points are put into `job` and `body`."""
    trace = prepared.trace.frame
    found = policy.accounts(trace)
    if found is None:  # jobs that are alike in all columns that are charged have an account, and each account one share
        account, columns = np.full(trace.height, -1), policy.charged
        if columns and not set(columns) - set(trace.columns):
            whole = pl.all_horizontal(pl.col(columns).is_not_null())
            ranks = trace.select(pl.when(whole).then(pl.struct(columns).rank("dense"))).to_series()
            account = ranks.rank("dense").fill_null(0).to_numpy().astype(np.int64) - 1
        each = np.arange(account.max(initial=-1) + 1)
        found = account, (np.append(-1, 0 * each), np.append(0.0, 1.0 + 0 * each), np.append(-1, each))
    account, (parent, shares, of_row) = found
    tree = np.zeros(len(parent), TREE)
    tree["parent"], tree["shares"], tree["account"] = parent, shares, of_row
    job["points"], job["standing"] = policy.points(trace, prepared.cluster), 0.0
    body["account"], body["charged"] = account, 0
    return {"ledger": np.zeros(1 + max(of_row, default=-1), LEDGER), "tree": tree}


def charge_past(state: State):
    """Charge the accounts of a new ledger for what the logs of a state say, and for what its jobs hold."""
    if not len(state.ledger):
        return
    now, body, h = state.scalar["now"][0], state.body, state.rule["half_life"][0]
    log, runs = state.stretches[: state.scalar["stretches"][0]], state.running[: state.scalar["running"][0]]
    job = np.concatenate([log["job"], runs])
    slots = np.concatenate([log["slots"], body["got"][runs]])
    shared = np.concatenate([log["partner"], body["partner"][runs]]) >= 0
    start, end = np.concatenate([log["start"], body["stretch"][runs]]), np.append(log["end"], np.full(len(runs), now))
    worth = end - start if h == math.inf else h / math.log(2) * -np.expm1(-math.log(2) * (end - start) / h)
    usage = slots / SLOTS * np.where(shared, 0.5, 1.0) * worth * 0.5 ** ((now - end) / h)
    account, body["charged"][runs] = body["account"], body["got"][runs] * np.where(body["partner"][runs] >= 0, 1, 2)
    state.ledger["since"] = now
    for name, of, values in (("usage", account[job], usage), ("held", account[runs], body["charged"][runs])):
        state.ledger[name] = np.bincount(of[of >= 0], values[of >= 0], len(state.ledger))
