"""The TunerLab without a browser: what is on the screen is what the race answers, and each control acts from the next hour on."""

import re
from dataclasses import replace

import numpy as np
import pytest

from gpuschedlab import plots
from gpuschedlab.autosched import LiveDays, LiveTuning, Race
from gpuschedlab.autosched.explorers import tuner_lab
from gpuschedlab.autosched.explorers.hour_panel import PLACES
from gpuschedlab.autosched.hours.race_hours import RaceHours
from gpuschedlab.autosched.hours.stages import STAGES
from gpuschedlab.autosched.live.goals import GOALS
from gpuschedlab.autosched.live.line import HOUR
from gpuschedlab.autosched.live.race import CLOCK, DEFAULT, TUNED
from gpuschedlab.autosched.live.race_words import apart, outcome, possible, standing
from gpuschedlab.errors import LabError
from gpuschedlab.metrics.sentence import plain
from gpuschedlab.plots.kinds.style import HIDDEN
from gpuschedlab.widgets import TunerLab

DAYS = LiveDays(days=1, jobs=150, load=1.2)
TUNING = LiveTuning(evaluations=3)


@pytest.fixture
def shown():
    lab = TunerLab(DAYS, TUNING, seed=3)
    yield lab
    lab.close()


def words(lab) -> str:
    return plain(lab.status.value)


def test_every_number_on_the_screen_is_what_the_race_says(shown):
    shown.play(12)
    race = Race(DAYS, TUNING, seed=3)
    race.play(12)
    for sentence in standing(race):
        assert sentence in words(shown)
    switches = [choice for choice in race.choices if choice.switched]
    last = (switches or race.choices)[-1]
    assert outcome(race, last) in words(shown)
    hours, figures = race.course()
    lines = {style["name"]: data["y"] for style, data in _traces(shown, "course")}
    for name, values in figures.items():
        np.testing.assert_allclose(lines[name], values / HOUR)
    np.testing.assert_allclose(hours, HOUR * np.arange(1, 13))
    promised = np.concatenate([data["y"] for _, data in _traces(shown, "promises")[:2]])
    assert sorted(promised) == sorted(choice.announced for choice in race.choices)


def _traces(lab, name):
    drawing = lab.board.drawings[name]
    return [(style | data, data) for style, data in zip(drawing.style, drawing.data, strict=True)]


def test_nothing_is_said_before_anything_is_played_and_all_is_said_at_the_end(shown):
    assert words(shown) == "Nothing is played yet."
    shown.play()
    assert shown.race.ended
    assert possible(shown.race) in words(shown)
    assert shown.panel.play.disabled
    assert shown.panel.wheel.disabled


def test_controls_act_on_the_race_that_runs(shown):
    shown.play(4)
    race = shown.race
    before = race.lines[DEFAULT].simulation.snapshot().jobs["end"].copy()
    shown.panel.tuning["goal"].value = "deadlines"
    shown.panel.days["drift"].value = 0.4
    assert shown.race is race
    assert (race.tuning.goal, race.days.drift) == ("deadlines", 0.4)
    assert CLOCK in race.lines
    came = race.scenario.trace["submit"].to_numpy() <= race.now
    after = race.lines[DEFAULT].simulation.snapshot().jobs["end"]
    np.testing.assert_array_equal(after[came], before[: came.sum()])
    shown.play(2)
    assert [choice.goal for choice in race.choices][-2:] == ["deadlines"] * 2
    assert "jobs end in time" in words(shown)
    shown.panel.policy.value = "Themis"
    shown.play(1)
    assert race.lines[TUNED].policy.name == "Themis"
    assert not shown.error.outputs


def test_what_cannot_change_under_way_begins_another_race(shown):
    shown.play(3)
    earlier = shown.race
    shown.panel.days["restart"].value = 900.0
    assert shown.race is not earlier
    assert shown.race.now == 0
    assert shown.race.scenario.delays.restart == 900
    shown.play(1)
    shown.begin_again()
    assert shown.race.now == 0
    assert not shown.error.outputs


def test_the_reader_steers_by_sliders_and_gives_the_wheel_back(shown):
    shown.play(2)
    shown.panel.wheel.value = True
    assert "You steer the tuned line." in words(shown)
    shown.panel.knobs["thresholds"].value = (5000.0,)
    assert shown.race.lines[TUNED].policy.thresholds == (5000.0,)
    shown.play(2)
    assert len(shown.race.choices) == 2
    shown.panel.wheel.value = False
    shown.play(1)
    assert len(shown.race.choices) == 3
    assert shown.race.wheel is None


def test_a_click_on_a_dot_shows_what_happened_in_its_hour(shown):
    """All seven stages of it, as the library has them; the places of the others are left out."""
    shown.play(6)
    assert shown.hours.html == ""
    assert {name for name, drawn in shown.board.drawings.items() if drawn is HIDDEN} == {place.name for place in PLACES}
    kept = [choice for choice in shown.race.choices if not choice.switched]
    shown._asked("clicked", ["promises", 0, 2])
    assert shown.race.choices[shown.hours.place] is kept[2]
    shown._asked("clicked", ["course", 1, 4])
    assert shown.hours.place == 4
    hours = RaceHours(shown.race)
    for number, stage in enumerate(STAGES):
        shown.hours.stage.index = number
        numbers = stage.numbers(hours, 4)
        drawn = [shown.board.drawings[place.name] for place in PLACES]
        seen = [each for each in drawn if each is not HIDDEN]
        assert [title(each) for each in seen] == [title(plots.draw(each)) for each in numbers.values()]
        assert plain(shown.hours.words.value) == f"4 h: kept. {stage.asks} {stage.sentence(hours, 4)}"
    assert len(shown.figure().figures) == 2 + len(seen)
    with pytest.raises(LabError, match="found nothing to show in 'stage_left'"):
        shown.figure("stage_left")
    shown.play(1)
    assert shown.hours.place == 4, "it stays while the race goes on"
    shown.begin_again()
    assert shown.hours.place is None
    assert not shown.error.outputs


def title(drawing) -> str:
    return plots.figure(drawing).layout.title.text


def test_a_page_without_a_kernel_holds_the_stages_of_each_hour(shown):
    assert shown.states() == {}
    shown.play(4)
    recorded = shown.states()
    assert [len(control["texts"]) for control in recorded["controls"]] == [4, 7]
    hours = RaceHours(shown.race)
    notes = [plain(note) for note, _, _ in recorded["states"]]
    for place in range(4):
        for number, stage in enumerate(STAGES):
            assert stage.sentence(hours, place) in notes[7 * place + number]
    assert recorded["first"] == 7 * shown.hours.busiest() + shown.hours.stage.index
    assert shown.hours.place is None
    assert shown.hours.words.value == ""


def test_races_like_it_are_played_with_the_settings_that_are_there(shown, monkeypatch):
    monkeypatch.setattr(tuner_lab, "RACES", 2)
    seldom = replace(TUNING, every=6)
    shown.panel.tuning["every"].value = seldom.every
    shown.play(1)
    shown.races_like_it.begin(shown._others())
    shown.races_like_it.finish()
    shown._draw_races()
    assert len(shown.like.seeds) == 2
    assert shown.like.sentence(DEFAULT) in words(shown)
    other = Race(DAYS, seldom, seed=10_001)
    other.play()
    assert {name: gains[1] for name, gains in shown.like.gains.items()} == pytest.approx(other.gains(np.inf))
    shown.panel.tuning["evaluations"].value = 5
    assert shown.like is None


def test_gains_in_words():
    assert [apart(gain) for gain in (1.0, 1.004, 0.97, 1.2)] == [
        "level with",
        "level with",
        "3 % behind",
        "20 % ahead of",
    ]
    assert {goal.name for goal in GOALS.values()} == {"jct", "p99", "in_time"}


def test_a_pair_by_the_clock_is_set_beside_the_best_constant_that_is_known_afterwards():
    days = LiveDays(preset="night runs", days=2, load=0.8, restart=900.0)
    race = Race(days, TUNING, seed=201)
    race.play()
    figures = race.figures(np.inf)
    pair = figures[DEFAULT] / figures[CLOCK]
    assert f"that was best in the past is {apart(pair / race.hindsight())} that constant." in possible(race)
    assert pair / race.hindsight() > 1.05


def test_a_hindsight_without_gain_says_that_there_is_little_to_tune():
    calm = Race(LiveDays(days=1, jobs=60, load=0.3), TUNING, seed=1)
    gain = calm.hindsight()
    said = possible(calm)
    assert gain >= 1
    assert ("little to tune" in said) == (gain < 1.02)
    if gain >= 1.02:
        assert re.search(rf"gains {gain:.2f} times", said)
