"""What carries AutoSched's gain: a causal graph, plain regression, no model, the search as printed, or no forecast at all.

It is asked on cases that AutoSched's constants were chosen on, and on cases that they were not. A case is 3 days on 12 nodes of 8
GPUs, after two weeks of history, so that all of them take some two hours of one core. Tuned on: Venus and PAI, thinned to the
cluster by chance, at the load that those days have and at 1.1; Themis and Lucid on Venus at 1.1. Never tuned on: two changes of
regime at the end of the first day (Philly-like at load 0.8, then Venus-like at 1.3; Venus-like at 1.1, then Philly-like at 1.2),
a trace generated like Venus, and the same for 6 and for 20 nodes. A seed draws the jobs and their models, and all that tuners
draw; generated traces take seeds from `FIRST`. (The rule that switches was also tried on generated traces of other seeds, sizes,
loads and mixes of presets.)

default: never tuned. history: the best of 200 configurations on the history; its four best are hints of no-model, regression,
search, autosched and optimal. fixed: the best of three searches of 200 on the very trace. selftune: BlueFin on the last hour.
no-model, regression, autosched: the same 40 rounds of search in each decision. search: search alone, `Tuner()`. thesis: algorithm 3
as printed. optimal: the better of all of these and of search alone on the true future, begun with the fixed configuration; so it
bounds them.

Ratios are above 1 where a method is better than AutoSched; intervals are of 95 %, paired by seed, of the mean logarithm.
"""

from __future__ import annotations

import statistics
import time
from itertools import product
from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.autosched.methods import METHODS as METHODS_OF
from gpuschedlab.metrics.intervals import mean_interval
from reproduce.autosched.loop import NODES as REAL_NODES
from reproduce.autosched.loop import SPAN, real_trace, times
from reproduce.autosched.parts import PARTS
from reproduce.published.data import DAY
from reproduce.published.kept import measure_all

NODES = 12
DAYS = 3.0
CHANGE = 1.0
"""Nodes of 8 GPUs, days played, and the day at whose end a regime changes."""
SEEDS = tuple(range(10))
FIRST = 1000
"""Added to the seed of a generated trace: presets and constants were chosen on lower ones."""
ROUNDS = 200
SEARCHES = 3
MINUTES = 14.0
METHODS = (
    "default",
    "history",
    "fixed",
    "selftune",
    "search",
    "no-model",
    "regression",
    "autosched",
    "thesis",
    "optimal",
)
SIMPLE = ("default", "history", "selftune")
NEAR = 0.01
NEVER = 0.05
"""By how much AutoSched may be behind the best of `SIMPLE` where nothing was tuned: over all of those cases, and in any of them."""


class Case(NamedTuple):
    """What is played: a real trace, or one or two generated ones of (preset, load); `tuned` says that constants were chosen on it.

    Days of the trace, and the day at whose end the second generated one takes over.
    """

    tuned: bool
    parts: tuple[tuple[str, float | None], ...]
    policy: str = "tiresias"
    nodes: int = NODES
    days: float = DAYS
    change: float = CHANGE


CASES = {
    "venus": Case(True, (("venus", None),)),
    "venus-1.1": Case(True, (("venus", 1.1),)),
    "pai": Case(True, (("pai", None),)),
    "pai-1.1": Case(True, (("pai", 1.1),)),
    "themis": Case(True, (("venus", 1.1),), "themis"),
    "lucid": Case(True, (("venus", 1.1),), "lucid"),
    "philly-venus": Case(False, (("philly", 0.8), ("venus", 1.3))),
    "venus-philly": Case(False, (("venus", 1.1), ("philly", 1.2))),
    "generated": Case(False, (("venus", 1.1),)),
    "6-nodes": Case(False, (("venus", 1.1),), nodes=6),
    "20-nodes": Case(False, (("venus", 1.1),), nodes=20),
}


def scenario_of(data_dir, case: Case, seed: int):
    """The scenario of a case, its history on the clock of its trace."""
    from gpuschedlab.cluster import Cluster
    from gpuschedlab.estimators import Runtime
    from gpuschedlab.sim import Delays, Scenario
    from gpuschedlab.speeds import default_speeds

    cluster = Cluster.homogeneous(case.nodes, 8)
    frame = _thinned(data_dir, *case.parts[0], cluster, seed) if case.tuned else _generated(case, cluster, seed)
    frame = frame.filter(pl.col("gpus") <= cluster.total_gpus / 2)
    speeds = default_speeds(cluster)
    models = np.random.default_rng([seed, 1]).choice(speeds.models, frame.height)
    frame = frame.with_columns(model=pl.Series(models), job_id=pl.format("{}", pl.int_range(pl.len())))
    history = frame.filter(pl.col("submit") < 0)
    trace = frame.filter(pl.col("submit") >= 0)
    given = {"history": history, "speeds": speeds, "delays": Delays(restart=60.0), "seed": seed}
    return Scenario(trace, cluster, estimator=Runtime() if case.policy != "tiresias" else None, **given)


def _thinned(data_dir, name: str, load: float | None, cluster, seed: int) -> pl.DataFrame:
    """Two weeks before and the first `DAYS` of a real trace, each job kept by chance, times stretched to a load of those days."""
    frame = real_trace(data_dir, name).filter(pl.col("submit").is_between(-SPAN, DAYS * DAY, closed="left"))
    share = cluster.total_gpus / (8 * REAL_NODES[name])
    kept = pl.Series(np.random.default_rng(seed).random(frame.height) < share)
    frame = frame.filter(kept & (pl.col("gpus") <= cluster.total_gpus / 2))
    inside = frame.filter(pl.col("submit") >= 0)
    own = (inside["gpus"] * inside["duration"]).sum() / (cluster.total_gpus * DAYS * DAY)
    return frame.with_columns(pl.col("submit") * (own / load if load else 1.0))


def _generated(case: Case, cluster, seed: int) -> pl.DataFrame:
    """Two weeks and the days of a case like its first preset; where there is a second, like that one after the change."""
    from gpuschedlab.traces import generate

    frames = []
    until = case.change if len(case.parts) > 1 else case.days
    for (preset, load), (first, last) in zip(
        case.parts, ((-SPAN / DAY, until), (case.change, case.days)), strict=False
    ):
        days = int(last - first)
        rng = FIRST + 100 * len(frames) + seed
        frame = generate(preset, days=days, load=load, cluster_gpus=cluster.total_gpus, rng=rng)
        frames.append(frame.drop("model", strict=False).with_columns(pl.col("submit") + first * DAY))
    return pl.concat(frames, how="diagonal_relaxed").sort("submit")


def measure(data_dir, name: str, seed: int) -> dict:
    """What each method's schedule of a case was worth, and what tuning cost."""
    from gpuschedlab.autosched import Space, attach, best_fixed, gather, score, train
    from gpuschedlab.policies import ALL

    scenario = scenario_of(data_dir, CASES[name], seed)
    space = Space(scenario.fitted(ALL[CASES[name].policy]()))
    goal = space.policy.goals[0]
    end = float(scenario.trace["submit"].max())
    row = {"case": name, "seed": seed, "objective": goal, "jobs": scenario.trace.height}
    past = best_fixed(scenario.past, space, rounds=ROUNDS, searches=1)
    fixed = best_fixed(scenario, space, rounds=ROUNDS, searches=SEARCHES).best.policy
    for method, policy in (("default", space.policy), ("history", past.best.policy), ("fixed", fixed)):
        row[method] = score(scenario.simulation(policy))[goal]
    samples = gather(scenario.past, space, instants=10, configurations=20)
    for method in METHODS[3:]:
        way = {"no-model": PARTS["no-causal"], "regression": METHODS_OF["autosched"]}.get(method) or METHODS_OF[method]
        simulation = scenario.simulation(fixed if method == "optimal" else space.policy)
        begin = time.process_time()
        model = (
            train(samples, space, graph="none" if method == "regression" else "learnt", rng=seed)
            if way.tuner.causal
            else None
        )
        given = {"history": scenario.history, "model": model, "space": space, "hints": past.leaders(), "seed": seed}
        loop = attach(way, simulation, **given)
        decisions = loop.run(end)
        row |= {f"{method}_cpu": time.process_time() - begin, method: score(simulation)[goal]}
        row[f"{method}_measured"] = statistics.fmean(d.measured for d in decisions)
        row[f"{method}_switches"] = sum(d.switched for d in decisions)
    return row | {"optimal": (max if goal == "fair" else min)(row[method] for method in METHODS)}


def judge(rows: list[dict]) -> list[dict]:
    """A row for each case and method: its median, and how much better than AutoSched it is, paired by seed."""
    found = []
    for name, method in product(CASES, METHODS):
        group = [row for row in rows if row["case"] == name]
        if group:
            case = {"case": name, "tuned_on": CASES[name].tuned, "method": method, "seeds": len(group)}
            case |= {"median": statistics.median(row[method] for row in group)} | interval(map(_logs(method), group))
            for cost in ("measured", "switches", "cpu"):
                known = [row[f"{method}_{cost}"] for row in group if f"{method}_{cost}" in row]
                case[cost] = statistics.fmean(known) if known else 0.0
            found.append(case)
    return found


def groups(rows: list[dict]) -> list[dict]:
    """A row for each group of cases and method: how much better than AutoSched, over the cases of each seed, paired by seed."""
    found = []
    for tuned, method in product((True, False), METHODS):
        group = [row for row in rows if CASES[row["case"]].tuned == tuned]
        seeds = sorted({row["seed"] for row in group})
        if seeds:
            log = _logs(method)
            means = [statistics.fmean(log(row) for row in group if row["seed"] == seed) for seed in seeds]
            found.append({"tuned_on": tuned, "method": method, "seeds": len(seeds)} | interval(means))
    return found


def _logs(method: str):
    """Function of a row: logarithm of how much better than AutoSched a method is."""
    return lambda row: float(np.log(times(row["objective"], row[method], row["autosched"])))


def interval(logs) -> dict:
    """Geometric mean of ratios, by their logarithms, and its 95 % interval by Student's t; of one ratio there is none.

    Examples
    --------
    >>> interval([0.0, 0.0, 0.0])
    {'times_autosched': 1.0, 'low': 1.0, 'high': 1.0}
    """
    mean, half = mean_interval(np.fromiter(logs, float))
    ends = zip(("times_autosched", "low", "high"), (mean, mean - half, mean + half), strict=True)
    return {name: float(np.exp(end)) for name, end in ends}


def bounds(rows: list[dict]) -> list[dict]:
    """By case: whether Optimal bounds all, and by how much AutoSched is behind the best of `SIMPLE`.

    `behind` compares medians over the seeds, and is bounded by `NEVER` where nothing was tuned. `seed_median` and `seed_most`
    compare seed by seed, with the method that turned out best on that seed: no method is known to be that before.
    """
    found = []
    for name, case in CASES.items():
        group = [row for row in rows if row["case"] == name]
        if group:
            goal = group[0]["objective"]
            middle = {m: statistics.median(row[m] for row in group) for m in METHODS}
            behind = max(times(goal, middle[m], middle["autosched"]) for m in SIMPLE) - 1
            seeds = [max(times(goal, row[m], row["autosched"]) for m in SIMPLE) - 1 for row in group]
            bounded = all(times(goal, row[m], row["optimal"]) <= 1 for row in group for m in METHODS)
            about = {"case": name, "tuned_on": case.tuned, "seeds": len(group), "behind": behind}
            about |= {"seed_median": statistics.median(seeds), "seed_most": max(seeds), "optimal_bounds": bounded}
            found.append(about | {"ok": bounded and (case.tuned or behind <= NEVER)})
    return found


def run(
    data_dir=None, traces=tuple(CASES), seeds=SEEDS, minutes: float = MINUTES, workers: int = 1, forms: bool = False
) -> dict:
    """Measure what is not kept yet, for so many minutes, and judge all that is; `forms`: what `reproduce.autosched.forms` says instead.

    Returns
    -------
    dict
        `rows` a case and method, `groups` a group of cases and method, `bounds` a case, `behind` (the median over the cases that
        nothing was tuned on, bounded by `NEAR`), `left` (cases and seeds that are not measured yet), and `ok`.
    """
    if forms:
        from reproduce.autosched.forms import run as run_forms  # it takes intervals from here

        return run_forms(data_dir, seeds, minutes, workers)
    cases = [(name, seed) for seed, name in product(seeds, traces)]
    answers = measure_all("ablation", measure, data_dir, cases, workers, seconds=60 * minutes)
    runs = [answer for answer in answers if answer is not None]
    checked = bounds(runs)
    behind = statistics.median([case["behind"] for case in checked if not case["tuned_on"]] or [0.0])
    return {
        "rows": judge(runs),
        "groups": groups(runs),
        "bounds": checked,
        "behind": behind,
        "left": len(answers) - len(runs),
        "ok": len(runs) == len(answers) and behind <= NEAR and all(case["ok"] for case in checked),
    }
