"""Changes of regime that nobody tuned on: seven days on 32 nodes of 8 GPUs, another kind of trace from the fifth day on.

Philly-like at load 0.8, then Venus-like at 1.3; Venus-like at 1.1, then Philly-like at 1.2; Tiresias; the history is two weeks of
the first kind. default: never tuned. history: the best of 200 configurations on the history. fixed: the best of three searches
of 200 on the very trace, which nobody can have. selftune: BlueFin on the last hour. search: the loop by search alone. autosched:
the loop that asks its causal model in every round; in the median it must end within `LOOP` CPU seconds.

Ratios are above 1 where a method is better than AutoSched; intervals are of 95 %, paired by seed, of the mean logarithm.
"""

from __future__ import annotations

import statistics
import time
from itertools import product

import numpy as np

from reproduce.autosched.ablation import MINUTES, ROUNDS, SEARCHES, Case, interval, scenario_of
from reproduce.published.kept import measure_all, source_of

CASES = {
    "philly-venus": Case(False, (("philly", 0.8), ("venus", 1.3)), nodes=32, days=7.0, change=4.0),
    "venus-philly": Case(False, (("venus", 1.1), ("philly", 1.2)), nodes=32, days=7.0, change=4.0),
}
LOOKED = tuple(range(10))
FRESH = tuple(range(700, 710))
SEEDS = (*LOOKED, *FRESH)
"""Ten seeds that were looked at before, and ten that nothing was chosen on."""
METHODS = ("default", "history", "fixed", "selftune", "search", "autosched")
LOOP = 60.0
"""Most CPU seconds of a whole loop, in the median."""


def measure(data_dir, name: str, seed: int) -> dict:
    """Average completion time (s) of a case under each method, and what tuning cost."""
    from gpuschedlab.autosched import Space, attach, best_fixed, gather, score, train
    from gpuschedlab.policies import Tiresias

    scenario = scenario_of(data_dir, CASES[name], seed)
    space = Space(scenario.fitted(Tiresias()))
    past = best_fixed(scenario.past, space, rounds=ROUNDS, searches=1)
    fixed = best_fixed(scenario, space, rounds=ROUNDS, searches=SEARCHES).best.policy
    row = {"case": name, "seed": seed, "jobs": scenario.trace.height}
    for method, policy in (("default", space.policy), ("history", past.best.policy), ("fixed", fixed)):
        row[method] = score(scenario.simulation(policy))["jct"]
    samples = gather(scenario.past, space, instants=10, configurations=20)
    for method in METHODS[3:]:
        simulation = scenario.simulation(space.policy)
        begin = time.process_time()
        model = train(samples, space, rng=seed) if method == "autosched" else None
        loop = attach(
            method, simulation, history=scenario.history, model=model, space=space, hints=past.leaders(), seed=seed
        )
        decisions = loop.run(float(scenario.trace["submit"].max()))
        row |= {f"{method}_cpu": time.process_time() - begin, method: score(simulation)["jct"]}
        row[f"{method}_measured"] = statistics.fmean(d.measured for d in decisions)
        row[f"{method}_switches"] = sum(d.switched for d in decisions)
    return row


def judge(rows: list[dict]) -> list[dict]:
    """A row for each case, seeds and method: how much better than AutoSched it is, paired by seed, and its loop's CPU seconds."""
    found = []
    for name, seeds, method in product(CASES, (LOOKED, FRESH), METHODS):
        if group := [row for row in rows if row["case"] == name and row["seed"] in seeds]:
            about = {"case": name, "of": f"{seeds[0]} to {seeds[-1]}", "method": method, "seeds": len(group)}
            about["median_jct"] = statistics.median(row[method] for row in group)
            about |= interval(float(np.log(row["autosched"] / row[method])) for row in group)
            cpu = [row.get(f"{method}_cpu", 0.0) for row in group]
            found.append(about | {"cpu_s": statistics.median(cpu), "cpu_most": max(cpu)})
    return found


def run(data_dir=None, traces=tuple(CASES), seeds=SEEDS, minutes: float = MINUTES, workers: int = 1) -> dict:
    """Measure what is not kept yet, for so many minutes, and judge all that is.

    Returns
    -------
    dict
        `rows` a case, seeds and method, `left` (cases and seeds that are not measured yet), `source`, a hash of the code that
        measured, and `ok`: all are measured, and the median loop ends in time.
    """
    answers = measure_all(
        "regimes", measure, data_dir, [(t, s) for s in seeds for t in traces], workers, seconds=60 * minutes
    )
    rows = [answer for answer in answers if answer is not None]
    in_time = bool(rows) and statistics.median(row["autosched_cpu"] for row in rows) <= LOOP
    about = {"left": len(answers) - len(rows), "source": source_of(measure, data_dir)}
    return {"rows": judge(rows), **about, "ok": in_time and len(rows) == len(answers)}
