"""Speeds from Gavel's throughputs, and the shipped figures that follow from them."""

import math

import numpy as np
import polars as pl

from gpuschedlab._data import path
from gpuschedlab.speeds import Speeds
from reproduce.papers.gavel.speeds import gavel_speeds


def one(speeds: Speeds, model: str, gpu_type: str, nodes: int, gpus: int, progress: float = 0.0) -> float:
    """Rate of one job in one configuration."""
    m = speeds.models.index(model)
    t = speeds.gpu_types.index(gpu_type)
    return speeds.rates([m], [progress], [t], [nodes], [gpus])[0, 0]


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


def test_shipped_figures_follow_from_the_measurements(data_dir, maker):
    gavel = pl.read_parquet(data_dir / "profiles/gavel_speed.parquet")
    slowdown = pl.read_csv(data_dir / "profiles/placement_slowdown.csv")
    derived = maker("models").model_figures(gavel, slowdown)
    shipped = pl.read_csv(path("models/models.csv"), schema_overrides=derived.schema)
    assert shipped.equals(derived)
