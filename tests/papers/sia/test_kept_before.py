"""What an earlier version kept, in which papers lay elsewhere (`old/`): runs load, cells of sweeps are measured again with a word."""

import pickle
import shutil
import warnings
from pathlib import Path

import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.sim import Run
from gpuschedlab.sweep import sweep

OLD = Path(__file__).parent / "old"


@pytest.fixture(scope="module")
def scenario() -> lab.Scenario:
    """What the kept runs and cells are of, with Sia."""
    jobs = {"job_id": ["a", "b"], "submit": [0.0, 1.0], "gpus": [1.0, 1.0], "duration": [10.0, 5.0]}
    return lab.Scenario(pl.DataFrame(jobs), lab.Cluster.homogeneous(1, 2))


@pytest.fixture(scope="module")
def run(scenario) -> Run:
    return scenario.run(lab.Sia())


def test_a_pickled_run_loads(run):
    old = pickle.loads((OLD / "run.pickle").read_bytes())
    assert old.jobs.equals(run.jobs)
    assert old.allocations.equals(run.allocations)
    assert (old.info["policy"], old.info["knobs"]) == ("Sia", run.info["knobs"])


def test_a_kept_run_loads(run):
    old = Run.from_parquet(OLD / "run")
    assert old.jobs.equals(run.jobs)
    assert old.timeline.equals(run.timeline)


def test_kept_cells_are_measured_again_with_a_word(scenario, tmp_path):
    folder = shutil.copytree(OLD / "sweep", tmp_path / "sweep")
    old = {path.name for path in (folder / "cells").iterdir()}
    with pytest.warns(
        UserWarning, match=r"sweep: 1 cell in .*sweep came of other code, data or versions: measured again"
    ):
        found = sweep(scenario, [lab.Sia()], folder, progress=False)
    assert found.frame["jct_mean"].to_list() == [37.0]
    assert len({path.name for path in (folder / "cells").iterdir()} - old) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sweep(scenario, [lab.Sia()], folder, progress=False)
