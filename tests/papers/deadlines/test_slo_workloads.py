"""Workloads with deadlines: the Chronus artifact's files, UniSched's recipe on any trace, and what is refused."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gpuschedlab.check import small_trace
from gpuschedlab.errors import TraceError
from gpuschedlab.traces import read, validate, value_table, with_deadlines, with_start_delays

HEADER = "job_id,user,num_gpu,submit_time,duration,expect_time_list,expect_value_list,job_type\n"


def written(folder: Path, *rows: str) -> Path:
    file = folder / "job_info.csv"
    file.write_text(HEADER + "\n".join(rows) + "\n")
    return file


def test_rows_by_hand(tmp_path):
    notes = {}
    rows = (
        "a,u,8,2,30,45,10,strict",
        "b,u,1,1,20,30-40-50-60,10-8-5-2,soft",
        "c,u,2,3,25,1,10,best",
        "d,u,0,3,25,1,10,best",
    )
    trace = read("chronus", written(tmp_path, *rows), notes=notes)
    assert trace["job_id"].to_list() == ["b", "a", "c"]
    assert trace["submit"].to_list() == [60, 120, 180]
    assert trace["kind"].to_list() == ["soft", "strict", "best_effort"]
    deadlines, rewards = value_table(trace)
    assert deadlines.tolist() == [[1800, 2400, 3000, 3600], [2700, np.inf, np.inf, np.inf], [np.inf] * 4]
    assert rewards.tolist() == [[100, 80, 50, 20], [100, 0, 0, 0], [0] * 4]
    assert notes == {"cpu_only": 1}


@pytest.mark.parametrize(
    ("row", "column", "expected"),
    [
        ("a,u,1,2,30,0,10,strict", "expect_time_list", "above 0"),
        ("a,u,1,2,30,-5,10,strict", "expect_time_list", "above 0"),
        ("a,u,1,2,30,50-40,10-8,soft", "expect_time_list", "ascend"),
        ("a,u,1,2,30,40-50,8-10,soft", "expect_value_list", "never rise"),
        ("a,u,1,2,30,40-50,10,soft", "expect_value_list", "as many"),
        ("a,u,1,2,30,40,10,urgent", "job_type", "one of"),
    ],
)
def test_a_bad_deadline_names_row_and_column(tmp_path, row, column, expected):
    file = written(tmp_path, "z,u,1,1,20,30,10,strict", row)
    with pytest.raises(TraceError, match=rf"row 3, column {column} \(job a\).*expected .*{expected}"):
        read("chronus", file)
    good, bad = read("chronus", file, on_bad="drop")
    assert good["job_id"].to_list() == ["z"]
    assert bad["row"].to_list() == [3]


@pytest.mark.parametrize(
    ("columns", "column", "expected"),
    [
        ({"deadline": [60.0, -1.0]}, "deadline", "above 0"),
        ({"deadlines": [None, [0.0]], "rewards": [None, [1.0]]}, "deadlines", "above 0"),
        ({"deadlines": [None, [9.0, 9.0]], "rewards": [None, [2.0, 1.0]]}, "deadlines", "ascend"),
        ({"deadlines": [None, [8.0, 9.0]], "rewards": [None, [1.0, 2.0]]}, "rewards", "never rise"),
    ],
)
def test_a_trace_of_ones_own_is_held_to_the_same(columns, column, expected):
    base = {"job_id": ["a", "b"], "submit": [0.0, 1.0], "gpus": [1.0, 1.0], "duration": [60.0, 60.0]}
    with pytest.raises(TraceError, match=rf"row 2, column {column} .*{expected}"):
        validate(pl.DataFrame(base | columns))


def test_of_several_workloads_one_is_named(tmp_path):
    file = tmp_path / "all.parquet"
    frame = pl.read_csv(written(tmp_path, "a,u,1,2,30,45,10,strict")).with_columns(set=pl.lit("SLO"))
    pl.concat([frame, frame.with_columns(set=pl.lit("MIX1"), num_gpu=pl.lit(4, pl.Int64))]).write_parquet(file)
    assert read("chronus", file, workload="MIX1")["gpus"].to_list() == [4]
    for wrong in (None, "MIX3"):
        with pytest.raises(TraceError, match="expected one of MIX1, SLO"):
            read("chronus", file, workload=wrong)


def test_the_recipe_on_any_trace():
    """Shares within three standard deviations, first deadlines in the range, steps exact, valid, the same for a seed."""
    trace = small_trace(2000)
    made = validate(with_deadlines(trace, strict=0.3, soft=0.6, rng=1))
    shares = dict(made["kind"].value_counts(normalize=True).iter_rows())
    for kind, share in (("strict", 0.3), ("soft", 0.6), ("best_effort", 0.1)):
        assert abs(shares[kind] - share) < 3 * np.sqrt(share * (1 - share) / 2000)
    slo = made.filter(kind="soft")
    ratio = (slo["deadline"] / slo["duration"]).to_numpy()
    assert 1.1 <= ratio.min() < 1.12
    assert 1.98 < ratio.max() <= 2.0
    steps = np.array(slo["deadlines"].to_list()) / slo["deadline"].to_numpy()[:, None]
    np.testing.assert_allclose(steps, np.tile([1, 1.1, 1.2, 1.5], (slo.height, 1)))
    assert made.filter(kind="best_effort")["deadline"].null_count() == shares["best_effort"] * 2000
    assert with_deadlines(trace, strict=0.3, soft=0.6, rng=1).equals(with_deadlines(trace, strict=0.3, soft=0.6, rng=1))


@pytest.mark.parametrize(
    "wrong", [{"strict": 0.8, "soft": 0.3}, {"slack": (0.5, 2)}, {"steps": (1, 1)}, {"values": (1, 2, 3, 4)}]
)
def test_a_wrong_recipe_is_refused(wrong):
    with pytest.raises(TraceError, match="with_deadlines: found"):
        with_deadlines(small_trace(3), **wrong)


def test_start_delays_are_the_artifacts():
    trace = pl.DataFrame({"gpus": [0.25, 1.0, 2.0, 8.0]})
    assert with_start_delays(trace)["switch"].to_list() == [30, 30, 60, 120]
