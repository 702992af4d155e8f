"""Each policy with drawn knobs, in drawn scenarios of a few jobs: it runs, its books add up, and it decides the same when asked again."""

import warnings
from dataclasses import replace

import pytest
from brief_policies import BRIEF
from hypothesis import HealthCheck, Phase, given, settings
from strategies import strategy_of
from strategies.by_hand import objects_of_delays, small_clusters, small_jobs
from strategies.registry import with_knobs

from gpuschedlab.check.policy_battery import different
from gpuschedlab.check.recount import books_add_up
from gpuschedlab.errors import LabError
from gpuschedlab.knobs import knobs_of
from gpuschedlab.policies import ALL
from gpuschedlab.sim import Run, Scenario, Wrapped

EXAMPLES = 4
LIMIT = 2000.0
"""Seconds until which a run is played: with drawn knobs not every job need find a place."""
SHORTEST = 60.0
"""Seconds between rounds, at least: a program that is solved each second takes longer than it teaches."""
WRAPPERS = [cls for cls in with_knobs() if issubclass(cls, Wrapped)]
POLICIES = dict(sorted(ALL.items())) | {cls.__name__.lower(): cls for cls in WRAPPERS}
"""All that are registered, and those that hold another."""


def brief(policy):
    """The policy, which searches briefly and not too often."""
    if isinstance(policy, Wrapped):
        policy = replace(policy, policy=brief(policy.policy))
    known = knobs_of(policy)
    values = {name: value for name, value in BRIEF.get(type(policy).__name__.lower(), {}).items() if name in known}
    if "interval" in known and 0 < policy.interval < SHORTEST:
        values["interval"] = SHORTEST
    if "time_limit" in known:
        values["time_limit"] = None  # what is found within seconds of a clock differs from run to run
    return replace(policy, **type(policy).project(policy.knobs | values))


def run_of(scenario: Scenario, policy) -> Run | None:
    """Run of a policy; None if the policy says with words that it cannot serve there."""
    try:
        return scenario.run(policy)
    except LabError:
        return None


@pytest.mark.parametrize("name", POLICIES)
def test_a_drawn_policy_runs_and_its_books_add_up(name):
    played = 0

    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(strategy_of(POLICIES[name]), small_jobs(), small_clusters(), objects_of_delays())
    def law(policy, jobs, cluster, delays):
        nonlocal played
        policy = brief(policy)
        scenario = Scenario(jobs, cluster, delays=delays, until=LIMIT)
        run = run_of(scenario, policy)
        if run is None:
            return
        played += 1
        assert books_add_up(run, scenario, policy) is None
        assert different(run, scenario.run(policy), "the second time") is None

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        law()
    assert played
