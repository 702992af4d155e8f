"""Gavel's other objectives."""

import numpy as np
import pytest
from paced_jobs import jobs

from gpuschedlab.check import check_policy
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


RULES = {"renewal": 1000.0, "recount": True, "newcomers_wait": True, "interval": 120.0}


@pytest.mark.parametrize(
    "knobs", [{"objective": "max_min"}, {"objective": "makespan", "centre": 0.05}, {"renewal": 0.0}]
)
def test_the_rules_of_the_artifacts_rounds_keep_the_laws_of_all_policies(knobs):
    check_policy(Gavel(**RULES | knobs)).raise_if_failed()


def test_shares_are_made_anew_at_the_first_round_a_renewal_after_the_last_and_newcomers_wait_for_it():
    """The first program does not count, so that the second job need not wait; the third comes just after that one."""
    frame = jobs([3000.0, 600.0, 600.0], submit=[0.0, 50.0, 150.0])
    cluster = Cluster.homogeneous(3, 1)
    starts = {}
    for wait in (True, False):
        run = simulate(frame, cluster, Gavel(**RULES | {"objective": "max_min", "newcomers_wait": wait}))
        starts[wait] = run.jobs.sort("job_id")["start"].to_list()
    assert starts[True] == [0, 120, 1200]
    assert starts[False] == [0, 120, 240]


def test_received_time_that_starts_anew_does_not_repay_what_a_job_missed():
    """A job that comes late catches up with the time that others received before, unless each program counts from then on."""
    frame = jobs([6000.0, 6000.0], submit=[0.0, 2400.0])
    ends = {}
    for recount in (True, False):
        policy = Gavel(objective="max_min", interval=120.0, recount=recount)
        ends[recount] = simulate(frame, ONE, policy).jobs.sort("job_id")["end"].to_list()
    assert ends[True] == pytest.approx([9600, 12_000], abs=121)
    assert ends[False] == pytest.approx([11_880, 12_000], abs=1)
