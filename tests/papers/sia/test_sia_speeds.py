"""Throughput models, best batch sizes, tables of Sia's kinds of jobs, and of goodput."""

import itertools
from dataclasses import astuple

import numpy as np
import polars as pl
import pytest

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import SpeedError
from gpuschedlab.policies import Sia
from gpuschedlab.sim import simulate
from gpuschedlab.speeds import Speeds, goodput_speeds
from reproduce.papers.pollux.efficiency import Gradients, gain
from reproduce.papers.pollux.throughput import Throughput, fit_throughput, fitted, throughput_of
from reproduce.papers.sia.fits import fit_all
from reproduce.papers.sia.kinds import best_batch, hybrid_speeds, inference_speeds, job_names, job_speeds

CLUSTER = Cluster.parse("6x4:aws,2x8:dgx-ext,3x8:rtx")


def validation(name="m", batches=(32, 64, 256), epochs=3) -> pl.DataFrame:
    """Gradients whose noise grows from epoch to epoch."""
    rows = [(name, b, e, 100.0 * (e + 1), 1.0, 2.0 * (e + 1)) for b in batches for e in range(epochs)]
    columns = ["model", "batch_size", "epoch", "progress", "grad_sqr", "grad_var"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def test_a_step_by_hand():
    """Computing 0.3 s, synchronisation 0.2 + 6 x 0.01 s between nodes; two passes are accumulated."""
    model = Throughput(0.1, 0.02, 0.2, 0.01, 0.05, 0.005, 2.0)
    assert model.computing(10) == pytest.approx(0.3)
    assert model.network(2, 8) == pytest.approx(0.26)
    assert model.network(1, 8) == pytest.approx(0.08)
    assert model.network(1, 1) == pytest.approx(0.0, abs=1e-7)
    assert model.step(2, 8, 10, 2) == pytest.approx(0.6 + np.hypot(0.3, 0.26))
    assert model.examples(2, 8, 10, 2) == pytest.approx(240 / (0.6 + np.hypot(0.3, 0.26)))
    overlapped = Throughput(0.1, 0.02, 0.2, 0.01, 0.05, 0.005, 10.0)
    assert overlapped.step(2, 8, 10) < model.step(2, 8, 10) < 0.3 + 0.26


def test_a_fit_finds_the_model_that_made_the_steps():
    true = Throughput(0.08, 0.004, 0.3, 0.02, 0.06, 0.01, 1.7)
    nodes, gpus, local = (
        np.array(a) for a in zip(*itertools.product([1, 2, 4], [4, 8, 16], [8, 32, 128]), strict=True)
    )
    alone = [np.append(a, b) for a, b in ((nodes, [1, 1]), (gpus, [1, 1]), (local, [8, 64]))]
    step = true.step(*alone)
    found, error = fit_throughput(*alone, step, step - true.computing(alone[2]))
    assert error < 0.02
    assert astuple(found)[:2] == pytest.approx((true.a_c, true.b_c), rel=0.05)
    assert found.step([3], [12], [50]) == pytest.approx(true.step([3], [12], [50]), rel=0.03)


def test_what_was_not_measured_stays_at_the_floor_and_is_refined_later():
    """One GPU only: no synchronisation is known, scaling is perfect; with two GPUs it is (thesis 3.3.2)."""
    true = Throughput(0.1, 0.01, 0.4, 0.05, 0.2, 0.02, 1.5)
    one = (np.ones(4), np.ones(4), np.array([8, 16, 32, 64]))
    step = true.step(*one)
    first, _ = fit_throughput(*one, step, step - true.computing(one[2]))
    assert first.step(1, 4, 16) == pytest.approx(float(true.step(1, 1, 16)), rel=0.01)
    more = [np.append(a, b) for a, b in zip(one, ([1, 1], [2, 4], [16, 16]), strict=True)]
    step = true.step(*more)
    second, error = fit_throughput(*more, step, step - true.computing(more[2]), start=first)
    assert error < 0.03
    assert second.step(1, 4, 16) == pytest.approx(float(true.step(1, 4, 16)), rel=0.05)


def test_gain_is_what_the_gradients_say():
    measured = Gradients("m", validation())
    for e, var in enumerate((2.0, 4.0, 6.0)):
        assert measured.gain(256)[e] == pytest.approx((var + 1) / (var / 8 + 1))
        assert gain(256, 32, noise=32 * var) == pytest.approx(measured.gain(256)[e])
    assert measured.gain(32).tolist() == [1.0] * 3


@pytest.mark.parametrize("gpus", [1, 2, 8])
def test_the_best_batch_is_that_of_a_search_by_hand(gpus):
    model = Throughput(0.05, 0.002, 0.1, 0.01, 0.05, 0.0, 1.5)
    measured = Gradients("m", validation())
    found = best_batch(model, measured, [1], [gpus], max_local=20, min_local=1)
    best = np.zeros(3)
    for size in np.geomspace(32, 256, 50):
        share = int(np.ceil(size / gpus - 1e-8))
        passes = int(np.ceil(share / 20 - 1e-8))
        if gpus == 1 and size > 32 + 1e-6:
            passes = max(passes, 2)
        local = int(np.ceil(share / passes - 1e-8))
        total = gpus * local * passes
        if total <= 256:
            best = np.maximum(best, measured.gain(total) / model.step(1, gpus, local, passes - 1))
    assert found.goodput[0] == pytest.approx(best)
    assert (found.local[0] <= 20).all()
    assert (found.batch[0] == gpus * found.local[0] * (found.accumulated[0] + 1)).all()


def test_a_larger_batch_is_allowed_no_further_than_the_owner_says():
    model = Throughput(0.5, 0.0001, 0.1, 0.01, 0.05, 0.0, 1.0)
    measured = Gradients("m", validation())
    free, held = (best_batch(model, measured, [1], [8], max_local=64, max_batch=b) for b in (np.inf, 100.0))
    assert free.batch.max() > 200
    assert held.batch.max() <= 100
    assert (held.goodput < free.goodput).all()
    fixed = best_batch(model, measured, [1], [8], max_local=64, batch=64)
    assert (fixed.batch == 64).all()


def test_tables_of_each_kind_of_job():
    workload = pl.DataFrame({"application": ["bert", "bert"], "batch_size": [96, 48], "num_replicas": [6, 10]})
    grads = validation("bert", (12, 96, 384), 2)
    tables = {adapt: job_speeds(workload, grads, CLUSTER, adapt=adapt) for adapt in ("all", "gpus", "type")}
    assert [t.models for t in tables.values()] == [("bert",), ("bert/48", "bert/96"), ("bert/48/10", "bert/96/6")]
    assert set(tables["type"].configurations("bert/96/6")["n_gpus"]) == {6}
    assert (
        tables["gpus"].configurations("bert/48")["n_gpus"].max() <= 48 // 4
    )  # no GPU below the smallest measured batch
    for model in tables["gpus"].models:  # a batch size that is chosen is never worse than one that is given
        one = tables["gpus"].configurations(model)
        many = tables["all"].configurations("bert")
        both = one.join(many, on=["gpu_type", "n_nodes", "n_gpus"], suffix="_best")
        assert (both["rate_best"] >= 0.97 * both["rate"]).all()
    assert job_names(workload, "gpus").to_list() == ["bert/96", "bert/48"]
    with pytest.raises(SpeedError, match="found adapt='some'"):
        job_speeds(workload, grads, CLUSTER, adapt="some")
    with pytest.raises(SpeedError, match="found no fit of 'bert' on 'h100'"):
        throughput_of("bert", "h100")


def test_a_hybrid_job_has_units_and_runs_under_sia():
    speeds = hybrid_speeds(validation("gpt_pmp", (12, 384), 2), CLUSTER)
    known = speeds.configurations()
    assert set(known.filter(gpu_type="dgx-ext")["n_gpus"]) == {2, 4, 8, 16}
    assert set(known.filter(gpu_type="rtx")["n_gpus"]) == {8, 16, 24}
    by_hand = 3 * (2 - 1 + 48) * float(throughput_of("gpt_pmp", "dgx-ext").computing(1))
    assert by_hand == pytest.approx(3 * 49 * 0.144, rel=1e-3)
    trace = pl.DataFrame({"job_id": ["a"], "submit": [0.0], "gpus": [2.0], "duration": [1.0], "model": ["gpt_pmp"]})
    run = simulate(trace, CLUSTER, Sia(), speeds=speeds)
    sizes = run.allocations.group_by("start").agg(pl.col("gpus").sum()).sort("start")["gpus"].to_list()
    assert sizes[0] in (2.0, 8.0)
    assert run.jobs["end"].null_count() == 0


def test_inference_has_units_of_some_gpus_and_at_most_sixteen():
    speeds = inference_speeds(CLUSTER, 1e6, model="llama", unit={"aws": (3800, 4), "rtx": (8170, 4)}, most=4)
    known = speeds.configurations()
    assert known.filter(gpu_type="aws")["n_gpus"].to_list() == [4, 8, 12, 16]
    assert known.filter(gpu_type="rtx")["rate"].to_list() == [8170.0, 16340.0, 4 * 8170.0]
    assert float(speeds.total[0]) == 1e6


@pytest.mark.data
def test_the_kept_fits_are_those_of_the_measurements(data_dir):
    steps = pl.read_parquet(data_dir / "profiles" / "step_time.parquet").filter(
        pl.col("model").is_in(["bert", "gpt_pmp"]), pl.col("gpu_type").is_in(["quad", "dgx-ext"])
    )
    for row in fit_all(steps).iter_rows(named=True):
        kept = fitted().filter(model=row["model"], gpu_type=row["gpu_type"]).row(0, named=True)
        assert kept["rows"] == row["rows"]
        assert kept["error"] == pytest.approx(row["error"], rel=0.02, abs=1e-4)
    assert fitted()["error"].median() < 0.12
    assert fitted().height == 38


@pytest.mark.data
def test_goodput_is_near_that_of_the_published_table(data_dir):
    """Half-way through training, on all configurations of the cluster; bert's table stays with smaller batch sizes."""
    published = goodput_speeds(pl.read_parquet(data_dir / "profiles" / "goodput.parquet"))
    workload = pl.DataFrame({"application": ["cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"]})
    ours = job_speeds(workload, pl.read_parquet(data_dir / "profiles" / "validation.parquet"), CLUSTER)
    from gpuschedlab.problems import sia_configurations

    types, nodes, gpus = sia_configurations(CLUSTER.node_type, CLUSTER.node_gpus)
    theirs = published.type_codes(CLUSTER.gpu_types)[types]
    for m, name in enumerate(ours.models):
        k = published.models.index(name)
        a = ours.rates([m], [ours.total[m] / 2], types, nodes, gpus)
        b = published.rates([k], [published.total[k] / 2], theirs, nodes, gpus)
        assert np.median(a / b) == pytest.approx(1.0, abs=0.1)


def one(speeds: Speeds, model: str, gpu_type: str, nodes: int, gpus: int, progress: float = 0.0) -> float:
    """Rate of one job in one configuration."""
    m = speeds.models.index(model)
    t = speeds.gpu_types.index(gpu_type)
    return speeds.rates([m], [progress], [t], [nodes], [gpus])[0, 0]


def test_goodput_is_divided_by_the_calibration_slowdown():
    rows = [(m, "t4", 1, 1, p, g) for m in ("cifar10", "ncf", "bert") for p, g in ((5.0, 3.6), (9.0, 7.2))]
    frame = pl.DataFrame(rows, schema=["model", "gpu_type", "n_nodes", "n_gpus", "progress", "goodput"], orient="row")
    speeds = goodput_speeds(frame)
    assert [one(speeds, m, "t4", 1, 1) for m in ("cifar10", "ncf", "bert")] == pytest.approx([2.0, 2.4, 3.0])
    assert one(speeds, "bert", "t4", 1, 1, progress=5.1) == pytest.approx(6.0)
    assert one(goodput_speeds(frame, calibrated=False), "bert", "t4", 1, 1) == pytest.approx(3.6)
    with pytest.raises(SpeedError, match="goodput_speeds: found no column 'goodput'"):
        goodput_speeds(frame.drop("goodput"))


def test_goodput_of_the_published_table(data_dir):
    frame = pl.read_parquet(data_dir / "profiles/goodput.parquet")
    speeds = goodput_speeds(frame)
    assert speeds.models == ("bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")
    slowdown = {"cifar10": 1.8, "ncf": 1.5}
    for row in frame.sample(200, seed=1).iter_rows(named=True):
        model, gpu_type, nodes, gpus, progress, goodput = row.values()
        expected = goodput / slowdown.get(model, 1.2)
        for at in (progress, progress - 1e-6):
            assert one(speeds, model, gpu_type, nodes, gpus, at) == pytest.approx(expected, rel=1e-6)
