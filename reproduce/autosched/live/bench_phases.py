"""Where tuning beats every constant: days whose mix of jobs drifts with the clock; on seeds on which nothing was chosen.

Worlds: the presets of `NIGHTS` with a restart of 900 s, 12 days each; night runs with a free restart; and days like Venus' in which the
load alone drifts, half as much again by day and half as much less by night. Lines, all on the same jobs:

constants : thirteen, EASY and the Gittins index among them. `best known afterwards` is the best of a seed itself, and `best constant of
    the world` the one that is best on average of all judged seeds: no operator knows either. `best of earlier logs` was found on three
    other logs of the world.
pair : a policy by day and another by night, the best of the same three logs.
schedule : the same, chosen on the days before of its own seed; where the pair gains no more than `GAIN` over the best constant there,
    the best constant of the earlier logs. It is the tuner that the bounds hold, by seeds 520 to 524 and 540 to 542.
phase by phase : begins with the best constant of the earlier logs, and decides every 12 hours among the constants of Tiresias, on its
    own forecasts (the same hour of other days, predicted durations); its look ends with the phase. It switches by the controller's own
    rule. One that switched at any mean gain was 1.08 (.98 to 1.20) times the best constant where the load alone drifts, on seeds 500 to
    506, and as good elsewhere.
printed : AutoSched as printed, every hour, on forecasts of 72 hours. It costs minutes, and is played on `PRINTED` seeds alone.
SRTF : knows the durations.

Ratios are of average JCT, below 1 is better; means are of logarithms, intervals of 95 % by Student's t over seeds. `drift` is that of
the mix: the average JCT under a threshold of 4,000 s over that under none, of the jobs of the day and of those of the night.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from gpuschedlab.autosched import (
    GlobalGenerator,
    LiveDays,
    RangePredictor,
    Space,
    Tuner,
    attach,
    best_fixed,
    gather,
    train,
)
from gpuschedlab.autosched.live.days import HEAVY_NIGHTS, HOUR, NIGHT_RUNS, WHOLE_NODE_NIGHTS
from gpuschedlab.autosched.live.goals import GOALS
from gpuschedlab.autosched.live.schedule import EASY, HALF, Past, by_phase
from gpuschedlab.autosched.methods import METHODS
from gpuschedlab.policies import Srtf, Tiresias
from reproduce.autosched.cause.bench import mean_ratio
from reproduce.published.kept import measure_all

DAYS = 12
NIGHT = {"days": DAYS, "restart": 900.0}
FREE = "night runs, restart free"
LOAD_ALONE = "load alone"
WORLDS = {
    NIGHT_RUNS: LiveDays(preset=NIGHT_RUNS, load=0.8, **NIGHT),
    HEAVY_NIGHTS: LiveDays(preset=HEAVY_NIGHTS, load=0.75, **NIGHT),
    WHOLE_NODE_NIGHTS: LiveDays(preset=WHOLE_NODE_NIGHTS, load=0.65, **NIGHT),
    FREE: LiveDays(preset=NIGHT_RUNS, load=0.8, days=DAYS, restart=0.0),
    LOAD_ALONE: LiveDays(preset="venus", jobs=100 * DAYS, load=0.8, drift=0.5, **NIGHT),
}
DRIFTING = (NIGHT_RUNS, HEAVY_NIGHTS, WHOLE_NODE_NIGHTS)
"""Worlds by name, and those in which the mix drifts and a restart costs."""
LINES = "lines"
PRINTED = "printed"
PARTS = (LINES, PRINTED)
EARLIER = (0, 1, 2)
"""Seeds of the earlier logs; of the judged ones `BESIDE` are played in all worlds, the others where the mix drifts."""
SEEDS = tuple(range(560, 580))
BESIDE = SEEDS[:10]
PRINTED_SEEDS = SEEDS[:3]
PAIR_BOUND = 0.9
TUNER_BOUND = 0.93
BEHIND = 1.02
"""Bounds of the pair and the schedule over the best constants where the mix drifts, and of the schedule where load alone does."""
FUTURES = 4
GAIN = 1.02
"""Futures on which the best are measured again, and the gain on the days before above which a schedule is put in force."""
MINUTES = 14.0
AFTERWARDS = "best known afterwards"
ONE = "best constant of the world"
EARLIER_LOGS = "best of earlier logs"
"""Constants that lines are compared with."""
CHOICES = ("constant", "by day", "by night")
NOT_CHOSEN = (-1, -1, -1)
"""What the earlier logs choose, in words; and of a world whose logs have chosen nothing yet."""


def tiresias(*thresholds: float, metric: str = "service") -> Tiresias:
    """Tiresias with these thresholds."""
    return Tiresias(metric=metric, queues=len(thresholds) + 1, thresholds=thresholds)


SOON = tiresias(4e3, metric="time")
NEVER = tiresias(1e8)
CONSTANTS = (
    *(tiresias(threshold) for threshold in (5e3, 1e4, 2e4, 4e4, 57_600.0, 8e4)),
    NEVER,
    tiresias(2e3, metric="time"),
    SOON,
    tiresias(1e4, 1e5),
    tiresias(2e4, 1e5),
    Tiresias(metric="gittins"),
    EASY,
)


def choose(data_dir, world: str) -> list[int]:
    """Places among `CONSTANTS` of the best one of the earlier logs of a world, and of the best pair: by day, and by night."""
    past = Past([WORLDS[world].scenario(seed) for seed in EARLIER], GOALS["average"])
    best = past.ranked(CONSTANTS)[0]
    return [CONSTANTS.index(policy) for policy in (best, *past.best_pair(CONSTANTS))]


def measure(data_dir, part: str, world: str, seed: int, constant: int, day: int, night: int) -> dict:
    """One row of a part: what the earlier logs chose is said by its places among `CONSTANTS`."""
    row = {"part": part, "world": world, "seed": seed}
    if part == PRINTED:
        return row | printed(world, seed)
    return row | lines(world, seed, CONSTANTS[constant], (CONSTANTS[day], CONSTANTS[night]))


def average_jct(simulation) -> float:
    """Average JCT (s) of a simulation, played to its end."""
    simulation.advance(np.inf)
    jobs = simulation.snapshot().jobs
    return float((jobs["end"] - jobs["submit"]).mean())


def lines(world: str, seed: int, constant, pair: tuple) -> dict:
    """Average JCT (s) by line, the drift, and what the tuner did."""
    scenario = WORLDS[world].scenario(seed)
    past = Past(scenario, GOALS["average"])
    figures = [past.figure(policy, policy) for policy in CONSTANTS]
    found = {
        AFTERWARDS: min(figures),
        EARLIER_LOGS: past.figure(constant, constant),
        "pair": past.figure(*pair),
        "schedule": past.figure(*schedule(scenario, constant)),
        "default": past.figure(Tiresias(), Tiresias()),
        "gittins": past.figure(CONSTANTS[-2], CONSTANTS[-2]),
        "easy": past.figure(EASY, EASY),
        "srtf": past.figure(Srtf(), Srtf()),
    }
    by_day, by_night = by_phase(scenario, SOON, NEVER)
    return {"jct": found, "constants": figures, "day": by_day, "night": by_night} | tuned(scenario, constant)


def schedule(scenario, constant) -> tuple:
    """Policies by day and by night that the days before of a scenario show; a given constant twice where a pair gains too little."""
    past = Past(scenario.past, GOALS["average"])
    best = past.ranked(CONSTANTS)[0]
    pair = past.best_pair(CONSTANTS)
    gains = past.figure(best, best) > GAIN * past.figure(*pair)
    return pair if gains else (constant, constant)


def tuned(scenario, constant) -> dict:
    """Average JCT (s) of the tuner, its decisions, and the configurations that it simulates in one of them."""
    start = constant if isinstance(constant, Tiresias) else NEVER
    simulation = scenario.simulation(start)
    controller = attach(
        replace(METHODS["search"], tuner=Tuner(iterations=0, check=0), aggregate=False),
        simulation,
        history=scenario.history,
        space=Space(start),
        hints=[policy for policy in CONSTANTS if isinstance(policy, Tiresias)],
        horizon=HALF,
        look=HALF,
        similarity=GlobalGenerator(hour="same"),
        predictor=RangePredictor(trees=10, weight=0.3, rng=scenario.seed),
        seed=scenario.seed,
        futures=FUTURES,
        prune=None,
        interval=HALF,
        wide=HALF,
        check=0.0,
    )
    decisions = controller.run(float(scenario.trace["submit"].max()))
    return {
        "tuner": average_jct(simulation),
        "decisions": len(decisions),
        "switches": sum(decision.switched for decision in decisions),
        "measured": float(np.mean([decision.measured for decision in decisions])),
    }


def printed(world: str, seed: int) -> dict:
    """Average JCT (s) of AutoSched as printed, on forecasts of 72 hours, and what it did."""
    scenario = WORLDS[world].scenario(seed)
    space = Space(scenario.fitted(Tiresias()))
    rows = gather(scenario.past, space, instants=6, configurations=12, rng=seed)
    hints = best_fixed(scenario.past, space, rounds=60, searches=1, rng=seed).leaders()
    simulation = scenario.simulation(space.policy)
    controller = attach(
        METHODS["thesis"],
        simulation,
        history=scenario.history,
        model=train(rows, space, rng=seed),
        space=space,
        tuner=Tuner.thesis(batch=1e6),
        hints=hints,
        horizon=72 * HOUR,
        predictor=RangePredictor(trees=10, weight=0.3, rng=seed),
        seed=seed,
        check=0.0,
    )
    decisions = controller.run(float(scenario.trace["submit"].max()))
    switches = sum(decision.switched for decision in decisions)
    return {"printed": average_jct(simulation), "decisions": len(decisions), "switches": switches}


def judge(rows: list[dict]) -> list[dict]:
    """A row for each world and comparison, with its interval."""
    judged = []
    for world in WORLDS:
        played = [row for row in rows if row["world"] == world and row["part"] == LINES]
        if not played:
            continue
        values = jct_by_line(played)
        values[PRINTED] = {
            row["seed"]: row["printed"] for row in rows if row["world"] == world and row["part"] == PRINTED
        }
        for line, jct in values.items():
            for other in (AFTERWARDS, ONE, EARLIER_LOGS):
                shared = [seed for seed in jct if seed in values[other]]
                if shared and line != other:
                    ratios = [jct[seed] / values[other][seed] for seed in shared]
                    judged.append({"world": world, "line": line, "over": other} | mean_ratio(ratios))
        for phase in ("day", "night"):
            drift = mean_ratio([row[phase] for row in played])
            judged.append(
                {"world": world, "line": f"drift: 4,000 s, jobs of the {phase}", "over": "never preempt"} | drift
            )
    return judged


def jct_by_line(played: list[dict]) -> dict[str, dict[int, float]]:
    """Average JCT (s) by line and seed of a world's rows."""
    best = int(np.argmin(np.log([row["constants"] for row in played]).mean(axis=0)))
    values = {line: {row["seed"]: row["jct"][line] for row in played} for line in played[0]["jct"]}
    values["phase by phase"] = {row["seed"]: row["tuner"] for row in played}
    values[ONE] = {row["seed"]: row["constants"][best] for row in played}
    return values


def verdict(judged: list[dict]) -> dict:
    """Whether each bound holds, of the worlds that were played: over the best constant of each seed, the hardest of the three."""
    over = {(row["world"], row["line"], row["over"]): row for row in judged}
    bounds = {}
    for line, bound in (("pair", PAIR_BOUND), ("schedule", TUNER_BOUND)):
        for world in DRIFTING:
            if row := over.get((world, line, AFTERWARDS)):
                bounds[f"{line}, {world}"] = bool(row["ratio"] <= bound and row["high"] < 1)
    if row := over.get((LOAD_ALONE, "schedule", ONE)):
        bounds[f"schedule, {LOAD_ALONE}"] = bool(row["ratio"] <= BEHIND)
    return bounds


def cases_of(parts, seeds) -> list[tuple]:
    """Part, world and seed of each case in the order in which they are played: all lines first."""
    cases = []
    for seed in seeds:
        worlds = DRIFTING if seed in SEEDS and seed not in BESIDE else WORLDS
        cases += [(LINES, world, seed) for world in worlds if LINES in parts]
    return cases + [
        (PRINTED, world, seed) for seed in PRINTED_SEEDS for world in DRIFTING if PRINTED in parts and seed in seeds
    ]


def run(data_dir=None, traces=PARTS, seeds=SEEDS, minutes: float = MINUTES, workers: int = 1) -> dict:
    """Measure the parts (`traces`) that are not kept yet, for so many minutes.

    Returns
    -------
    dict
        `chosen`, what the earlier logs chose; `rows`, ratios with their intervals; `verdict`; `left`, cases that are not measured yet;
        `ok`: none is, and every bound holds.
    """
    begin = time.monotonic()
    chosen = measure_all(
        "phases_earlier", choose, None, [(world,) for world in WORLDS], workers, files=(), seconds=60 * minutes
    )
    earlier = {world: places for world, places in zip(WORLDS, chosen) if places is not None}
    cases = [(*case, *earlier.get(case[1], NOT_CHOSEN)) for case in cases_of(traces, seeds)]
    minutes -= (time.monotonic() - begin) / 60
    answers = [None] * len(cases)
    if len(earlier) == len(WORLDS):
        answers = measure_all("phases", measure, None, cases, workers, files=(), seconds=60 * minutes)
    rows = [row for row in answers if row is not None]
    left = answers.count(None)
    judged = judge(rows)
    bounds = verdict(judged)
    words = [{"world": world} | dict(zip(CHOICES, map(spoken, places))) for world, places in earlier.items()]
    return {
        "chosen": words,
        "rows": judged,
        "verdict": bounds,
        "left": left,
        "ok": bool(not left and all(bounds.values())),
    }


def spoken(place: int) -> str:
    """One of `CONSTANTS` in words."""
    policy = CONSTANTS[place]
    if not isinstance(policy, Tiresias):
        return "EASY"
    return f"{policy.metric} {', '.join(f'{threshold:g}' for threshold in policy.thresholds)}"
