"""Lines that are played again by their switches, job by job; and the lanes that show their knobs."""

import numpy as np
import pytest

import gpuschedlab as lab
from gpuschedlab import plots
from gpuschedlab.autosched import LiveDays, LiveTuning, Race, Space
from gpuschedlab.autosched.figures.promises import course
from gpuschedlab.autosched.live.line import HOUR, Line
from gpuschedlab.autosched.live.race import DEFAULT, TUNED
from gpuschedlab.plots.kinds import style


@pytest.fixture(scope="module")
def race():
    """A day in which the tuner switches at least once."""
    race = Race(LiveDays(days=1, jobs=200, load=1.2), LiveTuning(evaluations=4), seed=3)
    race.play()
    assert len(race.lines[TUNED].switches) > 1
    return race


def ends_of(race, switches) -> np.ndarray:
    """Ends (n,) of the jobs of a new line with some switches."""
    (_, first), *later = switches
    line = Line(race.scenario, first)
    for at, policy in later:
        line.advance(at)
        line.switch(policy)
    line.advance(race.now)
    return line.ends()


def test_a_line_without_switches_is_the_default_job_by_job(race):
    default = race.lines[DEFAULT]
    np.testing.assert_array_equal(ends_of(race, default.switches), default.ends())
    same = [*default.switches, (3 * HOUR, default.policy)]
    np.testing.assert_array_equal(ends_of(race, same), default.ends())


def test_with_its_switches_it_is_the_tuned_one_job_by_job(race):
    tuned = race.lines[TUNED]
    np.testing.assert_array_equal(ends_of(race, tuned.switches), tuned.ends())
    assert not np.array_equal(ends_of(race, tuned.switches[:1]), tuned.ends()), "the switches matter"


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
    names = ("default", "fixed", "me")
    drawn_course = course([HOUR], {name: [1.0] for name in names}, False, "JCT", HOUR).draw()
    assert step.line.color == drawn_course.style[2]["line"]["color"], "a line has one colour in all figures"
