"""A contest that goes on from any hour of its recording: decisions are repeated, nothing is searched."""

import numpy as np
import polars as pl

from gpuschedlab.autosched import Contest, Tuner
from gpuschedlab.autosched.controller import HOUR
from gpuschedlab.autosched.recording.recording import Recording, knobs_of_json
from gpuschedlab.errors import RunError
from gpuschedlab.scenarios import recipe_of


def resumed(recording: Recording, hours: float) -> Contest:
    """The recorded contest as it was after so many whole hours, made anew from recipe and seed; it goes on as the recorded one did."""
    time = recording.averages["time"]
    made = recording.made
    known = recording.known
    if hours not in (0, *(x / HOUR for x in time)):
        raise RunError(f"resumed: found hour {hours}; expected a whole one, 0 to {len(time)}.")
    scenario = recipe_of(made["recipe"])(made["seed"])
    now = hours * HOUR
    policy = scenario.fitted(recording.policy)
    fixed = known["fixed"] and policy.with_knobs(**knobs_of_json(known["fixed"]))
    hints = tuple(policy.with_knobs(**knobs_of_json(hint)) for hint in known["hints"])
    samples = pl.DataFrame(known["samples"]["rows"], schema=known["samples"]["columns"], orient="row")
    given = {"others": tuple(made["others"]), "tuner": Tuner.thesis().with_knobs(**knobs_of_json(made["tuner"]))}
    contest = Contest(scenario, policy, known=(samples, hints, fixed), **given)
    for name, loop in contest.loops.items():
        loop.resume([_replayed(record) for record in recording.journals[name] if record["now"] < now])
    if "once" in contest.simulations and (first := next((d for d in contest.decisions if d.switched), None)):
        contest.simulations["once"].advance(first.now)
        contest.simulations["once"].switch(first.policy)
    for simulation in contest.simulations.values():
        simulation.advance(now)
    past = int(np.searchsorted(time, now, side="right"))
    averages = {name: np.array(values[:past], float).tolist() for name, values in recording.averages.items()}
    contest.now = now
    contest.averages = averages
    rng = np.random.default_rng([contest.loop.rng, round(now)])
    contest.loop.forecast(rng)  # that of this instant, for what shows it
    return contest


def _replayed(record: dict) -> dict:
    """Record of a journal, as `Controller.resume` takes it."""
    samples = record["samples"]
    rows = [dict(zip(samples["columns"], row, strict=True)) for row in samples["rows"]]
    hints = [knobs_of_json(hint) for hint in record["hints"]]
    return record | {"samples": rows, "knobs": knobs_of_json(record["knobs"]), "hints": hints}
