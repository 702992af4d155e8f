"""Laws of speed tables, curves and delays: rates are those of the rows, times add up over phases, and tables join; refusals."""

import numpy as np
import polars as pl
import pytest

from gpuschedlab import Cluster, Delays, Speeds
from gpuschedlab.errors import LabError
from gpuschedlab.speeds import Curves, build, codes, default_speeds, elapsed, placement_speeds, single_speeds

ENDS = {"a": (50.0, 200.0), "b": (np.inf,)}
PACES = {"slow": 1.0, "fast": 2.5}
PLACES = [(1, 1, None), (1, 2, None), (2, 2, None), (None, 4, None), (2, 4, "3,1"), (2, 8, "4,4")]


def rate_of(kind: str, nodes, gpus: int, phase: int) -> float:
    """Rate of the rows below."""
    return PACES[kind] * gpus**0.8 / (nodes or 1) ** 0.3 / (1 + phase)


def frame() -> pl.DataFrame:
    """Two models on two types, in one or two phases, by nodes and by shape; a third with one speed."""
    rows = [
        (model, kind, nodes, gpus, shape, end, rate_of(kind, nodes, gpus, phase))
        for model, ends in ENDS.items()
        for kind in PACES
        for nodes, gpus, shape in PLACES
        for phase, end in enumerate(ends)
    ]
    rows += [("c", "slow", None, None, None, 90.0, 0.7)]
    return pl.DataFrame(rows, ["model", "gpu_type", "n_nodes", "n_gpus", "placement", "progress", "rate"], orient="row")


PAIRS = {("a", "b"): 0.8, ("b", "a"): 0.6, ("a", "a"): 0.5}


def table(**more) -> Speeds:
    merged = {pair: 2 * factor for pair, factor in PAIRS.items()}
    return Speeds.from_frame(frame(), sharing=PAIRS, merged=merged, transfer={("a", "b"): 3.0}, **more)


@pytest.fixture(scope="module")
def speeds() -> Speeds:
    return table()


def one_rate(speeds: Speeds, model: str, progress: float, kind: str, nodes: int, gpus: int) -> float:
    codes_of = speeds.model_codes([model]), speeds.type_codes([kind])
    return float(
        speeds.rates(codes_of[0], np.array([progress]), codes_of[1], np.array([nodes]), np.array([gpus]))[0, 0]
    )


@pytest.mark.parametrize("kind", PACES)
@pytest.mark.parametrize("model", ENDS)
def test_a_rate_is_that_of_its_row(speeds, model, kind):
    for nodes, gpus, shape in PLACES:
        if shape is None:
            for phase, begin in enumerate((0.0, *ENDS[model][:-1])):
                assert one_rate(speeds, model, begin + 1, kind, nodes or 3, gpus) == pytest.approx(
                    rate_of(kind, nodes, gpus, phase)
                )
    assert np.isnan(one_rate(speeds, model, 0.0, kind, 1, 3)), "no row of 3 GPUs"
    assert one_rate(speeds, "c", 0.0, "slow", 2, 7) == 0.7, "a row of any nodes and GPUs"
    assert np.isnan(one_rate(speeds, "c", 0.0, "fast", 1, 1))


def test_codes_are_read_back(speeds):
    kinds, nodes, gpus, shapes = build.decode(speeds.code, speeds.shapes)
    listed = {
        (model, kind, shape, nodes, gpus)
        for model, kind, nodes, gpus, shape in speeds.configurations()
        .select("model", "gpu_type", "n_nodes", "n_gpus", "placement")
        .rows()
    }
    assert len(listed) == len(speeds.code) == 25
    assert len(kinds) == len(nodes) == len(gpus) == len(shapes) == 25
    assert {speeds.gpu_types[kind] for kind in kinds} == set(PACES)
    assert {shape for shape in shapes if shape} == {"4,4", "1,3"}, "a shape and its rotations are one"
    assert speeds.configurations("c").height == 1
    assert speeds.model_codes(["b", None, "z"]).tolist() == [1, -1, -1]
    assert set(speeds.types_of(2)) == {"slow"}


@pytest.mark.parametrize("seed", range(20))
def test_the_smallest_rotation_is_found(seed):
    counts = np.random.default_rng(seed).integers(1, 4, 6)
    begin = codes.smallest_rotation(counts, len(counts))
    rotations = [np.roll(counts, -start).tolist() for start in range(len(counts))]
    assert rotations[begin] == min(rotations)


def test_time_adds_up_over_phases(speeds):
    """Of model a on one slow node with 2 GPUs: 50 at the first rate, then 70 at half of it."""
    first = rate_of("slow", 1, 2, 0)
    given = [
        np.array(values)
        for values in ([0, 0, 1, -1], [120.0, 30.0, 10.0, 5.0], [0, 0, 1, 0], [1, 1, 1, 1], [2, 2, 1, 1])
    ]
    found = elapsed.seconds_to(speeds, *given)
    fast = speeds.type_codes(["fast"])[0]
    assert found[0] == pytest.approx(50 / first + 70 / (first / 2))
    assert found[1] == pytest.approx(30 / first)
    assert found[2] == pytest.approx(10 / rate_of("fast" if fast == 1 else "slow", 1, 1, 0))
    assert np.isnan(found[3]), "without a model"
    ends = elapsed.segment_end(speeds, np.array([0, 0, 1, 2, -1]), np.array([0.0, 50.0, 7.0, 1.0, 0.0]))
    assert ends[:2].tolist() == [50.0, 200.0], "at an end itself, that of the next phase"
    assert ends[2:4].tolist() == [np.inf, 90.0]
    assert np.isnan(ends[4])


def test_tables_join_without_a_change(speeds):
    other = Speeds.from_frame(frame().with_columns(model=pl.col("model") + "2"))
    joined = Speeds.join(speeds, other)
    columns = ["model", "gpu_type", "n_nodes", "n_gpus", "placement", "rate"]
    both = pl.concat([speeds.configurations(), other.configurations()])
    assert joined.configurations().select(columns).sort(columns).equals(both.select(columns).sort(columns))
    assert one_rate(joined, "a2", 60.0, "fast", 1, 2) == one_rate(speeds, "a", 60.0, "fast", 1, 2)


def test_speeds_of_alike_models_are_relative_to_their_requests():
    alone = Speeds.from_frame(frame().filter(model="b"), relative=True)
    assert alone.relative.all()
    spread = pl.DataFrame(
        [("m", 2, 2, 0.8), ("m", 8, 2, 0.5), ("n", 4, 3, 0.9)],
        ["model", "n_gpus", "n_nodes", "relative_speed"],
        orient="row",
    )
    placed = placement_speeds(spread, nodes=6, gpus=16)
    kind = placed.gpu_types[0]
    assert one_rate(placed, "m", 0.0, kind, 1, 2) == 1.0
    assert one_rate(placed, "m", 0.0, kind, 2, 2) == pytest.approx(0.8)
    single = pl.DataFrame(
        {"model": ["s", "u"], "gpu_type": "x", "n_gpus": [4, 1], "max_progress": [100.0, 7.0], "goodput": [7.0, 1.0]}
    )
    made = single_speeds(single)
    assert one_rate(made, "s", 0.0, "x", 1, 4) == pytest.approx(7.0)
    assert set(default_speeds(Cluster.parse("4x8:v100,2x4:k80")).gpu_types) >= {"v100", "k80"}


def test_curves_are_linear_between_points():
    points = [("own", model, None, float(epoch), 0.9 - 0.5 / epoch) for model in "ab" for epoch in range(1, 9)]
    points += [
        (mode, "a", "b", float(epoch), 0.5 + epoch / 50) for mode in ("transfer", "merged") for epoch in range(1, 7)
    ]
    rows = pl.DataFrame(points, ["mode", "model", "other", "progress", "metric"], orient="row")
    curves = Curves.from_frame(rows, ["a", "b"])
    between = (0.9 - 0.5 / 2 + 0.9 - 0.5 / 3) / 2
    assert curves.at(np.array([0, 1, 1]), np.array([2.5, 1.0, 99.0])) == pytest.approx([between, 0.4, 0.9 - 0.5 / 8])
    pair = curves.at_pair("merged", np.array([0, 1]), np.array([1, 0]), np.array([3.0, 2.0]))
    assert pair[0] == pytest.approx(0.56)
    assert np.isnan(pair[1])
    assert curves.frame().height == rows.height
    turned = curves.under(["b", "a"])
    assert turned.at(np.array([1]), np.array([2.5])) == pytest.approx([between])
    with pytest.raises(LabError):
        Curves.from_frame(pl.DataFrame({"a": [1]}))
    with pytest.raises(LabError):
        curves.under(["a"])


def test_delays_by_hand():
    made = Delays(restart=20.0, switch=3.0, checkpoint=60.0, kinds={"warm": 2, "cold": {"vicuna": 50, "*": 20}})
    assert [made.seconds(kind, ["vicuna", "x"]).tolist() for kind in made.names] == [[50, 20], [2, 2]]
    assert made.table(["gpt2", "vicuna", None]).tolist() == [[20, 50, 20], [2, 2, 2]]


ROWS = frame()
REFUSED = [
    (lambda: Speeds.from_frame(ROWS.drop("rate")), "no column 'rate'"),
    (lambda: Speeds.from_frame(ROWS.with_columns(rate=-pl.col("rate"))), "rate"),
    (lambda: Speeds.from_frame(ROWS.with_columns(progress=0.0)), "progress"),
    (lambda: Speeds.from_frame(ROWS.with_columns(placement=pl.lit("x"))), "placement"),
    (lambda: Speeds.from_frame(ROWS.with_columns(n_gpus=pl.lit(0))), "0"),
    (lambda: Speeds.from_frame(pl.concat([ROWS, ROWS.head(1)])), "twice"),
    (lambda: Speeds.from_frame(ROWS, sharing={("a", "b"): -1.0}), "-1"),
    (lambda: Speeds.join(table(), table()), "a"),
    (lambda: table().configurations("z"), "z"),
    (lambda: Delays(restart=-1), "restart"),
    (lambda: Delays(switch=float("nan")), "switch"),
    (lambda: Delays(checkpoint=-2.0), "checkpoint"),
    (lambda: Delays(kinds={"a": -1}), "a"),
    (lambda: Delays(kinds={"a": {"*": "x"}}), "x"),
    (lambda: Delays().seconds("hot", ["x"]), "hot"),
]
"""Calls that are refused, and a word of the refusal."""


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_refusals_name_what_was_found(call, words):
    with pytest.raises(LabError, match=words):
        call()
