"""A race in words: how the tuned line stands, the last choice and its result, and the gain that was possible at all."""

import numpy as np

from gpuschedlab.autosched.live.choice import Choice
from gpuschedlab.autosched.live.goals import GOALS, gained
from gpuschedlab.autosched.live.line import HOUR
from gpuschedlab.autosched.live.race import CLOCK, DEFAULT, GITTINS, PAST, Race
from gpuschedlab.autosched.live.schedule import constants

SAME = 0.02
"""Gains up to here count as none."""
NAMES = {
    DEFAULT: "the default",
    GITTINS: "the Gittins index",
    PAST: "the best constant of the past",
    CLOCK: "the best pair of the past, by day and night",
}


def apart(gain: float) -> str:
    """How far a line is ahead of another, or behind it, in words."""
    percent = round(100 * abs(gain - 1))
    if not percent:
        return "level with"
    return f"{percent} % {'ahead of' if gain > 1 else 'behind'}"


def standing(race: Race, now: float | None = None) -> list[str]:
    """Return a list of two sentences: gain of the goal's figure, tuned over the default, and distance from the other lines.

    The list is empty while no job counts. With `now=inf` all jobs count, also those that are still there.
    """
    gains = race.gains(now)
    if not np.isfinite(gains[DEFAULT]):
        return []
    when = "By the end" if race.ended else f"After {race.now / HOUR:.0f} h"
    better = GOALS[race.tuning.goal].times.format(f"{gains.pop(DEFAULT):.2f}")
    other_lines = ", ".join(f"{apart(gain)} {NAMES[line_name]}" for line_name, gain in gains.items())
    return [f"{when}, {better} when tuned than under the default.", f"Tuned is {other_lines}."]


def outcome(race: Race, choice: Choice) -> str:
    """Return a choice's sentence, and after a switch its result, as one string."""
    if not choice.switched:
        return choice.sentence
    return f"{choice.sentence} Played on as the jobs come: {race.realised(choice):.2f}."


def possible(race: Race) -> str:
    """Say in a sentence the gain of the best constant, known afterwards, and how far the pair of the past is from that.

    Says so if there is nothing to gain.
    """
    gain = race.hindsight()
    constant = f"Known afterwards, the best constant gains {gain:.2f} times over the default"
    if gain < 1 + SAME:
        constant = f"Known afterwards, none of {len(constants(race.policy))} constants gains more than {100 * SAME:.0f} % over the default"
    if CLOCK in race.lines:
        figures = race.figures(np.inf)
        gain_of_pair = gained(GOALS[race.tuning.goal], figures[DEFAULT], figures[CLOCK])
        return f"{constant}; the pair by day and night that was best in the past is {apart(gain_of_pair / gain)} that constant."
    if gain < 1 + SAME:
        return f"{constant} here: there is little to tune."
    return f"{constant}."
