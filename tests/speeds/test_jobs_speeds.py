"""Speed tables: built from frames, looked up, joined, and refused when wrong."""

import pickle

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuschedlab.errors import SpeedError
from gpuschedlab.speeds import Speeds
from gpuschedlab.speeds.codes import RateRows, find_row

SCHEMA = ["model", "gpu_type", "n_nodes", "n_gpus", "rate"]


def table(*rows, columns=SCHEMA):
    return pl.DataFrame(rows, schema=columns, orient="row")


def rate(speeds, model, gpu_type, counts):
    """Rate of the first segment for GPUs on each node."""
    m = speeds.models.index(model)
    t = speeds.gpu_types.index(gpu_type)
    counts = np.array(counts)
    at = find_row(RateRows.of(speeds), m, t, len(counts), int(counts.sum()), counts)
    return speeds.rate[at] if at >= 0 else None


configurations = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["x", "y"]), st.integers(1, 3), st.integers(1, 6)),
    st.floats(0.01, 100),
    min_size=1,
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(configurations, st.randoms(use_true_random=False))
def test_every_row_of_a_frame_is_found_again_and_no_other(rows, random):
    items = [(*key, value) for key, value in rows.items()]
    random.shuffle(items)
    speeds = Speeds.from_frame(table(*items), gpu_types=["x", "y"])
    types, nodes, gpus = (a.ravel() for a in np.meshgrid([0, 1], [1, 2, 3, 4], range(1, 8), indexing="ij"))
    model = np.arange(len(speeds.models))
    found = speeds.rates(model, np.zeros(len(model)), types, nodes, gpus)
    for i, name in enumerate(speeds.models):
        for c in range(len(types)):
            expected = rows.get((name, "xy"[types[c]], int(nodes[c]), int(gpus[c])), np.nan)
            np.testing.assert_equal(found[i, c], expected)


def test_rates_follow_progress():
    columns = ["model", "gpu_type", "n_gpus", "progress", "rate"]
    rows = [("a", "x", g, p, 10.0 * g + i) for g in (2, 1) for i, p in ((1, 20.0), (0, 10.0))]
    speeds = Speeds.from_frame(table(*rows, columns=columns))
    progress = [0.0, 10.0, 10.1, 20.0, 99.0]
    found = speeds.rates([0] * 5, progress, [0, 0], [1, 3], [1, 2])
    assert found[:, 0].tolist() == [10, 10, 11, 11, 11]
    assert found[:, 1].tolist() == [20, 20, 21, 21, 21]
    assert speeds.total.tolist() == [20.0]


def test_a_placement_comes_before_its_nodes_and_gpus():
    rows = [("a", "x", 2, 4, None, 1.0), ("a", "x", 2, 4, "13", 2.0), ("a", "x", 2, 32, "16,16", 3.0)]
    speeds = Speeds.from_frame(table(*rows, columns=[*SCHEMA[:4], "placement", "rate"]))
    assert rate(speeds, "a", "x", [3, 1]) == rate(speeds, "a", "x", [1, 3]) == 2.0
    assert rate(speeds, "a", "x", [2, 2]) == 1.0
    assert rate(speeds, "a", "x", [16, 16]) == 3.0
    assert rate(speeds, "a", "x", [4]) is None
    assert speeds.configurations("a")["placement"].to_list().count("1,3") == 1


def test_null_nodes_stand_for_any_number():
    rows = [("a", "x", 1, 4, 4.0), ("a", "x", None, 4, 3.0), ("a", "x", None, None, 1.0)]
    speeds = Speeds.from_frame(table(*rows))
    assert [rate(speeds, "a", "x", c) for c in ([4], [2, 2], [1], [5, 5])] == [4.0, 3.0, 1.0, 1.0]


def test_configurations_make_the_same_table_again():
    rows = [("a", "x", 2, 4, "31", 2.0), ("b", "y", None, 4, None, 3.0), ("b", "x", 1, 1, None, 1.0)]
    speeds = Speeds.from_frame(table(*rows, columns=[*SCHEMA[:4], "placement", "rate"]))
    again = Speeds.from_frame(speeds.configurations(), gpu_types=speeds.gpu_types)
    for name in ("first", "code", "row", "rate", "seg_first", "seg_end"):
        np.testing.assert_array_equal(getattr(again, name), getattr(speeds, name))


def test_join_keeps_what_each_knows():
    columns = [*SCHEMA[:4], "placement", "rate"]
    a = Speeds.from_frame(table(("a", "x", 1, 2, None, 1.0), columns=columns), sharing={("a", "a"): 0.6})
    rows = [("b", "y", 1, 2, None, 2.0), ("b", "x", 2, 4, "13", 3.0), ("b", "x", 2, 4, "22", 4.0)]
    b = Speeds.from_frame(table(*rows, columns=columns), relative=True)
    both = Speeds.join(a, b)
    assert both.gpu_types == ("x", "y")
    assert rate(both, "a", "x", [2]) == 1.0
    assert rate(both, "b", "y", [2]) == 2.0
    assert rate(both, "b", "x", [3, 1]) == 3.0
    assert rate(both, "b", "x", [2, 2]) == 4.0
    assert rate(both, "b", "x", [2]) is None
    assert both.relative.tolist() == [False, True]
    assert both.sharing[0, 0] == 0.6
    assert np.isnan(both.sharing[0, 1])
    with pytest.raises(SpeedError, match="'a' in both"):
        Speeds.join(both, a)


def test_factors_of_pairs_are_matrices():
    rows = [("b", "x", 1, 1, 1.0), ("a", "x", 1, 1, 1.0)]
    pairs = {"sharing": {("a", "b"): 0.6}, "merged": {("b", "a"): 1.4, ("a", "b"): 0}, "transfer": {("a", "b"): 1.8}}
    one = Speeds.from_frame(table(*rows), **pairs)
    nan = np.nan
    np.testing.assert_equal(one.sharing, [[nan, 0.6], [nan, nan]])
    np.testing.assert_equal(one.merged, [[nan, 0.0], [1.4, nan]])
    np.testing.assert_equal(one.transfer, [[nan, 1.8], [nan, nan]])
    bare = Speeds.from_frame(table(("c", "x", 1, 1, 1.0)))
    assert bare.sharing is bare.merged is bare.transfer is None
    both = Speeds.join(bare, one)
    np.testing.assert_equal(both.merged, [[nan, nan, nan], [nan, nan, 0.0], [nan, 1.4, nan]])
    assert Speeds.join(bare, Speeds.from_frame(table(("d", "x", 1, 1, 1.0)))).merged is None


def test_names_become_codes():
    speeds = Speeds.from_frame(table(("b", "x", 1, 1, 1.0), ("a", "y", 1, 1, 1.0)))
    assert speeds.models == ("a", "b")
    assert speeds.model_codes(["b", None, "other", "a"]).tolist() == [1, -1, -1, 0]
    assert speeds.type_codes(["y", "z"]).tolist() == [1, -1]
    assert np.isnan(speeds.rates([-1], [0.0], [0], [1], [1])).all()


def test_it_shows_itself_and_survives_pickling():
    speeds = Speeds.from_frame(table(("a", "x", 1, 1, 1.0), ("a", "x", 1, 2, 4.0)))
    assert repr(pickle.loads(pickle.dumps(speeds))) == "Speeds(1 models on x; 2 configurations)"
    summary = speeds.summary().row(0, named=True)
    assert (summary["configurations"], summary["slowest"], summary["fastest"]) == (2, 1.0, 4.0)
    assert "configurations" in speeds._repr_html_()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop("rate"), "no column 'rate'"),
        (lambda f: f.clear(), "no rows"),
        (lambda f: f.with_columns(rate=pl.lit(-1.0)), "model 'a' on 'x' with 1 GPUs has rate -1.0"),
        (lambda f: f.with_columns(rate=pl.lit(None, pl.Float64)), "2 more rows like it"),
        (lambda f: f.with_columns(rate=pl.lit(float("inf"))), "expected a number > 0"),
        (lambda f: f.with_columns(rate=pl.lit("fast")), "wrong type"),
        (lambda f: f.with_columns(n_gpus=pl.lit(0)), "1 to 1048574"),
        (lambda f: f.with_columns(n_gpus=pl.lit(None, pl.Int64)), "null where n_gpus is null"),
        (lambda f: f.with_columns(progress=pl.lit(0.0)), "has progress 0.0"),
        (lambda f: f.with_columns(placement=pl.lit("1-3")), "found placement '1-3'"),
        (lambda f: pl.concat([f, f]), "none (no rotated placement) twice"),
        (lambda f: f.with_columns(progress=pl.Series([1.0, 2.0, 1.0])), "same progress"),
    ],
)
def test_a_wrong_frame_is_refused(change, message):
    frame = table(("a", "x", 1, 1, 1.0), ("a", "x", 1, 2, 2.0), ("b", "x", 1, 1, 3.0))
    with pytest.raises(SpeedError) as error:
        Speeds.from_frame(change(frame))
    assert message in str(error.value)


def test_an_unlisted_type_or_model_is_refused():
    frame = table(("a", "x", 1, 1, 1.0))
    with pytest.raises(SpeedError, match="GPU type 'x'"):
        Speeds.from_frame(frame, gpu_types=["y"])
    speeds = Speeds.from_frame(frame)
    with pytest.raises(SpeedError, match="no model 'b'"):
        speeds.configurations("b")
    with pytest.raises(SpeedError, match=r"expected \(n,\)"):
        speeds.rates([0], [0.0, 1.0], [0], [1], [1])
    with pytest.raises(SpeedError, match="found model 1"):
        speeds.rates([1], [0.0], [0], [1], [1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"models": ("a", "a")}, "each name once"),
        ({"first": [0, 1]}, "found first of shape"),
        ({"first": [0, 0, 3]}, "without entries"),
        ({"code": [2, 1, 5]}, "codes out of order"),
        ({"rate": [1.0, 0.0, 1.0]}, "a rate <= 0"),
        ({"rate": [1.0, np.inf, 1.0]}, "an infinite rate"),
        ({"row": [0, 1, 3]}, "rows beyond"),
        ({"seg_end": [0.0, 1.0]}, "segments out of order"),
        ({"sharing": np.ones((1, 1))}, "found sharing of shape"),
        ({"sharing": np.zeros((2, 2))}, r"found sharing\['a', 'a'\] = 0.0; expected a finite number > 0, or nan"),
        ({"sharing": [[np.nan, np.inf], [1, 1]]}, r"found sharing\['a', 'b'\] = inf"),
        ({"merged": np.ones((2, 1))}, r"found merged of shape \(2, 1\); expected \(2, 2\)"),
        ({"merged": [[0, 1], [-0.1, 1]]}, r"found merged\['b', 'a'\] = -0.1; expected a finite number >= 0"),
        ({"transfer": [[0, 1], [1, np.inf]]}, r"found transfer\['b', 'b'\] = inf"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(changes, message):
    fields = {
        "models": ("a", "b"),
        "gpu_types": ("x",),
        "first": [0, 2, 3],
        "code": [1, 2, 1],
        "row": [0, 1, 2],
        "rate": [1.0, 1.0, 1.0],
        "seg_first": [0, 1, 2],
        "seg_end": [np.inf, 1.0],
        "relative": [True, False],
    }
    Speeds(**fields)
    with pytest.raises(SpeedError, match=message):
        Speeds(**fields | changes)
