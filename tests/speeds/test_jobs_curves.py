"""Learning curves: what metric a progress shows."""

import pickle

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuschedlab.errors import SpeedError
from gpuschedlab.speeds import Curves, Speeds

COLUMNS = ["mode", "model", "other", "progress", "metric"]
TYPES = (pl.Utf8, pl.Utf8, pl.Utf8, pl.Float64, pl.Float64)
ROWS = [
    ("own", "b", None, 1.0, 0.1),
    ("merged", "a", "b", 2.0, 0.6),
    ("own", "a", None, 3.0, 0.9),
    ("own", "a", None, 1.0, 0.5),
    ("merged", "a", "b", 1.0, 0.2),
    ("transfer", "a", "b", 1.0, 0.7),
    ("transfer", "b", "a", 1.0, 0.8),
]


def curves(rows=ROWS, models=None) -> Curves:
    return Curves.from_frame(pl.DataFrame(rows, schema=COLUMNS, orient="row"), models)


def test_a_curve_is_linear_between_its_points():
    found = curves().at([0, 0, 0, 0, 0, 1, 1, -1], [0.99, 1.0, 1.5, 3.0, 99.0, 0.0, 1.0, 1.0])
    np.testing.assert_allclose(found, [np.nan, 0.5, 0.6, 0.9, 0.9, np.nan, 0.1, np.nan], rtol=1e-12)


def test_a_pair_has_its_own_curves():
    table = curves()
    assert table.at_pair("merged", [0, 0], [1, 1], [1.0, 1.25]).tolist() == pytest.approx([0.2, 0.3])
    assert table.at_pair("transfer", [0, 1], [1, 0], [1.0, 5.0]).tolist() == [0.7, 0.8]
    nothing = table.at_pair("merged", [1, 0, -1, 0], [0, 0, 1, -1], np.ones(4))
    assert np.isnan(nothing).all()
    assert table.at([], []).shape == table.at_pair("merged", [], [], []).shape == (0,)


points = st.dictionaries(st.integers(0, 30), st.integers(-5, 5), min_size=1, max_size=6)


@given(st.dictionaries(st.sampled_from("abc"), points), st.lists(st.integers(0, 35), min_size=1), st.data())
def test_all_curves_at_once_are_each_interpolated(tables, progress, data):
    rows = [("own", m, None, float(p), float(v)) for m, table in tables.items() for p, v in table.items()]
    frame = pl.DataFrame(data.draw(st.permutations(rows)), schema=dict(zip(COLUMNS, TYPES)), orient="row")
    model = data.draw(st.lists(st.integers(0, 2), min_size=len(progress), max_size=len(progress)))
    found = Curves.from_frame(frame, "abc").at(model, np.array(progress, float))
    for value, m, p in zip(found, model, progress):
        table = sorted(tables.get("abc"[m], {}).items())
        below = [(x, y) for x, y in table if x <= p]
        above = [(x, y) for x, y in table if x > p]
        if not below:
            assert np.isnan(value)
        elif not above:
            assert value == below[-1][1]
        else:
            x0, y0 = below[-1]
            x1, y1 = above[0]
            assert value == pytest.approx(y0 + (y1 - y0) * (p - x0) / (x1 - x0))


def test_frames_come_back_and_names_may_move():
    table = curves()
    assert table.models == ("a", "b")
    again = Curves.from_frame(table.frame())
    moved = table.under(("x", "b", "a"))
    for name in ("mode", "model", "other", "first", "progress", "metric"):
        np.testing.assert_array_equal(getattr(again, name), getattr(table, name))
    assert moved.at([2, 1], [2.0, 1.0]).tolist() == table.at([0, 1], [2.0, 1.0]).tolist()
    assert moved.at_pair("transfer", [2], [1], [1.0]).tolist() == [0.7]
    assert repr(pickle.loads(pickle.dumps(table))) == "Curves(2 models; 2 own, 1 merged, 2 transfer)"
    plain = Curves.from_frame(pl.DataFrame({"model": ["a"], "progress": [1], "metric": [2]}))
    assert plain.at([0], [1.0]).tolist() == [2.0]
    with pytest.raises(SpeedError, match="found model 'a'; expected one of b, c"):
        table.under(("b", "c"))


def test_curves_of_different_models_join():
    other = curves([("own", "c", None, 1.0, 0.3)])
    both = Curves.join(curves(), other)
    assert both.models == ("a", "b", "c")
    assert both.at([0, 2], [1.0, 1.0]).tolist() == [0.5, 0.3]
    with pytest.raises(SpeedError, match="once in a curve"):
        Curves.join(both, other)


def test_speeds_bring_curves_into_their_order():
    def speeds(models, table):
        rows = pl.DataFrame({"model": models, "gpu_type": "x", "n_gpus": 1, "rate": 1.0})
        return Speeds.from_frame(rows, curves=table)

    one = speeds(["0", "a", "b"], curves())
    assert one.curves.at([1, 0], [1.0, 1.0])[0] == 0.5
    assert np.isnan(one.curves.at([0], [1.0])).all()
    two = speeds(["c"], curves([("own", "c", None, 1.0, 0.3)]))
    for both in (Speeds.join(one, two), Speeds.join(two, one)):
        assert both.curves.at(both.model_codes(["a", "c"]), [1.0, 1.0]).tolist() == [0.5, 0.3]
    bare = speeds(["d"], None)
    assert Speeds.join(bare, two).curves.at([1], [1.0]).tolist() == [0.3]
    assert Speeds.join(bare, speeds(["e"], None)).curves is None
    with pytest.raises(SpeedError, match="Curves: found model 'b'"):
        speeds(["a"], curves())


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("own", None, None, 1.0, 0.1), "own curve of model None has model None; expected a name"),
        (("alone", "b", None, 2.0, 0.1), "has mode alone; expected one of own, merged, transfer"),
        (("own", "b", "a", 2.0, 0.1), "model 'b' with 'a' has other a; expected a name, or null where the mode is own"),
        (("merged", "b", None, 2.0, 0.1), "merged curve of model 'b' has other None"),
        (("own", "b", None, -1.0, 0.1), "has progress -1.0; expected a finite number >= 0"),
        (("own", "b", None, np.inf, 0.1), "has progress inf"),
        (("own", "b", None, 1.0, 0.1), "has progress 1.0; expected a finite number >= 0, once in a curve. 1 more"),
        (("own", "b", None, 2.0, np.nan), "has metric nan; expected a finite number"),
        (("own", "b", None, 2.0, None), "has metric None"),
    ],
)
def test_a_wrong_point_is_named(row, message):
    with pytest.raises(SpeedError) as error:
        curves([*ROWS, row])
    assert message in str(error.value)


def test_wrong_questions_are_named():
    table = curves()
    with pytest.raises(SpeedError, match=r"found \(1,\) models, \(1,\) others, \(2,\) progress; expected \(n,\)"):
        table.at([0], [1.0, 2.0])
    with pytest.raises(SpeedError, match="found model 2; expected -1 to 1"):
        table.at([2], [1.0])
    with pytest.raises(SpeedError, match="found other -2; expected -1 to 1"):
        table.at_pair("merged", [0], [-2], [1.0])
    with pytest.raises(SpeedError, match="found mode 'never'; expected one of own, merged, transfer"):
        table.at_pair("never", [0], [1], [1.0])
    with pytest.raises(SpeedError, match="no column 'metric'"):
        Curves.from_frame(table.frame().drop("metric"))
    with pytest.raises(SpeedError, match="wrong type"):
        Curves.from_frame(table.frame().with_columns(metric=pl.lit("high")))
