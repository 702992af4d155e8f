"""Numbers and figures of jobs that change their GPUs."""

import numpy as np
import polars as pl
import pytest

from gpuschedlab import plots
from gpuschedlab.cluster import Cluster
from gpuschedlab.policies import Gavel
from gpuschedlab.sim import Delays, simulate

TYPES = np.array([0, 0, 1, 1])
GPUS = np.array([1, 2, 1, 2])
GIVEN = {"names": ("1 a", "2 a", "1 b", "2 b"), "jobs": ("x", "y")}
GOODPUT = np.array([[1.0, 1.9, 2.0, 3.8], [1.0, 1.2, 6.0, 7.0]])


def test_the_round_is_the_best_of_all():
    """By hand: with p = 1 and 2 GPUs of each type, x takes 2 a (1.9) and y 2 b (7.0); both gain lambda."""
    found = plots.worth(GOODPUT, TYPES, GPUS, np.array([2, 2]), power=1.0, penalty=0.0, **GIVEN)
    cells, chosen = found.data
    assert cells["z"].tolist() == GOODPUT.tolist()
    assert [cells["x"].index(name) for name in chosen["x"]] == [1, 3]


def test_a_low_penalty_starves_where_p_is_negative():
    found = plots.worth(
        GOODPUT[:, :2], TYPES[:2], GPUS[:2], np.array([2]), penalty=0.5, names=("1 a", "2 a"), jobs=("x", "y")
    )
    assert found.data[1]["x"] == []
    assert "2 jobs without GPUs" in plots.draw(found).live["title_text"]


def test_estimates_follow_what_was_seen():
    gpus = np.array([1, 2, 4, 8])
    own = np.array([2.0, 3.0, 4.0, 5.0])
    other = np.array([1.0, 1.8, 3.0, 4.0])
    assert plots.bootstrap(gpus, own, other).values["estimate"].tolist() == [2, 4, 8, 16]
    assert plots.bootstrap(gpus, own, other, ran_there=4).values["estimate"].tolist() == pytest.approx([2, 3.6, 6, 12])
    assert plots.bootstrap(gpus, own, other, ran_there=4, ran_here=2).values["estimate"].tolist() == [2, 3, 6, 12]


def test_lanes_are_the_runs_allocations():
    frame = pl.DataFrame(
        {"job_id": ["p", "q"], "submit": [0.0, 0.0], "gpus": [2.0, 2.0], "duration": 1000.0, "switch": [50.0, 20.0]}
    )
    run = simulate(frame, Cluster.parse("2x2:t4"), Gavel())
    lanes = plots.job_lanes(run)
    assert (lanes.jobs, lanes.groups, lanes.gpus.tolist()) == (("p", "q"), ("t4",), [2, 2])
    assert (lanes.end - lanes.begin).tolist() == [1050, 1020]
    assert (lanes.over[0][0]["x"] * 3600).round(9).tolist() == [50, 20]
    assert len(plots.figure(lanes).data) == 2
    run = simulate(frame.drop("switch"), Cluster.parse("2x2:t4"), Gavel(), delays=Delays(switch=30.0, restart=9.0))
    assert (plots.job_lanes(run).over[0][0]["x"] * 3600).round(9).tolist() == [30, 30]  # of a first start
