"""Figures of sweeps: their numbers by hand, and what a reader must see."""

import numpy as np
import polars as pl
import pytest

from gpuschedlab import plots
from gpuschedlab.errors import RunError
from gpuschedlab.plots.sweep_figures import best
from gpuschedlab.sweep import Sweep

pytest.importorskip("plotly")


def by_hand() -> Sweep:
    """Fifo, and Fair with two knobs, under two seeds each."""
    rows = [("fifo", seed, None, None, 7200.0 + 3600 * seed, 0.5, 0) for seed in (0, 1)]
    for a, b, jct, use in (
        (10.0, "x", 1800, 0.6),
        (10.0, "y", 3600, 0.7),
        (1.0, "x", 5400, 0.8),
        (1.0, "y", 9000, 0.55),
    ):
        rows += [("fair", seed, a, b, jct + 360.0 * seed, use, 4) for seed in (0, 1)]
    names = ["policy", "seed", "a", "b", "jct_mean", "utilisation", "preemptions"]
    frame = pl.DataFrame(rows, schema=names, orient="row").with_columns(scenario=pl.lit("t"), cluster=pl.lit("c"))
    knobs = {"a": {"name": "a", "label": "a (s)", "log": True}, "b": {"name": "b", "label": "b", "log": False}}
    return Sweep(frame, knobs=knobs)


def test_lines_by_hand():
    found = plots.sweep_lines(by_hand(), "a")
    lines = list(found.values.values())
    assert list(found.values) == ["fifo", "fair, b x", "fair, b y"]
    assert found.x_title == {"title": {"text": "a (s)"}, "type": "log"}
    assert [line["x"].tolist() for line in lines] == [[1.0, 10.0]] * 3  # ascending; fifo across the whole width
    assert [line["y"].tolist() for line in lines] == [[2.5] * 2, [1.55, 0.55], [2.55, 1.05]]
    assert lines[1]["error_y"]["arrayminus"].tolist() == pytest.approx([0.05, 0.05])
    assert lines[1]["error_y"]["array"].tolist() == pytest.approx([0.05, 0.05])
    assert [line["customdata"].tolist() for line in lines] == [[2, 2]] * 3
    words = plots.sweep_lines(by_hand().filter(policy="fair"), "b", "utilisation")
    assert list(words.values) == ["a 10", "a 1"]
    assert words.values["a 1"]["x"].tolist() == ["x", "y"]


def test_map_by_hand():
    found = plots.sweep_map(by_hand(), "a", "b")
    assert (found.x, found.y, found.title) == (["1", "10"], ["x", "y"], "Average JCT of fair")
    assert found.z.tolist() == [[1.55, 0.55], [2.55, 1.05]]
    part = by_hand().filter(~((pl.col("a") == 1) & (pl.col("b") == "y")))
    assert np.isnan(plots.sweep_map(part, "a", "b").z[1, 0])
    two = pl.concat([by_hand().frame, by_hand().frame.with_columns(scenario=pl.lit("u"))])
    with pytest.raises(RunError, match="rows that differ in scenario too"):
        plots.sweep_map(two, "a", "b")


def test_front_by_hand():
    found = plots.sweep_front(by_hand(), ("jct_mean", "utilisation"))
    front, fifo, fair = found.data
    assert (fifo["name"], fair["name"]) == ("fifo", "fair")
    assert (fifo["x"].tolist(), fifo["y"].tolist()) == ([2.5], [0.5])
    assert fair["customdata"][0] == "fair, a 10, b x"
    assert (front["x"].tolist(), front["y"].tolist()) == ([0.55, 1.05, 1.55], [0.6, 0.7, 0.8])


def test_nothing_beats_the_best_and_something_beats_the_rest():
    rng = np.random.default_rng(0)
    for _ in range(50):
        cost = rng.integers(0, 6, (rng.integers(0, 12), 2)).astype(float)
        kept = best(cost)
        beaten = [((other <= own).all(1) & (other < own).any(1)).any() for own in cost for other in [cost]]
        assert {tuple(cost[i]) for i in kept} == {tuple(c) for c, b in zip(cost, beaten, strict=True) if not b}
        assert len(kept) == len({tuple(cost[i]) for i in kept})


@pytest.mark.parametrize("words", [{"x": "a"}, {"x": "a", "y": "b"}, {"metric": ("jct_mean", "utilisation")}])
def test_figures_have_titles_and_units(words):
    figure = plots.plot_sweep(by_hand(), **words)
    titles = [figure.layout[axis].title.text for axis in ("xaxis", "yaxis")]
    assert all(titles)
    assert figure.layout.title.text
    written = figure.to_json()
    assert "average JCT (h, lower is better)" in written
    assert ("a (s)" in titles[0]) == ("x" in words)


def test_lines_and_points_differ_without_colour():
    lines = plots.plot_sweep(by_hand(), "a").data
    assert len({(trace.line.dash, trace.marker.symbol) for trace in lines}) == 3
    assert plots.plot_sweep(by_hand(), "a").layout.xaxis.type == "log"
    points = plots.plot_sweep(by_hand(), metric=("jct_mean", "utilisation")).data[1:]
    assert len({trace.marker.symbol for trace in points}) == 2
    assert list(plots.plot_sweep(by_hand(), "a", "b").data[0].text[0]) == [
        "1.55",
        "0.55",
    ]  # hours, written in the fields


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"x": "c"}, "no column 'c'"),
        ({"x": "jct_mean"}, "no column 'jct_mean'"),
        ({"x": "a", "metric": "speed"}, "no metric 'speed'"),
        ({"x": "a", "metric": ("jct_mean", "utilisation")}, "expected x (lines)"),
        ({}, "expected x (lines)"),
        ({"metric": ("jct_mean", "jobs")}, "no metric 'jobs'"),
    ],
)
def test_what_cannot_be_drawn_is_said(words, told):
    with pytest.raises(RunError) as error:
        plots.plot_sweep(by_hand(), **words)
    assert told in str(error.value)
    with pytest.raises(RunError, match="expected a Sweep with finished cells"):
        plots.plot_sweep(by_hand().filter(policy="nobody"), "a")


def test_uneven_steps_are_drawn_beside_each_other():
    values = [0.0, 0.1, 0.3, 1.0, 3.0, 10.0]
    frame = pl.DataFrame({"policy": "mine", "seed": 0, "w": values, "jct_mean": [3600.0 * v for v in values]})
    figure = plots.plot_sweep(Sweep(frame, knobs={"w": {"label": "w", "log": False}}), "w")
    assert figure.layout.xaxis.type == "category"
    assert list(figure.data[0].x) == list(figure.layout.xaxis.categoryarray) == ["0", "0.1", "0.3", "1", "3", "10"]
    assert figure.layout.xaxis.title.text == "w (uneven steps)"
    even = Sweep(frame.with_columns(w=pl.Series(range(6))), knobs={"w": {"label": "w", "log": False}})
    assert plots.plot_sweep(even, "w").layout.xaxis.type is None


def test_two_metrics_make_a_front_however_they_are_given():
    names = ("jct_mean", "utilisation")
    fronts = [plots.sweep_front(by_hand(), *names), plots.sweep_front(by_hand(), names)]
    assert fronts[0].data[0]["x"].tolist() == fronts[1].data[0]["x"].tolist()
    assert plots.plot_sweep(by_hand(), *names).to_json() == plots.plot_sweep(by_hand(), metric=names).to_json()
    for wrong in (("jct_mean",), ("jct_mean", "utilisation", "makespan")):
        with pytest.raises(RunError, match="expected two metrics. Pass them as sweep_front"):
            plots.sweep_front(by_hand(), *wrong)


def test_a_front_shows_how_far_the_seeds_lie_apart():
    found = plots.sweep_front(by_hand(), "jct_mean", "utilisation")
    assert found.data[1]["x"].tolist() == [2.5]
    whiskers = plots.figure(found).data[1].error_x
    assert (whiskers.array[0], whiskers.arrayminus[0]) == (0.5, 0.5)  # h
