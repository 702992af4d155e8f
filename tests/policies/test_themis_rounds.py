"""Themis in rounds, on several types of GPU."""

from types import SimpleNamespace

import pytest
from paced_jobs import jobs, table

from gpuschedlab.cluster import Cluster
from gpuschedlab.policies import Themis, ThemisRounds
from gpuschedlab.sim import simulate

ONE = Cluster.parse("1x1:t4")


def test_themis_serves_the_job_that_is_treated_worst():
    """Both have waited; the short one's finish time has suffered more."""
    frame = jobs([3000.0, 600.0, 6000.0], submit=[0.0, 600.0, 600.0])
    run = simulate(frame, ONE, ThemisRounds(f=0.9, interval=60.0))
    end = run.jobs["end"].to_list()
    assert end[1] < end[0] < end[2]


@pytest.mark.parametrize(("contention", "rho"), [(0.5, 1.5), (1.0, 1.5), (3.0, 0.5)])
def test_the_share_of_themis_is_at_most_the_whole_cluster(contention, rho):
    """Submitted at 0, at 30 s with all of its 60 s to go: 90 s, over 60, or over 180 on a third of the cluster."""
    job = SimpleNamespace(submit=0.0, estimate=60.0, progress=0.0, contention=contention)
    assert Themis.gate(30.0, job, None) == pytest.approx(-rho)


def test_themis_takes_the_fastest_type_that_is_free():
    speeds = table(a=(1.0, 4.0), b=(1.0, 2.0))
    cluster = Cluster.parse("1x1:slow,1x1:fast")
    run = simulate(
        jobs([400.0, 400.0], models=["a", "b"]), cluster, ThemisRounds(interval=60.0), speeds=speeds, until=60.0
    )
    assert sorted(run.allocations["gpu_type"]) == ["fast", "slow"]
