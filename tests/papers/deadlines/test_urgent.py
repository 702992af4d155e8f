"""Jobs that are started, stopped and started in one instant."""

import numpy as np
import pytest
from small_jobs import jobs

from gpuschedlab.cluster import Cluster, Nodes, Outage
from gpuschedlab.policies import Urgent
from gpuschedlab.sim import Delays, Scenario, Simulation, simulate
from gpuschedlab.sim.engine.events import PAUSED, TURNS, advance

GHOST = [
    (60, 3, 60),
    (90, 2, 1200),
    (90, 4, 1),
    (120, 4, 1200),
    (120, 0.5, 1200),
    (210, 4, 600),
    (243, 4, 1),
    (243, 1, 10),
]


def test_a_start_counts_once_time_passes():
    """j7 and j6 come at 243 s; j7 is started, preempted for j6, and started on another node, all in that instant."""
    trace = jobs(
        *GHOST,
        deadline=[1.5 * d for _, _, d in GHOST],
        kind=["best_effort"] + ["strict"] * 3 + ["best_effort"] * 2 + ["strict", "best_effort"],
    )
    run = simulate(
        trace, Cluster.parse("2x4:a,1x8:b"), Urgent(placement="widest", interval=0), delays=Delays(restart=30)
    )
    assert run.jobs.select("start", "end", "preemptions", "restarts", "overhead").row(7) == (243, 253, 0, 0, 0)


def test_compiled_code_returns_to_python_without_an_event_that_needs_it():
    """So that Ctrl-C is served: a policy that decides each five minutes, and a job whose node is down for good."""
    cluster = Cluster((Nodes("a", 1, 1),), (Outage(0, 10),))
    simulation = Simulation(Scenario(jobs((20, 1, 5)), cluster), Urgent())
    assert advance(simulation.state, np.inf) == PAUSED
    assert simulation.now == pytest.approx(300 * TURNS, rel=1e-3)
