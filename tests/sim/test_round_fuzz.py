"""Rounds that answer at random, with everything that an answer may hold: no law of runs or answers is broken."""

import polars as pl
import pytest
from added_up import MOST
from brief_policies import brief
from dice import Dice, parts
from few import few
from polars.testing import assert_frame_equal
from random_runs import ESTIMATORS

from gpuschedlab.check.answer_laws import LAWS, Recorded
from gpuschedlab.check.laws import ENDED
from gpuschedlab.errors import LabError
from gpuschedlab.policies import ALL
from gpuschedlab.sim import Scenario, Simulation


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_no_law_is_broken(seed, free, added_up):
    jobs, cluster, more = parts(seed)
    policy = Recorded(Dice(seed, free_moves=free, placement="pack" if seed % 3 else "spread"))
    scenario = Scenario(jobs, cluster, **more)
    run = scenario.run(policy)
    problems = [law(run, cluster) for law in ENDED]
    problems += [
        law(policy.seen, run, cluster) for name, law in LAWS.items() if name not in ("gpus", "nodes", "gpu_type")
    ]
    assert [p for p in problems if p] == []
    assert added_up == [run], "its books are added up, all its jobs'"
    assert run.jobs.height <= MOST
    assert run.jobs["shared"].sum() > 0
    assert run.jobs["profiled"].sum() > 0
    assert run.jobs["source"].drop_nulls().len() > 0


@pytest.mark.parametrize("seed", range(5))
def test_a_run_that_is_stopped_and_continued_is_the_same(seed):
    jobs, cluster, more = parts(seed)
    whole = Simulation(Scenario(jobs, cluster, **more), Dice(seed)).run()
    again = Simulation(Scenario(jobs, cluster, **more), Dice(seed))
    for stop in (60.0, 200.0, 300.0):
        again.advance(stop)
        again = again.copy()
    found = again.run()
    assert_frame_equal(found.jobs, whole.jobs)  # contention adds up in other steps
    assert found.pools.equals(whole.pools)


@pytest.mark.parametrize("name", sorted(ALL.keys() - ESTIMATORS.keys()))
def test_any_policy_takes_over_jobs_that_share_gpus_and_have_other_numbers_than_requested(name, added_up):
    taken = 0
    for seed in range(few(2, 3)):
        jobs, cluster, more = parts(seed)
        scenario = Scenario(jobs, cluster, **more)
        policy = brief(name)
        simulation = Simulation(scenario, Dice(seed))
        for now in (100.0, 250.0, 400.0):
            simulation.advance(now)
            try:
                after = simulation.under(policy)
            except LabError:  # it says at once that it cannot: its jobs need more than it leaves
                continue
            run = after.run(2_000.0)
            assert added_up[-1] is run, "its books are added up, under both policies"
            taken += run.allocations.filter(pl.col("start") < now, pl.col("end") >= now)["partner"].drop_nulls().len()
    assert taken
