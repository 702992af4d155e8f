"""Generated weeks do not begin with an empty cluster, and each has the load asked."""

import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.errors import TraceError
from gpuschedlab.scenarios.week import SHORT, Week
from gpuschedlab.traces.generator.generate import week_loads

DAY = 86_400.0
SMALL = Week(cluster="8x8").with_knobs(jobs=900)


def work(jobs: pl.DataFrame) -> float:
    """GPU-seconds."""
    return float((jobs["gpus"] * jobs["duration"]).sum())


def test_the_days_before_are_the_weeks_of_the_seeds_before():
    """Seed 7: all that counts in weeks 5 and 6, but for what runs under an hour before the last day."""
    warm = SMALL(7).warm
    for back, seed in ((2, 5), (1, 6)):
        week = SMALL(seed).trace.with_columns(pl.col("submit") - 7 * back * DAY)
        week = week.filter((pl.col("duration") >= SHORT) | (pl.col("submit") >= -DAY))
        played = warm.filter(pl.col("job_id").str.starts_with(f"week-{back}-"))
        assert played.drop("job_id").equals(week.drop("job_id"))
    assert -14 * DAY <= warm["submit"].min() < warm["submit"].max() < 0
    assert SMALL(0).warm.height > 100, "seeds before the first have weeks as well"


def test_each_week_has_the_load_and_what_is_left_out_carries_little():
    for seed in range(3, 6):
        scenario = SMALL(seed)
        assert work(scenario.trace) / (64 * 7 * DAY) == pytest.approx(0.9, rel=0.001)
        assert work(scenario.warm) / (64 * 14 * DAY) == pytest.approx(0.9, rel=0.05)


def test_the_week_that_counts_does_not_depend_on_the_days_before():
    cold = SMALL.with_knobs(warm=0)(4)
    assert cold.warm is None
    assert cold.trace.equals(SMALL(4).trace)
    assert "begins empty" in SMALL.with_knobs(warm=0).about(cold)["trace"]
    assert "begins empty" not in SMALL.about(SMALL(4))["trace"]
    three = SMALL.with_knobs(warm=3)(4).warm
    assert -3 * DAY <= three["submit"].min() < -2 * DAY
    assert three["job_id"].is_in(SMALL(4).warm["job_id"]).all()


def test_a_day_comes_after_whole_weeks_of_its_rate():
    day = Week(cluster="8x8", before="1").with_knobs(days=1, jobs=100)
    scenario = day(3)
    assert scenario.trace.height == pytest.approx(100, abs=40)
    assert scenario.history.height + scenario.trace.height == 200
    weekly = day.with_knobs(warm=0, days=7, jobs=700)
    assert weekly.trace(2).height == pytest.approx(700, abs=150)
    assert scenario.warm.height > 100


def test_a_warm_cluster_makes_the_slower_policy_slower():
    """Means of EASY over those of Tiresias in four weeks: more with the days before than without."""
    both = {}
    for warm in (0.0, 14.0):
        week = SMALL.with_knobs(warm=warm)
        both[warm] = [
            sum(week(seed).run(policy).summary()["jct_mean"] for seed in range(4))
            for policy in (lab.Fifo(backfill="easy"), lab.Tiresias())
        ]
    assert both[14.0][0] / both[14.0][1] > both[0.0][0] / both[0.0][1]


def test_weeks_of_a_longer_trace_say_their_loads_or_are_level():
    long = Week(cluster="8x8").with_knobs(days=21, jobs=2700)
    loads = week_loads(long(1).trace, 64)
    assert max(loads) - min(loads) > 0.05
    assert f"weeks of load {loads[0]:.2f}, " in long.about(long(1))["trace"]
    level = long.with_knobs(level=True)
    assert week_loads(level(1).trace, 64) == pytest.approx([0.9] * 3, rel=0.001)
    assert level(1).trace.drop("duration").equals(long(1).trace.drop("duration"))


def test_level_needs_a_load():
    with pytest.raises(TraceError, match="level together with load"):
        lab.generate("venus", days=14, level=True)
    level = lab.generate("venus", days=10, load=0.7, cluster_gpus=64, level=True)
    assert week_loads(level, 64, 10) == pytest.approx([0.7, 0.7], rel=0.001)
