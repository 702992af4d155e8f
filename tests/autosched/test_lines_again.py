"""Lines that are played again by their switches: of a recorded contest job by job; and the lanes that show their knobs."""

import numpy as np
import pytest

import gpuschedlab as lab
from gpuschedlab import plots
from gpuschedlab.autosched import Space
from gpuschedlab.autosched.live.line import HOUR, Line
from gpuschedlab.autosched.recording.recording import Recording
from gpuschedlab.plots.kinds import style
from gpuschedlab.scenarios import recipe_of

DIGITS = 1
"""Decimals of a recorded JCT (s)."""


@pytest.fixture(scope="module")
def recording():
    """The one that ships: three days, AutoSched switches at least once."""
    return Recording.read()


@pytest.fixture(scope="module")
def scenario(recording):
    """Scenario that was played, made anew from its recipe and seed."""
    return recipe_of(recording.made["recipe"])(recording.made["seed"])


def jct_of(scenario, recording, switches) -> np.ndarray:
    """JCT (n,) of a line with some switches, as it is recorded."""
    line = Line(scenario, scenario.fitted(recording.policy))
    for hour, policy in switches:
        line.advance(recording.hours[hour].now)
        line.switch(scenario.fitted(policy))
    return np.round(line.ends() - scenario.trace["submit"].to_numpy(), DIGITS)


def test_a_line_without_switches_is_the_recorded_default_job_by_job(recording, scenario):
    expected = recording.jobs["default"].to_numpy()
    ended = np.isfinite(expected)
    np.testing.assert_array_equal(jct_of(scenario, recording, [])[ended], expected[ended])
    same = jct_of(scenario, recording, [(3, recording.policy)])
    np.testing.assert_array_equal(same[ended], expected[ended])


def test_with_the_recorded_switches_it_is_the_tuned_one_job_by_job(recording, scenario):
    switches = [(hour, recording.policy_at(hour)) for hour in recording.switches]
    assert switches
    expected = recording.jobs["autosched"].to_numpy()
    ended = np.isfinite(expected)
    np.testing.assert_array_equal(jct_of(scenario, recording, switches)[ended], expected[ended])
    assert not np.array_equal(jct_of(scenario, recording, switches[:-1])[ended], expected[ended]), (
        "the last one matters"
    )


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
