"""Numbers at the doors: nan, texts and what is out of range are refused with what was found and what was expected."""

import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.errors import ClusterError, LabError, RunError, SpeedError, TraceError

TRACE = pl.DataFrame({"job_id": ["a"], "submit": [0.0], "gpus": [1.0], "duration": [60.0]})
CLUSTER = lab.Cluster.homogeneous(1, 4)
NAN = float("nan")
INF = float("inf")
WRONG = {
    "scenario": (NAN, -5, "x", [1], True),
    "seconds": (NAN, -1, "3", None, True, INF),
    "whole": (1.5, NAN, -1, "3", None),
}


@pytest.mark.parametrize(
    ("make", "raises", "values"),
    [
        (lambda value: lab.Scenario(TRACE, CLUSTER, until=value), TraceError, WRONG["scenario"]),
        (lambda value: lab.Scenario(TRACE, CLUSTER, over=value), TraceError, WRONG["seconds"]),
        (lambda value: lab.Scenario(TRACE, CLUSTER, seed=value), TraceError, WRONG["whole"]),
        (lambda value: lab.Delays(switch=value), SpeedError, WRONG["seconds"]),
        (lambda value: lab.Delays(restart=value), SpeedError, WRONG["seconds"]),
        (lambda value: lab.Delays(checkpoint=value), SpeedError, WRONG["scenario"]),
        (lambda value: lab.Nodes("t4", value, 8), ClusterError, (*WRONG["whole"], 0, INF)),
        (lambda value: lab.Nodes("t4", 8, value), ClusterError, (*WRONG["whole"], 0, 65)),
        (lambda value: lab.Cluster(CLUSTER.groups, (lab.Outage(value, 0.0),)), ClusterError, (*WRONG["whole"], 1)),
        (lambda value: lab.Cluster(CLUSTER.groups, (lab.Outage(0, value),)), ClusterError, WRONG["seconds"]),
        (lambda value: lab.Cluster(CLUSTER.groups, (lab.Outage(0, 1.0, value),)), ClusterError, (NAN, 1, "3", None)),
        (lambda value: lab.Scenario(TRACE, CLUSTER).simulation(lab.Fifo(), start=value), RunError, WRONG["seconds"]),
        (lambda value: lab.Scenario(TRACE, CLUSTER).simulation(lab.Fifo()).advance(value), RunError, WRONG["scenario"]),
    ],
)
def test_each_door_says_what_it_expected(make, raises, values):
    for value in values:
        with pytest.raises(raises, match="expected") as caught:
            make(value)
        assert isinstance(caught.value, LabError)


def test_what_is_right_passes():
    import numpy as np

    scenario = lab.Scenario(
        TRACE, CLUSTER, until=INF, seed=np.int64(3), over=np.float32(2), delays=lab.Delays(switch=0)
    )
    assert scenario.run(lab.Fifo()).jobs["end"].to_list() == [60.0]
    assert lab.Nodes("t4", np.int64(2), 8.0).nodes == 2


def test_what_is_wrong_within_a_scenario_is_not_taken_for_no_scenario(monkeypatch):
    monkeypatch.setattr(lab.Oracle, "predict", lambda self, jobs: jobs.no_such_thing)
    with pytest.raises(AttributeError, match="no_such_thing"):
        lab.Scenario(TRACE, CLUSTER).simulation(lab.Fifo())
    with pytest.raises(RunError, match="found a DataFrame; expected a Scenario"):
        lab.sim.Simulation(TRACE, lab.Fifo())
