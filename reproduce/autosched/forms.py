"""Forms of algorithm 3 in single searches of 40 rounds: its scope, line 12, its model, and BlueFin alone.

A case is one of `bench budget` with Tiresias' own knobs: the models learn on the days before, all forms search from the defaults on
the true next 72 h of a Venus-like trace at 1.2. The loss is the best reward known, of all forms and of random configurations, over
what a form found; it stands beside BlueFin's after 40 measurements, and beside BlueFin's after as many as the form made, by a
ratio of losses: above 1 the form is worse. Measurements are those beside the reference.
"""

from __future__ import annotations

import statistics

import numpy as np

from gpuschedlab.autosched.tuner.search import Tuner
from reproduce.autosched.ablation import interval
from reproduce.autosched.budget import FIRST, LIVE, ROOM, Case, Way
from reproduce.published.kept import measure_all

FORMS = {
    "printed": Way(Tuner.thesis(), "graph"),
    "line 12 once in 128": Way(Tuner.thesis(batch=128), "graph"),
    "line 12 at 1 %": Way(Tuner.thesis(batch=0.01), "graph"),
    "no scope": Way(Tuner.thesis(scope="none"), "graph"),
    "printed, layers": Way(Tuner.thesis(), "layers"),
    "printed, no graph": Way(Tuner.thesis(), "regression"),
    "BlueFin": Way(Tuner.thesis(causal=False)),
}
"""Forms; with line 12 once in 128 measurements the model is not fitted again within a search; at 1 % once its rows have grown so much."""


def measure(_, seed: int) -> dict:
    """Measurements and best reward of each form after its rounds; of BlueFin after each round."""
    case = Case(LIVE, seed)
    steps = {name: [point[:2] for point in case.play(way, FIRST)] for name, way in FORMS.items()}
    found = {name: curve[-1] for name, curve in steps.items()}
    return {"seed": seed, "forms": found, "alone": steps["BlueFin"]} | case.known()


def judge(rows: list[dict]) -> list[dict]:
    """A row a form, of the cases with room."""
    group = [row for row in rows if row["best"] >= ROOM]
    found = []
    for name in FORMS if group else ():
        loss = []
        over = []
        same = []
        for row in group:
            made, reward = row["forms"][name]
            alone = [best for count, best in row["alone"] if count <= made]
            loss.append(np.log(row["best"] / reward))
            over.append(np.log(row["alone"][-1][1] / reward))
            same.append(np.log((alone[-1] if alone else 1.0) / reward))
        words = {"loss": loss, "over BlueFin's 40": over, "over BlueFin at as many": same}
        line = {"form": name, "cases": len(group)}
        line["measured"] = round(statistics.fmean(row["forms"][name][0] for row in group), 1)
        for title, logs in words.items():
            line[title] = "{:.3f} ({:.3f}-{:.3f})".format(*interval(logs).values())
        found.append(line)
    return found


def run(data_dir, seeds, minutes: float, workers: int) -> dict:
    """Measure what is not kept yet, for so many minutes: `rows` a form, `excluded` cases without room, `left`, and `ok`."""
    cases = [(seed,) for seed in seeds]
    answers = measure_all("ablation_forms", measure, data_dir, cases, workers, seconds=60 * minutes)
    rows = [answer for answer in answers if answer is not None]
    excluded = [(row["seed"], round(row["best"], 3)) for row in rows if row["best"] < ROOM]
    left = len(answers) - len(rows)
    return {"rows": judge(rows), "excluded": excluded, "left": left, "ok": not left}
