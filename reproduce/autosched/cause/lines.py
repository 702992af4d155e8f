"""Lines of the contest: policies that never change and tuners, all on the same fresh jobs of a world.

Three simulators answer what a knob would do: `belief`, `twin` (the mechanisms that the log shows) and `exact` (those that are). By
each there is the best constant of the logged weeks, and a search every six hours on forecasts; the thesis' causal tuner works on the twin.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from gpuschedlab.autosched import METHODS, RangePredictor, Space, Tuner, attach, best_fixed, gather, train
from gpuschedlab.errors import PolicyError
from gpuschedlab.policies import Tiresias
from gpuschedlab.sim import Scenario
from reproduce.autosched.cause.world import DAY, HOUR, World, with_other_jobs, world_of

BELIEF = "belief"
TWIN = "twin"
EXACT = "exact"
SIMULATORS = (BELIEF, TWIN, EXACT)
DEFAULT = "default"
GITTINS = "gittins"
THESIS = "thesis on the twin"
CONSTANTS = {name: f"constant by {name}" for name in SIMULATORS}
SEARCHES = {name: f"search on {name}" for name in SIMULATORS}
LINES = (DEFAULT, GITTINS, *CONSTANTS.values(), *SEARCHES.values(), THESIS)
ROUNDS = 60
"""Configurations among which a constant is searched, once."""
BETWEEN = 6 * HOUR
HORIZON = 72 * HOUR
BUDGET = 10
"""Seconds from one decision to the next and of forecast arrivals, and configurations simulated in a decision at most."""
HINTS = 2
SEARCHED = 3
FUTURES = 1
"""Best constants that are tried in each decision, rounds of its search, and other futures on which its best are measured again."""
TREES = 10
WEIGHT = 0.3
"""Size of the classifier of durations, and the weight of the counted shares: a fit a day costs less."""
INSTANTS = 6
CONFIGURATIONS = 12
"""Size of the offline phase of the causal model: the rows of the logged weeks."""


@dataclass(frozen=True, eq=False)
class Simulator:
    """What answers what a knob would do: the logged jobs as it takes them, and its mechanisms in a scenario."""

    history: pl.DataFrame
    mechanisms: Callable[[Scenario], Scenario]

    def past(self, world: World) -> Scenario:
        """The logged weeks as it simulates them."""
        return self.mechanisms(world.fresh.replace(history=self.history).past)


def simulators_of(world: World) -> dict[str, Simulator]:
    """Simulators by name."""
    shown = world.shown()
    inferred = world.fresh.history.join(shown.work, on="job_id", how="left", maintain_order="left")
    inferred = inferred.with_columns(duration=pl.coalesce("work", "duration")).drop("work")
    return {
        BELIEF: Simulator(world.fresh.history, world.believed),
        TWIN: Simulator(inferred, lambda scenario: shown.at(world.believed(scenario))),
        EXACT: Simulator(world.work, world.exact),
    }


def average_jct(simulation) -> float:
    """Average JCT (s) of a simulation, played to its end; inf where its jobs stop making progress."""
    try:
        simulation.advance(np.inf)
    except PolicyError:
        return math.inf
    jobs = simulation.snapshot().jobs
    return float((jobs["end"] - jobs["submit"]).mean())


def measure(data_dir, seed: int) -> dict:
    """Row of a world: its secret, and by line the average JCT (s), what was announced and realised, and configurations simulated.

    `elsewhere` has the average JCT of the constants on fresh jobs of another seed in the same world.
    """
    world = world_of(seed)
    rows = {DEFAULT: constant(world, Tiresias()), GITTINS: constant(world, Tiresias(metric="gittins"))}
    another = with_other_jobs(world)
    elsewhere = {}
    for name, simulator in simulators_of(world).items():
        past = simulator.past(world)
        space = Space(past.fitted(Tiresias()))
        found = best_fixed(past, space, rounds=ROUNDS, searches=1, rng=seed)
        policy = found.best.policy
        hints = found.leaders(HINTS)
        row = constant(world, policy)
        announced = float(found.best.reward)
        rows[CONSTANTS[name]] = row | {"announced": [announced], "realised": [rows[DEFAULT]["jct"] / row["jct"]]}
        rows[CONSTANTS[name]]["measured"] = found.measured
        elsewhere[name] = average_jct(another.simulation(policy))
        rows[SEARCHES[name]] = tuned(world, simulator, space, hints)
        if name == TWIN:
            rows[THESIS] = by_model(world, simulator, space, hints)
    jobs = world.fresh.trace.height
    return {
        "seed": seed,
        "mechanisms": list(world.secret.mechanisms),
        "jobs": jobs,
        "lines": rows,
        "elsewhere": elsewhere,
    }


def constant(world: World, policy) -> dict:
    """Row of a policy that never changes."""
    return {"jct": average_jct(world.fresh.simulation(policy)), "knobs": policy.knobs}


def tuned(world: World, simulator: Simulator, space: Space, hints, model=None) -> dict:
    """Row of a tuner that decides every `BETWEEN` seconds by a simulator: by search, or by a causal model as well."""
    simulation = world.fresh.simulation(space.policy)
    tuner = Tuner(iterations=SEARCHED, check=SEARCHED, alone=SEARCHED)
    if model is not None:
        tuner = Tuner.thesis(iterations=SEARCHED, check=SEARCHED, batch=1e6)
    controller = attach(
        replace(METHODS["search"], tuner=tuner),
        simulation,
        history=simulator.history,
        model=model,
        space=space,
        hints=hints,
        horizon=HORIZON,
        predictor=RangePredictor(trees=TREES, weight=WEIGHT, rng=world.seed),
        seed=world.seed,
        believed=simulator.mechanisms,
        budget=BUDGET,
        futures=FUTURES,
        prune=None,
        interval=BETWEEN,
        wide=DAY,
        check=0.0,
    )
    with contextlib.suppress(PolicyError):  # its jobs stop making progress: the average JCT is inf
        controller.run(float(world.fresh.trace["submit"].max()))
    decisions = controller.decisions
    switches = [decision for decision in decisions if decision.switched]
    return {
        "jct": average_jct(simulation),
        "decisions": len(decisions),
        "switches": len(switches),
        "announced": [float(decision.gain) for decision in switches],
        "realised": [came_of(decision) for decision in switches],
        "measured": sum(decision.measured for decision in decisions),
        "most": max(decision.measured for decision in decisions),
    }


def by_model(world: World, simulator: Simulator, space: Space, hints) -> dict:
    """Row of the thesis' tuner: a causal model of the logged weeks is asked in every round."""
    past = simulator.past(world)
    rows = gather(past, space, instants=INSTANTS, configurations=CONFIGURATIONS, horizon=HORIZON, rng=world.seed)
    row = tuned(world, simulator, space, hints, train(rows, space, rng=world.seed))
    return row | {"offline": rows.height}


def came_of(decision) -> float:
    """How many times shorter the average JCT really became by a switch; 0 where jobs stop making progress after it."""
    try:
        return float(decision.realised.ratio)
    except PolicyError:
        return 0.0
