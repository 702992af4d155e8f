"""When the next decision is due."""

from gpuschedlab._compiled import njit
from gpuschedlab.sim.engine.jobs.accounting import INF, on_grid
from gpuschedlab.sim.engine.jobs.charges import look_again
from gpuschedlab.sim.engine.jobs.records import ALL


@njit
def round_time(S, time):
    """Return the first instant (s) at or after `time` at which a round may begin: on the grid of the policy's interval."""
    r = S.rule[0]
    if r.ends_with_jobs == 0:
        return on_grid(time, r.interval)
    origin = S.scalar[0].origin
    return origin + on_grid(time - origin, r.interval)


@njit
def round_is_over(S):
    """Whether no job of the round runs any more, others wait, and rounds end so: one without jobs lasts for its interval."""
    sc = S.scalar[0]
    no_round_yet = sc.decide_at > 1e300
    return (
        S.rule[0].ends_with_jobs == 1 and sc.running == 0 and sc.waiting > 0 and (no_round_yet or sc.started_round > 0)
    )


@njit(inline="never")
def schedule_decision(S):
    """Set when the next decision is due, after the last event."""
    sc = S.scalar[0]
    r = S.rule[0]
    if sc.dirty == 1 and round_is_over(S):
        sc.origin = sc.now
        sc.decide_at = sc.now
    elif sc.dirty == 1 and (sc.decide_at > 1e300 or sc.asleep == 1 or r.every > 0):
        # Nothing was due, a round slept or only a plan was due: what happened now brings a decision forward, on the grid if there is one.
        sc.decide_at = round_time(S, sc.now) if r.interval > 0 and r.on_event == 0 else sc.now
    elif sc.dirty == 1 and r.on_event == 1:
        sc.decide_at = sc.now


@njit(inline="never")
def after_decision(S):
    """Set the next decision of a policy that decides at a fixed interval while jobs are there."""
    sc = S.scalar[0]
    r = S.rule[0]
    sc.decide_at = INF
    sc.asleep = 0
    sc.started_round = sc.running
    if r.interval > 0 and (r.rounds == 1 or r.moving == ALL) and sc.running + sc.waiting > 0:
        # Past this instant by more than rounding errors, or it would be decided twice.
        sc.decide_at = round_time(S, sc.now + r.interval * 1e-6)
    if r.every > 0 and sc.waiting > 0 and (sc.running > 0 or on_grid(sc.now, r.every) > sc.now):
        sc.decide_at = on_grid(max(sc.now + r.every * 1e-6, sc.rests_until), r.every)  # the next plan
    if r.period > 0 and sc.stand_at > 1e300:
        sc.stand_at = look_again(S)


@njit
def sleep_until(S, time):
    """Put the next round off to an instant, or bring it forward, on the grid of a policy that has one."""
    # What happens before then brings it forward again, as it does for a policy that waits for events.
    interval = S.rule[0].interval
    clock = S.scalar[0].now
    if interval > 0 and time < 1e300:
        # As after a decision: never this instant again.
        time = round_time(S, max(time, clock + interval * 1e-6))
    S.scalar[0].decide_at = time
    S.scalar[0].asleep = 1
