"""Plays a contest to its end and records every hour of it."""

import json
from collections.abc import Callable
from dataclasses import asdict

import numpy as np
import polars as pl

from gpuschedlab.autosched import Contest, Decision
from gpuschedlab.autosched.controller import DAY, HOUR
from gpuschedlab.autosched.recording.hour import AHEAD, BUCKETS, FUTURES, POINTS, SAMPLED, STEP, Hour, Trial
from gpuschedlab.autosched.recording.recording import FORMAT, VERSION, Recording
from gpuschedlab.autosched.recording.strength import strengths
from gpuschedlab.autosched.tuner.measure import reward
from gpuschedlab.errors import RunError
from gpuschedlab.knobs import word_of
from gpuschedlab.sim.recipe_base import Recipe


def record(contest: Contest, recipe: Recipe, progress: Callable[[Contest], None] | None = None) -> Recording:
    """Play a contest from where it is to the end of its trace; every hour of that is recorded.

    Parameters
    ----------
    contest : Contest
    recipe : Recipe
        What made its scenario, with the contest's seed.
    progress : callable, optional
        Called with the contest after each hour.

    Returns
    -------
    Recording

    Raises
    ------
    RunError
        The recipe makes another trace than the contest has.
    """
    loop = contest.loop
    made = recipe(loop.rng)
    if not made.trace.equals(loop.simulation.trace):
        raise RunError(
            f"record: found a contest on another trace than that of {word_of(recipe)} with seed {loop.rng}; expected the same. "
            f"Give the recipe that made its scenario: recipe({loop.rng})."
        )
    hours = []
    graphs = []
    while contest.now < contest.end:
        before = contest.policy
        for step in contest.hour():
            if isinstance(step, Decision):
                hours.append(_hour(contest, step, before, graphs))
        if progress is not None:
            progress(contest)
    content = _content(contest, recipe, made.history, hours, graphs)
    return Recording(json.loads(json.dumps(content)))  # as it will be read: tuples are lists


def _content(contest: Contest, recipe: Recipe, history, hours: list[Hour], graphs: list) -> dict:
    """All of a recording, as plain data."""
    loop = contest.loop
    layers = contest.graph.layers
    space = contest.space
    samples, hints, fixed = contest.known
    others = [name for name in contest.simulations if name != "autosched"]
    made = {"recipe": recipe.to_dict(), "seed": loop.rng, "policy": word_of(space.policy), "tuner": loop.tuner.knobs}
    known = {"samples": _table(samples.to_dicts()), "hints": [hint.knobs for hint in hints]}
    axes = [_axis(axis, space.policy) for axis in space.axes]
    variables = {name: list(getattr(layers, name)) for name in ("knobs", "context", "metrics", "objectives")}
    return {
        "format": FORMAT,
        "version": VERSION,
        "made": made | {"others": others},
        "known": known | {"fixed": fixed and fixed.knobs},
        "axes": axes,
        "layers": variables | {"levels": layers.levels},
        "graphs": graphs,
        "arrivals": _arrivals(loop.simulation.trace, history, contest.now),
        "system": _system(loop.simulation, contest.now),
        "hours": [asdict(hour) for hour in hours],
        "averages": {name: [_round(x, 1) for x in values] for name, values in contest.averages.items()},
        "jobs": _jobs(contest),
        "ladder": [_round(x, 3) for x in _ladder(loop)],
        "journals": {name: [_journal(d, each.model) for d in each.decisions] for name, each in contest.loops.items()},
    }


def _hour(contest: Contest, decision: Decision, before, graphs: list) -> Hour:
    """What is kept of a decision, which has just been taken."""
    loop = contest.loop
    tuning = decision.tuning
    turn = (len(contest.decisions) - 1) % (1 + contest.loop.futures)
    ranks = [rank for rank in range(1 + loop.futures) if rank != turn] or [0]
    would = _would(loop, decision)
    trials = [
        Trial(*(t.round, t.fate, _round(t.predicted, 4), _round(t.reward, 4), _coordinates(t.u)), would.get(t.policy))
        for t in tuning.trials
    ]
    came = list(decision.realised[:4]) if decision.switched else []
    again = [
        (_coordinates(contest.space.encode(policy)), [_round(np.exp(log), 4) for log in logs])
        for policy, logs in decision.again.items()
    ]
    edges = [list(edge) for edge in contest.graph.edges]
    if edges not in graphs:
        graphs.append(edges)
    found = strengths(contest.graph, contest.model.rows)
    return Hour(
        now=decision.now,
        **_seen(contest),
        turn=turn,
        cause=decision.cause,
        trials=trials,
        ranks=ranks[: max((len(gains) for _, gains in again), default=0)],
        saved=decision.asked.saved,
        again=again,
        interval=[_round(x, 4) for x in decision.interval],
        realised=[_round(x, 4) for x in came],
        gain=_round(decision.gain, 4),
        threshold=loop.threshold,
        switched=decision.switched,
        reason=decision.reason,
        sentence=decision.sentence,
        before=_coordinates(contest.space.encode(before)),
        after=_coordinates(contest.space.encode(decision.policy)),
        knobs=decision.policy.knobs,
        graph=graphs.index(edges),
        strengths=[(_round(found[edge][0], 3), found[edge][1]) for edge in contest.graph.edges],
        curves={axis.name: _curve(contest, axis) for axis in contest.space.axes},
    )


def _would(loop, decision: Decision) -> dict:
    """By policy, what some of those that the model rejected are measured as, times the default's."""
    policies = list(dict.fromkeys(trial.policy for trial in decision.asked.rejected))
    rng = np.random.default_rng([loop.rng, round(decision.now)])
    found = {}
    for i in rng.permutation(len(policies))[:SAMPLED]:
        first = decision.tuning.trials[0].measurement.value
        found[policies[i]] = _round(reward(loop.probed.objective, loop.probed(policies[i]).value, first), 4)
    return found


def _ladder(loop) -> list[float]:
    """Average JCT (s) of all jobs of the trace with none, one, two ... of the switches, each the last; all jobs play to their end."""
    ends = [decision.state for decision in loop.decisions if decision.switched] + [loop.simulation]
    return [float(_to_the_end(simulation).mean()) for simulation in ends]


def _to_the_end(simulation) -> np.ndarray:
    """JCT (s) of each job (n,) when all have ended, and nothing is switched any more; nan where one never does."""
    played = simulation.copy()
    played.advance(np.inf)
    jobs = played.snapshot().jobs
    return np.where(jobs["done"], jobs["end"] - jobs["submit"], np.nan)


def _seen(contest: Contest) -> dict:
    """The last hour beside the past one that is most like it, and the likely futures."""
    loop = contest.loop
    now = contest.now
    generator = loop.forecaster.generator
    submit = loop.forecaster.learn(loop.simulation)["submit"].to_numpy()
    at = generator.match(submit, now)
    bins = np.arange(BUCKETS + 1) * HOUR / BUCKETS
    recent, nearest = (np.histogram(submit, end - HOUR + bins)[0].tolist() for end in (now, at))
    found = {"recent": recent, "nearest": nearest, "nearest_at": at}
    found |= {"jobs": [], "service": [], "horizon": [], "owed": []}
    edges = now + np.arange(round(AHEAD * HOUR / STEP) + 1) * STEP
    for rank in range(FUTURES):
        future = loop.forecaster(loop.simulation, np.random.default_rng([loop.rng, round(now), rank]), rank)
        here = future.trace[: future.existing]
        coming = future.trace[future.existing :]
        progress = future.initial["progress"].to_numpy() if future.existing else np.zeros(0)
        left = (here["gpus"] * np.maximum(here["duration"].to_numpy() - progress, 0.0)).sum()
        work = (coming["gpus"] * coming["duration"]).to_numpy() / HOUR
        jobs, service = _counted(coming["submit"].to_numpy(), work, edges)
        found["jobs"].append(jobs)
        found["service"].append(service)
        found["horizon"].append([coming.height, _round(work.sum(), 0)])
        found["owed"].append(_round(float(left) / HOUR, 0))
    return found


def _counted(submit, work, edges) -> tuple[list[int], list[float]]:
    """Jobs and GPU-hours by bin."""
    jobs = np.histogram(submit, edges)[0]
    service = np.histogram(submit, edges, weights=work)[0]
    return jobs.tolist(), [_round(x, 0) for x in service.tolist()]


def _arrivals(trace: pl.DataFrame, history: pl.DataFrame, until: float) -> dict:
    """What came in each half hour, from a day before the trace until an instant."""
    whole = pl.concat([history.select("submit", "gpus", "duration"), trace.select("submit", "gpus", "duration")])
    work = (whole["gpus"] * whole["duration"]).to_numpy() / HOUR
    edges = np.arange(-DAY, until + STEP / 2, STEP)
    jobs, service = _counted(whole["submit"].to_numpy(), work, edges)
    return {"start": -DAY, "step": STEP, "jobs": jobs, "service": service}


def _system(simulation, until: float) -> dict:
    """GPUs in use and requested, and jobs that wait, at each half hour under AutoSched; and all GPUs."""
    timeline = simulation.result().timeline
    at = np.arange(0.0, until + STEP / 2, STEP)
    rows = np.maximum(np.searchsorted(timeline["time"].to_numpy(), at, side="right") - 1, 0)
    found = {name: timeline[name].to_numpy()[rows].tolist() for name in ("used", "demanded", "waiting")}
    return {"step": STEP, "gpus": simulation.cluster.total_gpus} | found


def _jobs(contest: Contest) -> dict:
    """Submission of each job, and its JCT under each line (s), played until all have ended; None where it never does."""
    submit = contest.loop.simulation.trace["submit"]
    jct = {name: [_round(x, 1) for x in _to_the_end(each)] for name, each in contest.simulations.items()}
    return {"submit": [_round(x, 1) for x in submit.to_list()], "jct": jct}


def _axis(axis, policy) -> dict:
    """A coordinate: name, knob and its unit, values at 0 and 1 or those of a category, whether it is logarithmic, its default."""
    knob = axis.info.knob
    low, high = (None, None) if axis.levels else axis.range
    found = {"name": axis.name, "knob": axis.info.name, "place": axis.place, "unit": knob.unit, "log": bool(knob.log)}
    default = _round(axis.coordinate(getattr(policy, axis.info.name)), 4)
    return found | {"low": low, "high": high, "choices": list(knob.choices) if axis.levels else [], "default": default}


def _curve(contest: Contest, axis) -> list[list[float]]:
    values = np.linspace(0.0, 1.0, axis.levels or POINTS)
    return [[_round(x, 3) for x in np.exp(part)] for part in contest._along(axis.name, values)]


def _journal(decision: Decision, model) -> dict:
    """Record of a decision, without seconds, which no two plays share, and without samples where no model learns from them."""
    record = decision.record()
    return record | {"seconds": 0.0, "samples": _table(record["samples"] if model is not None else [])}


def _table(rows: list[dict]) -> dict:
    """Rows by column: shorter as text."""
    return {"columns": list(rows[0]) if rows else [], "rows": [list(row.values()) for row in rows]}


def _coordinates(u) -> list[float]:
    return [_round(x, 4) for x in u]


def _round(value, digits: int):
    """Number of so many decimals; None for nan."""
    value = float(value)
    if value != value:
        return None
    return round(value, digits) if digits else round(value)
