"""Trials of a tuner at an hour, and those measured again: the numbers of two stages, their sentences, and knobs in their own units."""

from textwrap import wrap

import numpy as np

from gpuschedlab.autosched.figures.configurations import again, parallel
from gpuschedlab.autosched.hours.hour import Hour, HourTrial
from gpuschedlab.autosched.hours.race_hours import RaceHours
from gpuschedlab.autosched.tuner.space import Axis
from gpuschedlab.knobs import knob_word

COLUMN = 11
"""Letters of a line of a knob's name, and of its unit, above its column."""
FATES = {"rejected": "predicted; rejected", "known": "measured before", "measured": "measured"}
"""How the worth of a configuration is known, by its fate."""

# 4: trials -----------------------------------------------------------------------------------------------------------


def trials_numbers(hours: RaceHours, place: int) -> dict:
    """Return a dict with the `Drawing` of a search, "trials": its configurations, a line each."""
    hour = hours.hour(place)
    rewards = np.array([_worth(trial) for trial in hour.trials], float)
    trial_texts = [_about(hour, trial, worth) for trial, worth in zip(hour.trials, rewards, strict=True)]
    marked = {"in force": np.array(hour.before), "default": np.array(hour.default)}
    axis_names = tuple(_narrow(axis.words) for axis in hour.axes)
    units = tuple(_narrow(axis.info.knob.unit or "") for axis in hour.axes)
    ticks = tuple(_ticks(axis) for axis in hour.axes)
    places = np.array([trial.u for trial in hour.trials], float).reshape(len(hour.trials), len(axis_names))
    fates = tuple(trial.fate for trial in hour.trials)
    return {"trials": parallel(axis_names, units, ticks, places, rewards, fates, tuple(trial_texts), marked)}


def _narrow(axis_name: str) -> str:
    """A text in short lines, for above a column."""
    return "<br>".join(wrap(axis_name, COLUMN))


def _worth(trial: HourTrial) -> float:
    """Reward of a configuration: predicted where it was rejected; nan if it is not known."""
    reward = trial.reward
    if trial.fate == "rejected":
        reward = trial.predicted
    return np.nan if reward is None else reward


def _about(hour: Hour, trial: HourTrial, worth: float) -> str:
    """HTML of a configuration under the mouse: its reward, and its knobs."""
    fate_words = FATES[trial.fate]
    if trial.would is not None:
        fate_words += f"; measured afterwards {trial.would:.3f}"
    knob_lines = "<br>".join(
        f"{axis.words} = {shown(axis, coordinate)}" for axis, coordinate in zip(hour.axes, trial.u, strict=True)
    )
    return f"<b>{_origin(hour, trial.round)}: {worth:.3f} times the default ({fate_words})</b><br>{knob_lines}"


def trials_sentence(hours: RaceHours, place: int) -> str:
    """Say in a sentence how many configurations were tried, in which ways, and the reward of the best."""
    hour = hours.hour(place)
    if not hour.trials:
        return "Nothing was tried: 0 jobs are there or forecast."
    rounds = [trial for trial in hour.trials if trial.round > 0]
    fates = [trial.fate for trial in rounds]
    trials_before = len(hour.trials) - len(rounds)
    sentence = f"{trials_before} before (default, in force; hints: best on the history), then {len(rounds)} rounds"
    questions = sum(trial.predicted is not None for trial in rounds)
    if hour.graph is not None:
        sentence += f", the model asked in {questions}"
    sentence += f": {fates.count('measured')} measured"
    for fate, fate_text in (("rejected", "rejected"), ("known", "known already")):
        if fate in fates:
            sentence += f", {fates.count(fate)} {fate_text}"
    if hour.saved:
        sentence += f", {hour.saved} measurements saved"
    measured = [trial for trial in hour.trials if trial.fate == "measured"]
    if not measured:
        return f"{sentence}."
    best = max(measured, key=lambda trial: trial.reward)
    least_reward = min(trial.reward for trial in measured)
    sentence += (
        f"; rewards {least_reward:.2f} to {best.reward:.2f} times the default, the best by {_origin(hour, best.round)}"
    )
    return f"{sentence}{_said_afterwards(rounds, best.reward)}."


def _said_afterwards(rounds: list[HourTrial], best: float) -> str:
    """Say in a few words the result of measuring some of the rejected; "" if none is measured."""
    would = {tuple(trial.u): trial.would for trial in rounds if trial.would is not None}
    if not would:
        return ""
    better = sum(value > best for value in would.values())
    least_reward = min(would.values())
    most_reward = max(would.values())
    return (
        f"; {len(would)} of the rejected, measured afterwards, give {least_reward:.2f} to {most_reward:.2f}, "
        f"{better or 'none'} of them better than that"
    )


# 5: measured again ---------------------------------------------------------------------------------------------------


def again_numbers(hours: RaceHours, place: int) -> dict:
    """Return a dict with the `Drawing` "again": the gains of the finalists on other futures."""
    hour = hours.hour(place)
    finalist_names = tuple(_named(hour, finalist) for finalist, _ in hour.again)
    gains = tuple(gains for _, gains in hour.again)
    return {"again": again(finalist_names, gains, tuple(hour.ranks), hour.threshold, chosen_finalist(hour))}


def _means(hour: Hour) -> list[float]:
    """Return a list of the geometric mean of each finalist's gains; 0 of none."""
    return [float(np.exp(np.mean(np.log(gains)))) if gains else 0.0 for _, gains in hour.again]


def chosen_finalist(hour: Hour) -> int:
    """Return the index of the finalist that was put in force, or else of the one with the best mean gain; -1 if there is none."""
    if not hour.again:
        return -1
    if hour.switched:
        return [finalist for finalist, _ in hour.again].index(hour.after)
    return int(np.argmax(_means(hour)))


def again_sentence(hours: RaceHours, place: int) -> str:
    """Say the gains of the finalists on other futures in a sentence."""
    hour = hours.hour(place)
    if not hour.again:
        return f"Nothing was measured again: on the future searched on (number {hour.turn + 1}), {hour.reason.split('; ')[-1]}."
    means = _means(hour)
    best = hour.again[int(np.argmax(means))][1]
    full = sum(len(gains) == len(hour.ranks) for _, gains in hour.again)
    sentence = "none gained on the first, and that was all"
    if len(hour.ranks) > 1:
        sentence = f"{full} of them on all {len(hour.ranks)}"
    sentence = f"the best gains {max(means):.3f}x on average"
    if len(best) > 1:
        sentence += f", {min(best):.3f}x on its worst future and {max(best):.3f}x on its best"
    return f"{len(hour.again)} finalists were measured on other futures, {sentence}; {sentence}."


def _origin(hour: Hour, round_number: int) -> str:
    """Return a description of a round of the hour's search as a string."""
    if round_number > 0:
        return f"round {round_number}"
    first_round = hour.trials[0].round
    round_names = {first_round: "default", first_round + 1: "in force"}
    return round_names.get(round_number, f"hint {round_number - first_round - 1}")


def _named(hour: Hour, finalist: list) -> str:
    """Name of a finalist by the round that measured it first; hints of the history may not have been measured in this search."""
    for trial in hour.trials:
        if trial.u == finalist:
            return _origin(hour, trial.round)
    return "one of the best on the history"


# In the knobs' own units ---------------------------------------------------------------------------------------------


def shown(axis: Axis, u: float) -> str:
    """Return the value of a knob at a coordinate as text; "none" if a place of it is not used."""
    if axis.place is not None and u >= 1:
        return "none"
    value = axis.value(u)
    if isinstance(value, float) and 100 <= value < np.inf:
        return f"{value:,.0f}"
    return knob_word(value, 3)


def _ticks(axis: Axis) -> tuple:
    """Tuple of pairs of coordinate and value at the ends of an axis, and between them; those of a category all."""
    return tuple((coordinate, shown(axis, coordinate)) for coordinate in np.linspace(0, 1, axis.levels or 3).tolist())
