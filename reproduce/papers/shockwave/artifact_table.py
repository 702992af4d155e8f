"""Shockwave's artifact beside ours: Gavel's objectives with and without each rule of its round loop, and Shockwave."""

import time
from dataclasses import replace

import numpy as np

from reproduce.papers.shockwave.artifact import (
    OURS,
    ROUND,
    Artifact,
    Outcome,
    Rules,
    artifacts,
    outcome,
    policy_of,
    price,
)

OFF = {
    "all rules": {},
    "a start costs nothing": {"start": 0.0},
    "every start costs": {"spare": ROUND},
    "a round lasts for its interval": {"ends_with_jobs": False},
    "shares anew at every event": {"renewal": 0.0},
    "received time goes on": {"recount": False},
    "newcomers served at once": {"newcomers_wait": False},
    "a vertex in the place of the centre": {"centre": 0.0},
}
"""Which rules are off in each row."""
ONLY = {"a vertex in the place of the centre": "min_total_duration"}
"""Rows of one policy alone."""
PRICES = (4e-6, 6e-6, 1e-5, 1e-3)
"""Prices of the last job per second; the second is the fitted one, the last the artifact's."""
WITHOUT = {
    "as fitted": {},
    "planned rounds not kept": {"keep_rounds": False},
    "fairness by mean contention": {"fair_end": "contention"},
    "late jobs not ended first": {"end_late_first": False},
    "planned anew at events alone": {"replan": 100},
    "a first round worth as in ours": {"origin": 0.1},
}
"""Switches of Shockwave that are off in each row."""
LAMBDAS = (0.0, 0.1, 1.0, 10.0)
"""Weights of the end of the last job, in runs without fairness."""
BOUNDS = {"max_min_fairness": (0.02, 0.02), "min_total_duration": (0.05, 0.02), "shockwave": (0.05, 0.03)}
"""How far mean completion time and makespan may be from the artifact's, with all rules on."""


def run(data_dir=None, *, seeds=tuple(range(8))) -> dict:
    """Run all rows on every trace of which the reference data has runs of the artifact.

    Parameters
    ----------
    data_dir : str or Path
    seeds : tuple of int
        Of the draws of noise in the work, half a percent, under Shockwave.
    """
    rows = []
    draws = []
    plain = []
    for artifact in artifacts(data_dir):
        rows += gavel_rows(artifact)
        draws += shockwave_rows(artifact, seeds)
        plain += lambda_rows(artifact)
    checked = [row for row in rows if row["rules"] == "all rules"]
    checked += [row for row in draws if row["setting"] == f"k {PRICES[1]:g}"]
    ok = all(near(row) for row in checked)
    return {"rules": rows, "shockwave": draws, "without fairness": plain, "ok": ok}


def near(row: dict) -> bool:
    """Whether a row with all rules on is as near to the artifact's run as `BOUNDS` says; a run that is not published is."""
    mean, makespan = BOUNDS[row["policy"]]
    far = abs(row["mean"] - 1) > mean or abs(row["makespan"] - 1) > makespan
    return not far


def gavel_rows(artifact: Artifact) -> list[dict]:
    """Gavel's objectives with all rules, and without each."""
    rows = []
    for name in OURS:
        if name == "shockwave":
            continue
        for words, off in OFF.items():
            if ONLY.get(words, name) != name:
                continue
            rules = replace(Rules(), **off)
            found = outcome(artifact, name, policy_of(name, rules), start=rules.start)
            rows.append({"trace": artifact.name, "policy": name, "rules": words, **shown(found)})
    return rows


def shown(found: Outcome) -> dict:
    """Ratios of a run as a table shows them."""
    ratios = {"mean": found.mean_ratio, "makespan": found.makespan_ratio}
    ratios |= {"rank correlation": found.rank, "within 5 %": found.within}
    return {word: round(value, 3) for word, value in ratios.items()}


def shockwave_rows(artifact: Artifact, seeds: tuple[int, ...]) -> list[dict]:
    """Shockwave at some prices, and without each of its switches: means and deviations over draws of noise in the work."""
    settings = {f"k {k:g}": {"makespan": price(k)} for k in PRICES}
    settings |= {words: knobs for words, knobs in WITHOUT.items() if knobs}
    rows = []
    for words, knobs in settings.items():
        begin = time.process_time()
        found = [outcome(artifact, "shockwave", policy_of("shockwave", **knobs), seed=seed) for seed in seeds]
        spent = (time.process_time() - begin) / len(seeds)
        mean = np.array([each.mean_ratio for each in found])
        makespan = np.array([each.makespan_ratio for each in found])
        row = {"trace": artifact.name, "policy": "shockwave", "setting": words}
        row |= {"mean": round(mean.mean(), 3), "sd": round(mean.std(), 3)}
        row |= {"makespan": round(makespan.mean(), 3), "sd of it": round(makespan.std(), 3)}
        row |= {"farthest makespan": round(makespan[np.abs(makespan - 1).argmax()], 3), "CPU s": round(spent, 1)}
        rows.append(row)
    return rows


def lambda_rows(artifact: Artifact) -> list[dict]:
    """Makespans (s) of Shockwave without fairness, by the weight of the last job, with and without planned rounds that are kept."""
    bound = artifact.least_makespan("shockwave")
    rows = []
    for kept in (True, False):
        row = {"trace": artifact.name, "planned rounds": "kept" if kept else "not kept"}
        for weight in LAMBDAS:
            own = {"fairness": 0.0, "makespan": weight, "second": 0.0, "keep_rounds": kept}
            row[f"lambda {weight:g}"] = round(outcome(artifact, "shockwave", policy_of("shockwave", **own)).makespan)
        rows.append(row | {"bound": round(bound)})
    return rows
