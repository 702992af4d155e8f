"""Rules that bound a log's jobs besides its nodes: limits, windows, hours and tiers, found one by one, most of the waiting first."""

import numpy as np

from gpuschedlab.papers.clusters.explains.closed_times import closed_spans, hours, windowed
from gpuschedlab.papers.clusters.explains.found import SHARE, Found, State, could_have_started, lines_of, name_of
from gpuschedlab.papers.clusters.explains.owner_limits import SCOPES, LimitRow, Scope, limits, scope_of, with_limits
from gpuschedlab.papers.clusters.explains.record import Record
from gpuschedlab.papers.clusters.explains.sweep import NONE, PAST, sweep

STEPS = 8
"""Rules that are found at most, beside windows and tiers."""


def infer(log: Record) -> State:
    """Return the `State` with the rules that a log shows beyond its site's; without node lists it finds no limits."""
    scopes = _scopes(log)
    rules = with_limits(log.rules, [LimitRow(scope.owner, scope.jobs, scope.most, False) for scope in scopes])
    state = State(rules, sweep(log.jobs, rules))
    waiting = float((log.jobs.start - log.jobs.submit).sum())
    spans = closed_spans(log, state.seen)
    if len(spans):
        closed = windowed(log, state, spans)
        if closed.left < state.left:
            state = closed
    state = tiered(log, state)
    for _ in range(STEPS):
        if state.left < SHARE * waiting:
            break
        better = _best_step(log, state, scopes, waiting)
        if better is None:
            break
        state = better
    return tiered(log, state)


def _scopes(log: Record) -> list[Scope]:
    """Return a list of each `Scope` of which the log has owners; empty without node lists."""
    if not log.listed:
        return []
    scopes = []
    for owner_columns, jobs, alike in SCOPES:
        if log.codes(*owner_columns).max() >= 0:
            scopes.append(scope_of(log, owner_columns, jobs, alike))
    return scopes


def _best_step(log: Record, state: State, scopes: list[Scope], waiting: float) -> State | None:
    """Return the `State` with the rule that explains most; None if no rule explains enough, or its owners' jobs wait free below it."""
    best = None
    most = max(SHARE / 2 * waiting, 0.1 * state.left)
    for step in (*limits(log, state, scopes, waiting), *hours(log, state, waiting)):
        tried = State(step.rules, sweep(log.jobs, step.rules), (*state.found, step.found))
        below = 0.0
        if step.free_row >= 0:
            below = tried.seen.free[step.free_row, step.free_owners].sum()
        gained = state.left - tried.left
        if step.found.of.startswith("each"):
            gained += 0.02 * state.left
        if below <= 0.05 * step.found.seconds and gained > most:
            best = tried
            most = gained
    return best


def tiered(log: Record, state: State) -> State:
    """Return the `State` with the order test, and with tiers of QOS if the log shows any.

    It does if jobs of some QOS pass equal ones of others, and never the other way round.
    """
    again = sweep(log.jobs, state.rules._replace(held=could_have_started(log, state.seen)))
    passed = again.passed
    order = again.order
    beats = (passed.T >= 20) & (passed <= 0.02 * passed.T) & ~np.eye(len(passed), dtype=bool)
    tiers = beats.sum(axis=1)
    state = state._replace(seen=state.seen._replace(order=order))
    if not tiers.any() or order[PAST] <= 0.02 * order.sum() or any(found.kind == "tier" for found in state.found):
        return state
    by_tier = np.argsort(-tiers[log.jobs.qos], kind="stable")
    rules = state.rules._replace(place=np.argsort(by_tier) * 1.0)
    seen_waits = sweep(log.jobs, rules)
    order_by_tiers = sweep(log.jobs, rules._replace(held=could_have_started(log, seen_waits))).order
    if order_by_tiers[PAST] >= 0.2 * order[PAST] or seen_waits.seconds[:, NONE].sum() > 1.02 * state.left + 3600:
        return state
    tier_of_name = {name_of(log, qos): int(tier) for qos, tier in enumerate(tiers)}
    tier_lines = []
    for tier in sorted({*tier_of_name.values()} - {0}):
        qos_names = [qos_name for qos_name in tier_of_name if tier_of_name[qos_name] == tier]
        tier_lines.append(lines_of("qos", "tier", tier, names=qos_names))
    found_tiers = Found("tier", "qos", tier_of_name, 0.0, "\n".join(tier_lines))
    return State(rules, seen_waits._replace(order=order_by_tiers), (*state.found, found_tiers))
