"""The Explorer, without a browser: its sentence, figures, table and stories, its link, its export."""

import os
import re
import subprocess
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import pytest
from present import needs

import gpuschedlab as lab
from gpuschedlab.check.samples import small_trace
from gpuschedlab.errors import LabError
from gpuschedlab.knobs import Knob

pytest.importorskip("ipywidgets", reason="ipywidgets, of the extra lab, is not installed")
pytest.importorskip("anywidget", reason="anywidget, of the extra lab, is not installed")

from scenes.arrivals import TraceExplorer
from scenes.placement import ClusterExplorer

from gpuschedlab import plots, widgets
from gpuschedlab.metrics.who_pays import Scope, compared
from gpuschedlab.scenarios.small_cluster import SmallCluster
from gpuschedlab.widgets import Explorer
from gpuschedlab.widgets.sources import TraceOf

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Longest(lab.Ordered):
    """Longest job first, or shortest first, by the sign of a knob."""

    weight: Annotated[float, Knob(-1, 1, help="-1: longest first; 1: shortest first")] = -1.0
    moving = "none"

    @staticmethod
    def key(now, job, knobs):
        """Weighted estimate (s)."""
        return knobs.weight * job.estimate


@pytest.fixture
def explorer():
    return Explorer(small_trace(80), lab.Cluster.homogeneous(2, 8), [lab.Fifo, lab.Tiresias])


def line(explorer, i: int = 1):
    """Jobs that are there over time: 0 before, 1 now."""
    return np.asarray(explorer.board.drawings["jobs"].data[i]["y"])


def record(explorer) -> dict:
    """What the page draws the first screen from."""
    return explorer.board.drawings["jobs"].record


def names(explorer) -> list[str]:
    return [trace["name"] for trace in explorer.board.drawings["jobs"].data]


def plainly(html: str) -> str:
    return re.sub("<[^>]*>", "", html)


def test_it_shows_what_simulate_says(explorer):
    now, before = (lab.simulate(small_trace(80), lab.Cluster.homogeneous(2, 8), p()) for p in (lab.Tiresias, lab.Fifo))
    assert names(explorer) == ["Fifo", "Tiresias"]
    assert explorer.run.jobs.equals(now.jobs)
    at = explorer.board.drawings["jobs"].data[0]["x"][100] * 3600.0
    for i, run in enumerate((before, now)):
        there = (run.jobs["submit"] <= at).sum() - (run.jobs["end"] <= at).sum()
        assert abs(int(line(explorer, i)[100]) - there) <= 1, "an hour is a rounded number"
    said = compared(now, before, ("Tiresias", "Fifo"), Scope(place="In this trace"))
    assert plainly(said.main) in plainly(explorer.status.value)
    assert plainly(said.rest) in plainly(explorer.status.value)
    assert "average JCT" in explorer._note(still=True)


def test_the_record_is_the_jobs_and_what_changed_of_each():
    explorer = Explorer(small_trace(80), lab.Cluster.homogeneous(1, 8), [lab.Fifo, lab.Srtf])
    now = explorer.run.jobs
    before = explorer.run_of(explorer.pinned).jobs
    change = (now["end"] - before["end"]).to_numpy()
    shown = record(explorer)
    assert np.allclose(shown["now"] - shown["before"], change)
    assert (change[shown["moved"] > 0] > 60).all()
    assert (change[shown["moved"] < 0] < -60).all()
    assert shown["names"] == ("Srtf", "Fifo")
    drawn = explorer.board.drawings["change"]
    assert len(drawn.data[1]["y"]) == (shown["moved"] > 0).sum() > 0
    assert np.allclose(np.sort(np.concatenate([dots["y"] for dots in drawn.data])), np.sort(change / 3600))
    assert explorer.board.widget.figure_1 == {}, "a page draws it from the record"


def test_a_moved_knob_moves_the_figures_it_keeps(explorer):
    widget = explorer.board.widget
    before = line(explorer)
    pinned = line(explorer, 0)
    explorer.knobs["thresholds"].parts[0].value = 300.0
    assert explorer.board.widget is widget, "the widget is the same, its numbers are others"
    assert not np.array_equal(line(explorer), before)
    assert np.array_equal(line(explorer, 0), pinned)
    wanted = lab.simulate(small_trace(80), lab.Cluster.homogeneous(2, 8), lab.Tiresias(thresholds=(300.0,)))
    assert explorer.run.jobs.equals(wanted.jobs)
    explorer.panel.buttons[0].click()
    assert np.array_equal(line(explorer), before), "reset goes back"


def test_nothing_is_simulated_twice(explorer, monkeypatch):
    calls = []
    run = lab.Scenario.run
    monkeypatch.setattr(lab.Scenario, "run", lambda self, policy: calls.append(policy) or run(self, policy))
    for metric in ("time", "service", "time", "gittins", "service", "time"):
        explorer.knobs["metric"].value = metric
    assert [policy.metric for policy in calls] == ["time", "gittins"]


def test_one_move_is_a_few_messages(explorer):
    from wire import wired

    with wired() as wire:
        other = Explorer(small_trace(80), lab.Cluster.homogeneous(2, 8), [lab.Fifo, lab.Tiresias])
        slider = other.knobs["thresholds"].parts[0]
        opened = wire.messages
        slider.value = 300.0
        assert wire.messages - opened <= 6


def test_code_is_written_while_it_is_seen(explorer):
    assert explorer.panel.code.value == ""
    explorer._asked("more", None)
    assert "policy = Tiresias()" in explorer.panel.code.value
    explorer.knobs["thresholds"].parts[0].value = 300.0
    assert "thresholds=(300.0,)" in explorer.panel.code.value


def test_a_figure_of_ones_own_stands_on_the_board():
    def waiting(runs):
        """Mean time in the queue of each run."""
        values = {name: run.jobs["queueing"].to_numpy()[:5] for name, run in runs.items()}
        return plots.Lines("Waiting", "job", "waited (s)", np.arange(5), values)

    explorer = Explorer(small_trace(80), lab.Cluster.homogeneous(2, 8), [lab.Fifo, lab.Srtf], figures=[waiting])
    assert "waiting" not in explorer.board.drawings, "what is not seen is not computed"
    explorer._asked("more", None)
    before = explorer.board.drawings["waiting"].data[0]["y"]
    explorer.panel.policy.value = "Fifo"
    now = explorer.board.drawings["waiting"].data[0]
    assert now["name"] == "Fifo"
    assert not np.array_equal(now["y"], before)


def test_everything_that_is_sent_is_json():
    from wire import wired

    few = small_trace(80).filter(pl.col("gpus") <= 1)  # most sizes have no jobs, and no percentiles
    with wired() as wire:
        Explorer(few, lab.Cluster.homogeneous(2, 8), [lab.Fifo, lab.Srtf])
        explorer = Explorer(small_trace(80), lab.Cluster.homogeneous(1, 8), [lab.Fifo, lab.Srtf], until=2000.0)
        explorer.panel.policy.value = "Fifo"
    assert wire.messages > 50


def test_what_is_pinned_keeps_its_knobs_and_its_cluster(explorer):
    explorer.pin()
    assert "compared with itself" in explorer.status.value
    explorer.panel.nodes.value = 3
    assert list(explorer.runs) == ["Tiresias (on 3x8:v100)", "Tiresias (on 2x8:v100)"]
    assert names(explorer) == ["before", "now"]
    explorer.panel.nodes.value = 2
    explorer.knobs["thresholds"].parts[0].value = 300.0
    assert list(explorer.runs) == ["Tiresias (next queue after 0.0833 GPU-h)", "Tiresias"]
    explorer.panel.against.value = "Fifo"
    assert list(explorer.runs) == ["Tiresias (next queue after 0.0833 GPU-h)", "Fifo"]
    explorer.panel.against.value = "as it is now"
    assert explorer.pinned == explorer.setting


def test_a_cluster_too_small_is_told_in_the_box_and_can_be_mended():
    explorer = Explorer(small_trace(80), lab.Cluster.homogeneous(4, 4), [lab.Fifo])
    before = line(explorer)
    explorer.panel.nodes.value = 1
    told = explorer.error.outputs[0]
    assert told["ename"] == "ClusterError"
    assert "asks for 8 GPUs" in told["evalue"]
    assert np.array_equal(line(explorer), before)
    explorer.panel.nodes.value = 4
    assert explorer.error.outputs == ()


def test_a_policy_that_cannot_run_is_told_in_the_box_and_why():
    explorer = Explorer(small_trace(80), lab.Cluster.homogeneous(3, 4), [lab.Fifo, lab.Srtf, lab.Lucid])
    explorer.panel.policy.value = "Lucid"
    assert explorer.error.layout.display is None
    told, kept = explorer.error.outputs
    assert "asks for 8 GPUs" in told["evalue"]
    assert "has 4 beside the 2 nodes that profiler_nodes sets aside" in told["evalue"]
    assert "last state that worked." in kept["text"]
    assert "Srtf" in kept["text"]
    explorer.knobs["profiler_nodes"].value = 0
    assert explorer.error.layout.display == "none"
    assert explorer.run.info["policy"] == "Lucid"


def test_a_cluster_with_a_traces_name_is_chosen_with_it_and_pinned_too():
    traces = {"few": small_trace(20).filter(pl.col("gpus") <= 4), "many": small_trace(80)}
    clusters = {"few": lab.Cluster.homogeneous(1, 4), "many": lab.Cluster.homogeneous(2, 8)}
    explorer = Explorer(traces, clusters, [lab.Fifo, lab.Srtf])
    shown = []
    explorer._show = lambda found, show=explorer._show: (shown.append(found), show(found))
    explorer.panel.trace.value = "many"
    assert (explorer.panel.cluster.value, explorer.panel.nodes.value) == ("many", 2)
    assert explorer.error.outputs == ()
    (found,) = shown
    assert list(found.compared.names) == ["Srtf", "Fifo"], "one drawing, both on the same cluster"


def test_a_cluster_is_written_as_on_the_command_line(explorer):
    explorer.panel.own.value = "3x8:v100"
    assert explorer.error.outputs == ()
    assert explorer.run.info["cluster"] == explorer.scenario_of(explorer.setting).run(lab.Tiresias()).info["cluster"]
    assert str(explorer.cluster_of(explorer.setting)) == "3x8:v100"
    explorer.panel.own.value = "three of eight"
    assert explorer.error.outputs[0]["ename"] == "ClusterError"


def test_a_seed_makes_another_trace():
    explorer = Explorer(lambda seed: small_trace(60, rng=seed), lab.Cluster.homogeneous(2, 8), [lab.Fifo], seed=1)
    first = explorer.run
    explorer.panel.seed.value = 2
    assert explorer.run.jobs["submit"].to_list() == small_trace(60, rng=2)["submit"].to_list()
    explorer.panel.seed.value = 1
    assert explorer.run is first


def test_a_scenario_is_explored_with_all_its_parts():
    trace = small_trace(80)
    cluster = lab.Cluster.homogeneous(1, 8)
    delays = lab.Delays(restart=120.0)
    scenario = lab.Scenario(trace, cluster, delays=delays, until=9000.0, seed=4)
    explorer = Explorer(scenario, [lab.Fifo, lab.Srtf])
    assert explorer.run.jobs.equals(scenario.run(lab.Srtf()).jobs)
    assert explorer.run.info["seed"] == 4
    long = Explorer(trace, cluster, [lab.Fifo, lab.Srtf], delays=delays, until=9000.0, seed=4)
    assert long.run.jobs.equals(explorer.run.jobs)
    assert "scenario = lab.Scenario(trace, cluster, delays=delays, until=until, seed=4)" in explorer.code
    with pytest.raises(LabError, match="found a Scenario and beside it delays"):
        Explorer(scenario, [lab.Fifo], delays=delays)


def test_the_first_run_fails_in_the_cell_that_makes_it():
    with pytest.raises(LabError, match="asks for 8 GPUs"):
        Explorer(small_trace(), lab.Cluster.homogeneous(1, 4), [lab.Fifo])


def test_a_policy_of_ones_own_gets_its_sliders():
    explorer = Explorer(small_trace(80), lab.Cluster.homogeneous(1, 8), [lab.Fifo, Longest])
    slider = explorer.knobs["weight"].parts[0]
    assert (slider.min, slider.max, slider.tooltip) == (-1, 1, "weight: -1: longest first; 1: shortest first")
    longest = explorer.run.summary()["jct_mean"]
    slider.value = 1.0
    assert explorer.run.summary()["jct_mean"] < longest
    assert "import Longest  # your class" in explorer.code


def test_the_gantt_shows_the_time_that_is_framed_and_nodes_from_any_on():
    cluster = lab.Cluster.parse("2x8:v100,3x8:t4")
    explorer = Explorer(small_trace(120), cluster, [lab.Fifo, lab.Srtf])
    explorer._asked("more", None)
    assert len(explorer.board.drawings["gantt"].live["yaxis_ticktext"]) == 5
    explorer._asked("view", {"time": [0.25, 0.5]})
    assert explorer.board.drawings["gantt"].live["xaxis_range"] == [0.25, 0.5]
    explorer.panel.first_node.value = 2
    assert explorer.board.drawings["gantt"].live["yaxis_ticktext"] == ["t4 node 2", "t4 node 3", "t4 node 4"]
    assert explorer.panel.first_node.max == 4
    assert not explorer.panel.resizable


def test_an_exported_run_is_made_again_by_its_own_lines(explorer, tmp_path):
    explorer.knobs["thresholds"].parts[0].value = 300.0
    folder = explorer.export(tmp_path / "run")
    assert lab.Run.from_parquet(folder).jobs.equals(explorer.run.jobs)
    check = "\nrun.jobs.write_parquet('again.parquet')"
    code = (folder / "reproduce.py").read_text() + check
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path})
    assert pl.read_parquet(tmp_path / "again.parquet").equals(explorer.run.jobs)


def test_exports_do_not_overwrite_each_other(explorer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert [str(explorer.export()) for _ in range(2)] == ["runs/tiresias-1", "runs/tiresias-2"]
    (tmp_path / "full").write_text("a file, where a folder should be")
    explorer.guarded(lambda: explorer.export(tmp_path / "full" / "run"))
    assert explorer.error.outputs[0]["ename"] == "RunError"


def test_the_static_twin_has_all_figures_and_their_axes(explorer):
    twin = explorer.figure()
    assert len(twin) == 2
    for figure, name in zip(twin.figures, ("jobs", "change"), strict=True):
        assert len(figure.data) == len(explorer.board.drawings[name].data)
    assert len(explorer.figure("jct").data) == 2
    assert explorer.figure("gantt").layout.title.text


def test_a_shown_explorer_leaves_its_pictures_its_twin_and_its_widget(explorer, monkeypatch):
    import IPython.display

    shown = []
    updated = []

    def show(thing, **options):
        shown.append(thing)
        return types.SimpleNamespace(update=updated.append)

    monkeypatch.setattr(IPython.display, "display", show)
    explorer._ipython_display_()
    room, twin, box = shown
    assert room.data == "", "pictures come last, in a place that is kept for them"
    assert f'data-board="{explorer.board.widget.identity}" hidden' in twin.data
    assert box["application/vnd.jupyter.widget-view+json"]["model_id"] == explorer.box.model_id
    assert "run" in box["text/plain"]
    (pictures,) = updated
    assert pictures.data.count('<img src="data:image/webp;base64,') == 2
    assert f'data-pictures="{explorer.board.widget.identity}"' in pictures.data


def test_the_download_holds_what_makes_the_run_again(explorer, tmp_path):
    import io
    import zipfile

    sent = []
    explorer.board.widget.send = lambda content, buffers: sent.append((content, buffers[0]))
    explorer.download()
    ((content, packed),) = sent
    assert content == {"kind": "download", "name": "tiresias.zip"}
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        archive.extractall(tmp_path)
    assert lab.Run.from_parquet(tmp_path).jobs.equals(explorer.run.jobs)
    assert "pl.read_parquet('trace.parquet')" in (tmp_path / "reproduce.py").read_text()


@pytest.mark.compiled("needs runs that are quick")
def test_sliders_follow_the_hand_only_while_runs_are_quick(explorer):
    slider = explorer.knobs["thresholds"].parts[0]
    assert slider.continuous_update
    for seconds, follows in ((0.25, True), (0.75, False), (0.4, True)):
        explorer.seconds = seconds
        explorer._pace()
        assert slider.continuous_update == follows


@dataclass(frozen=True)
class AllButTheFirst(lab.Round):
    """First come, first served, but the first job gets nothing."""

    interval = 0.0

    def allocate(self, view):
        """Who fits is served."""
        gpus = np.zeros(len(view))
        free = view.capacity[0]
        for job in np.flatnonzero(view.index > 0):
            if view.gpus[job] <= free:
                gpus[job] = view.gpus[job]
                free -= view.gpus[job]
        return lab.Allocation(np.zeros(len(view), int), gpus)


def make_cluster_explorer():
    return ClusterExplorer(widgets.SmallCluster(nodes=3), jobs=12)


def make_unisched_explorer():
    return widgets.UniSchedExplorer(widgets.SmallLeases(nodes=2), jobs=12)


def make_ymir_explorer():
    return widgets.YmirExplorer(nodes=1, hours=2.0)


@pytest.mark.parametrize(
    "make",
    [
        make_cluster_explorer,
        pytest.param(make_unisched_explorer, marks=needs("deadlines")),
        pytest.param(make_ymir_explorer, marks=needs("ymir")),
    ],
)
def test_jobs_that_never_end_are_named_above_the_figures(make, monkeypatch):
    explorer = make()
    assert "never" not in explorer.status.value
    names = list(explorer.runs)
    policies = property(lambda recipe: dict.fromkeys(names, AllButTheFirst()))
    monkeypatch.setattr(type(explorer.knobs.thing), "policies", policies)
    explorer.refresh()
    assert explorer.error.outputs == ()
    for name in names:
        assert f". {name}: {explorer.runs[name].left}" in explorer.status.value
    assert (
        f"1 of {explorer.runs[names[0]].jobs.height} jobs never end, 1 of them never started" in explorer.status.value
    )
    first = explorer.page.words
    assert first in explorer.status.value


def test_the_explorer_of_policies_says_so_too():
    cluster = lab.Cluster.homogeneous(2, 8)
    trace = small_trace(20)
    explorer = Explorer(trace, cluster, {"fifo": lab.Fifo(), "all but one": AllButTheFirst()})
    assert " all but one: 1 of 20 jobs never end, 1 of them never started" in explorer.status.value
    assert " fifo: " not in explorer.status.value


def test_a_job_tells_its_story_and_is_lit(explorer):
    explorer._asked("view", {"job": 30, "mark": "7"})
    job = explorer.run.jobs["job_id"][30]
    lit = record(explorer)["lit"]
    assert (lit["id"], lit["row"], record(explorer)["mark"]) == (job, 30, "7")
    assert lit["why"][0] == explorer.run.story(job)
    assert sum(end - start for start, end in lit["held"][0]) >= explorer.run.jobs["duration"][30] - 1e-6
    explorer._asked("story", 30)
    assert record(explorer)["lit"]["why"][0] == explorer.scenario_of(explorer.setting).run(
        lab.Tiresias(), log=job
    ).story(job)
    explorer._asked("view", {"job": None})
    assert record(explorer)["lit"] is None


def test_a_drag_keeps_some_jobs_in_figures_sentence_and_table(explorer):
    submit = explorer.run.jobs["submit"].to_numpy() / 3600
    explorer._asked("view", {"time": [0.0, submit.max() / 2]})
    low, high = explorer.view.time
    mine = (submit >= low) & (submit <= high)
    assert 0 < mine.sum() < 80
    assert record(explorer)["table"]["jobs"] == mine.sum()
    assert "submitted" in explorer.status.value
    explorer._asked("view", {"size": [10.0, 320.0]})
    duration = explorer.run.jobs["duration"].to_numpy()
    both = mine & (duration >= 10.0) & (duration <= 320.0)
    assert explorer.screen.difference.jobs == both.sum()
    assert "that run 10 s to 5.3 min" in explorer.status.value
    explorer._asked("view", {"size": [5.0, 1e9], "by": "gpus", "time": None})
    assert explorer.screen.difference.jobs == (explorer.run.jobs["gpus"] >= 5).sum()
    assert "that need at least 5 GPUs" in explorer.status.value
    explorer._asked("view", {"time": None, "size": None})
    assert explorer.screen.difference.jobs == 80


def test_a_link_brings_the_same_state_back(explorer):
    explorer.knobs["thresholds"].parts[0].value = 300.0
    explorer.panel.nodes.value = 3
    explorer._asked("view", {"by": "gpus", "job": 3, "size": (1.0, 2.5)})
    link = explorer.board.link
    shown = list(explorer.board.drawings.values())
    other = Explorer(small_trace(80), lab.Cluster.homogeneous(2, 8), [lab.Fifo, lab.Tiresias]).at(link)
    assert other.error.outputs == ()
    assert other.board.link == link
    assert other.status.value == explorer.status.value
    assert repr(list(other.board.drawings.values())) == repr(shown)
    with pytest.raises(LabError, match="found policy 'Lifo'; expected one of Fifo, Tiresias"):
        explorer.at("policy=Lifo")
    with pytest.raises(LabError, match="found colour; expected"):
        explorer.at("colour=red")


def test_a_guess_is_asked_until_it_was_answered():
    given = (small_trace(80), lab.Cluster.homogeneous(2, 8), [lab.Fifo, lab.Srtf])
    assert "guess" not in record(Explorer(*given))
    explorer = Explorer(*given, guess=True)
    found = explorer.screen.whole
    asked = record(explorer)["guess"]
    assert (asked["now"], asked["before"], asked["nobody"]) == (found.now, found.before, not len(found.later.rows))
    explorer._asked("guessed", "")
    explorer.refresh()
    assert "guess" not in record(explorer)


def test_explorers_of_runs_simulate_what_changed():
    made = make_cluster_explorer()
    calls = []
    run = lab.Scenario.run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lab.Scenario, "run", lambda self, policy: calls.append(policy) or run(self, policy))
        made.knobs["placement"].value = "buddy"
        assert calls == []
        made.knobs["large"].value = 0.3
        assert len(calls) == len(made.runs)
        other = ClusterExplorer(made.knobs.thing, seed=1, cache=made.cache)
        assert len(calls) == 2 * len(made.runs), "another seed is another trace, in a shared cache too"
    assert not other.run.jobs.equals(made.run.jobs)


def test_a_generated_trace_has_the_load_that_its_words_say():
    explorer = TraceExplorer(preset="philly", days=1, gpus=64)
    words = explorer.page.words
    for name, trace in explorer.traces.items():
        load = sum(g * d for g, d in trace.select("gpus", "duration").rows()) / (64 * 86_400)
        assert f"{name}: {trace.height:,} jobs, load {load:.2f}" in words


def test_lines_that_make_a_trace_make_it():
    made = TraceOf(SmallCluster(jobs=20))
    assert made.code() == made.code(0) != made.code(1)
    for seed in (0, 3):
        assert eval(made.code(seed), {"lab": lab}).equals(made(seed))
