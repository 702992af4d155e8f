"""The race that is watched: what an hour costs, what a pair by day and night gains, and what a wrong belief costs; on unseen seeds.

Parts: `hour`, CPU seconds of an hour of the small loop on each seed, after one race that compiles; `pair`, the best pair of the days
before over the best constant known afterwards, in night runs with a restart of 900 s and of 0; `belief`, the tuned line over the default
where a restart is believed to take 60 s and takes 900, by what the tuner believes. Ratios are of average JCT: below 1 is better.
"""

from __future__ import annotations

import time
from itertools import product

import numpy as np

from gpuschedlab.autosched import LiveDays, LiveTuning, Race
from gpuschedlab.autosched.live.days import NIGHT_RUNS
from gpuschedlab.autosched.live.goals import GOALS
from gpuschedlab.autosched.live.race import DEFAULT, TUNED
from gpuschedlab.autosched.live.schedule import Past, constants
from gpuschedlab.autosched.live.settings import BELIEFS
from gpuschedlab.metrics import median_interval
from gpuschedlab.policies import Tiresias
from reproduce.published.kept import measure_all

PARTS = ("hour", "pair", "belief")
SEEDS = tuple(range(900, 908))
RESTARTS = (900.0, 0.0)
MINUTES = 14.0
HOUR_SECONDS = 0.3
"""CPU seconds of an hour at most."""


def measure(data_dir, part: str, seed: int) -> dict:
    """One row of a part."""
    calls = {"hour": hour, "pair": pair, "belief": belief}
    return {"part": part, "seed": seed} | calls[part](seed)


def hour(seed: int) -> dict:
    """CPU seconds of an hour, and hours."""
    Race(seed=seed + 1).play(3)  # compiles
    race = Race(seed=seed)
    begin = time.process_time()
    race.play()
    return {"seconds": (time.process_time() - begin) / len(race.choices), "hours": len(race.choices)}


def pair(seed: int) -> dict:
    """Average JCT under the best pair of the past over that of the best constant, by restart."""
    ratios = {}
    for restart in RESTARTS:
        scenario = LiveDays(preset=NIGHT_RUNS, days=6, load=0.8, restart=restart).scenario(seed)
        policies = constants(Tiresias())
        best_pair = Past(scenario.past, GOALS["average"]).best_pair(policies)
        played = Past(scenario, GOALS["average"])
        best = played.ranked(policies)[0]
        ratios[f"restart {restart:g} s"] = played.figure(*best_pair) / played.figure(best, best)
    return ratios


def belief(seed: int) -> dict:
    """Average JCT of the tuned line over the default's, by what the tuner believes."""
    ratios = {}
    for name in BELIEFS:
        race = Race(LiveDays(restart=900.0), LiveTuning(belief=name, believed=60.0), seed=seed)
        race.play()
        figures = race.figures(np.inf)
        ratios[name] = figures[TUNED] / figures[DEFAULT]
    return ratios


def judge(rows: list[dict]) -> list[dict]:
    """Medians over seeds with their intervals."""
    judged = []
    for part in PARTS:
        of_part = [row for row in rows if row["part"] == part]
        for name in of_part[0] if of_part else ():
            if name in ("part", "seed", "hours"):
                continue
            values = np.array([row[name] for row in of_part])
            middle = median_interval(values)
            row = {"part": part, "name": name, "median": middle.median, "low": middle.low, "high": middle.high}
            judged.append(row | {"largest": float(values.max()), "seeds": len(values)})
    return judged


def run(data_dir=None, traces=PARTS, seeds=SEEDS, minutes: float = MINUTES, workers: int = 1) -> dict:
    """Measure the parts (`traces`) that are not kept yet, for so many minutes.

    Returns
    -------
    dict
        `rows`, medians over seeds; `cases`, all that was measured; `left`, cases that are not measured yet; `ok`: none is, and no hour
        costs more than `HOUR_SECONDS`.
    """
    cases = [(part, seed) for part, seed in product(traces, seeds)]
    answers = measure_all("race", measure, None, cases, workers=workers, files=(), seconds=60 * minutes)
    rows = [row for row in answers if row is not None]
    left = answers.count(None)
    costs = [row["seconds"] for row in rows if row["part"] == "hour"]
    return {
        "rows": judge(rows),
        "cases": rows,
        "left": left,
        "ok": not left and max(costs, default=0.0) <= HOUR_SECONDS,
    }
