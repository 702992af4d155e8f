"""A recorded scheduler tuned by hand: lines that are simulated, the table, response curves, edited graphs, and the explorer."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scenes.by_hand import Played, compare, play, scenario_of, switches_of, table
from scenes.response_curves import flat_note, panels_of, response_curves

import gpuschedlab as lab
from gpuschedlab import plots
from gpuschedlab.autosched import CausalGraph, Layers, Space
from gpuschedlab.autosched.recording.player import difference
from gpuschedlab.autosched.recording.recording import Recording
from gpuschedlab.errors import RunError
from gpuschedlab.plots.kinds import style

HOUR = 3600.0


@pytest.fixture(scope="module")
def recording():
    """The one that ships: three days, AutoSched switches at least once."""
    return Recording.read()


@pytest.fixture(scope="module")
def scenario(recording):
    return scenario_of(recording)


def equal(mine: Played, recording, name: str) -> bool:
    jobs = recording.jobs[name].to_numpy()
    averages = np.array(recording.averages[name], float)
    return np.array_equal(mine.jct, jobs, equal_nan=True) and np.array_equal(mine.average, averages, equal_nan=True)


# --- lines


def test_a_line_without_switches_is_the_default(recording, scenario):
    mine = play(recording, [], scenario)
    assert equal(mine, recording, "default")
    assert mine.switches == 0
    same = play(recording, [(3, recording.policy)], scenario)
    assert same.switches == 0, "knobs that are in force already are no switch"
    assert equal(same, recording, "default")


def test_with_autoscheds_switches_it_is_autosched_job_by_job(recording, scenario):
    plan = switches_of(recording)
    assert plan
    mine = play(recording, plan, scenario)
    assert equal(mine, recording, "autosched")
    assert mine.switches == len(plan)
    assert not equal(play(recording, plan[:-1], scenario), recording, "autosched"), "the last switch matters"
    rows = compare(recording, mine)
    assert rows[-1].times == rows[-2].times


def test_a_switch_changes_nothing_before_it(recording, scenario):
    default = recording.jobs["default"].to_numpy()
    late = play(recording, [(40, lab.Tiresias(queues=1, thresholds=()))], scenario)
    ended = recording.jobs["submit"].to_numpy() + np.nan_to_num(default, nan=np.inf) <= 40 * HOUR
    assert ended.sum() > 100
    assert np.array_equal(late.jct[ended], default[ended])
    assert np.array_equal(late.average[:40], np.array(recording.averages["default"][:40], float))
    assert not equal(late, recording, "default")


@pytest.mark.parametrize(
    ("plan", "found"),
    [
        ([(3, lab.Tiresias()), (2, lab.Tiresias())], r"hours \[3, 2\]"),
        ([(3, lab.Tiresias()), (3, lab.Tiresias())], r"hours \[3, 3\]"),
        ([(72, lab.Tiresias())], r"hours \[72\] .* from 0 to 71"),
        ([(0, lab.Srtf())], "to Srtf; expected .* Tiresias"),
    ],
)
def test_plans_that_cannot_be(recording, plan, found):
    with pytest.raises(RunError, match=found):
        play(recording, plan)


# --- the table


def test_lines_are_compared_on_the_jobs_that_ended_under_all():
    """The fourth job has not ended under the default, the third not under mine: (4 + 8 + 5) / (3 + 3 + 5), and (4 + 8) / (2 + 4)."""
    jobs = {"submit": [0.0, 10.0, 20.0, 30.0], "default": [4.0, 8.0, 5.0, None], "autosched": [3.0, 3.0, 5.0, 1.0]}
    journals = {"autosched": [{"switched": True}, {"switched": False}, {"switched": True}]}
    stand_in = SimpleNamespace(lines=("default", "autosched"), jobs=pl.DataFrame(jobs), journals=journals)
    rows = compare(stand_in, Played(np.zeros(0), np.array([2.0, 4.0, np.nan, 7.0]), 5))
    assert [(r.name, r.average, r.times.ratio, r.switches) for r in rows] == [
        ("default", pytest.approx(17 / 3), 1.0, 0),
        ("autosched", pytest.approx(11 / 3), pytest.approx(17 / 11), 2),
        ("me", 3.0, 2.0, 5),
    ]
    shown = table(rows)
    assert "3 jobs that ended under all lines" in shown
    assert "<td>me</td><td>0.001</td><td><b>2.00</b>" in shown


def test_rows_of_the_recorded_lines_stay_when_mine_changes(recording):
    played = [np.array(recording.jobs["default"]), np.array(recording.jobs["autosched"])]
    played[1][::7] = np.nan
    first, second = (compare(recording, Played(np.zeros(0), jct, 0)) for jct in played)
    assert first[:-1] == second[:-1]
    assert first[-1] != second[-1]


def test_the_head_compares_my_line_with_autoscheds(recording):
    trace = scenario_of(recording).trace
    mine, other = (recording.jobs[name].to_numpy() for name in ("default", "autosched"))
    found = difference(trace, mine, other, ("me", "AutoSched"))
    both = np.isfinite(mine) & np.isfinite(other)
    assert found.now == pytest.approx(mine[both].mean(), rel=1e-6)
    assert found.value == pytest.approx(other[both].mean() / mine[both].mean(), rel=1e-6)
    assert difference(trace, other, other, ("me", "AutoSched")).kind == "same"


# --- figures


def test_flat_curves_say_why():
    space = Space(lab.Tiresias(), ["starve_limit"])
    (axis,) = space.axes
    paths = CausalGraph(Layers(("starve_limit",), ("m",), ("r",)), (("starve_limit", "m"), ("m", "r")))
    no_path = CausalGraph(paths.layers, (("m", "r"),))
    assert flat_note(axis, no_path, [1.0] * 21, 0.0) == "no path: the model says that it does not matter"
    high = axis.value(1.0)
    assert flat_note(axis, paths, [1.0] * 21, 0.3) == f"the model predicts the same from 0 to {high:g}"
    half = [1.0] * 11 + [2.0] * 10
    assert flat_note(axis, paths, half, 0.2) == f"the model predicts the same from 0 to {high / 2:g}"
    assert flat_note(axis, paths, half, 0.9) == ""
    assert flat_note(axis, paths, np.arange(21.0), 0.3) == ""


def test_response_curves_are_in_the_units_of_their_knobs():
    space = Space(lab.Tiresias(), ["metric", "pack_limit", "thresholds"])
    curve = ([1.0, 2.0, 3.0], [0.5, 1.0, 2.0], [2.0, 3.0, 4.0])
    n = len(space.axes)
    trials = [([0.5, 0.25, *[1.0] * (n - 2)], 0.7)]
    given = space, {a.name: curve for a in space.axes}, trials, {"default": [0.0] * n}
    panels = panels_of(*given, {})
    first, pack, threshold = panels[:3]
    assert (first.levels, first.x.tolist(), first.at.tolist()) == (("service", "time", "gittins"), [0, 1, 2], [1])
    low, high = space.axes[1].range
    assert pack.x == pytest.approx([low, (low + high) / 2, high])
    assert (pack.at.tolist(), pack.reward.tolist()) == ([pytest.approx(low + (high - low) / 4)], [0.7])
    low, high = space.axes[2].range
    assert threshold.x == pytest.approx([low, (low * high) ** 0.5, high])
    assert threshold.marks == {"default": pytest.approx(low)}
    drawn = plots.figure(response_curves("t", *given))
    assert drawn.layout.xaxis3.type == "log"
    assert drawn.layout.xaxis3.ticktext == ("1", "10k", "100M")
    assert {panel.name for panel in panels} == {note.text[3:-4] for note in drawn.layout.annotations}


def test_knob_lanes_hold_values_at_the_hour():
    space = Space(lab.Tiresias(), ["queues", "pack_limit"])
    tuned = lab.Tiresias(pack_limit=0.5)
    lines = {"default": [(0.0, lab.Tiresias())], "me": [(0.0, lab.Tiresias()), (2 * HOUR, tuned)]}
    for now, value in ((HOUR, "0.9"), (2 * HOUR, "0.5")):
        drawn = plots.figure(plots.knob_lanes(space, lines, now, 4 * HOUR, ("default", "fixed", "me")))
        *values, name = (note.text for note in drawn.layout.annotations)
        assert values == ["2", value]
        assert name.endswith("<b>me</b>")
        assert {note.font.color for note in drawn.layout.annotations} == {style.INK}, (
            "a word in a light colour is hard to read"
        )
    unused = plots.knob_lanes(Space(lab.Tiresias(), ["thresholds"]), lines, 0.0, HOUR).draw().live["annotations"]
    assert [note["text"] for note in unused][:2] == ["57.6k", "none"], "the default has one threshold"
    step = drawn.data[1]
    assert step.x[4:7].tolist() == [0.0, 2.0, 4.0]
    heights = [0.15 + 0.7 * space.axes[1].coordinate(v) for v in (0.9, 0.5, 0.5)]
    assert step.y[4:7].tolist() == pytest.approx(heights)
    race = plots.race([HOUR], {name: [1.0] for name in ("default", "fixed", "me")}).draw()
    assert step.line.color == race.style[2]["line"]["color"], "a line has one colour in all figures"


# --- the explorer


@pytest.fixture
def explorer(recording):
    pytest.importorskip("ipywidgets")
    from scenes.manual_tuning import ManualTuningExplorer

    return ManualTuningExplorer(recording)


def seen(explorer) -> str:
    return repr((explorer.table.value, explorer.status.value, explorer.board.drawings))


def test_use_and_undo(explorer, recording):
    """After an undo everything is as it was, to the last digit; a second use in an hour takes the place of the first."""
    assert explorer.undo.disabled
    explorer.hour.value = 20
    before = seen(explorer)
    explorer.knobs["metric"].value = "gittins"
    explorer.use.click()
    assert explorer.plan == ((20, explorer.knobs.thing),)
    assert "20 h: metric gittins" in explorer.status.value
    assert seen(explorer) != before
    explorer.knobs["pack_limit"].value = 0.5
    explorer.use.click()
    assert explorer.plan == ((20, explorer.knobs.thing),)
    explorer.hour.value = 10
    explorer.knobs["metric"].value = "time"
    explorer.use.click()
    assert [place for place, _ in explorer.plan] == [10, 20]
    for _ in range(3):
        explorer.undo.click()
    explorer.hour.value = 20
    explorer.knobs["metric"].value = "service"
    explorer.knobs["pack_limit"].value = 0.9  # an undo moves no slider
    assert explorer.plan == ()
    assert explorer.undo.disabled
    assert seen(explorer) == before
    assert not explorer.error.outputs


def test_following_autosched_is_its_line(explorer, recording):
    explorer.hour.value = len(recording.hours) - 1
    explorer.follow.click()
    assert "No difference: under" in explorer.status.value
    assert len(explorer.plan) == len(recording.switches)
    explorer.reset.click()
    assert explorer.plan == ()
    assert "No difference: under" not in explorer.status.value
    explorer.undo.click()
    assert "No difference: under" in explorer.status.value


def test_what_cannot_be_simulated_is_shown_and_changes_nothing(explorer, monkeypatch):
    def fails(*_):
        raise RunError("cannot run")

    monkeypatch.setattr("scenes.manual_tuning.play", fails)
    explorer.knobs["metric"].value = "gittins"
    explorer.use.click()
    assert explorer.error.outputs[0]["evalue"] == "cannot run"
    assert explorer.plan == ()
    assert explorer.undo.disabled


def test_curves_are_the_recorded_ones(explorer, recording):
    explorer.hour.value = 30
    drawn = explorer._curves().data
    hour = recording.hours[30]
    means, in_force = ([t for t in drawn if t["name"] == name] for name in ("predicted mean", "in force"))
    for k, (axis, mean, upright) in enumerate(zip(explorer.space.axes, means, in_force, strict=True)):
        assert mean["y"].tolist() == hour.curves[axis.name][0]
        assert upright["x"][0] == pytest.approx(axis.value(hour.after[k]), rel=1e-2) or axis.levels
    explorer.knobs["metric"].value = "time"
    sliders = [t for t in explorer._curves().data if t["name"] == "sliders"]
    assert sliders[0]["x"][0] == 1.0, "time is the second of the values"


def test_defaults_are_marked_on_sliders(explorer):
    (queues,) = explorer.knobs["queues"].sliders
    share = round(100 * (queues.value - queues.min) / (queues.max - queues.min))
    assert f"gpuschedlab-mark-{share}" in queues._dom_classes
    assert f".gpuschedlab-mark-{share} .noUi-base::after {{ left: {share}% }}" in explorer._left.children[-1].value
    _, *unused = explorer.knobs["thresholds"].sliders
    assert unused
    assert not any("gpuschedlab-mark" in name for part in unused for name in part._dom_classes), (
        "the default has one threshold"
    )


def test_defaults_lie_on_the_grids_of_their_sliders(explorer):
    """A browser moves a slider that lies beside its grid, and tells the kernel: the default would be another policy."""
    for each in explorer.knobs.controls.values():
        for part in each.sliders:
            value = np.log10(part.value) if hasattr(part, "base") else part.value
            steps = (value - part.min) / part.step
            assert steps == pytest.approx(round(steps), abs=1e-6), each.info.name
    assert explorer.knobs.thing == explorer.space.policy
