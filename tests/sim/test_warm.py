"""Warm jobs: played before time 0, so that a run does not begin with an empty cluster, and counted by no metric."""

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.check import small_trace
from gpuschedlab.errors import TraceError
from gpuschedlab.metrics import summary
from gpuschedlab.metrics.who_pays import compared
from gpuschedlab.parse import contenders_of
from gpuschedlab.plots import interruptions
from gpuschedlab.sim.setup.warm import parted_played

DAYS = 2 * 86_400.0
CLUSTER = lab.Cluster.parse("3x4")
WORDS = ("fifo", "fifo:backfill=easy", "fifo:backfill=plan", "srtf", "tiresias", "themis", "themisrounds")


def whole_trace(seed: int) -> pl.DataFrame:
    """Jobs of four days, in whole seconds."""
    trace = small_trace(120, rng=seed)
    stretch = 2 * DAYS / trace["submit"].max()
    return trace.with_columns((pl.col("submit") * stretch).floor(), pl.col("duration").ceil() * 3)


def parted(trace: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Jobs of the last two days on a clock that begins there, and those before."""
    moved = trace.with_columns(pl.col("submit") - DAYS)
    return moved.filter(pl.col("submit") >= 0), moved.filter(pl.col("submit") < 0)


@pytest.mark.parametrize("word", WORDS)
def test_jobs_after_warm_ones_end_as_in_the_whole_trace(word):
    """Only the clock differs: what counts is the second half of one run."""
    ((policy, _),) = contenders_of([word]).values()
    trace = whole_trace(1)
    later, warm = parted(trace)
    one = lab.Scenario(trace, CLUSTER).run(policy)
    two = lab.Scenario(later, CLUSTER, warm=warm).run(policy)
    assert two.jobs["job_id"].to_list() == one.jobs["job_id"].to_list()
    assert two.jobs["end"].to_numpy() + DAYS == pytest.approx(one.jobs["end"].to_numpy(), abs=1e-6)
    counts = (one.jobs["submit"] >= DAYS).to_numpy()
    jct = (one.jobs["end"] - one.jobs["submit"]).to_numpy()[counts]
    found = two.summary()
    assert found["jobs"] == found["finished"] == counts.sum() < trace.height
    assert found["jct_mean"] == pytest.approx(jct.mean())
    assert found["preemptions"] == one.jobs["preemptions"].to_numpy()[counts].sum()
    assert found["gpu_time"] == pytest.approx(one.jobs["attained"].to_numpy()[counts].sum())
    assert found["makespan"] == pytest.approx(one.jobs["end"].max() - one.jobs["submit"].to_numpy()[counts].min())


def test_metrics_are_of_the_time_and_the_jobs_that_count():
    """On one GPU a warm job runs until 50 s, and the job that counts after it until 110: 110 s of use in 110 s, of which 60 are paid."""
    warm = pl.DataFrame({"job_id": ["w"], "submit": [-50.0], "gpus": [1], "duration": [100.0]})
    trace = pl.DataFrame({"job_id": ["a"], "submit": [0.0], "gpus": [1], "duration": [60.0]})
    run = lab.Scenario(trace, lab.Cluster.homogeneous(1, 1), warm=warm).run(lab.Fifo())
    found = summary(run, prices=3600.0)
    assert found["jct_mean"] == found["makespan"] == 110.0
    assert found["queueing_mean"] == 50.0
    assert found["utilisation"] == 1.0
    assert found["gpu_time"] == found["gpu_time_billed"] == found["cost"] == 60.0
    assert found["jobs"] == 1
    assert interruptions(run).values["preemptions"].tolist() == [0.0]
    assert compared(run).jobs == 1
    assert compared(run).of == ""


def test_a_warm_job_that_never_ends_is_no_job_that_is_left_out():
    warm = pl.DataFrame({"job_id": ["w"], "submit": [-50.0], "gpus": [1], "duration": [1e6]})
    trace = pl.DataFrame({"job_id": ["a"], "submit": [0.0], "gpus": [1], "duration": [60.0]})
    run = lab.Scenario(trace, lab.Cluster.homogeneous(1, 2), warm=warm, until=100.0).run(lab.Fifo())
    assert run.summary()["unfinished"] == 0
    assert run.summary()["jct_mean"] == 60.0


def test_a_simulation_that_is_continued_begins_where_it_was():
    """`unfinished` and `initial` go on among warm jobs; a scenario of a simulation has them again."""
    later, warm = parted(whole_trace(2))
    scenario = lab.Scenario(later, CLUSTER, warm=warm)
    simulation = scenario.simulation(lab.Srtf())
    assert simulation.now == scenario.begin == warm["submit"].min()
    simulation.advance(3600.0)
    initial = simulation.unfinished()
    again = lab.Scenario.of(simulation)
    assert again.warm.height == warm.height
    assert again.trace.equals(scenario.trace)
    done = simulation.snapshot().jobs["done"]
    left = scenario.replace(**parted_played(scenario.played.filter(~pl.Series(done))))
    end = left.simulation(lab.Srtf(), start=3600.0, initial=initial).run().jobs["end"]
    assert end.null_count() == 0


def test_a_scenario_without_warm_jobs_plays_its_trace():
    scenario = lab.Scenario(whole_trace(0), CLUSTER)
    assert scenario.played is scenario.trace
    assert scenario.begin == 0.0
    assert lab.Scenario(whole_trace(0), CLUSTER, warm=scenario.trace.clear()).warm is None


def test_refusals():
    later, warm = parted(whole_trace(3))
    for wrong, message in (
        (later, "submitted at 0 or later, the first"),
        ([1], "warm: found a list; expected a polars.DataFrame"),
        (warm.with_columns(job_id=later["job_id"][: warm.height]).head(later.height), "in the trace as well"),
        (warm.with_columns(gpus=-1), "warm, row 1, column gpus"),
    ):
        with pytest.raises(TraceError, match=message):
            lab.Scenario(later, CLUSTER, warm=wrong)


def test_columns_are_those_of_the_trace():
    """A column that the warm jobs lack is null there; one that the trace lacks is left out."""
    later, warm = parted(whole_trace(3))
    scenario = lab.Scenario(later.with_columns(team=pl.lit("a")), CLUSTER, warm=warm.with_columns(place=pl.lit("x")))
    assert "place" not in scenario.played.columns
    assert scenario.played["team"].null_count() == warm.height
    assert np.isfinite(scenario.run(lab.Srtf()).summary()["jct_mean"])
