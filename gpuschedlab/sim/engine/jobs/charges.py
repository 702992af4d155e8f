"""The compiled ledger: decayed GPU-seconds by account, and the standing that a policy gives accounts by it, period by period.

Jobs are charged where GPUs change hands (`charge`), and an account is brought up to date only then: usage between is a formula.
"""

import math

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.sim.engine.jobs.accounting import INF, blame, on_grid, refresh
from gpuschedlab.sim.engine.jobs.queues import heaped
from gpuschedlab.sim.engine.jobs.records import BAD_KEY, BAD_STANDING
from gpuschedlab.sim.engine.jobs.state import NUMBERS, STATE

LN2 = math.log(2.0)


@njit
def used_now(S, row):
    """Return the usage of an account now (GPU-s): half is forgotten in a half-life, of present as of earlier usage."""
    a = S.ledger[row]
    h = S.rule[0].half_life
    seconds = S.scalar[0].now - a.since
    gpus = a.held / (2 * SLOTS)
    if h > 1e300:
        return a.usage + gpus * seconds
    return a.usage * 0.5 ** (seconds / h) - gpus * h / LN2 * math.expm1(-LN2 * seconds / h)


@njit
def charge(S, j):
    """Charge the account of job j, if it has one, from now on for the GPUs of j."""
    if S.body[j].account >= 0:
        _charge(S, j)


@njit(inline="never")
def _charge(S, j):
    b = S.body[j]
    a = S.ledger[b.account]
    a.usage = used_now(S, b.account)
    a.since = S.scalar[0].now
    holds = b.got if b.partner >= 0 else 2 * b.got
    a.held += holds - b.charged
    b.charged = holds


@njit
def standing_of(S, j):
    """Return the standing of the account of job j, a number, as of the last look, 0 without an account."""
    return S.ledger[S.body[j].account].standing if S.body[j].account >= 0 else 0.0


@njit(NUMBERS(STATE))
def usage_now(S):
    """Return an array (U,) of the usage of all accounts now (GPU-s)."""
    account_usage = np.empty(S.ledger.shape[0])
    for account_row in range(account_usage.shape[0]):
        account_usage[account_row] = used_now(S, account_row)
    return account_usage


@njit
def look_again(S):
    """Return when (s) the standing of accounts is looked at next; inf while no job runs and none that waits can start."""
    sc = S.scalar[0]
    period = S.rule[0].period
    more = sc.arrived < S.job.shape[0] or sc.outage < S.outage.shape[0]
    return on_grid(sc.now + period * 1e-6, period) if sc.running > 0 or (sc.waiting > 0 and more) else INF


@njit(inline="never")
def stand(S):
    """Ask the policy how accounts stand now, and renew the keys of the waiting jobs by it."""
    sc = S.scalar[0]
    sc.stand_at = look_again(S)
    standings = S.standing(sc.now, usage_now(S), S.tree, S.knobs)
    if standings.shape[0] != S.ledger.shape[0]:
        blame(S, 0, BAD_STANDING)
        return
    for account_row in range(standings.shape[0]):
        S.ledger[account_row].standing = standings[account_row]
    for c in range(S.cls.shape[0]):
        k = S.cls[c]
        for i in range(k.first, k.first + k.count):
            j = S.heap[i]
            refresh(S, j)
            S.job[j].standing = standing_of(S, j)
            new_key = S.key(sc.now, S.job[j], S.knobs)
            if not np.isfinite(new_key):
                blame(S, j, BAD_KEY)
            if (
                new_key != S.body[j].key
            ):  # `since` stays: jobs that come to tie at one look go by when they began to wait
                S.body[j].key = new_key
                sc.dirty = 1
        heaped(S, c)
