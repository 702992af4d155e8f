"""Golden answers of speed tables, curves, delays, pairs and spreads."""

import numpy as np
import polars as pl
from golden_answers import digest, golden, refusal

from gpuschedlab import Cluster, Delays, Speeds
from gpuschedlab.speeds import Curves, build, codes, default_speeds, elapsed, placement_speeds, single_speeds


def frame() -> pl.DataFrame:
    """Two models on two types, in one to three phases, by nodes and by shape."""
    rows = []
    for m, ends in (("a", (50.0, 200.0)), ("b", (np.inf,))):
        for t, pace in (("slow", 1.0), ("fast", 2.5)):
            for nodes, gpus, shape in (
                (1, 1, None),
                (1, 2, None),
                (2, 2, None),
                (None, 4, None),
                (2, 4, "3,1"),
                (2, 8, "4,4"),
            ):
                rows += [
                    (m, t, nodes, gpus, shape, end, pace * gpus**0.8 / (nodes or 1) ** 0.3 / (1 + k))
                    for k, end in enumerate(ends)
                ]
    rows += [("c", "slow", None, None, None, 90.0, 0.7)]
    return pl.DataFrame(rows, ["model", "gpu_type", "n_nodes", "n_gpus", "placement", "progress", "rate"], orient="row")


PAIRS = {("a", "b"): 0.8, ("b", "a"): 0.6, ("a", "a"): 0.5}


def table(**more) -> Speeds:
    return Speeds.from_frame(
        frame(), sharing=PAIRS, merged={k: 2 * v for k, v in PAIRS.items()}, transfer={("a", "b"): 3.0}, **more
    )


def curves() -> Curves:
    points = [("own", m, None, float(e), 0.9 - 0.5 / e) for m in "ab" for e in range(1, 9)]
    points += [(mode, "a", "b", float(e), 0.5 + e / 50) for mode in ("transfer", "merged") for e in range(1, 7)]
    return Curves.from_frame(
        pl.DataFrame(points, ["mode", "model", "other", "progress", "metric"], orient="row"), ["a", "b"]
    )


@golden
def test_tables():
    speeds = table(rounding=2.0)
    types = np.array([0, 0, 1, 1, 1])
    nodes = np.array([1, 2, 2, 3, 2])
    gpus = np.array([2, 2, 4, 4, 8])
    model = np.array([0, 1, 2, -1])
    progress = np.array([60.0, 10.0, 0.0, 5.0])
    other = Speeds.from_frame(frame().with_columns(model=pl.col("model") + "2"), rounding=2.0)
    return {
        "table": digest(speeds),
        "rates": speeds.rates(model, progress, types, nodes, gpus),
        "late": speeds.rates(model, progress + 1e4, types, nodes, gpus),
        "places": speeds.places(types, nodes, gpus),
        "total": speeds.total,
        "types": [sorted(speeds.types_of(m)) for m in range(3)],
        "usable": speeds.usable(model, np.array([2.0, 3, 1, 1]), np.array([0, 1])),
        "ends": speeds.segment_ends(model, progress),
        "listed": speeds.configurations(),
        "one": speeds.configurations("c"),
        "summary": speeds.summary(),
        "joined": digest(Speeds.join(speeds, other)),
        "codes": [speeds.model_codes(["b", None, "z"]), speeds.type_codes(["fast", "new"])],
        "html": digest(speeds._repr_html_()),
        "relative": digest(Speeds.from_frame(frame().filter(model="b"), relative=True)),
        "elapsed": elapsed.seconds_to(
            speeds,
            model,
            np.array([120.0, 10, 30, 5]),
            np.array([0, 1, 0, 0]),
            np.array([1, 1, 1, 1]),
            np.array([2, 1, 1, 1]),
        ),
        "segment": elapsed.segment_end(speeds, model, progress),
        "decoded": digest(list(build.decode(speeds.code, speeds.shapes))),
        "rotated": [
            codes.smallest_rotation(np.array(counts), len(counts)) for counts in ([2, 1, 3], [1, 1], [4, 1, 4, 1])
        ],
    }


@golden
def test_curves():
    one = curves()
    return {
        "frame": one.frame(),
        "at": one.at(np.array([0, 1, 1]), np.array([2.5, 1.0, 99.0])),
        "pair": one.at_pair("merged", np.array([0, 1]), np.array([1, 0]), np.array([3.0, 2.0])),
        "measured": [one.measured(mode, 0, other, 4.0) for mode, other in (("own", -1), ("transfer", 1))],
        "under": digest(one.under(["b", "a"])),
        "refused": [refusal(Curves.from_frame, pl.DataFrame({"a": [1]})), refusal(one.under, ["a"])],
    }


@golden
def test_delays():
    made = Delays(restart=20.0, switch=3.0, checkpoint=60.0, kinds={"warm": 2, "cold": {"vicuna": 50, "*": 20}})
    wrong = [
        {"restart": -1},
        {"switch": float("nan")},
        {"checkpoint": -2.0},
        {"kinds": {"a": -1}},
        {"kinds": {"a": {"*": "x"}}},
    ]
    return {
        "table": made.table(["gpt2", "vicuna", None]),
        "seconds": [made.seconds(kind, ["vicuna", "x"]) for kind in made.names],
        "kept": made,
        "refused": [refusal(Delays, **each) for each in wrong] + [refusal(made.seconds, "hot", ["x"])],
    }


@golden
def test_other_makers():
    spread = pl.DataFrame(
        [("m", 2, 2, 0.8), ("m", 8, 2, 0.5), ("m", 8, 4, 0.2), ("n", 4, 3, 0.9)],
        ["model", "n_gpus", "n_nodes", "relative_speed"],
        orient="row",
    )
    single = pl.DataFrame(
        {"model": ["s", "u"], "gpu_type": "x", "n_gpus": [4, 1], "max_progress": [100.0, 7.0], "goodput": [7.0, 1.0]}
    )
    cluster = Cluster.parse("4x8:v100,2x4:k80,1x2:new")
    made = {
        "placement": placement_speeds(spread, nodes=6, gpus=16),
        "four": placement_speeds(spread, gpus_per_node=4, nodes=9, gpus=12),
    }
    return {
        name: digest(each)
        for name, each in (made | {"single": single_speeds(single), "default": default_speeds(cluster)}).items()
    }


@golden
def test_refusals():
    good = frame()
    wrong = [
        good.drop("rate"),
        good.with_columns(rate=-pl.col("rate")),
        good.with_columns(progress=0.0),
        good.with_columns(placement=pl.lit("x")),
    ]
    wrong += [
        good.with_columns(n_gpus=pl.lit(0)),
        good.with_columns(n_nodes=pl.lit(9)),
        pl.concat([good, good.head(1)]),
        good.head(0),
    ]
    found = [refusal(Speeds.from_frame, each) for each in wrong]
    found += [
        refusal(Speeds.from_frame, good, sharing={("a", "z"): 1.0}),
        refusal(Speeds.from_frame, good, sharing={("a", "b"): -1.0}),
    ]
    found += [
        refusal(table().rates, [7], [0.0], [0], [1], [1]),
        refusal(Speeds.join, table(), table()),
        refusal(table().configurations, "z"),
    ]
    return found
