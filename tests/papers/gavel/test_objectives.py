"""Gavel's other objectives."""

import numpy as np
import pytest
from paced_jobs import jobs

from gpuschedlab.cluster import Cluster
from gpuschedlab.policies import Gavel
from gpuschedlab.problems import gavel_finish_time
from gpuschedlab.sim import simulate

ONE = Cluster.parse("1x1:t4")


def test_worst_finish_time_is_least():
    """Against a fine grid of all shares of two jobs on one GPU."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        rate, age, left = rng.uniform(0.5, 2, (2, 1)), rng.uniform(0, 300, 2), rng.uniform(100, 900, 2)
        work = left + rng.uniform(0, 500, 2)
        X = gavel_finish_time(rate, [1, 1], [1], age, left, work)
        alone = rate[:, 0] / 2

        def rho(x, age=age, left=left, rate=rate, work=work, alone=alone):
            return ((age + left / (rate[:, 0] * x)) / (work / alone)).max()

        best = min(rho(np.array([x, 1 - x])) for x in np.linspace(0.001, 0.999, 4000))
        assert X.sum() <= 1 + 1e-9
        assert rho(X[:, 0]) == pytest.approx(best, rel=5e-3)


def test_a_job_that_can_run_nowhere_has_no_finish_time():
    X = gavel_finish_time([[np.nan], [1.0]], [1, 1], [1], age=[10, 10], left=[5, 5], work=[5, 5])
    assert X.ravel().round(3).tolist() == [0, 1]


def test_the_makespan_objective_ends_all_together_and_fifo_one_by_one():
    frame = jobs([36_000.0, 18_000.0], submit=[0.0, 1.0])
    ends = {
        o: simulate(frame, ONE, Gavel(objective=o)).jobs["end"].to_list() for o in ("makespan", "fifo", "finish_time")
    }
    assert ends["fifo"] == pytest.approx([36_000, 54_000], abs=361)
    assert ends["makespan"] == pytest.approx([54_000, 54_000], abs=1500)
    assert max(ends["finish_time"]) == pytest.approx(54_000, abs=721)
    assert ends["finish_time"][1] < 50_000


def test_the_shortest_job_goes_first_whenever_it_comes():
    frame = jobs([36_000.0, 18_000.0], submit=[0.0, 1.0])
    ends = simulate(frame, ONE, Gavel(objective="shortest_first")).jobs["end"].to_list()
    assert ends == pytest.approx([54_000, 18_360], abs=361)
