"""Describing, cutting and scaling traces; their real counterparts."""

import datetime

import polars as pl
import pytest
from few import few

from gpuschedlab.errors import LabError, TraceError
from gpuschedlab.plots.workload import arrivals
from gpuschedlab.traces import describe, generate, offered_load, scale_load, slice_trace, split
from reproduce.published.data import EXTRACTS, load_real
from reproduce.published.generated_traces import BOUNDS, compare, run

NOON = datetime.datetime(2020, 1, 1, 12)
TRACE = pl.DataFrame(
    {
        "job_id": ["a", "b", "c", "d"],
        "submit": [0.0, 1_000.0, 4_000.0, 7_000.0],
        "gpus": [0.5, 1.0, 8.0, 40.0],
        "duration": [100.0, 200.0, 300.0, 400.0],
        "user": ["u", "u", "v", None],
        "status": ["completed", "failed", "completed", None],
        "clock": [NOON + datetime.timedelta(seconds=s) for s in (0, 1_000, 4_000, 7_000)],
    }
)
WORK = 0.5 * 100 + 200 + 8 * 300 + 40 * 400


def test_describe_by_hand():
    found = describe(TRACE)
    assert found["jobs"] == 4
    assert found["days"] == 2 / 24
    assert found["gpu_hours"] == pytest.approx(WORK / 3600)
    assert found["gpus_in_demand"] == pytest.approx(WORK / 7200)
    assert (found["duration_p50"], found["duration_mean"], found["duration_max"]) == (250, 250, 400)
    shares = {k: v for k, v in found.items() if k.startswith("gpus_") and k.endswith("percent") and v}
    assert shares == {
        "gpus_below_1_percent": 25,
        "gpus_1_percent": 25,
        "gpus_5_to_8_percent": 25,
        "gpus_above_32_percent": 25,
    }
    assert (found["users"], found["completed_percent"], found["failed_percent"]) == (2, 50, 25)
    assert found["arrivals_per_hour"] == 2
    assert describe(TRACE.clear()) == {"jobs": 0}


def test_load_by_hand():
    assert offered_load(TRACE, 10) == pytest.approx(WORK / 7_000 / 10)
    assert offered_load(TRACE, 10, days=1) == pytest.approx(WORK / 86_400 / 10)
    for wrong in (0, -1, float("nan")):
        with pytest.raises(TraceError, match="found cluster_gpus="):
            offered_load(TRACE, wrong)
    with pytest.raises(TraceError, match="found a span of 0"):
        offered_load(TRACE.head(1), 8)


def test_scaling_moves_arrivals_and_nothing_else():
    twice = scale_load(TRACE, 2)
    assert twice["submit"].to_list() == [0, 500, 2_000, 3_500]
    assert twice["clock"].to_list()[2] == NOON + datetime.timedelta(seconds=2_000)
    assert twice.drop("submit", "clock").equals(TRACE.drop("submit", "clock"))
    assert offered_load(scale_load(TRACE, load=0.7, cluster_gpus=30), 30) == pytest.approx(0.7)
    for wrong in ({}, {"factor": 2, "load": 1, "cluster_gpus": 8}, {"load": 1}, {"factor": 0}, {"factor": -1}):
        with pytest.raises(TraceError, match="scale_load: found"):
            scale_load(TRACE, **wrong)


def test_cutting():
    assert slice_trace(TRACE, 1_000, 7_000)["submit"].to_list() == [0, 3_000]
    old, new = split(TRACE, 4_000)
    assert (old["job_id"].to_list(), new["job_id"].to_list()) == (["a", "b"], ["c", "d"])
    assert new["submit"].to_list() == [0, 3_000]
    assert new["clock"].to_list() == TRACE["clock"].to_list()[2:]
    with pytest.raises(TraceError, match="found no job between 8000 and inf s; .*The last of 4 comes at 7000"):
        slice_trace(TRACE, 8_000)
    with pytest.raises(TraceError, match="found no job between 0 and 0 s"):
        split(TRACE, 0)


# --- against the real traces


@pytest.mark.data
@pytest.mark.parametrize("name", sorted(EXTRACTS))
def test_real_traces(data_dir, name):
    trace = load_real(data_dir, name)
    days = EXTRACTS[name].days
    assert trace["submit"].max() < days * 86_400
    # The stretch has no long hole: each week has a tenth of the mean, at least.
    weeks = trace.group_by((pl.col("submit") // (7 * 86_400)).alias("week")).len().filter(pl.col("week") < days // 7)
    assert weeks.height == days // 7
    assert weeks["len"].min() > 0.1 * weeks["len"].mean()
    assert load_real(data_dir, name, whole=True).height > trace.height
    wall = trace.select((pl.col("clock") - datetime.datetime.fromisoformat(EXTRACTS[name].start)).dt.total_seconds())
    assert (wall["clock"] - trace["submit"]).abs().max() <= 1


def test_no_such_real_trace(tmp_path):
    with pytest.raises(TraceError, match="found 'borg'; expected one of"):
        load_real(tmp_path, "borg")
    with pytest.raises(TraceError, match="found no file"):
        load_real(tmp_path, "pai")
    with pytest.raises(LabError, match="found no folder of real traces"):
        run(None)


@pytest.mark.data
@pytest.mark.compiled("needs long traces")
def test_generated_against_real(data_dir):
    rows = compare("pai", load_real(data_dir, "pai"), seeds=range(100, 100 + few(5, 8)))
    assert {row["measure"] for row in rows} == set(BOUNDS)
    assert [row for row in rows if not row["ok"]] == []


@pytest.mark.data
@pytest.mark.compiled("needs long traces")
def test_the_bench_tells_a_wrong_trace(data_dir):
    real = load_real(data_dir, "pai")
    # Twice as long, half as many GPUs for some: nothing that the preset would make.
    other = real.with_columns(
        duration=pl.col("duration") * 2, gpus=pl.when(pl.col("gpus") == 1).then(2.0).otherwise(pl.col("gpus"))
    )
    wrong = {row["measure"] for row in compare("pai", other, seeds=[0]) if not row["ok"]}
    assert {"duration_ks", "gpu_share"} <= wrong


def test_figures_do_not_depend_on_when_times_begin():
    trace = generate("venus", days=2, jobs=300, rng=1)
    later = trace.with_columns(pl.col("submit") + 9e6)
    assert describe(later) == pytest.approx(describe(trace))
    assert offered_load(later, 100) == pytest.approx(offered_load(trace, 100))
    early, late = (arrivals({"trace": t}) for t in (trace, later))
    assert late.x.tolist() == early.x.tolist()
    assert late.values["trace"]["y"].tolist() == early.values["trace"]["y"].tolist()
    assert early.x[0] == 0.5
