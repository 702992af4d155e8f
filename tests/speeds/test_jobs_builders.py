"""Speed tables from profiles: jobs of one phase, placement, and the shipped models."""

import math

import numpy as np
import polars as pl
import pytest

from gpuschedlab._data import path
from gpuschedlab.cluster import Cluster, Nodes
from gpuschedlab.errors import SpeedError
from gpuschedlab.speeds import Speeds, default_speeds, placement_speeds, single_speeds


def one(speeds: Speeds, model: str, gpu_type: str, nodes: int, gpus: int, progress: float = 0.0) -> float:
    """Rate of one job in one configuration."""
    m = speeds.models.index(model)
    t = speeds.gpu_types.index(gpu_type)
    return speeds.rates([m], [progress], [t], [nodes], [gpus])[0, 0]


def test_single_phase_jobs_run_on_any_number_of_nodes():
    row = {"model": "s", "gpu_type": "x", "n_gpus": 4, "max_progress": 100.0, "goodput": 7.0}
    speeds = single_speeds(pl.DataFrame([row]))
    assert [one(speeds, "s", "x", n, 4) for n in (1, 2, 4)] == [7.0] * 3
    assert math.isnan(one(speeds, "s", "x", 1, 3))
    assert speeds.total.tolist() == [100.0]


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
    nodes = nodes[can]
    gpus = gpus[can]
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


def test_shipped_figures_are_complete_and_at_most_one():
    table = pl.read_csv(path("models/models.csv"))
    assert table.filter(kind="gpu_type").height == 11 * 3
    assert table.filter(kind="partner").height == 6 * 6
    bounded = table.filter(pl.col("kind") != "gpu_type")["relative_speed"]
    assert ((bounded > 0) & (bounded <= 1)).all()
