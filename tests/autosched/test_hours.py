"""What happened in an hour: the seven stages of a decision, their figures and sentences, as the race has it."""

import re

import numpy as np
import polars as pl
import pytest

from gpuschedlab import plots
from gpuschedlab.autosched import CausalGraph, Layers, LiveDays, LiveTuning, Race
from gpuschedlab.autosched.decision import gain_interval
from gpuschedlab.autosched.figures.configurations import again, between, change, parallel, weighed
from gpuschedlab.autosched.figures.futures import alike, fan
from gpuschedlab.autosched.hours.hour import STEP
from gpuschedlab.autosched.hours.race_hours import RaceHours
from gpuschedlab.autosched.hours.search_stages import shown
from gpuschedlab.autosched.hours.stages import EARLIER, STAGES, last_error, span_of
from gpuschedlab.autosched.hours.strength import strengths
from gpuschedlab.autosched.live.race import DEFAULT, TUNED
from gpuschedlab.autosched.tuner.measure import reward

HOUR = 3600.0
DAYS = LiveDays(days=1, jobs=200, load=1.2)
TUNING = LiveTuning(evaluations=4)
DRAWN = 4
"""Of so many hours one is drawn, and the last one."""


def played(tuning=TUNING, hours=np.inf, seed=3) -> RaceHours:
    race = Race(DAYS, tuning, seed=seed)
    race.play(hours)
    return RaceHours(race)


@pytest.fixture(scope="module")
def hours():
    """A day in which the tuner switches at least once."""
    found = played()
    assert any(choice.switched for choice in found.race.choices)
    return found


@pytest.fixture(scope="module")
def causal():
    """Hours of a tuner that asks a causal model."""
    return played(LiveTuning(way="causal model", evaluations=12), 3)


# --- the stages of a race


@pytest.mark.parametrize("way", ["last hour", "true future"])
def test_every_way_to_tune_has_all_stages(way):
    found = played(LiveTuning(way=way, evaluations=3), 3)
    _all_stages(found)
    hour = found.hour(2)
    assert len(hour.jobs) == 1
    assert hour.nearest == [], "it looks for no hour like the last"
    assert "the hour most like it" not in STAGES[0].sentence(found, 2)


def test_every_stage_of_every_hour_has_numbers_and_one_sentence(hours, causal):
    _all_stages(hours)
    _all_stages(causal)


def _all_stages(found: RaceHours):
    for place in range(len(found)):
        for stage in STAGES:
            numbers = stage.numbers(found, place)
            assert len(numbers) in (1, 2)
            if place % DRAWN == 0 or place == len(found) - 1:
                for each in numbers.values():
                    assert plots.figure(each).layout.title.text
            sentence = stage.sentence(found, place)
            assert re.search(r"\d|no jobs in the forecast", sentence), (place, stage.name)
            assert sentence.endswith(".")
            assert "nan" not in sentence


def test_an_hour_is_its_decision(hours):
    race = hours.race
    for place, (choice, kept) in enumerate(zip(race.choices, race.kept, strict=True)):
        hour = hours.hour(place)
        decision = kept.decision
        assert (hour.now, hour.switched, hour.gain) == (choice.at, choice.switched, pytest.approx(choice.announced))
        assert [trial.fate for trial in hour.trials] == [trial.fate for trial in decision.tuning.trials]
        gains = [np.exp(np.mean(logs)) for logs in decision.again.values()]
        assert [np.exp(np.mean(np.log(logs))) for _, logs in hour.again] == pytest.approx(gains)
        assert hour.turn not in hour.ranks
        if hour.switched:
            assert STAGES[5].sentence(hours, place) == f"Switched. {choice.sentence}"
            assert hour.before != hour.after
        else:
            assert STAGES[5].sentence(hours, place).startswith(f"Kept: {decision.reason}.")


def test_futures_of_an_hour_are_what_its_forecaster_gives(hours):
    """The one that was searched on as it was; what it has in its bins adds up to its arrivals."""
    for place in (0, len(hours) - 1):
        hour = hours.hour(place)
        kept = hours.race.kept[place]
        assert len(hour.jobs) == len(hour.service) == len(hour.owed) == 1 + kept.futures
        coming = kept.searched.trace[kept.searched.existing :]
        within = coming.filter(pl.col("submit") <= hour.now + hour.ahead)
        assert sum(hour.jobs[hour.turn]) == within.height
        work = (within["gpus"] * within["duration"]).sum() / HOUR
        assert sum(hour.service[hour.turn]) == pytest.approx(work)
        np.testing.assert_array_equal(hours.searched(place)["jobs"], hour.jobs[hour.turn])


def test_pointing_at_hours_changes_no_race(hours):
    """A race whose hours are looked at while it plays goes on as one that nobody looks at."""
    looked_at = Race(DAYS, TUNING, seed=3)
    found = RaceHours(looked_at)
    while not looked_at.ended:
        looked_at.play(1)
        for stage in STAGES:
            stage.numbers(found, len(found) - 1)
            stage.sentence(found, len(found) - 1)
    assert [choice.sentence for choice in looked_at.choices] == [choice.sentence for choice in hours.race.choices]
    assert looked_at.gains(np.inf) == hours.race.gains(np.inf)


def test_the_same_seed_gives_the_same_hours(hours):
    again = played()
    for place in range(0, len(hours), 5):
        assert again.hour(place) == hours.hour(place)
        assert [stage.sentence(again, place) for stage in STAGES] == [stage.sentence(hours, place) for stage in STAGES]


def test_what_came_is_the_trace_as_far_as_it_was_played(hours):
    submit = hours.race.scenario.trace["submit"]
    assert hours.came(0.0, 5 * HOUR).tolist() == [
        float(((submit >= i * STEP) & (submit < (i + 1) * STEP)).sum()) for i in range(10)
    ]
    history = hours.race.scenario.history["submit"]
    assert hours.came(-HOUR, 0.0).sum() == (history >= -HOUR).sum()
    early = played(hours=2)
    assert len(early.came(HOUR, 5 * HOUR)) == 2


def test_the_last_hour_is_counted(hours):
    submit = hours.race.scenario.trace["submit"]
    for place in (1, 5):
        hour = hours.hour(place)
        assert sum(hour.recent) == ((submit > hour.now - HOUR) & (submit <= hour.now)).sum()
        assert len(hour.nearest) == len(hour.recent) == 12


def test_load_is_that_of_the_tuned_line(hours):
    load = hours.load(0.0, 5 * HOUR)
    timeline = hours.race.lines[TUNED].simulation.result().timeline
    for time, used, waiting in zip(load["time"], load["used"], load["waiting"], strict=True):
        row = timeline.filter(pl.col("time") <= time)
        expected = row.row(-1, named=True) if row.height else timeline.row(0, named=True)
        assert (used, waiting) == (expected["used"], expected["waiting"])


def test_errors_of_the_last_day_by_hand(hours, monkeypatch):
    """Twelve half hours bring 120 jobs; futures of 8 a half hour miss 24 of them, of 15 miss 60: 84 of 240."""
    place = len(hours) - 1
    bins = round(span_of(hours.hour(place)) / STEP)
    sizes = {0: 8.0, 1: 15.0}
    monkeypatch.setattr(hours, "searched", lambda number: {"jobs": np.full(bins, sizes.get(number, 10.0))})
    monkeypatch.setattr(hours, "came", lambda start, end, what="jobs": np.full(bins, 10.0))
    first = hours.race.kept[0].choice.at
    over = [kept.choice.at for kept in hours.race.kept[:place]]
    count = sum(at + bins * STEP <= hours.hour(place).now for at in over)
    assert first == 0
    assert last_error(hours, place) == pytest.approx((2 + 5) * bins / (10 * bins * count))
    assert last_error(hours, 0) is None


def test_forecasts_of_earlier_hours_are_those_that_were_searched_on(hours):
    place = len(hours) - 1
    now = hours.hour(place).now
    for what, drawing in STAGES[1].numbers(hours, place).items():
        faded = [trace for trace in drawing.data if trace["name"] == "earlier forecasts"]
        assert len(faded) == sum(hours.at(now - ago * HOUR) is not None for ago in EARLIER) > 0
        for trace, ago in zip(faded, EARLIER, strict=False):
            then = hours.searched(hours.at(now - ago * HOUR))
            assert trace["x"][0] == pytest.approx(now / HOUR - ago + 0.25)
            assert np.array_equal(trace["y"], then[what])


def test_sentences_say_what_was_decided(hours):
    place = max(place for place, choice in enumerate(hours.race.choices) if choice.switched)
    hour = hours.hour(place)
    said = {stage.name: stage.sentence(hours, place) for stage in STAGES}
    choice = hours.race.choices[place]
    rung = hours.rungs(place)[-1]
    assert f"promised as {hour.gain:.2f} times (90 %: {choice.low:.2f} to {choice.high:.2f})" in said["What came of it"]
    assert f"came to {hours.race.realised(choice):.2f} times" in said["What came of it"]
    assert f"{rung.so_far:.2f} times the default on all jobs" in said["What came of it"]
    assert f"{len(hour.again)} finalists" in said["Measure again"]
    means = [np.exp(np.mean(np.log(gains))) for _, gains in hour.again]
    assert f"the best gains {max(means):.3f}x" in said["Measure again"]
    assert f"{sum(hour.recent)} job" in said["Observe"]
    assert f"{sum(trial.round > 0 for trial in hour.trials)} rounds" in said["Trials"]
    kept = next(i for i, each in enumerate(hours.race.choices) if not each.switched)
    found = re.search(r"the best gain is ([\d.]+)x", hours.hour(kept).reason)
    drawn = STAGES[5].numbers(hours, kept)["gain"].data[0]["x"][0]
    assert drawn == pytest.approx(float(found[1]) - 1, abs=6e-4)


def test_the_last_rung_is_the_line_itself(hours):
    """With all switches of the tuner the line is the tuned one; with none it is the default."""
    race = hours.race
    rungs = hours.rungs(len(hours) - 1)
    assert [rung.at for rung in rungs] == [at for at, _ in race.lines[TUNED].switches if at > 0]
    assert rungs[-1].so_far == pytest.approx(race.gains(np.inf)[DEFAULT])
    assert hours.rungs(0) == rungs[: sum(rung.at == 0 for rung in rungs)]


def test_a_tuner_without_a_model_has_no_graph_and_one_with_a_model_its_own(hours, causal):
    assert hours.hour(0).graph is None
    assert "asks no model" in plots.figure(STAGES[2].numbers(hours, 0)["graph"]).layout.title.text
    hour = causal.hour(1)
    assert set(hour.strengths) == set(hour.graph.edges)
    assert f"{len(hour.graph.edges)} edges" in STAGES[2].sentence(causal, 1)
    kept = causal.race.kept[1]
    assert hour.strengths == strengths(kept.graph, kept.rows)


def test_some_of_the_rejected_are_measured_afterwards(causal):
    """As the probe of that very search measures them, on what was searched on; nothing else has such a number."""
    would = [
        (kept, trial, hour_trial)
        for place, kept in enumerate(causal.race.kept)
        for trial, hour_trial in zip(kept.decision.tuning.trials, causal.hour(place).trials, strict=True)
        if hour_trial.would is not None
    ]
    assert {trial.fate for _, trial, _ in would} <= {"rejected"}
    for kept, trial, hour_trial in would:
        first = kept.decision.tuning.trials[0].measurement.value
        value = kept.probe(trial.policy).value
        assert hour_trial.would == pytest.approx(reward(kept.probe.objective, value, first))


def test_values_are_in_the_knobs_own_units(hours):
    axes = {axis.name: axis for axis in hours.hour(0).axes}
    assert shown(axes["thresholds_1"], 1.0) == "none"
    assert shown(axes["thresholds_1"], 0.0) == "1"
    assert shown(axes["metric"], 0.0) == axes["metric"].info.knob.choices[0]


# --- figures


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
    alone = plots.figure(alike((5 * HOUR,), np.array([[1, 2]])))
    assert [trace.name for trace in alone.data] == ["up to now (5 h)"]


# --- how strong edges are


def test_strengths_by_hand():
    """M = 2 k - c and r = -m, of independent k and c with spread 1: 2 / sqrt(5), -1 / sqrt(5), -1."""
    k = np.repeat([-1.0, 1.0], 2)
    c = np.tile([-1.0, 1.0], 2)
    m = 2 * k - c
    graph = CausalGraph(Layers(("k",), ("m",), ("r",), context=("c",)), (("k", "m"), ("c", "m"), ("m", "r")))
    found = strengths(graph, np.column_stack([k, c, m, -m]))
    assert found == {
        ("k", "m"): (pytest.approx(2 / 5**0.5), 1),
        ("c", "m"): (pytest.approx(-1 / 5**0.5), -1),
        ("m", "r"): (pytest.approx(-1.0), -1),
    }


def test_strengths_add_up_along_paths():
    """K raises m by 1, and r both itself by 1 (declared) and through m by -3: its total effect on r is negative."""
    layers = Layers(("k",), ("m",), ("r",), direct=(("k", "r"),))
    graph = CausalGraph(layers, (("k", "m"), ("k", "r"), ("m", "r")))
    k = np.repeat([-1.0, 1.0], 2)
    e = np.tile([-1.0, 1.0], 2)
    m = k + e
    r = k - 3 * m
    found = strengths(graph, np.column_stack([k, m, r]))
    assert found["k", "r"] == (pytest.approx(-2 / np.std(r)), -1)
    assert found["m", "r"] == (pytest.approx(-3 * np.std(m) / np.std(r)), -1)


def test_a_category_has_strength_and_no_sign():
    graph = CausalGraph(Layers(("k",), ("m",), ("r",), {"k": 3}), (("k", "m"), ("m", "r")))
    k = np.array([0.0, 0.5, 1.0] * 2)
    m = np.array([0.0, 5.0, 0.0] * 2)
    assert strengths(graph, np.column_stack([k, m, m]))["k", "m"] == (pytest.approx(1.0), 0)
