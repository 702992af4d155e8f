"""A recorded contest shown: numbers and sentences of its seven stages, the page that holds them all, and going live."""

import base64
import gzip
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from gpuschedlab import plots
from gpuschedlab.autosched import CausalGraph, Layers
from gpuschedlab.autosched.decision import gain_interval
from gpuschedlab.autosched.figures.configurations import again, between, change, parallel, weighed
from gpuschedlab.autosched.figures.futures import alike, fan
from gpuschedlab.autosched.recording import answers, stages
from gpuschedlab.autosched.recording.answers import times_as_good
from gpuschedlab.autosched.recording.player import frames, page
from gpuschedlab.autosched.recording.recording import Recording
from gpuschedlab.autosched.recording.stages import STAGES, came, last_errors
from gpuschedlab.errors import RunError
from gpuschedlab.metrics.intervals import verdict

HOUR = 3600.0


@pytest.fixture(scope="module")
def recording():
    return Recording.read()


def test_a_fan_is_the_quantiles_of_its_futures():
    futures = np.array([[0.0, 9.0], *[[float(i), 9.0] for i in range(1, 9)]])  # 0 to 8, and nine times 9
    drawn = fan(HOUR, 1800.0, "jobs", futures, np.array([5.0]), np.array([7.0])).draw()
    high, low, middle, past, then, _ = drawn.data
    assert [trace["y"].tolist() for trace in (low, middle, high)] == [[0.8, 9.0], [4.0, 9.0], [7.2, 9.0]]
    assert middle["x"].tolist() == [1.25, 1.75]
    assert (past["x"].tolist(), past["y"].tolist()) == ([0.75], [5.0])
    assert (then["x"].tolist(), then["y"].tolist()) == ([1.25], [7.0])


def test_signs_are_told_by_colour_and_symbol_and_strength_by_width():
    edges = (("k", "m"), ("m", "r"), ("k", "r"))
    graph = CausalGraph(Layers(("k",), ("m",), ("r",)), edges)
    found = dict(zip(edges, ((0.5, 1), (-1.0, -1), (0.2, 0))))
    drawn = plots.figure(plots.causes(graph, strengths=found))
    assert [shape.line.width for shape in drawn.layout.shapes] == [3.5, 7.0, pytest.approx(1.4)]
    lit = plots.figure(plots.causes(graph, [("k", "r")], strengths=found)).layout.shapes
    assert [shape.line.width for shape in lit] == [0.6, 0.6, pytest.approx(1.4)]
    symbols = {trace.text[0]: trace.marker.color for trace in drawn.data if trace.mode == "markers+text"}
    assert set(symbols) == {"+", "\N{MINUS SIGN}", "~"}
    assert len(set(symbols.values())) == 3
    named = [n.text for n in drawn.layout.annotations if n.text]
    heads = [n for n in drawn.layout.annotations if n.showarrow]
    assert named == ["<b>k</b>", "<b>m</b>", "<b>r</b>"]
    assert len(heads) == len(edges)


def test_rejected_configurations_are_dashed_and_rewards_are_colours():
    ticks = (((0.0, "1"), (1.0, "9")),)
    drawn = plots.figure(
        parallel(("k",), ("s",), ticks, np.array([[0.1], [0.9]]), np.array([1.1, 0.9]), ("measured", "rejected"), ("a", "b"), {})
    )  # fmt: skip
    worst, best = drawn.data[:2]
    assert (worst.line.dash, best.line.dash) == ("dash", "solid")
    assert (worst.line.color, best.line.color) == (between(0.0), between(1.0))
    assert {"1", "9", "<b>k</b><br>s"} <= {note.text for note in drawn.layout.annotations}


def test_means_of_gains_are_geometric():
    drawn = plots.figure(again(("a", "b"), ((1.0, 4.0), (1.1,)), (1, 2), 1.02, 0))
    assert list(drawn.data[1].x) == pytest.approx([2.0, 1.1])
    assert drawn.data[1].marker.color[0] != drawn.data[1].marker.color[1]
    assert "nothing" in again((), (), (), 1.02).draw().live["title_text"]


def test_a_decision_draws_what_decided_it():
    """The lower end of the interval is the mark, and the line that it must pass."""
    gains = np.array([1.02, 1.1, 1.2])
    low, high = gain_interval(np.log(gains))
    drawn = plots.figure(weighed(1.3, 1.1, 1.05, (low, high)))
    traces = {trace.name: trace for trace in drawn.data if trace.name}
    (lower,) = (trace for name, trace in traces.items() if name.startswith("lower 90 % end"))
    assert list(lower.x) == pytest.approx([low])
    assert low < drawn.layout.xaxis.range[1]
    assert drawn.layout.xaxis.range[0] < min(low, 1.0)
    assert not any("lower" in str(trace.name) for trace in plots.figure(weighed(1.3, 1.1, 1.05)).data)
    again_means = plots.figure(again(("a", "b"), (tuple(gains), (1.1,)), (1, 2, 3), 1.05, 0)).data[1]
    mean = np.exp(np.log(gains).mean())
    assert again_means.error_x.arrayminus == pytest.approx([mean - low, 0.0])


def test_knobs_that_moved_are_marked():
    drawn = plots.figure(change(("a", "b"), np.array([0.2, 0.5]), np.array([0.8, 0.5]), (("1", "4 s"), ("2", "2"))))
    assert [note.text for note in drawn.layout.annotations] == ["1 \N{RIGHTWARDS ARROW} <b>4 s</b>", "2"]
    assert sum(trace.mode == "lines" for trace in drawn.data) == 1


def test_gains_are_bars_from_one():
    drawn = plots.figure(weighed(1.25, 0.9, 1.02))
    assert list(drawn.data[0].x) == pytest.approx([0.25, -0.1])
    assert list(drawn.data[0].base) == [1.0, 1.0]
    assert drawn.data[1].name == "threshold 1.02x"
    assert len(plots.figure(weighed(1.0, None, 1.02)).data[0].x) == 1


def test_the_past_hour_is_named_by_how_long_ago_it_was():
    drawn = plots.figure(alike((5 * HOUR, 2 * HOUR), np.array([[1, 2], [3, 4]])))
    assert [trace.name for trace in drawn.data] == ["up to now (5 h)", "up to 3.0 h ago"]
    assert [list(trace.y) for trace in drawn.data] == [[1, 2], [3, 4]]


def toy(hours):
    arrivals = {"start": 0.0, "step": 1800.0, "jobs": [10] * 48, "service": [1.0] * 48}
    return SimpleNamespace(hours=hours, arrivals=arrivals)


def test_errors_of_the_last_day_by_hand():
    """Twelve half hours bring 120 jobs; futures of 8 a half hour miss 24 of them, of 15 miss 60: 84 of 240."""
    seen = [SimpleNamespace(now=i * HOUR, jobs=[[n] * 48] * 9) for i, n in ((0, 8), (1, 15), (2, 99), (7, 0))]
    recording = toy(seen)
    assert last_errors(recording, 3) == pytest.approx(84 / 240)
    assert last_errors(recording, 2) is None
    assert came(recording, HOUR, 2 * HOUR).tolist() == [10, 10]
    assert len(came(recording, 23 * HOUR, 30 * HOUR)) == 2, "as far as it was played"


def test_every_stage_of_every_hour_has_numbers_and_one_sentence(recording):
    for place in range(len(recording.hours)):
        for stage in STAGES:
            numbers = stage.numbers(recording, place)
            assert set(numbers) == {p.name for p in stage.places}
            sentence = stage.sentence(recording, place)
            assert re.search(r"\d", sentence), (place, stage.name)
            assert sentence.endswith(".")
            assert "nan" not in sentence.replace("finance", "")


def test_forecasts_of_earlier_hours_are_their_medians(recording):
    place = len(recording.hours) - 1
    forecast = next(stage for stage in STAGES if stage.name == "Forecast")
    for what, drawing in forecast.numbers(recording, place).items():
        faded = [trace for trace in drawing.data if trace["name"] == "earlier forecasts"]
        assert len(faded) == len(stages.EARLIER)
        for trace, ago in zip(faded, stages.EARLIER, strict=True):
            then = recording.hours[place - ago]
            futures = np.array(getattr(then, what), float)
            assert trace["x"][0] == pytest.approx(then.now / HOUR + 0.25)
            assert np.array_equal(trace["y"], np.median(futures, axis=0))
            assert len(trace["y"]) == futures.shape[1] != futures.shape[0]


def test_words_of_a_page_are_hours_and_averages(recording):
    queued = re.search(r"Queue \?\?= \[\]\)\.push\((.*?)\);</script>", page(recording, 0, 0, "here"), re.DOTALL)[1]
    given = json.loads(queued.replace("<\\/", "</"))
    assert [hour["name"] for hour in given["hours"]] == [f"{each.now / 3600:.0f} h" for each in recording.hours]
    last = given["hours"][-1]
    at = recording.hours[-1].now
    ended = np.searchsorted(recording.averages["time"], at, side="right") - 1
    means = {name: recording.averages[name][ended] for name in recording.lines}
    assert last["race"] == (
        "Average JCT of the jobs that had ended: "
        + ", ".join(f"{name} {mean / 3600:.2f} h" for name, mean in means.items() if mean is not None)
        + "."
    )
    assert last["decision"].startswith(f"{at / 3600:.0f} h: {'switched' if recording.hours[-1].switched else 'kept'}, ")


def test_sentences_say_what_was_recorded(recording):
    place = recording.switches[-1]
    hour = recording.hours[place]
    said = {stage.name: stage.sentence(recording, place) for stage in STAGES}
    row = recording.ladder.row(-1, named=True)
    low, high = hour.interval
    assert f"({hour.gain:.2f} times; 90 %: {low:.2f} to {high:.2f})" in said["Decision"]
    changed = [old != new for old, new in zip(hour.before, hour.after, strict=True)]
    assert said["Decision"].startswith(f"Switched. {sum(changed)} knob")
    assert f"announced as {hour.gain:.2f} times" in said["What came of it"]
    assert f"came to {row['realised']:.2f} times" in said["What came of it"]
    assert f"make {row['so far']:.2f} times the default on all jobs" in said["What came of it"]
    assert f"{len(hour.again)} finalists" in said["Measure again"]
    means = [np.exp(np.mean(np.log(gains))) for _, gains in hour.again]
    assert f"the best gains {max(means):.3f}x" in said["Measure again"]
    assert min(abs(np.array(means) - hour.gain)) < 2e-4
    assert f"{sum(hour.recent)} jobs" in said["Observe"]
    assert f"{sum(trial.round > 0 for trial in hour.trials)} rounds" in said["Trials"]
    kept = next(i for i, each in enumerate(recording.hours) if not each.switched)
    assert STAGES[5].sentence(recording, kept).startswith("Kept: ")
    found = re.search(r"the best gain is ([\d.]+)x", recording.hours[kept].reason)
    assert STAGES[5].numbers(recording, kept)["gain"].data[0]["x"][0] == pytest.approx(float(found[1]) - 1, abs=6e-4)


def test_values_are_in_the_knobs_own_units(recording):
    names = [axis["name"] for axis in recording.axes]
    at = names.index("thresholds_1")
    assert stages.shown(recording, at, 1.0) == "none"
    assert stages.shown(recording, at, 0.0) == "1"
    assert stages.shown(recording, names.index("metric"), 0.0) == recording.axes[names.index("metric")]["choices"][0]


def test_the_page_holds_every_figure(recording):
    packs = frames(recording)
    assert len(packs) == len(STAGES)
    for stage, pack in zip(STAGES, packs, strict=True):
        hours = json.loads(gzip.decompress(base64.b64decode(pack)))
        assert len(hours) == len(recording.hours)
        assert all(set(hour) == {p.name for p in stage.places} for hour in hours)
    html = page(recording, 0, 0, "here")
    assert len(html) < 1_500_000
    assert "http://" not in re.sub(r"http://www.w3.org", "", html.split("gpuschedlabPlayerQueue")[1])


def test_the_ratio_on_the_same_jobs_by_hand(recording):
    """Half as long on every job is 2.0 times as good, whatever is drawn; the interval holds the ratio otherwise."""
    jobs = recording.jobs.select("submit", default="default", tuned=recording.jobs["default"] / 2)
    half = SimpleNamespace(jobs=jobs, lines=("default", "tuned"))
    assert times_as_good(half, "tuned")[:3] == pytest.approx((2.0, 2.0, 2.0))
    found = times_as_good(recording, "autosched")
    both = recording.jobs.select("default", "autosched").drop_nulls()
    assert found.ratio == pytest.approx(both["default"].mean() / both["autosched"].mean())
    assert found.low < found.ratio < found.high
    assert found.jobs == both.height
    with pytest.raises(RunError, match="found line 'none'; expected one of default, fixed"):
        times_as_good(recording, "none")


def test_answers_are_counted_from_the_recording(recording):
    """Words that compare follow from the interval, numbers from the hours."""
    assert answers.forecast_errors(recording).table["day"].to_list() == [1, 2, 3]
    error = answers.forecast_errors(recording).table["jobs off by (%)"][-1]
    assert error == round(100 * last_errors(recording, 71))
    tried = answers.tried(recording)
    rounds = [t for hour in recording.hours for t in hour.trials if t.round > 0]
    assert (
        f"{len(rounds):,} rounds and asked its model in {sum(t.predicted is not None for t in rounds):,}: "
        in tried.sentence
    )
    assert f"{sum(t.fate == 'rejected' for t in rounds):,} were rejected" in tried.sentence
    assert tried.table["hour"].to_list() == [hour.now / HOUR for hour in recording.hours]
    came = answers.came_of_it(recording)
    ladder = recording.ladder
    assert came.table["hour"].to_list() == [recording.hours[place].now / HOUR for place in recording.switches]
    assert f"gains that make {ladder['announced'].product():.2f} times together" in came.sentence
    assert (
        f"make {ladder['realised'].product():.2f} times, and {(ladder['realised'] < 1).sum()} of them lost"
        in came.sentence
    )
    assert f"a mean gain above {recording.hours[0].threshold:g} on the futures" in came.sentence
    jct = recording.jobs
    whole, once = (jct["default"].mean() / jct[name].mean() for name in ("autosched", "once"))
    assert f"they make {whole:.2f} times the default, and the first alone {once:.2f} times" in came.sentence
    gained = answers.gained(recording)
    for row in gained.table.iter_rows(named=True):
        assert row["this trace says"] == verdict(row["95 % from"], row["95 % to"], ("worse", "better"), 1.0)
    assert gained.table["jobs"].unique().to_list() == [recording.jobs.height], "one set of jobs for all lines"
    own = gained.table.filter(line="autosched")
    for row in own.iter_rows(named=True):
        assert (
            f"{row['times as good']:.2f} times as good as {answers.OTHERS[row['beside']]} ({row['beside']}; "
            in gained.sentence
        )
    behind = [answers.OTHERS[row["beside"]] for row in own.iter_rows(named=True) if row["times as good"] < 1]
    assert own["beside"].to_list() == [*answers.OTHERS], "no tuning, one choice, no graph, and one that looks back"
    assert gained.sentence.endswith(f"On average better than AutoSched here: {', '.join(behind)}.")
    assert "<p>On the same jobs" in gained._repr_html_()
    few = SimpleNamespace(hours=recording.hours[:5], switches=[], lines=("autosched",), arrivals=recording.arrivals)
    assert answers.forecast_errors(few).table.is_empty()
    assert "put in force" in answers.tried(few).sentence
    assert answers.came_of_it(SimpleNamespace(ladder=recording.ladder.head(0))).sentence == "Nothing was switched."
    assert answers.gained(few).sentence == "No other line was played."


@pytest.fixture
def explorer(recording):
    pytest.importorskip("anywidget")
    from gpuschedlab.widgets import RecordedExplorer

    return RecordedExplorer(recording)


def test_it_opens_where_most_was_measured_again(explorer, recording):
    counts = [sum(len(gains) for _, gains in hour.again) for hour in recording.hours]
    assert counts[explorer.place] == max(counts[1:])
    with pytest.raises(RunError, match="found hour 72, stage 1; expected one of 0 to 71, and 1 to 7"):
        type(explorer)(recording, hours=72)


def test_it_goes_live_from_the_hour_that_is_shown(explorer, recording, monkeypatch):
    """The button's message forks there; what goes wrong is shown."""
    asked = []
    contest = SimpleNamespace(box=explorer.status, close=lambda: None)
    monkeypatch.setattr("gpuschedlab.autosched.recording.resume.resumed", lambda _, hours: asked.append(hours))
    monkeypatch.setattr("gpuschedlab.autosched.explorers.live.AutoSchedExplorer", lambda _: contest)
    explorer._heard(explorer.tie, {"kind": "live", "at": 5}, [])
    assert asked == [5.0]
    assert "Live from 5 h" in explorer.status.value
    assert explorer.below.children == (contest.box,)
    monkeypatch.setattr("gpuschedlab.autosched.recording.resume.resumed", lambda *_: 1 / 0)
    explorer._heard(explorer.tie, {"kind": "live", "at": 5}, [])
    assert explorer.error.outputs[0]["ename"] == "ZeroDivisionError"


def test_a_page_of_its_own_is_whole(explorer):
    html = explorer.html()
    assert html.count("gpuschedlabFigures.give(") == 1
    assert html.index("gpuschedlabPlayerQueue") > 0
    for asked, answer in answers.ASKED.items():
        assert html.index(f"<h2>{asked}</h2>") > html.index("gpuschedlabPlayerQueue")
        assert answer(explorer.recording).sentence in html
