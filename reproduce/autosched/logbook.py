"""What an operator's log can say of a knob, and which question it answers: choices from logs beside those from forks.

A log is 28 days on 16 nodes of 8 GPUs under Tiresias; every two hours a rule that follows the load sets one knob, in a tenth of the
intervals a coin. From each log a value is chosen: by forks that hold it from then on and count the jobs of some hours (or those in
the system), and by estimates from the rows alone, of several outcomes and sets of columns held fixed. Chosen over best is the
average JCT of the chosen value over that of the best constant, on three other traces.

`effect` is the effect of the highest value against the lowest on the jobs of one interval, after which the rule goes on (logarithm of
the delay): what forks say, and by how much the naive and the adjusted estimate miss it. `ended` and `restricted` are logs of another
kind: the knob is tossed each day, and the day's jobs are read at its end; the ended jobs' mean, or the Kaplan-Meier restricted mean.

`tried` are the numbers of trials on other seeds, generators of jobs and values, before this bench was written: chosen over best,
and how many of eleven logs are within 2 %.
"""

from __future__ import annotations

import math
import statistics
import sys
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.metrics.intervals import mean_interval
from reproduce.autosched.ablation import interval
from reproduce.published.data import DAY
from reproduce.published.kept import measure_all

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "notebooks"))

NODES = 16
DAYS = 28
EVERY = 7200.0
HOUR = 3600.0
SEEDS = tuple(range(40, 50))
OTHERS = 3
"""Other traces, on which constants are compared."""
NEAR = 1.02
MINUTES = 14.0
INSTANTS = 10
MANY = 60
"""Forks of each value, and those behind the effect on one interval."""


class Setting(NamedTuple):
    """Preset and load of the traces; the knob, and its values from low load to high."""

    preset: str
    load: float
    knob: str
    values: tuple[float, ...]


LIMITS = (0.0, 0.25, 0.5, 0.75, 1.0)
CASES = {
    "pack-venus": Setting("venus", 1.0, "pack_limit", LIMITS),
    "pack-philly": Setting("philly", 0.9, "pack_limit", LIMITS),
    "thresholds-venus": Setting("venus", 1.0, "thresholds", (1e3, 1e4, 1e5, 1e6)),
}
LOAD = ("load", "came", "count")
FORKS = {f"jobs of {h} h": h * HOUR for h in (1, 2, 12, 48, 168)} | {"jobs in the system": "system"}
WAYS = {
    "own jobs: nothing": ("naive", (), "objective"),
    "own jobs: load (smooth)": ("adjusted", LOAD, "objective"),
    "own jobs: load (ridge)": ("ridge", LOAD, "objective"),
    "own jobs: load (trees)": ("trees", LOAD, "objective"),
    "own jobs: load and queueing": ("ridge", (*LOAD, "queueing"), "objective"),
    "own jobs: all columns (trees)": ("trees", (*LOAD, "queueing", "speed", "done", "jobs"), "objective"),
    "execution speed: load (ridge)": ("ridge", LOAD, "speed"),
    "work done: load (trees)": ("trees", LOAD, "done"),
    "own jobs: g-formula": ("g-formula", LOAD, "objective"),
    "own jobs: AIPW": ("AIPW", LOAD, "objective"),
    "own jobs: CausalNex": ("CausalNex", LOAD, "objective"),
}
"""Estimates from the rows alone: method, columns held fixed, outcome."""
TRIED = {
    "jobs of 1 h": ((1.102, 5), (1.034, 8), (1.044, 7)),
    "jobs of 2 h": ((1.043, 7), (1.028, 8), (1.036, 8)),
    "jobs of 12 h": ((1.025, 8), (1.005, 10), (1.018, 8)),
    "jobs of 48 h": ((1.006, 9), (1.006, 10), (1.000, 11)),
    "jobs of 168 h": ((1.007, 9), (1.006, 10), (1.000, 11)),
    "jobs in the system": ((1.007, 10), (1.005, 10), (1.184, 0)),
    "own jobs: nothing": ((1.385, 0), (1.743, 0), (1.632, 0)),
    "own jobs: load (trees)": ((1.147, 6), (1.308, 4), (1.116, 3)),
    "own jobs: load and queueing": ((1.003, 11), (1.193, 5), (1.440, 1)),
    "own jobs: all columns (trees)": ((1.282, 1), (1.324, 4), (1.382, 1)),
    "execution speed: load (ridge)": ((1.005, 10), (1.172, 8), (1.818, 0)),
    "work done: load (trees)": ((1.161, 5), (1.016, 10), (1.527, 0)),
}
"""By the order of `CASES`."""


@cache
def scenario_of(name: str, seed: int):
    """Scenario of a setting."""
    from gpuschedlab.cluster import Cluster
    from gpuschedlab.sim import Delays, Scenario
    from gpuschedlab.speeds import default_speeds
    from gpuschedlab.traces import generate

    case = CASES[name]
    cluster = Cluster.homogeneous(NODES, 8)
    trace = generate(case.preset, days=DAYS, load=case.load, cluster_gpus=cluster.total_gpus, rng=seed)
    trace = trace.filter(pl.col("gpus") <= cluster.total_gpus / 2)
    return Scenario(trace, cluster, speeds=default_speeds(cluster), delays=Delays(restart=60.0))


def rule_of(name: str, seed: int, **options):
    """The operator's rule of a setting."""
    from gpuschedlab.autosched import Rule
    from gpuschedlab.policies import Tiresias

    return Rule(Tiresias(), CASES[name].knob, CASES[name].values, seed=seed, **options)


def measure(data_dir, name: str, seed: int) -> dict:
    """Chosen over best of one log by each question and estimate, the effect on an interval, and what is read at the day's end."""
    from scipy.stats import spearmanr

    from gpuschedlab.autosched import operate

    rule = rule_of(name, seed)
    scenario = scenario_of(name, seed)
    others = [scenario_of(name, 1000 + OTHERS * seed + i) for i in range(OTHERS)]
    means = {v: statistics.fmean(other.run(rule.at(v)).summary()["jct_mean"] for other in others) for v in rule.values}
    ratio = {v: mean / min(means.values()) for v, mean in means.items()}
    log = operate(scenario, rule, EVERY)
    ranks = [rule.values.index(v) for v in log.frame[rule.knob]]
    row = {"case": name, "seed": seed, "rows": log.frame.height, "worst": max(ratio.values())}
    row["follows"] = float(spearmanr(log.frame["load"], ranks).statistic)
    chosen = {way: log.oracle(jobs=jobs, instants=INSTANTS).best for way, jobs in FORKS.items()}
    found = {way: _means(log, *how) for way, how in WAYS.items()}
    better = {way: np.nanargmax if how[2] in ("speed", "done") else np.nanargmin for way, how in WAYS.items()}
    chosen |= {way: log.values[int(better[way](mean))] for way, mean in found.items()}
    brief = log.oracle(hold=EVERY, jobs=EVERY, instants=MANY)
    exact, naive, adjusted = (
        float(m[-1] - m[0]) for m in (brief.mean, found["own jobs: nothing"], found["own jobs: load (ridge)"])
    )
    first = log.values[0]
    last = log.values[-1]
    row |= {"effect": exact, "naive_misses": naive - exact, "adjusted_misses": adjusted - exact}
    row["right_end"] = (exact < 0) == (ratio[last] < ratio[first])
    tossed = operate(scenario, rule_of(name, seed, coin=1.0), DAY, wait=0.0)
    for outcome in ("objective", "restricted"):
        early = _means(tossed, "naive", (), outcome)
        way = {"objective": "ended", "restricted": "restricted"}[outcome]
        chosen[way] = tossed.values[int(np.nanargmin(early))]
        row[f"{way}_rank"] = float(spearmanr(early, [means[v] for v in tossed.values]).statistic)
    return row | {way: ratio[value] for way, value in chosen.items()}


def _means(log, method: str, adjust, outcome: str) -> np.ndarray:
    """Mean outcome under each value, by the log's own estimate or one that it is compared with."""
    if method == "adjusted":
        return log.estimate(method, adjust, outcome, interval=False).mean
    from scenes.estimators import asked

    return asked(log, method, adjust, outcome, interval=False)[0]


def judge(rows: list[dict]) -> list[dict]:
    """A row for each setting and way to choose: chosen over best with its 95 % interval, how many are within 2 %, and trials' numbers."""
    found = []
    for way, (place, name) in product((*FORKS, *WAYS, "ended", "restricted"), enumerate(CASES)):
        ratios = [row[way] for row in rows if row["case"] == name]
        if ratios:
            mean, low, high = interval(map(math.log, ratios)).values()
            case = {"way": way, "case": name, "seeds": len(ratios), "chosen_over_best": mean, "low": low, "high": high}
            tried = TRIED[way][place] if way in TRIED else ("", "")
            found.append(
                case | {"within": sum(r <= NEAR for r in ratios)} | dict(zip(("tried", "tried_within"), tried))
            )
    return found


def effects(rows: list[dict]) -> list[dict]:
    """A row for each setting: means over the seeds of all that is no choice, with half of their 95 % intervals."""
    found = []
    for name in CASES:
        group = [row for row in rows if row["case"] == name]
        if group:
            case = {"case": name, "seeds": len(group), "right_end": sum(row["right_end"] for row in group)}
            for key in (
                "worst",
                "follows",
                "effect",
                "naive_misses",
                "adjusted_misses",
                "ended_rank",
                "restricted_rank",
            ):
                case[key], case[f"{key}_half"] = mean_interval(np.array([row[key] for row in group], float))
            found.append(case)
    return found


def run(data_dir=None, traces=tuple(CASES), seeds=SEEDS, minutes: float = MINUTES, workers: int = 1) -> dict:
    """Measure what is not kept yet, for so many minutes.

    Returns
    -------
    dict
        `rows` a setting and way to choose, `effects` a setting, `left` (cases and seeds that are not measured yet), and `ok`: none is.
    """
    cases = [(name, seed) for seed, name in product(seeds, traces)]
    answers = measure_all("logbook", measure, data_dir, cases, workers, seconds=60 * minutes)
    rows = [row for row in answers if row is not None]
    left = answers.count(None)
    return {"rows": judge(rows), "effects": effects(rows), "left": left, "ok": not left}
