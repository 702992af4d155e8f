"""The check at the door."""

import polars as pl
import pytest

from gpuschedlab.errors import TraceError
from gpuschedlab.traces import SCHEMA, validate

GOOD = {"job_id": ["a", "b", "c"], "submit": [0.0, 5.0, 5.0], "gpus": [0.5, 1.0, 16.0], "duration": [60.0, 1.0, 9.5]}


def frame(**changes):
    return pl.DataFrame(GOOD | changes, strict=False)


def test_canonical_form():
    given = pl.DataFrame(
        {
            "extra": [1, 2, 3],
            "duration": [1, 2, 3],
            "job_id": [12, 2, 1],
            "gpus": [1, 2, 3],
            "submit": [7, 0, 0],
            "batch_size": [32.0, None, 64.0],
            "censored": ["true", None, "False"],
        }
    )
    trace = validate(given)
    assert trace.columns == ["job_id", "submit", "gpus", "duration", "censored", "batch_size", "extra"]
    assert trace["job_id"].to_list() == ["1", "2", "12"]
    assert trace["censored"].to_list() == [False, False, True]
    assert trace["batch_size"].to_list() == [64, None, 32]
    assert all(trace.schema[name] == SCHEMA[name].dtype for name in trace.columns if name in SCHEMA)
    assert validate(trace).equals(trace)


def test_ties_are_ordered_by_job_id():
    assert validate(frame(job_id=["z", "c", "b"]))["job_id"].to_list() == ["z", "b", "c"]


@pytest.mark.parametrize(
    ("changes", "row", "column", "found"),
    [
        ({"submit": [0.0, -1.0, 5.0]}, 2, "submit", "-1.0"),
        ({"submit": [0.0, None, 5.0]}, 2, "submit", "None"),
        ({"submit": [0.0, 1e12, 5.0]}, 2, "submit", "1000000000000.0"),
        ({"duration": [60.0, 0.0, 1.0]}, 2, "duration", "0.0"),
        ({"duration": [60.0, 1.0, 1e9]}, 3, "duration", "1000000000.0"),
        ({"duration": [60.0, float("nan"), 1.0]}, 2, "duration", "nan"),
        ({"duration": [60.0, float("inf"), 1.0]}, 2, "duration", "inf"),
        ({"duration": ["60", "soon", "1"]}, 2, "duration", "'soon'"),
        ({"gpus": [0.5, 1.5, 1.0]}, 2, "gpus", "1.5"),
        ({"gpus": [0.5, 1.0, -8.0]}, 3, "gpus", "-8.0"),
        ({"gpus": [0.5, 1.0, 1e7]}, 3, "gpus", "10000000.0"),
        ({"job_id": ["a", "a", "b"]}, 2, "job_id", "'a'"),
        ({"job_id": ["a", None, "b"]}, 2, "job_id", "None"),
        ({"status": ["completed", None, "lost"]}, 3, "status", "'lost'"),
        ({"kind": [None, "strict", "hard"]}, 3, "kind", "'hard'"),
        ({"batch_size": [8, 8.5, None]}, 2, "batch_size", "8.5"),
        ({"deadline": [None, 0.0, 3.0]}, 2, "deadline", "0.0"),
        ({"restart": [0.0, -1.0, 3.0]}, 2, "restart", "-1.0"),
        ({"reward": [0.0, float("nan"), -3.0]}, 2, "reward", "nan"),
        ({"censored": ["true", "maybe", None]}, 2, "censored", "'maybe'"),
    ],
)
def test_a_bad_value_is_named(changes, row, column, found):
    with pytest.raises(TraceError) as told:
        validate(frame(**changes), source="mine.csv")
    for word in (f"mine.csv, row {row}, column {column}", f"found {found}", f"expected {SCHEMA[column].expected}"):
        assert word in str(told.value)
    assert "more row" not in str(told.value)
    good, bad = validate(frame(**changes), on_bad="drop")
    assert good.height == 2
    assert bad["row"].to_list() == [row]
    assert str(bad["problem"][0]).startswith(f"column {column}")


def test_more_bad_rows_are_counted():
    with pytest.raises(TraceError, match=r"row 1, column gpus \(job a\): found 0.0; .*and 2 more rows"):
        validate(frame(gpus=[0.0, 0.0, -1.0]))
    with pytest.raises(TraceError, match=r"and 1 more row\."):
        validate(frame(gpus=[0.0, 0.0, 1.0]))


def test_missing_columns_and_strange_frames():
    with pytest.raises(TraceError, match="found the columns job_id, submit; expected also gpus, duration"):
        validate(frame().select("job_id", "submit"))
    with pytest.raises(TraceError, match="found a LazyFrame; expected a polars.DataFrame"):
        validate(frame().lazy())
    with pytest.raises(TraceError, match="expected 'raise' or 'drop'"):
        validate(frame(), on_bad="ignore")


def test_an_empty_trace_is_a_trace():
    assert validate(frame().clear()).height == 0
