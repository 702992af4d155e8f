"""The numbers behind the figures, exactly; and what the figures must show to be read."""

import importlib
import inspect
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from present import whole
from stand_in import StandIn, allocation_frame, hand_run, plain_run

import gpuschedlab as lab
from gpuschedlab import _faces, metrics, plots
from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import MissingExtra, RunError
from gpuschedlab.plots.distributions import ecdf
from gpuschedlab.plots.kinds import style
from gpuschedlab.plots.kinds.charts import Landscape
from gpuschedlab.plots.load import bin_means
from gpuschedlab.plots.nodes.packed import pack_lanes
from gpuschedlab.speeds import default_speeds

go = pytest.importorskip("plotly.graph_objects")


@pytest.fixture(scope="module")
def runs() -> dict:
    return {"First": plain_run(400, 4, seed=1), "Shortest": plain_run(400, 4, seed=1, shortest=True)}


def all_numbers(runs: dict) -> dict:
    return {
        "jct": plots.jct_cdf(runs),
        "fairness": plots.fairness_cdf(runs),
        "load": plots.load_over_time(runs, 50),
        "sizes": plots.slowdown_by_size(runs),
        "gantt": plots.gantt(runs["First"]),
        "gantt by user": plots.gantt(runs["First"], by="user"),
        "interruptions": plots.interruptions(runs),
        "metric": plots.metric_bars(runs, "jct_p99"),
    }


KINDS = ("preemptions", "restarts", "failures")
NAMES = tuple(all_numbers({"First": hand_run(), "Shortest": hand_run()}))


def test_ecdf_points_are_order_statistics():
    values = np.random.default_rng(0).exponential(size=3_000)
    x, share = ecdf(values, 200)
    assert len(x) <= 200
    assert np.allclose([np.mean(values <= v) for v in x], share)
    assert x[0] == values.min()
    assert x[-20:].tolist() == sorted(values)[-20:]
    assert [len(part) for part in ecdf(np.zeros(0))] == [0, 0]


def test_jct_cdf_by_hand():
    found = plots.jct_cdf(hand_run())
    (curve,) = found.values.values()
    assert list(found.values) == ["Hand"]
    assert (curve["x"] * 3600).tolist() == pytest.approx([6.0, 10.0, 20.0, 23.0])
    assert curve["y"].tolist() == [0.25, 0.5, 0.75, 1.0]
    assert curve["meta"].endswith("average 14.8 s<br>1 jobs left out: no known end")


@given(
    steps=st.lists(st.tuples(st.floats(0.1, 50), st.floats(0, 10)), min_size=2, max_size=30),
    bins=st.integers(1, 40),
    start=st.floats(-50, 200),
    length=st.floats(1, 500),
)
def test_bin_means_keep_the_integral(steps, bins, start, length):
    gaps, values = map(np.array, zip(*steps, strict=True))
    time = np.cumsum(gaps)
    edges = np.linspace(start, start + length, bins + 1)
    means = bin_means(time, values, edges)
    covered = np.diff(np.clip(edges, time[0], time[-1]))
    inside = np.clip(np.append(time, np.inf), edges[0], edges[-1])
    area = float(np.diff(np.minimum(inside, time[-1]))[:-1] @ values[:-1]) if edges[-1] > time[0] else 0.0
    assert np.nansum(means * covered) == pytest.approx(area, abs=1e-6)
    assert np.array_equal(np.isnan(means), covered <= 0)


def test_load_over_time_by_hand():
    found = plots.load_over_time(hand_run(), points=3)
    waiting, utilisation = found.data
    assert (waiting["x"] * 3600).tolist() == pytest.approx([5.0, 15.0, 25.0])
    # 68, 20 and 80 GPU-s of 80 each; jobs waiting: 0 1 1 2 1 over 2 s each, 1 over 10, then 0 1 0 over 2, 3 and 5 s.
    assert utilisation["y"].tolist() == pytest.approx([68 / 80, 0.25, 1.0])
    assert waiting["y"].tolist() == pytest.approx([1.0, 1.0, 0.3])


def test_free_space_by_hand():
    """Bins of a second: GPUs that are free, in all and on the freest node, and what is requested beyond those in use."""
    found = plots.free_space(hand_run(), points=30)
    assert found.values["free in all"].tolist() == [2] * 4 + [0] * 2 + [2] * 2 + [0] * 2 + [6] * 10 + [0] * 10
    freest = [2] * 4 + [0] * 2 + [2] * 2 + [0] * 2 + [4] * 10 + [0] * 10
    assert found.values["free on the freest node"].tolist() == freest
    wanted = [0] * 2 + [8] * 4 + [10] * 2 + [8] * 12 + [0] * 2 + [8] * 3 + [0] * 5
    assert found.values["requested by waiting jobs"].tolist() == wanted


def test_long_timelines_are_reduced():
    time = np.arange(200_001.0)
    line = pl.DataFrame({"time": time, "used": time % 2, "capacity": 1.0, "waiting": time % 4, "running": 1})
    found = plots.load_over_time(StandIn(hand_run().jobs, line, allocation_frame([])), points=5_000)
    waiting, utilisation = (trace["y"] for trace in found.data)
    assert waiting.shape == (1_000,)
    assert np.allclose(utilisation, 0.5)
    assert np.allclose(waiting, 1.5)


def test_a_run_that_ended_earlier_has_no_load_afterwards(runs):
    short = replace(hand_run(), info={"policy": "Short"})
    found = plots.load_over_time({"Short": short} | runs, points=100)
    waiting = found.data[0]["y"]
    assert not np.isnan(waiting[0])
    assert np.isnan(waiting[1:]).all()


def test_slowdown_by_size_by_hand():
    found = plots.slowdown_by_size(hand_run())
    medians, worst = found.data
    assert medians["x"] == worst["x"] == ["2", "3\N{EN DASH}4", "5\N{EN DASH}8"], "empty buckets are not drawn"
    count, *levels = medians["customdata"].T
    assert count.tolist() == [2, 1, 1]
    assert [level[0] for level in levels] == pytest.approx([1.125, 1.25, 1.375, 1.45, 1.495])
    assert medians["y"][2] == pytest.approx(4.6)
    assert worst["y"][0] == pytest.approx(1.495)


def test_interruptions_and_metric_bars_by_hand():
    found = plots.interruptions(hand_run())
    assert {kind: mean.tolist() for kind, mean in found.values.items()} == {kind: [0.2] for kind in KINDS}
    bars = plots.metric_bars({"a": hand_run()}, "makespan")
    assert (bars.values["makespan"]["x"] * 3600).tolist() == [25.0]
    assert plots.figure(bars).layout.xaxis.title.text == "makespan (h, lower is better)"
    assert np.isnan(plots.metric_bars({"a": hand_run()}, "slo_violation").values["slo_violation"]["x"]).all()
    with pytest.raises(RunError, match="expected one of"):
        plots.metric_bars({"a": hand_run()}, "speed")


def test_gantt_by_hand():
    found = plots.gantt(hand_run())
    assert (found.start, found.end, found.of) == (0.0, 30.0, 2)
    assert found.nodes == ("v100 node 0", "v100 node 1")
    pieces = sorted(zip(found.row, found.begin, found.finish, found.low, found.high, found.job, found.cut, strict=True))
    assert [tuple(map(float, p)) for p in pieces] == [
        (0, 0, 10, 0, 1, 0, 0),
        (0, 20, 25, 0, 1, 2, 0),
        (0, 25, 30, 0, 1, 4, 0),
        (1, 0, 20, 0, 0.5, 1, 0),
        (1, 4, 6, 0.5, 1, 3, 1),  # preempted at 6 s
        (1, 8, 10, 0.5, 1, 3, 0),
        (1, 20, 25, 0, 1, 2, 0),
        (1, 25, 30, 0, 1, 4, 0),
    ]
    about = dict(zip(found.job.tolist(), found.about, strict=True))
    assert about[0] == "a</b>: 4 GPUs, user ada<br>ended at 0.0 h, "
    assert "had not ended" in about[4]
    assert "user" not in about[3]
    window = plots.gantt(hand_run(), start=5.0, end=9.0, nodes=[1])
    assert sorted(zip(window.job, window.begin, window.finish, strict=True)) == [(1, 5, 9), (3, 5, 6), (3, 8, 9)]


def area(found: plots.Gantt, sizes: np.ndarray) -> float:
    return float(((found.finish - found.begin) * (found.high - found.low) * sizes[found.row]).sum())


@pytest.mark.parametrize("shortest", [False, True])
def test_gantt_draws_all_gpu_time_and_no_gpu_twice(runs, shortest):
    run = runs["Shortest" if shortest else "First"]
    start = 8_000.0
    end = 30_000.0
    found = plots.gantt(run, start, end, limit=10_000)
    held = run.allocations.with_columns(
        seconds=pl.min_horizontal("end", pl.lit(end)) - pl.max_horizontal("start", pl.lit(start))
    ).filter(pl.col("seconds") > 0)
    assert area(found, np.full(4, 8.0)) == pytest.approx(float((held["gpus"] * held["seconds"]).sum()))
    assert not found.over.any()
    assert len(found.row) > 50
    for lane in np.arange(32):
        here = (found.row == lane // 8) & (found.low * 8 <= lane % 8) & (found.high * 8 > lane % 8)
        order = np.argsort(found.begin[here])
        assert (found.begin[here][order][1:] >= found.finish[here][order][:-1] - 1e-6).all()


def test_gantt_leaves_out_whole_rows(runs):
    full = plots.gantt(runs["First"], 0.0, 40_000.0, limit=10_000)
    some = plots.gantt(runs["First"], 0.0, 40_000.0, limit=150)
    rows = len(some.nodes)
    held = runs["First"].allocations.filter((pl.col("start") < 40_000.0) & (pl.col("end") > 0.0))
    counts = np.bincount(held["node"].to_numpy(), minlength=4)
    assert rows == np.sum(np.cumsum(counts) <= 150) >= 1
    assert np.sum(some.row == rows - 1) == np.sum(full.row == rows - 1) > 0
    assert len(plots.gantt(runs["First"], 0.0, 40_000.0, limit=1).nodes) == 1
    assert "3 of 4 nodes" in plots.plot_gantt(runs["First"], nodes=3).layout.title.text


def test_gantt_of_shared_and_fractional_gpus():
    rows = [(0, 0, 4, 0.0, 10.0), (1, 0, 4, 2.0, 6.0), (2, 1, 0.25, 0.0, 5.0), (3, 1, 0.5, 1.0, 5.0)]
    found = plots.gantt(replace(hand_run(), allocations=allocation_frame(rows)))
    assert found.over.tolist() == [False, True, False, False]
    assert (found.high - found.low).tolist() == pytest.approx([1.0, 1.0, 0.0625, 0.125])
    fig = plots.figure(found)
    owner = fig.data[3].width[0]
    guest = fig.data[2].width[0]  # of 4 and of 2 GPUs asked for
    assert guest < owner / 2 + 0.01  # both are seen


def test_lanes_are_split_where_free_ones_are_apart():
    # Lanes 0 and 2 become free, 1 and 3 stay busy.
    row = np.zeros(5, np.int64)
    width = np.array([1, 1, 1, 1, 2])
    start = np.array([0.0, 0.0, 0.0, 0.0, 5.0])
    end = np.array([5.0, 9.0, 5.0, 9.0, 9.0])
    stretch, low, high, over = pack_lanes(row, start, end, width, np.array([4]))
    assert stretch.tolist() == [0, 1, 2, 3, 4, 4]
    assert (low[-2:].tolist(), high[-2:].tolist()) == ([0, 2], [1, 3])
    assert not over.any()


def test_stretches_beyond_the_lanes_are_drawn_over_the_fewest_others():
    # All of 4 lanes are busy: owners 0, 1, 1, 2; two lanes over one owner alone are the middle ones.
    row = np.zeros(4, np.int64)
    width = np.array([1, 2, 1, 2])
    start = np.array([0.0, 0.0, 0.0, 5.0])
    end = np.array([9.0, 9.0, 9.0, 9.0])
    _, low, high, over = pack_lanes(row, start, end, width, np.array([4]))
    assert (low.tolist(), high.tolist()) == ([0, 1, 3, 1], [1, 3, 4, 3])
    assert over.tolist() == [False, False, False, True]


def test_gantt_groups(runs):
    found = plots.gantt(runs["First"], by="model")
    assert set(found.groups) == {"resnet50", "lm", "cyclegan", "", "other"}
    names = np.array(found.groups)[found.group]
    assert names.tolist() == runs["First"].jobs["model"].to_numpy()[found.job].tolist()
    users = plots.gantt(runs["First"], by="user")
    assert len(users.groups) == 8
    assert (users.group == 7).any()
    with pytest.raises(RunError, match="no column 'colour'"):
        plots.gantt(runs["First"], by="colour")


@pytest.mark.parametrize("wrong", [{"start": 5.0, "end": 5.0}, {"nodes": [9]}, {"nodes": 0}])
def test_gantt_refuses_an_impossible_window(wrong):
    with pytest.raises(RunError, match="expected start < end and nodes from 0 to 1"):
        plots.gantt(hand_run(), **wrong)


def test_busy_window_finds_the_longest_queue(runs):
    line = pl.DataFrame({"time": [0.0, 500.0, 600.0, 1000.0], "waiting": [0, 9, 0, 0], "used": [1.0, 1.0, 1.0, 0.0]})
    start, end = plots.busy_window(StandIn(hand_run().jobs, line, allocation_frame([])), 200.0)
    assert end - start == 200.0
    assert start <= 500.0
    assert end >= 600.0
    assert plots.busy_window(hand_run(), 1e6) == (0.0, 30.0)


@pytest.mark.parametrize("name", NAMES)
def test_axes_say_what_they_show(runs, name):
    layout = plots.figure(all_numbers(runs)[name]).layout
    titles = [layout[axis].title.text for axis in layout if axis[1:].startswith("axis")]
    rows_by_name = name in ("metric",) or name.startswith("gantt")
    assert [t for t in titles if not t] == ([""] if rows_by_name else [])
    assert layout.title.text
    assert layout.template.layout.font.size >= 12


def test_looks_differ_without_colour():
    looks = [style.line(i) for i in range(24)]
    assert len({(look["line"]["dash"], look["marker"]["symbol"]) for look in looks[:18]}) == 18
    assert len({(k["line"]["color"], k["line"]["dash"], k["marker"]["symbol"]) for k in looks}) == 24
    assert len({style.bar(i)["pattern"]["shape"] for i in range(8)}) == 8
    assert (style.luminance("#FFFFFF"), style.luminance("#000000")) == (1.0, 0.0)
    light = [style.luminance(colour) for colour in style.RAMP]
    assert light == sorted(light, reverse=True)
    for (
        colour
    ) in style.COLOURS:  # lines on white; WCAG asks for 3 for graphics, dashes and markers help the two lightest
        assert 1.05 / (style.luminance(colour) + 0.05) > 2.2


def test_numbers_need_no_plotly(runs, monkeypatch):
    for module in [m for m in sys.modules if m.partition(".")[0] == "plotly"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "plotly", None)
    numbers = plots.jct_cdf(runs)
    assert len(plots.draw(numbers).data) == 2
    with pytest.raises(MissingExtra, match="need plotly"):
        plots.figure(numbers)


def test_plot_takes_runs_or_numbers(runs):
    for plot, numbers in ((plots.plot_jct_cdf, plots.jct_cdf), (plots.plot_load_over_time, plots.load_over_time)):
        assert plot(runs).to_json() == plot(numbers(runs)).to_json()
    for plot in (
        plots.plot_fairness_cdf,
        plots.plot_slowdown_by_size,
        plots.plot_interruptions,
        plots.plot_metric_bars,
    ):
        assert isinstance(plot(runs), go.Figure)


@pytest.mark.parametrize("name", NAMES)
def test_notes_stand_within_their_panel(runs, name):
    """A note at a border begins there and goes inwards; on a logarithmic axis its place is that of the border's logarithm."""
    figure = plots.figure(all_numbers(runs)[name])
    borders = {
        np.log10(s.x0) if figure.layout.xaxis.type == "log" else s.x0 for s in figure.layout.shapes if s.x0 == s.x1
    }
    for note in figure.layout.annotations:
        for place, ref, anchor, outwards in (
            (note.x, note.xref, note.xanchor, {0: "right", 1: "left"}),
            (note.y, note.yref, note.yanchor, {0: "top", 1: "bottom"}),
        ):
            if ref == "paper":
                assert 0 <= place <= 1
                assert anchor != outwards.get(place)
        if note.yref == "paper" and note.xref != "paper" and borders:
            assert note.x in borders


def test_runs_are_named():
    one = hand_run()
    assert list(style.as_runs([one, one])) == ["Hand", "Hand 2"]
    for wrong in ({}, [], {"a": 1}, 5):
        with pytest.raises(RunError, match="expected a Run"):
            style.as_runs(wrong)


def test_an_unfinished_run_can_be_drawn():
    run = hand_run()
    begun = replace(
        run, jobs=run.jobs.with_columns(end=pl.lit(None, pl.Float64)), info={"cluster": Cluster.homogeneous(2, 4)}
    )
    for numbers in all_numbers({"First": begun, "Shortest": begun}).values():
        assert plots.figure(numbers).to_json()
    assert metrics.jct(begun).size == 0


def test_a_job_that_goes_on_beside_another_was_not_stopped():
    one = lab.Cluster.homogeneous(1, 1)
    columns = {"job_id": ["a", "b"], "submit": [0.0, 100.0], "gpus": [1, 1], "duration": [1000.0, 100.0]}
    trace = pl.DataFrame(columns | {"model": ["lm", "resnet18"]})
    run = lab.simulate(trace, one, lab.Lucid(profiler_nodes=0), speeds=default_speeds(one))
    found = plots.gantt(run, start=0.0, end=2000.0)
    assert found.over.any(), "b shares the GPU of a"
    assert (found.job == 0).sum() > 1
    assert not found.cut.any()
    srtf = plots.gantt(lab.simulate(trace, one, lab.Srtf()), start=0.0, end=2000.0)
    assert found.label[found.over].tolist() == ["b"]
    assert srtf.label[srtf.cut].tolist() == ["a"]


def test_each_function_that_returns_numbers_has_a_plot():
    returned = {
        name: inspect.signature(getattr(plots, name)).return_annotation
        for name in plots.__all__
        if inspect.isfunction(getattr(plots, name)) and name.islower() and not name.startswith("plot_")
    }
    drawn = {name for name, kind in returned.items() if hasattr(kind, "draw") and name != "draw"}
    assert len(drawn) >= (17 if whole() else 16)
    assert {f"plot_{name}" for name in drawn} <= set(plots.__all__)
    assert list(inspect.signature(plots.plot_gantt).parameters) == list(inspect.signature(plots.gantt).parameters)
    assert isinstance(plots.plot_gantt(run=hand_run(), nodes=1), go.Figure)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(RunError, match=r"found int to draw; expected .* draw\(\)"):
        plots.draw(5)


def test_a_figure_of_ones_own_is_one_file(runs, tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "howto" / "own-figure.md").read_text()
    (code,) = re.findall(r'^```python\n(""".*?)^```$', page, re.DOTALL | re.MULTILINE)
    assert len(code.splitlines()) <= 25
    (tmp_path / "own_figures").mkdir()
    (tmp_path / "own_figures" / "__init__.py").write_text("")
    (tmp_path / "own_figures" / "by_user.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    assert _faces._said("own_figures", set()) == dict.fromkeys(("by_user", "plot_by_user"), "own_figures.by_user")
    (tmp_path / "own_figures" / "__init__.pyi").write_text("from .by_user import by_user\nfrom .gone import lost\n")
    assert _faces.names_of("own_figures") == {"by_user": "own_figures.by_user"}
    own = importlib.import_module("own_figures.by_user")
    numbers = own.by_user(runs)
    for run, shown in zip(runs.values(), numbers.values.values(), strict=True):
        held = run.jobs.filter(pl.col("user").is_in(shown["x"]))["attained"].sum()
        assert sum(shown["y"]) == pytest.approx(held / 3600)
    assert own.plot_by_user(runs).to_json() == plots.figure(numbers).to_json()


def test_a_map_reaches_from_its_first_cell_to_its_last_where_paths_are_drawn():
    path = np.array([[1.0, 4.0], [2.0, 5.0]])
    found = Landscape(
        "t", "x", "y", "", np.array([0.0, 1.0, 2.0]), np.array([3.0, 4.0, 6.0]), np.zeros((3, 3)), {"p": path}
    )
    live = found.draw().live
    assert (live["xaxis_range"], live["yaxis_range"]) == ([0.0, 2.0], [3.0, 6.0])
    assert not {"xaxis_range", "yaxis_range"} & found._replace(paths=None).draw().live.keys()
