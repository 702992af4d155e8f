"""The check at the door."""

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuschedlab.errors import TraceError
from gpuschedlab.estimators import known
from gpuschedlab.traces import SCHEMA, read_parquet, scale_load, slice_trace, validate, value_table, write_parquet

LIST = pl.List(pl.Float64)
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


# --- soft deadlines


def soft(deadlines, rewards, **more):
    return frame(deadlines=pl.Series(deadlines), rewards=pl.Series(rewards), **more)


TABLE = soft([[10, 20, 40], None, [5]], [[100, 50, 50], None, [0]])


def test_a_value_table_in_canonical_form():
    trace = validate(TABLE)
    assert trace.columns == [*GOOD, "deadline", "reward", "deadlines", "rewards"]
    assert trace["deadlines"].to_list() == [[10.0, 20.0, 40.0], None, [5.0]]
    assert trace["deadline"].to_list() == [10.0, None, 5.0]
    assert trace["reward"].to_list() == [100.0, None, 0.0]
    assert validate(trace).equals(trace)
    assert validate(TABLE.with_columns(deadline=pl.Series([None, 9, None])))["deadline"].to_list() == [10.0, 9.0, 5.0]
    assert validate(soft([None] * 3, [None] * 3))["deadline"].null_count() == 3


def test_a_value_table_survives_storing_slicing_and_scaling(tmp_path):
    trace = validate(TABLE)
    assert read_parquet(write_parquet(trace, tmp_path / "trace.parquet")).equals(trace)
    tables = ["deadline", "reward", "deadlines", "rewards"]
    assert slice_trace(trace, 1.0).select(tables).equals(trace[1:].select(tables))
    assert scale_load(trace, 2.0).select(tables).equals(trace.select(tables))  # all count from submission
    assert set(known(trace).columns) == set(trace.columns) - {"duration"}


@pytest.mark.parametrize(
    ("changes", "row", "column", "found", "expected"),
    [
        ({"deadlines": [[10, 10, 40], None, [5]]}, 1, "deadlines", "[10, 10, 40]", "deadlines that ascend"),
        ({"deadlines": [[10, 20, 40], None, []]}, 3, "deadlines", "[]", "at least one deadline, or null"),
        ({"deadlines": [[10, 20, 40], None, [0]]}, 3, "deadlines", "[0]", "seconds since submission, above 0"),
        ({"deadlines": [[-1, 20, 40], None, [5]]}, 1, "deadlines", "[-1, 20, 40]", "seconds since submission"),
        ({"deadlines": [[10.0, 20.0, math.inf], None, [5.0]]}, 1, "deadlines", "inf]", "seconds since submission"),
        ({"deadlines": [[10, None, 40], None, [5]]}, 1, "deadlines", "[10, None, 40]", "seconds since submission"),
        ({"deadlines": [["10", "soon", "40"], None, ["5"]]}, 1, "deadlines", "'soon'", "seconds since submission"),
        ({"deadlines": [10, None, None], "rewards": [None] * 3}, 1, "deadlines", "10", "a list of seconds"),
        ({"rewards": [[100, 50, 60], None, [0]]}, 1, "rewards", "[100, 50, 60]", "values that never rise"),
        ({"rewards": [[100, 50, -1], None, [0]]}, 1, "rewards", "[100, 50, -1]", "finite numbers from 0 up"),
        ({"rewards": [[math.nan, 50.0, 1.0], None, [0.0]]}, 1, "rewards", "[nan, 50.0, 1.0]", "finite numbers"),
        ({"rewards": [[100, 50], None, [0]]}, 1, "rewards", "[100, 50]", "as many values as `deadlines`"),
        ({"rewards": [[100, 50, 50], [1], [0]]}, 2, "rewards", "[1]", "as many values as `deadlines`"),
        ({"rewards": [[100, 50, 50], None, None]}, 3, "rewards", "None", "as many values as `deadlines`"),
        ({"deadline": [None, None, 6.0]}, 3, "deadline", "6.0", "the first of `deadlines`, or null"),
        ({"reward": [99.0, None, None]}, 1, "reward", "99.0", "the first of `rewards`, or null"),
        ({"deadline": ["soon", None, None]}, 1, "deadline", "'soon'", "seconds since submission, above 0"),
    ],
)
def test_a_bad_value_table_is_named(changes, row, column, found, expected):
    given = TABLE.with_columns(**{name: pl.Series(values) for name, values in changes.items()})
    with pytest.raises(TraceError) as told:
        validate(given)
    job = GOOD["job_id"][row - 1]
    for word in (f"trace, row {row}, column {column} (job {job}): found ", found, f"expected {expected}"):
        assert word in str(told.value)
    good, bad = validate(given, on_bad="drop")
    assert (good.height, bad["row"].to_list()) == (2, [row])


def test_a_value_table_has_two_columns():
    with pytest.raises(TraceError, match=r"expected also rewards. Give them, or drop deadlines."):
        validate(TABLE.drop("rewards"))
    with pytest.raises(TraceError, match=r"expected also deadlines. Give them, or drop rewards."):
        validate(TABLE.drop("deadlines"))


numbers = st.lists(st.integers(1, 99), min_size=1, max_size=5, unique=True).map(sorted)
jobs = st.one_of(st.none(), st.integers(1, 99), numbers)


@given(st.lists(st.tuples(jobs, st.booleans()), min_size=1, max_size=6))
def test_value_tables_as_arrays(rows):
    """Each job: no deadline, one (with or without a reward), or several, worth 90, 80, 70, ..."""
    worth = [90.0, 80.0, 70.0, 60.0, 50.0]
    several = [isinstance(d, list) for d, _ in rows]
    trace = pl.DataFrame(
        {
            "deadline": pl.Series([None if s else d for (d, _), s in zip(rows, several)], dtype=pl.Float64),
            "reward": pl.Series([None if s or not r else 7.0 for (_, r), s in zip(rows, several)], dtype=pl.Float64),
            "deadlines": pl.Series([d if s else None for (d, _), s in zip(rows, several)], dtype=LIST),
            "rewards": pl.Series([worth[: len(d)] if s else None for (d, _), s in zip(rows, several)], dtype=LIST),
        }
    )
    expected = [
        (d, worth[: len(d)]) if s else ([d] if d else [], [7.0 if r else 100.0] if d else [])
        for (d, r), s in zip(rows, several)
    ]
    steps = max(1, *(len(d) for d, _ in expected))
    deadlines, rewards = value_table(trace)
    assert deadlines.tolist() == [d + [math.inf] * (steps - len(d)) for d, _ in expected]
    assert rewards.tolist() == [r + [0.0] * (steps - len(r)) for _, r in expected]
    names = pl.Series("job_id", [str(i) for i in range(len(rows))])
    base = pl.DataFrame({"job_id": names, "submit": 0.0, "gpus": 1.0, "duration": 1.0})
    for again, array in zip(value_table(validate(pl.concat([base, trace], how="horizontal"))), (deadlines, rewards)):
        assert again.tolist() == array.tolist()


def test_without_deadlines_all_is_infinite():
    assert [a.tolist() for a in value_table(frame())] == [[[math.inf]] * 3, [[0.0]] * 3]
    assert [a.shape for a in value_table(frame().clear())] == [(0, 1), (0, 1)]
    assert [a.shape for a in value_table(validate(TABLE).clear())] == [(0, 1), (0, 1)]
