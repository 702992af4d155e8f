"""Views made by hand: what a policy sees is the same as in a simulation, and arrays say the rest."""

from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pytest
from present import needs

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import RunError
from gpuschedlab.policies import ThemisRounds
from gpuschedlab.sim import Allocation, Delays, Round, Scenario, Simulation
from gpuschedlab.speeds import Speeds

CLUSTER = Cluster.parse("2x4:slow,1x4:fast")
SPEEDS = Speeds.from_frame(
    pl.DataFrame({"model": "m", "gpu_type": ["slow", "fast"], "n_gpus": 2, "rate": [1.0, 2.0], "progress": 1e4})
)
TRACE = pl.DataFrame(
    {
        "job_id": ["a", "b", "c", "late"],
        "submit": [0.0, 0.0, 30.0, 900.0],
        "gpus": [2.0, 4.0, 6.0, 1.0],
        "duration": [1e4] * 4,
        "model": ["m", None, None, "m"],
        "user": ["ada", "bob", "ada", "bob"],
        "switch": [5.0] * 4,
    }
)
SCENARIO = Scenario(TRACE, CLUSTER, speeds=SPEEDS, delays=Delays(restart=7.0, kinds={"warm": 1.0}))
SAME = (
    "now",
    "interval",
    "index",
    "submit",
    "age",
    "gpus",
    "estimate",
    "deadline",
    "model",
    "user",
    "elastic",
    "attained",
)
SAME += ("executed", "progress", "running", "gpu_type", "running_gpus", "running_nodes", "restarts", "restart", "pause")
SAME += ("nodes", "free", "up", "capacity", "seconds_on", "partner", "source", "merged", "profiling", "submitted")


@dataclass(frozen=True)
class Named(Round):
    """Names nodes for the first two jobs, and keeps each view."""

    views: list = field(default_factory=list)

    def allocate(self, view):
        self.views.append(view)
        nodes = [(0, 2, 2), (1, 0, 1), (1, 1, 3)]
        return Allocation(np.array([1, 0, 0])[: len(view)], np.array([2.0, 4.0, 0.0])[: len(view)], nodes=nodes)


def test_a_view_by_hand_is_that_of_a_simulation():
    policy = Named()
    Simulation(SCENARIO, policy).run(until=100.0)
    seen = policy.views[1]
    said = {name: getattr(seen, name) for name in ("executed", "attained", "progress", "seconds_on")}
    view = SCENARIO.view(Named(), now=60.0, nodes=[(1, 1, 3), (0, 2, 2), (1, 0, 1)], **said)
    for name in SAME:
        assert np.array_equal(getattr(view, name), getattr(seen, name)), name
    configurations = np.array([0, 1]), np.array([1, 1]), np.array([2, 2])
    assert np.array_equal(view.rates(*configurations), seen.rates(*configurations), equal_nan=True)
    assert view.texts("user").tolist() == ["ada", "bob", "ada"]
    assert view.start_seconds().tolist() == [12.0, 12.0, 5.0]
    assert view.start_seconds("warm", np.array([2])).tolist() == [1.0]
    assert view.job_id(2) == "c"


def test_what_the_state_does_not_hold_is_an_attribute_of_the_view():
    view = SCENARIO.view(
        ThemisRounds(), now=60.0, capacity=np.array([2.0, 4.0]), restarts=[1, 0, 0], partner=[-1, 2, 1]
    )
    assert view.capacity.tolist() == [2.0, 4.0]
    assert view.restarts.tolist() == [1, 0, 0]
    assert view.partner.tolist() == [-1, 2, 1]
    assert isinstance(view.memory, type(ThemisRounds().begin()))
    assert SCENARIO.view(ThemisRounds(), now=60.0, up=[True, False, True]).capacity.tolist() == [4.0, 4.0]


@needs("pop")
def test_a_wrapped_policy_takes_parts_of_it():
    from gpuschedlab.policies import Pop

    answer = Pop(Named(), parts=1)
    assert answer.allocate(SCENARIO.view(answer, now=60.0)).gpus.tolist() == [2.0, 4.0, 0.0]


def test_an_array_without_an_entry_for_each_job_is_an_error():
    with pytest.raises(RunError, match=r"attained has shape \(4,\); expected \(3,\)"):
        SCENARIO.view(ThemisRounds(), now=60.0, attained=np.zeros(4))


def test_a_simulation_takes_a_scenario():
    with pytest.raises(RunError, match="found a DataFrame; expected a Scenario"):
        Simulation(TRACE, ThemisRounds())


@pytest.mark.parametrize("column", ["classes", "placeable", "demands", "text"])
def test_a_column_may_have_any_name(column):
    """What a scenario keeps for its runs does not stand in for a column of that name."""
    scenario = Scenario(TRACE.with_columns(pl.col("user").alias(column)), CLUSTER)
    simulation = Simulation(scenario, ThemisRounds())
    assert Simulation(scenario, ThemisRounds()).now == 0  # a second run finds what the first one kept
    assert simulation.prepared.codes(column).tolist() == [0, 1, 0, 1]
    assert scenario.run(ThemisRounds()).jobs["end"].null_count() == 0


@dataclass(frozen=True)
class Meets(Round):
    """Runs a alone, then with b on its GPU, then alone again; keeps the effort of each job."""

    interval: float = 10.0
    seen: list = field(default_factory=list)

    def allocate(self, view):
        self.seen.append((view.now, view.effort.tolist()))
        both = view.now in (20.0, 30.0)
        return Allocation(np.zeros(2, int), np.array([1.0, float(both)]), partner=np.array([-1, 0 if both else -1]))


def test_effort_is_counted_anew_when_jobs_meet_and_part():
    """Of 2 a second alone and 1 beside each other: since its start, since b came, since b went."""
    trace = pl.DataFrame(
        {"job_id": ["a", "b"], "submit": 0.0, "gpus": 1.0, "duration": 1e4, "model": "m", "target": 1e4}
    )
    rate = pl.DataFrame({"model": ["m"], "gpu_type": ["v100"], "n_gpus": [1], "rate": [2.0], "progress": [np.inf]})
    speeds = Speeds.from_frame(rate, sharing={("m", "m"): 0.5})
    policy = Meets()
    Scenario(trace, Cluster.homogeneous(1, 1), speeds=speeds).simulation(policy).advance(59.0)
    assert [a for _, (a, _) in policy.seen] == [0, 20, 40, 10, 20, 20]
    assert [b for _, (_, b) in policy.seen] == [0, 0, 0, 10, 20, 0]
