"""`gpuschedlab bench unisched` and `leases`: what their rows are made of, in small."""

import polars as pl
import pytest

from gpuschedlab.bench import leases, unisched
from gpuschedlab.errors import LabError


def test_published_rows_are_whole():
    frame = unisched.published()
    assert frame.columns == ["where", "workload", "cluster", "policy", "metric", "value", "spread", "kind"]
    assert frame.filter(pl.col("value").is_null() & pl.col("spread").is_null()).is_empty()
    named = set(frame["policy"])
    assert named <= set(unisched.POLICIES)


def test_ours_stands_beside_a_published_ratio():
    runs = [
        {"workload": "MIX1", "policy": "unisched", "violation": 0.5, "best_effort": 100.0},
        {"workload": "MIX1", "policy": "themis", "violation": 3.0, "best_effort": 150.0},
    ]
    rows = {(r["workload"], r["policy"], r["metric"]): r["ours"] for r in unisched.beside(runs)}
    assert rows["MIX1", "themis", "violation"] == 6.0
    assert rows["MIX1", "themis", "best_effort_jct"] == 1.5
    assert rows["MIX2", "themis", "violation"] is None


def test_unisched_has_to_be_better(monkeypatch):
    rate = {"unisched": 2.0, "fifo": 40.0, "themis": 1.0}
    monkeypatch.setattr(
        unisched, "measure", lambda d, w, p: {"workload": w, "policy": p, "violation": rate[p], "best_effort": 1.0}
    )
    assert unisched.run(None, ("SLO",), ("fifo", "unisched"))["ok"]
    assert not unisched.run(None, ("SLO",), ("fifo", "themis", "unisched"))["ok"]


def test_without_the_workloads_it_says_where_they_are_looked_for(tmp_path):
    with pytest.raises(LabError, match="expected the folder of the reference data"):
        unisched.workload(tmp_path, "SLO")


def test_a_crowd_is_decided_within_its_gap():
    found = leases.measure(10, 60, 20, rounds=3)
    assert found["gap"] < 0.05
    assert found["gpus"] == 80
