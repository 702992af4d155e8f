"""Windows that are known beforehand: plans keep clear of them, and say so."""

import numpy as np
import polars as pl
import pytest
from random_queues import RULES, random_scenario

from gpuschedlab import Cluster, Fifo, Outage, Plan, Window, simulate
from gpuschedlab.check.laws import capacity_holds
from gpuschedlab.errors import ClusterError

PLANS = [
    Fifo(backfill="easy"),
    Fifo(backfill="plan", depth=0),
    Fifo(backfill="plan", depth=3, plan=Plan(tested=20)),
    Fifo(backfill="plan", depth=float("inf"), plan=Plan(resolution=60)),
    Fifo(backfill="plan", depth=4, plan=Plan(every=30)),
    Fifo(backfill="plan", depth=4, plan=Plan(keep=True)),
]


def with_windows(seed: int, announced: float = 0.0):
    """Scenario with exact estimates and three windows, two of them on one node."""
    scenario = random_scenario(seed)
    rng = np.random.default_rng(seed)
    nodes = scenario.cluster.total_nodes
    at = [(int(rng.integers(nodes)), float(rng.integers(100, 2000)), float(rng.integers(50, 800))) for _ in range(2)]
    at.append((at[0][0], at[0][1] + 30, 400.0))
    windows = tuple(Window(n, start, start + length, announced) for n, start, length in at)
    return scenario.replace(cluster=Cluster(scenario.cluster.groups, windows), estimator=None)


@pytest.mark.parametrize("policy", PLANS, ids=str)
@pytest.mark.parametrize("seed", range(24))
def test_no_planned_job_is_caught_by_a_window(seed, policy):
    scenario = with_windows(seed)
    run = scenario.run(policy.with_knobs(placement=RULES[seed % len(RULES)], patience=100.0))
    assert capacity_holds(run, scenario.cluster) is None
    assert run.jobs["failures"].sum() == 0, seed
    assert run.jobs["end"].null_count() == 0


def test_a_window_that_nobody_announced_is_an_outage():
    caught = 0
    for seed in range(24):
        scenario = with_windows(seed, announced=1e9)
        events = tuple(Outage(e.node, e.start, e.end) for e in scenario.cluster.events)
        outages = scenario.replace(cluster=Cluster(scenario.cluster.groups, events))
        for policy in PLANS[:3]:
            run = scenario.run(policy)
            assert run.jobs.equals(outages.run(policy).jobs)
            caught += run.jobs["failures"].sum()
    assert caught > 50


def test_it_is_known_from_its_announcement():
    """j0, of 60 s at 50, runs into a window at 100 that is announced at 70; j1, at 75, waits for its end."""
    trace = pl.DataFrame({"job_id": ["j0", "j1"], "submit": [50.0, 75.0], "gpus": [1, 1], "duration": [60.0, 30.0]})
    cluster = Cluster.homogeneous(1, 2)
    run = simulate(trace, Cluster(cluster.groups, (Window(0, 100.0, 150.0, 70.0),)), Fifo(backfill="plan"), log=True)
    assert run.jobs["start"].to_list() == [50, 150]
    assert run.jobs["failures"].to_list() == [1, 0]
    assert "would run into a window" in str(run.explain("j1"))


def test_what_is_no_window():
    with pytest.raises(ClusterError, match="expected 0 <= announced"):
        Cluster(Cluster.homogeneous(1, 1).groups, (Window(0, 1.0, 2.0, -1.0),))
