"""Sia's published numbers, of some workloads."""

import polars as pl
import pytest

from gpuschedlab.errors import LabError
from reproduce.papers.sia import ours as sia
from reproduce.papers.sia import workloads
from reproduce.published import read_table, reproduce


def test_a_source_without_data_is_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LabError, match=r"found no reference/sia_workloads\.parquet"):
        reproduce(["sia"], tmp_path, quick=True)


@pytest.mark.data
@pytest.mark.xdist_group("workloads of Sia")
def test_sia_is_near_the_thesis_and_another_implementation(data_dir):
    known = {("philly", 2): 0.66, ("saturn", 1): 0.53}
    done = {case: sia.measure(data_dir, "typed", "sia", *case) for case in known}
    for case, one in done.items():
        figures = workloads.figures([one])
        assert figures["avg_jct"] == pytest.approx(known[case], abs=0.02)  # on the same tables, with a general solver
        assert abs(figures["restarts"] - 3) <= 1


@pytest.mark.data
@pytest.mark.xdist_group("workloads of Sia")
def test_gavel_is_near_the_artifact(data_dir):
    found = workloads.figures([sia.measure(data_dir, "typed", "gavel", "philly", 1)])
    rows = read_table("sia").filter(pl.col("where") == "artifact, as run").select("metric", "value").rows()
    for metric, value in rows:
        assert found[metric] == pytest.approx(value, rel=0.05 if metric == "avg_jct" else 0.02)


@pytest.mark.data
@pytest.mark.xdist_group("workloads of Sia")
def test_without_the_restart_factor_jobs_restart_half_as_often_again(data_dir):
    with_it, without = (
        workloads.figures([sia.measure(data_dir, "typed", policy, "saturn", 1)])["restarts"]
        for policy in ("sia", "sia, no restart factor")
    )
    assert without >= 1.5 * with_it
