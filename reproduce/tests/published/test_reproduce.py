"""Published numbers and ours: the tables, what is put beside them, the page, and the chapters that are reproduced."""

import polars as pl
import pytest

from gpuschedlab.errors import LabError
from reproduce.published import SOURCES, Number, Ours, beside, read_table, reproduce
from reproduce.published.committed import FOLDER
from reproduce.published.numbers import SCHEMA, mean

ROW = dict.fromkeys(SCHEMA) | {
    "where": "table 1",
    "workload": "w",
    "policy": "p",
    "metric": "m",
    "value": 2.0,
    "kind": "data",
    "cause": "because",
}
NAME = Number("table 1", "w", "p", "m")


def table(**changed) -> pl.DataFrame:
    return pl.DataFrame([ROW | changed], schema=SCHEMA)


def stored(folder, rows) -> None:
    pl.DataFrame(rows, schema=SCHEMA).write_csv(folder / "made_up.csv")


def test_what_is_committed_is_of_a_source():
    """A source that is no longer found would take its tests with it."""
    assert {path.stem for path in FOLDER.glob("*.csv")} <= set(SOURCES)


@pytest.mark.parametrize("source", SOURCES)
def test_the_tables_are_complete(source):
    found = read_table(source)
    assert found.height > 10
    assert found.filter(pl.col("value").is_null() & pl.col("cause").is_null()).is_empty()


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([ROW, ROW], "a number twice"),
        ([ROW | {"kind": "guess"}], "a kind that is none of"),
        ([ROW | {"metric": None}], "a row without"),
        ([ROW | {"kind": "not here", "cause": None}], "without a cause"),
    ],
)
def test_a_wrong_table_is_an_error(tmp_path, rows, problem):
    stored(tmp_path, rows)
    with pytest.raises(LabError, match=problem):
        read_table("made_up", tmp_path)


def test_an_unknown_table_lists_those_that_there_are(tmp_path):
    stored(tmp_path, [ROW])
    with pytest.raises(LabError, match="found no table of 'no_such'; expected one of made_up"):
        read_table("no_such", tmp_path)
    with pytest.raises(LabError, match="found no table of 'no_such'; expected one of "):
        read_table("no_such")


@pytest.mark.parametrize(
    ("ours", "spread", "note"),
    [(2.1, None, ""), (2.3, None, "because"), (2.3, 0.5, ""), (1.0, 0.5, "because")],
)
def test_a_cause_stands_where_ours_is_off(ours, spread, note):
    row = beside("x", table(spread=spread), {NAME: ours}).row(0, named=True)
    assert row["ratio"] == pytest.approx(ours / 2)
    assert row["note"] == note


def test_a_difference_without_a_cause_says_so():
    assert beside("x", table(cause=None), {NAME: 3.0})["note"][0] == "off; no cause known"


def test_a_part_says_so_and_is_not_compared():
    row = beside("x", table(), {NAME: Ours(3.0, "Half of it.")}).row(0, named=True)
    assert (row["ours"], row["ratio"], row["note"]) == (3.0, 1.5, "Half of it. because")
    row = beside("x", table(), {NAME: Ours(3.0, "One of four.", whole=False)}).row(0, named=True)
    assert (row["ours"], row["ratio"], row["note"]) == (3.0, None, "One of four.")


def test_a_mean_has_its_spread_and_says_what_it_is_over():
    row = beside("x", table(), {NAME: mean({1: 1.0, 2: 3.0})}).row(0, named=True)
    assert (row["ours"], row["ours_spread"], row["over"]) == (2.0, pytest.approx(2**0.5), "workload 1, 2")


def test_what_is_missing_has_a_reason_or_is_an_error():
    assert beside("x", table(kind="not here"), {})["note"][0] == "because"
    assert beside("x", table(), {}, quick=True)["note"][0] == "not run with QUICK=1: make published SOURCE=x"
    assert beside("x", table(), {NAME: "no such trace"}).select("ours", "note").row(0) == (None, "no such trace")
    with pytest.raises(LabError, match="found no result for Number"):
        beside("x", table(), {})
    with pytest.raises(LabError, match=r"expected numbers of tables/x\.csv only"):
        beside("x", table(), {NAME._replace(metric="other"): 1.0})


def test_an_unknown_source_is_an_error():
    with pytest.raises(LabError, match="found 'sai'; expected some of "):
        reproduce(["sai"])


def test_a_sample_is_not_written_where_later_runs_are_held_to_it(tmp_path, monkeypatch):
    monkeypatch.setitem(SOURCES, "made_up", "no module")
    with pytest.raises(LabError, match="found --quick with --csv; expected whole numbers"):
        reproduce(["made_up"], tmp_path, quick=True, csv=tmp_path)
    assert not list(tmp_path.iterdir())
