"""Time limits: who is stopped when, what counts, and what is refused."""

import math
from dataclasses import replace

import polars as pl
import pytest
from random_queues import random_scenario

from gpuschedlab import Cluster, Delays, Fifo, Outage, Plan, Scenario, Srtf, Tiresias, simulate
from gpuschedlab.check.recount import books_add_up
from gpuschedlab.errors import TraceError
from gpuschedlab.estimators import Requested
from gpuschedlab.policies import ThemisRounds

ONE = Cluster.homogeneous(1, 1)


def jobs(*rows, **more) -> pl.DataFrame:
    """Jobs of (submit, GPUs, s)."""
    submit, gpus, duration = (list(map(float, column)) for column in zip(*rows, strict=True))
    names = [f"j{i}" for i in range(len(rows))]
    return pl.DataFrame({"job_id": names, "submit": submit, "gpus": gpus, "duration": duration, **more})


def test_a_limit_counts_from_the_start_and_with_delays():
    trace = jobs((0, 1, 10), (0, 1, 10), (0, 1, 10), limit=[10.0, 12.0, None])
    run = simulate(trace, ONE, Fifo(), delays=Delays(switch=2.0))
    assert run.jobs["end"].to_list() == [10, 22, 34]  # j0 lost 2 s to its start
    assert run.jobs["timed_out"].to_list() == [True, False, False]
    assert run.jobs["limit"].to_list() == [10, 12, math.inf]


def test_each_start_has_the_whole_limit():
    """j0 is suspended after 6 s for j1; its limit of 8 s begins again when it resumes, and 4 s are left."""
    trace = jobs((0, 1, 10), (6, 1, 1), limit=[8.0, 8.0])
    run = simulate(trace, ONE, Srtf())
    assert run.jobs["end"].to_list() == [11, 7]
    assert not run.jobs["timed_out"].any()
    failed = simulate(trace, Cluster(ONE.groups, (Outage(0, 5.0, 6.0),)), Fifo(), delays=Delays(checkpoint=100.0))
    assert failed.jobs["end"].to_list() == [14, 15]
    assert failed.jobs["timed_out"].to_list() == [True, False]


def test_a_job_may_overrun_by_what_its_site_allows():
    trace = jobs((0, 1, 10), (0, 1, 13))
    run = simulate(trace, ONE, Fifo(), limits=9, over=2)
    assert run.jobs["end"].to_list() == [10, 21]
    assert run.jobs["timed_out"].to_list() == [False, True]


def test_plans_use_the_limit_and_not_what_a_job_may_overrun_it_by():
    """j2 needs both GPUs; j1 ends at 10 by its limit, so that j3 must end by then: in 5 s of limit from 3 on, it does."""
    trace = jobs((0, 1, 50), (2, 2, 5), (3, 1, 50), (3, 1, 9), requested_time=[10.0, 5.0, 7.0, 8.0])
    scenario = Scenario(trace, Cluster.homogeneous(1, 2), estimator=Requested(), limits="requested", over=3)
    assert scenario.run(Fifo(backfill="plan")).jobs["start"].to_list() == [0, 13, 3, 18]


def test_without_limits_there_are_none():
    trace = jobs((0, 1, 10), limit=[5.0], requested_time=[3.0])
    ends = [simulate(trace, ONE, Fifo(), limits=limits).jobs["end"][0] for limits in (None, "requested", "none", 4)]
    assert ends == [5, 3, 10, 4]
    free = simulate(trace.drop("limit", "requested_time"), ONE, Fifo()).jobs
    assert "timed_out" not in free.columns


@pytest.mark.parametrize(
    "policy", [Fifo(backfill="plan", depth=5, plan=Plan(tested=9)), Srtf(), Tiresias(), ThemisRounds()]
)
def test_the_laws_hold_with_limits(policy):
    for seed in range(6):
        scenario = random_scenario(seed).replace(limits=250.0, over=20.0)
        run = scenario.run(policy)
        assert run.jobs["timed_out"].sum() > 5
        assert books_add_up(run, scenario, policy) is None
        if not isinstance(policy, ThemisRounds):
            assert run.jobs.filter("timed_out")["end"].is_not_null().all()


def test_the_law_of_limits_can_be_broken():
    scenario = Scenario(jobs((0, 1, 10)), ONE, limits=20.0)
    run = scenario.run(Fifo())
    assert books_add_up(run, scenario, Fifo()) is None
    longer = replace(run, jobs=run.jobs.with_columns(limit=pl.lit(9.0)))
    assert "held GPUs for 10 s; expected at most its limit, 9 s" in books_add_up(longer, scenario, Fifo())
    early = replace(run, jobs=run.jobs.with_columns(timed_out=pl.lit(True)))
    assert "was stopped 10 s after its start; expected 20 s" in books_add_up(early, scenario, Fifo())


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"limits": "asked"}, "limits: found 'asked'; expected None"),
        ({"limits": 0}, "limits: found 0; expected None"),
        ({"limits": "requested"}, "found no requested_time of 1 of 2 jobs, first j1"),
        ({"over": -1.0}, "over: found -1.0; expected seconds, 0 or more"),
    ],
)
def test_what_is_no_limit(parts, message):
    with pytest.raises(TraceError, match=message):
        Scenario(jobs((0, 1, 5), (0, 1, 5), requested_time=[4.0, None]), ONE, **parts)
