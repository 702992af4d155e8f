"""Speed tables from profiles: goodput, Gavel, placement, the shipped models, and fixed jobs of the Pollux artifact."""

import math

import numpy as np
import polars as pl
import pytest

from gpuschedlab import Fifo, simulate
from gpuschedlab._data import path
from gpuschedlab.cluster import Cluster, Nodes
from gpuschedlab.errors import SpeedError
from gpuschedlab.speeds import (
    Speeds,
    default_speeds,
    gavel_speeds,
    goodput_speeds,
    placement_speeds,
    pollux_names,
    pollux_speeds,
    single_speeds,
)
from gpuschedlab.speeds.codes import find_row


def one(speeds: Speeds, model: str, gpu_type: str, nodes: int, gpus: int, progress: float = 0.0) -> float:
    """Rate of one job in one configuration."""
    m, t = speeds.models.index(model), speeds.gpu_types.index(gpu_type)
    return speeds.rates([m], [progress], [t], [nodes], [gpus])[0, 0]


# Goodput


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


def test_single_phase_jobs_run_on_any_number_of_nodes():
    row = {"model": "s", "gpu_type": "x", "n_gpus": 4, "max_progress": 100.0, "goodput": 7.0}
    speeds = single_speeds(pl.DataFrame([row]))
    assert [one(speeds, "s", "x", n, 4) for n in (1, 2, 4)] == [7.0] * 3
    assert math.isnan(one(speeds, "s", "x", 1, 3))
    assert speeds.total.tolist() == [100.0]


# Gavel


def gavel_frame():
    columns = ["gpu_type", "model", "n_gpus", "partner", "partner_gpus", "iters_per_s", "partner_iters_per_s"]
    rows = [
        ("v100", "a", 1, None, None, 10.0, None),
        ("v100_unconsolidated", "a", 1, None, None, 10.0, None),
        ("v100", "a", 8, None, None, 64.0, None),
        ("v100_unconsolidated", "a", 8, None, None, 16.0, None),
        ("k80", "a", 1, None, None, 2.0, None),
        ("v100", "b", 1, None, None, 4.0, None),
        ("k80", "b", 1, None, None, 0.0, None),
        ("v100", "a", 1, "a", 1, 6.0, 6.0),
        ("v100", "a", 1, "b", 1, 5.0, 3.0),
        ("v100", "b", 1, "b", 1, 0.0, 0.0),
    ]
    return pl.DataFrame(rows, schema=columns, orient="row")


def test_gavel_tells_the_fewest_nodes_from_more():
    speeds = gavel_speeds(gavel_frame(), gpus_per_node=4)
    assert speeds.gpu_types == ("k80", "v100")
    assert [one(speeds, "a", "v100", n, 8) for n in (2, 3, 8)] == [64.0, 16.0, 16.0]
    assert one(speeds, "a", "k80", 1, 1) == 2.0
    assert math.isnan(one(speeds, "b", "k80", 1, 1))  # out of memory
    assert math.isnan(one(speeds, "a", "k80", 1, 8))


def test_gavel_packs_what_was_measured_together():
    speeds = gavel_speeds(gavel_frame())
    np.testing.assert_allclose(speeds.sharing, [[0.6, 0.5], [0.75, np.nan]])
    np.testing.assert_allclose(gavel_speeds(gavel_frame(), unpacked=0.55).sharing, [[0.6, np.nan], [np.nan] * 2])


# Placement and the shipped models


def test_placement_speeds_repeat_the_measurements(data_dir):
    table = pl.read_csv(data_dir / "profiles/placement_slowdown.csv")
    speeds = placement_speeds(table)
    assert speeds.relative.all()
    for model, gpus, nodes, speed in table.iter_rows():
        assert one(speeds, model, "gpu", nodes, gpus) == pytest.approx(min(speed, 1.0))


@pytest.mark.parametrize("gpus_per_node", [1, 4, 8])
def test_placement_speeds_know_all_that_nodes_can_give(gpus_per_node):
    rows = [("m", 2, 2, 0.8), ("m", 8, 2, 0.5), ("m", 8, 4, 0.2)]
    table = pl.DataFrame(rows, schema=["model", "n_gpus", "n_nodes", "relative_speed"], orient="row")
    speeds = placement_speeds(table, gpus_per_node=gpus_per_node, nodes=12, gpus=20)
    nodes, gpus = (a.ravel() for a in np.mgrid[1:13, 1:21])
    can = (nodes <= gpus) & (gpus <= nodes * gpus_per_node)
    nodes, gpus = nodes[can], gpus[can]
    found = speeds.rates([0], [0.0], np.zeros(len(nodes), int), nodes, gpus)[0]
    fewest = -(-gpus // gpus_per_node)
    assert ((found >= 0.2) & (found <= 1)).all()
    assert (found[nodes == fewest] == 1).all()
    assert (found[(nodes > fewest) & (gpus > 1)] < 1).all()


def test_placement_speeds_lie_between_the_measurements():
    rows = [("m", 2, 2, 0.8), ("m", 8, 2, 0.5), ("m", 8, 8, 0.1)]
    table = pl.DataFrame(rows, schema=["model", "n_gpus", "n_nodes", "relative_speed"], orient="row")
    speeds = placement_speeds(table)
    assert one(speeds, "m", "gpu", 4, 8) == pytest.approx(0.3)  # half way in log2 of nodes
    assert one(speeds, "m", "gpu", 2, 4) == pytest.approx(0.65)  # half way in log2 of GPUs
    assert one(speeds, "m", "gpu", 4, 16) == pytest.approx(0.5)  # twice the fewest nodes
    with pytest.raises(SpeedError, match="relative_speed <= 0"):
        placement_speeds(table.with_columns(relative_speed=pl.lit(0.0)))


def test_default_speeds_cover_the_cluster():
    cluster = Cluster((Nodes("k80", 3, 8), Nodes("new", 2, 4), Nodes("v100", 2, 8)))
    speeds = default_speeds(cluster)
    assert default_speeds(Cluster(cluster.groups)) is speeds
    assert len(speeds.models) == 11
    assert speeds.gpu_types == cluster.gpu_types
    for t, (width, nodes) in enumerate([(8, 3), (4, 2), (8, 2)]):
        for n in range(1, nodes + 1):
            gpus = np.arange(n, n * width + 1)
            found = speeds.rates(range(11), np.zeros(11), np.full(len(gpus), t), np.full(len(gpus), n), gpus)
            assert np.isfinite(found).all()
    assert one(speeds, "resnet50", "new", 1, 4) == one(speeds, "resnet50", "v100", 1, 4) == 1.0
    assert 0.1 < one(speeds, "resnet50", "k80", 1, 4) < 0.2
    assert one(speeds, "lm", "v100", 2, 2) < 0.3
    assert np.isfinite(speeds.sharing).sum() == 36


def test_default_speeds_take_jobs_larger_than_the_table():
    speeds = default_speeds(Cluster.homogeneous(100, 8))
    assert one(speeds, "vgg16", "v100", 64, 512) == 1.0
    assert one(speeds, "vgg16", "v100", 100, 256) < 1.0


def test_shipped_figures_follow_from_the_measurements(data_dir, maker):
    gavel = pl.read_parquet(data_dir / "profiles/gavel_speed.parquet")
    slowdown = pl.read_csv(data_dir / "profiles/placement_slowdown.csv")
    derived = maker("models").model_figures(gavel, slowdown)
    shipped = pl.read_csv(path("models/models.csv"), schema_overrides=derived.schema)
    assert shipped.equals(derived)


def test_shipped_figures_are_complete_and_at_most_one():
    table = pl.read_csv(path("models/models.csv"))
    assert table.filter(kind="gpu_type").height == 11 * 3
    assert table.filter(kind="partner").height == 6 * 6
    bounded = table.filter(pl.col("kind") != "gpu_type")["relative_speed"]
    assert ((bounded > 0) & (bounded <= 1)).all()


# Fixed jobs of the Pollux artifact


def pollux_profiles():
    """One application, profiled on 1 and 2 nodes of up to 2 GPUs; two local and two validated batch sizes."""
    rows = []
    for placement, base in (("1", 1.0), ("2", 1.5), ("11", 2.0), ("12", 3.0), ("22", 4.0)):
        gpus = sum(map(int, placement))
        rows += [("app", "aws", placement, len(placement), gpus, b, base + b / 10, base / 2) for b in (10, 20)]
    rows += [("app", "aws", None, 3, g, b, 5.0 + b / 10, 1.0) for g in (3, 6) for b in (10, 20)]
    names = ["model", "gpu_type", "placement", "n_nodes", "n_gpus", "local_bsz", "step_time", "sync_time"]
    steps = pl.DataFrame(rows, schema=names, orient="row")
    rows = [("app", 10, e, 100.0 * (e + 1), 1.0, 1.0) for e in range(2)]
    rows += [("app", 40, e, 90.0 * (e + 1), 3.0, 1.0) for e in range(2)]
    names = ["model", "batch_size", "epoch", "progress", "grad_sqr", "grad_var"]
    return steps, pl.DataFrame(rows, schema=names, orient="row")


def pollux(batch, gpus, **options):
    columns = ["application", "batch_size", "num_replicas"]
    workload = pl.DataFrame([("app", batch, gpus)], schema=columns, orient="row")
    return pollux_speeds(*pollux_profiles(), workload, whole_seconds=False, **options)


def looked_up(speeds, counts):
    counts = np.array(counts)
    row = find_row(speeds.first, speeds.code, speeds.row, 0, 0, len(counts), int(counts.sum()), counts)
    return speeds.rate[row]


def test_pollux_rate_is_gain_over_step_time():
    speeds = pollux(40, 3)
    assert speeds.models == ("app/40/3",)
    assert speeds.seg_end.tolist() == [90.0, 180.0]  # the smallest over batch sizes
    # 14 on each of 3 GPUs would exceed the largest validated batch, 40: 13 on each, hence 39 a step
    assert looked_up(speeds, [1, 2]) == pytest.approx(_gain(39) / (3.0 + 13 / 10))
    assert _gain(40) == pytest.approx((1 + 3) / (1 / 4 + 3))


def _gain(batch):
    w = (batch - 10) / 30
    sqr, var = 1 + 2 * w, 1.0
    return (var + sqr) / (var * 10 / batch + sqr)


def test_pollux_steps_accumulate():
    # 40 on one GPU, at most 20 at once: two steps, one of them without synchronisation
    step, sync = 1.0 + 2.0, 0.5
    assert looked_up(pollux(40, 1), [1]) == pytest.approx(_gain(40) / (2 * step - sync))


def test_pollux_placements_are_equal_in_any_order_and_else_interpolated():
    speeds = pollux(30, 3)
    assert looked_up(speeds, [1, 2]) == looked_up(speeds, [2, 1]) == pytest.approx(_gain(30) / 4.0)
    assert looked_up(speeds, [1, 1, 1]) == pytest.approx(_gain(30) / 6.0)
    assert looked_up(speeds, [3]) > 0  # beyond what was profiled: the nearest


def test_pollux_epochs_last_whole_seconds():
    columns = ["application", "batch_size", "num_replicas"]
    workload = pl.DataFrame([("app", 30, 3)], schema=columns, orient="row")
    speeds = pollux_speeds(*pollux_profiles(), workload)
    assert speeds.rounding == 1.0
    assert pollux(30, 3).rounding == 0.0
    job = pl.DataFrame({"job_id": ["a"], "submit": [0.0], "gpus": [3], "duration": [1.0], "model": ["app/30/3"]})
    run = simulate(job, Cluster.parse("2x2:aws"), Fifo(placement="widest"), speeds=speeds)
    assert run.jobs["end"][0] == 2 * round(90.0 * 4.0 / _gain(30))
    assert pollux_names(workload).to_list() == list(speeds.models)


def test_pollux_needs_profiles():
    with pytest.raises(SpeedError, match="no step times or validation of 'app'"):
        pollux(10, 1, gpu_type="t4")
