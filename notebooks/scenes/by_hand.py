"""A line of one's own beside the recorded tuners: knobs switched by hand at whole hours, simulated, never estimated."""

from html import escape
from typing import NamedTuple

import numpy as np

from gpuschedlab.autosched.controller import HOUR
from gpuschedlab.errors import RunError
from gpuschedlab.metrics import PairedRatio, paired_ratio
from gpuschedlab.scenarios import recipe_of

NAME = "me"
DIGITS = 1
"""Decimals of a recorded JCT (s): what is simulated is rounded alike, so that equal schedules have equal numbers."""


class Played(NamedTuple):
    """A line that was simulated: `switches` that changed anything, and how its jobs fared."""

    average: np.ndarray
    jct: np.ndarray
    switches: int


def switches_of(recording) -> list[tuple]:
    """Places in `recording.hours` at which AutoSched switched, and the policy from then on."""
    return [(place, recording.policy_at(place)) for place in recording.switches]


class Row(NamedTuple):
    """A line of the table: name, average JCT (s), the default's over it, and switches."""

    name: str
    average: float
    times: PairedRatio
    switches: int


def scenario_of(recording):
    """Scenario that was played, made anew from its recipe and seed."""
    return recipe_of(recording.made["recipe"])(recording.made["seed"])


def play(recording, plan, scenario=None) -> Played:
    """Simulate the recorded scenario with knobs that are switched at recorded hours."""
    plan = list(plan)
    places, kind, hours = [place for place, _ in plan], type(recording.policy), len(recording.hours)
    ascending = places == sorted({*places} & {*range(hours)})
    if not ascending or any(type(policy) is not kind for _, policy in plan):
        raise RunError(
            f"play: found switches at hours {places} to {', '.join({type(p).__name__ for _, p in plan})}; expected ascending "
            f"hours from 0 to {hours - 1}, and {kind.__name__}."
        )
    scenario = scenario or scenario_of(recording)
    simulation, average, switches = scenario.simulation(scenario.fitted(recording.policy)), [], 0
    ahead = {recording.hours[place].now: scenario.fitted(policy) for place, policy in plan}
    for end in recording.averages["time"]:
        policy = next((p for now, p in ahead.items() if end - HOUR <= now < end), simulation.policy)
        if policy != simulation.policy:
            simulation.switch(policy)
            switches += 1
        simulation.advance(end)
        jobs = simulation.snapshot().jobs
        spent = np.where(jobs["done"], jobs["end"] - jobs["submit"], np.nan)
        average.append(spent[jobs["done"]].mean() if jobs["done"].any() else np.nan)
    simulation.advance(np.inf)
    jobs = simulation.snapshot().jobs
    spent = np.where(jobs["done"], jobs["end"] - jobs["submit"], np.nan)
    return Played(np.round(average, DIGITS), np.round(spent, DIGITS), switches)


def compare(recording, mine: Played) -> list[Row]:
    """Rows of all lines, mine last: the recorded ones on the jobs that ended under all of these, mine on those that ended under it, too."""
    jct = {name: recording.jobs[name].to_numpy() for name in recording.lines}
    ended = np.isfinite(np.stack([*jct.values()])).all(axis=0)
    switches = {name: sum(record["switched"] for record in made) for name, made in recording.journals.items()}
    rows, submit = [], recording.jobs["submit"].to_numpy()
    for name, values in (jct | {NAME: mine.jct}).items():
        both = ended & np.isfinite(values)
        ratio = paired_ratio(submit[both], jct["default"][both], values[both])
        rows.append(Row(name, float(values[both].mean()), ratio, (switches | {NAME: mine.switches}).get(name, 0)))
    return rows


def table(rows: list[Row]) -> str:
    """HTML table of `compare`."""
    cells = []
    for row in rows:
        range_ = "" if row.times.verdict == "same" else f" ({row.times.range()})"
        times = f"<b>{row.times.ratio:.2f}</b>{range_}"
        line = (escape(row.name), f"{row.average / HOUR:.3f}", times, row.switches)
        cells.append("".join(f"<td>{cell}</td>" for cell in line))
    heads = ("line", "average JCT (h)", "times as good as default (95 %)", "switches")
    head = "".join(f'<th scope="col">{each}</th>' for each in heads)
    caption = f"<caption>{rows[0].times.jobs:,} jobs that ended under all lines</caption>"
    return f'<table class="gpuschedlab-table">{caption}<tr>{head}</tr><tr>{"</tr><tr>".join(cells)}</tr></table>'
