"""Golden answers of figures of nodes, jobs, traces and sweeps, as numbers and words; and of small parts of all figures."""

from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest
from golden_answers import digest, drawn, golden, refusal
from small_jobs import random_trace

from gpuschedlab import Cluster, Delays, Fifo, Outage, Scenario, Srtf, plots
from gpuschedlab.plots.bars import metric_axis
from gpuschedlab.plots.distributions import ecdf, size_bucket, time_steps
from gpuschedlab.plots.kinds import charts, style
from gpuschedlab.plots.load import bin_means
from gpuschedlab.plots.nodes.gpu_cells import free_cells
from gpuschedlab.plots.nodes.packed import pack_lanes
from gpuschedlab.plots.sweep_figures import best, differing
from gpuschedlab.plots.web import Place, picture, sides
from gpuschedlab.plots.web.encode import encoded, nested, plain
from gpuschedlab.sweep import Sweep

pytest.importorskip("plotly")


@cache
def scenario() -> Scenario:
    """Jobs of users on mixed nodes that fail."""
    trace = random_trace(40, 2, 1.4, 20).filter(pl.col("gpus") <= 8)
    trace = trace.with_columns(user=pl.Series([f"u{i % 13}" for i in range(trace.height)]))
    cluster = replace(Cluster.parse("2x8:fast,1x4:slow"), events=(Outage(0, 900.0, 2500.0), Outage(2, 3000.0, 3600.0)))
    return Scenario(trace, cluster, delays=Delays(restart=30.0, switch=5.0))


@cache
def run(name: str, log: bool = False):
    policy = {"fifo": Fifo(placement="pack"), "srtf": Srtf(), "buddy": Fifo(placement="buddy", backfill="greedy")}[name]
    return scenario().run(policy, log=log)


@golden
def test_nodes():
    last = run("fifo").info["now"]
    found = {}
    for name in ("fifo", "srtf", "buddy"):
        made = run(name, name == "srtf")
        found[name] = {
            "gantt": drawn(plots.gantt(made)),
            "by user": drawn(plots.gantt(made, by="user")),
            "part": drawn(plots.gantt(made, start=0.2 * last, end=0.5 * last, limit=9)),
            "one node": drawn(plots.gantt(made, nodes=[1])),
            "lanes": drawn(plots.job_lanes(made, 12)),
            "free": drawn(plots.free_space(made, 30)),
        }
        seated = plots.seats(made)
        found[name]["cells"] = [drawn(plots.cells(seated, k)) for k in range(0, 40, 7)]
        found[name]["seats"] = digest(seated)
    found["buddies"] = [drawn(plots.cells(plots.seats(run("buddy"), True), k)) for k in (3, 20)]
    found["busy"] = [plots.busy_window(run("fifo"), length) for length in (600.0, 5000.0, 1e9)]
    found["free blocks"] = [
        free_cells(np.array(held, bool), 8) for held in ([0, 0, 1, 0, 0, 0, 0, 0], [0] * 8, [1] * 8)
    ]
    rows = (
        np.array([0, 0, 0, 1, 1]),
        np.array([0.0, 2, 5, 0, 1]),
        np.array([4.0, 6, 9, 9, 3]),
        np.array([2, 1, 2, 4, 2]),
    )
    found["packed"] = refusal(pack_lanes, *rows, 4) == "nothing" and pack_lanes(*rows, 4)
    found["refused"] = [
        refusal(plots.gantt, run("fifo"), by="colour"),
        refusal(plots.gantt, run("fifo"), nodes=[9]),
        refusal(plots.gantt, run("fifo"), start=9.0, end=1.0),
    ]
    return found


@golden
def test_traces():
    traces = {"one": random_trace(80, 1), "two": random_trace(30, 2)}
    return {
        "arrivals": [drawn(plots.arrivals(traces, seconds)) for seconds in (3600.0, 600.0)],
        "durations": [drawn(plots.durations(traces, points)) for points in (500, 25)],
        "demand": drawn(plots.demand(traces)),
        "refused": [refusal(plots.arrivals, {}), refusal(plots.demand, {"none": traces["one"].head(0)})],
    }


def swept() -> Sweep:
    """Two policies with two knobs on two scenarios, one cell missing."""
    rng = np.random.default_rng(0)
    rows = [
        ("fifo", s, c, seed, None, None, *rng.uniform(1000, 9000, 2), rng.uniform(0.3, 0.9))
        for s in "tu"
        for c in "c"
        for seed in range(3)
    ]
    rows += [
        ("fair", s, c, seed, a, b, *rng.uniform(1000, 9000, 2), rng.uniform(0.3, 0.9))
        for s in "tu"
        for c in "c"
        for seed in range(3)
        for a in (1.0, 10.0, 100.0)
        for b in "xy"
    ]
    names = ["policy", "scenario", "cluster", "seed", "a", "b", "jct_mean", "queueing_mean", "utilisation"]
    knobs = {"a": {"name": "a", "label": "a (s)", "log": True}, "b": {"name": "b", "label": "b", "log": False}}
    return Sweep(pl.DataFrame(rows[:-1], schema=names, orient="row"), knobs=knobs)


@golden
def test_sweeps():
    one = swept().filter(scenario="t")
    return {
        "lines": [
            drawn(plots.sweep_lines(each, x, metric))
            for each, x, metric in ((swept(), "a", "jct_mean"), (one, "b", "utilisation"))
        ],
        "map": [drawn(plots.sweep_map(one, *axes)) for axes in (("a", "b"), ("b", "a", "utilisation"))],
        "front": [
            drawn(plots.sweep_front(swept(), *metrics))
            for metrics in (("jct_mean", "utilisation"), ("jct_mean", "queueing_mean"))
        ],
        "best": best(np.array([[1.0, 2.0], [2.0, 1.0], [2.0, 2.0], [1.0, 2.0]])),
        "differing": differing(swept().frame, ("seed",)),
        "refused": [
            refusal(plots.sweep_lines, swept(), "z"),
            refusal(plots.sweep_map, swept(), "a", "b"),
            refusal(plots.sweep_front, one, "jct_mean"),
        ],
    }


@golden
def test_kinds():
    x = np.arange(4.0)
    values = {"one": np.array([1.0, np.nan, 3, 2]), "two": np.arange(4.0)}
    made = {
        "lines": charts.Lines("Title", "x", "y", x, values),
        "bars": charts.Bars("Title", "x", "y", ["a", "b", "c", "d"], values),
        "points": charts.Points("Title", "x", "y", None, {"one": {"x": x, "y": x**2}}),
        "landscape": charts.Landscape(
            "Title", "x", "y", "z", x, x[:3], np.arange(12.0).reshape(3, 4), {"way": np.array([[0.0, 1], [2, 2]])}
        ),
    }
    return {name: drawn(plots.draw(each)) for name, each in made.items()} | {"lanes": charts.Lanes.__doc__ is not None}


@golden
def test_small_parts():
    seconds = np.array([0.5, 30.0, 200.0, 9000.0, 1e6])
    deep = style.Drawing(
        [{"x": np.arange(3.0), "y": [1, 2, 3], "marker_size": 4}],
        [{"type": "scatter", "marker": {"color": "red"}}],
        {"title_text": "t", "xaxis_range": [0, 1]},
        {"xaxis": {"title": {"text": "x"}}},
    )
    return {
        "readable": style.readable(seconds),
        "spoken": [style.spoken(s) for s in [*seconds, None]],
        "looks": style.looks([f"p{i}" for i in range(12)]),
        "bar": [style.bar(i) for i in (0, 9, 21)],
        "line": [style.line(i) for i in (0, 3, 11)],
        "luminance": [style.luminance(colour) for colour in ("#000000", "#0072B2", "#FFFFFF")],
        "middles": [style.middles(np.array([0.0, 3600, 7200])), style.middles(np.array([0.0, 60]), 60)],
        "texts": style.texts(np.array([[0.123, np.nan], [2.0, 3.5]])),
        "template": digest(style.template()),
        "ecdf": [ecdf(np.arange(100.0) ** 2, points) for points in (30, 500)],
        "steps": digest(time_steps(seconds, np.linspace(0.2, 1, 5))),
        "bins": bin_means(np.array([0.0, 4, 6, 10]), np.array([1.0, 3, 0, 5]), np.linspace(-2, 12, 8)),
        "sizes": size_bucket(np.array([0.5, 1, 2, 3, 8, 9, 17])),
        "axes": [metric_axis(metric) for metric in ("jct_mean", "seconds", "gpu_time", "late", "preemptions")],
        "nested": digest(nested({"xaxis_range": [0, 1], "title_text": "a", "legend": 3})),
        "plain": digest(plain(deep)),
        "encoded": digest(encoded({"a": np.arange(3, dtype="f4"), "b": np.array(["x", "y"]), "c": [1, None]})),
        "shaded": picture.shaded({"color": "#0072B2", "list": ["#FFFFFF", "red"]}),
        "words": [sides.words(text) for text in ("a<br>b", "<b>x</b> &amp; y", None)],
        "spelled": [
            sides.spelled(value, form) for value, form in ((0.256, ".0%"), (1234.5, ",.0f"), (3.0, ""), ("x", ""))
        ],
        "place": Place("a", 200)._asdict(),
    }


@golden
def test_pictures():
    """Size and colours of pictures, coarsely: fonts differ between machines."""
    found = {}
    for name, made in {
        "gantt": plots.gantt(run("fifo")),
        "durations": plots.durations({"one": random_trace(50, 1)}),
        "demand": plots.demand({"one": random_trace(50, 1)}),
    }.items():
        raw, title = picture.png(plots.draw(made), 320, 200)
        found[name] = [title, raw[16:24] == (320).to_bytes(4, "big") + (200).to_bytes(4, "big")]
    return found
