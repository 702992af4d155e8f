"""AutoSched's causal performance model on configurations and instants that it has not seen (table 6.4 of the thesis).

`loop`: AutoSched plays two weeks of a real trace, having learnt from what came before (of Philly, after); what it predicts of each
configuration is compared with what it then measures, as in the table ("in our evaluation"). It measures what it predicts
to be good, so bad configurations are few.

`later`, `between`: configurations are measured at instants of the two weeks, with the jobs in the system and those that
came in the three days after (`gather`). Three quarters of the instants train, their arrivals multiplied where GPUs were
idle, as in the offline phase; at the others, as they were, the model predicts the objective of other configurations, once
as trained offline, and once fine-tuned with the configurations that precede each in the same instant, as the tuner does.
Those held out are the last quarter (`later`: days and loads not seen), or each fourth (`between`: their three days overlap
those of their neighbours).

Errors are |predicted - measured| / measured.
"""

from __future__ import annotations

import statistics
import time
from itertools import product

import numpy as np
import polars as pl

from reproduce.autosched.loop import stretch
from reproduce.published.kept import measure_all

TRACES = ("philly", "venus", "pai")
POLICIES = ("tiresias", "themis", "lucid")
BACKENDS = ("boosted",)
"""CausalNex takes up to half a second a query: no search asks it."""
NEEDED = 0.15
LEARNT = 48
ASKED = 24
"""Configurations at each instant."""
#: Table 6.4 of the thesis: mean relative difference, seconds to predict and to fine-tune 1,000 samples.
PUBLISHED = {"philly": 0.1423, "venus": 0.1117, "pai": 0.1516, "predict_s": 0.0927, "tune_s": 1.4731}


def measure(data_dir, name: str, policy: str, seed: int = 0, instants: int = 24) -> list[dict]:
    """One row per split and backend."""
    from gpuschedlab.autosched import Space, gather
    from gpuschedlab.policies import ALL

    cut = stretch(data_dir, name, None, seed)
    scenario = cut.scenario(policy, seed)
    space = Space(scenario.fitted(ALL[policy]()))
    about = {"trace": name, "policy": policy, "seed": seed}
    before = gather(scenario.replace(trace=cut.lessons), space)
    rows = [about | in_loop(scenario, space, before, b) for b in BACKENDS]
    sizes = {"instants": instants, "days": 14.0}
    busy = gather(scenario, space, configurations=LEARNT, **sizes)
    plain = gather(scenario, space, configurations=ASKED, load=0.0, **sizes)
    segment = pl.col("segment")
    for split, held in {"later": segment > busy["segment"].max() * 0.75, "between": segment % 4 == 1}.items():
        known = busy.filter(~held)
        asked = plain.filter(held)
        by_default = float(_errors(0.0, asked["reward"].to_numpy()).mean())
        case = about | {"split": split, "test": asked.height, "by_default": by_default}
        rows += [case | {"backend": b} | predict_held_out(known, asked, space, b, seed) for b in BACKENDS]
    return rows


def in_loop(scenario, space, samples, backend: str) -> dict:
    """Errors of what AutoSched predicted of each configuration before it measured it, over the two weeks."""
    from gpuschedlab.autosched import attach, train

    model = train(samples, space, backend=backend, rng=scenario.seed)
    simulation = scenario.simulation(space.policy)
    loop = attach("autosched", simulation, history=scenario.history, model=model, seed=scenario.seed)
    trials = [t for d in loop.run(float(scenario.trace["submit"].max())) for t in d.tuning.trials]
    asked = [t for t in trials if t.fate == "measured" and np.isfinite(t.predicted)]
    true = np.log([t.reward for t in asked])
    errors = _errors(np.log([t.predicted for t in asked]), true)
    return {
        "split": "loop",
        "test": len(asked),
        "by_default": float(_errors(0.0, true).mean()),
        "backend": backend,
        "error": float(errors.mean()),
        "error_median": float(np.median(errors)),
    }


def predict_held_out(known: pl.DataFrame, asked: pl.DataFrame, space, backend: str, seed: int) -> dict:
    """Mean relative errors offline and fine-tuned, and seconds for 1,000 samples."""
    from gpuschedlab.autosched import train

    model = train(known, space, backend=backend, rng=seed)
    given = list(model.graph.layers.given)
    begin = time.perf_counter()
    seen = model.predict(asked.select(given)).mean
    predict_s = (time.perf_counter() - begin) / asked.height * 1000
    offline = _errors(seen, asked["reward"].to_numpy())
    tuned = []
    spent = 0.0
    for _, rows in asked.group_by("segment", maintain_order=True):
        for half in (rows[: rows.height // 2], rows[rows.height // 2 :]):
            tuned.append(_errors(model.predict(half.select(given)).mean, half["reward"].to_numpy()))
            begin = time.perf_counter()
            model.update(half.drop("segment"))
            spent += time.perf_counter() - begin
    return {
        "error": float(offline.mean()),
        "error_median": float(np.median(offline)),
        "error_tuned": float(np.concatenate(tuned).mean()),
        "predict_s": predict_s,
        "tune_s": spent / asked.height * 1000,
    }


def _errors(seen, true) -> np.ndarray:
    """Relative errors of the objective: JCT goes with 1 / reward; for shares the ratio is as far either way."""
    return np.abs(np.exp(true - seen) - 1)


def run(data_dir=None, traces=TRACES, policies=POLICIES, seeds=(0,), workers: int = -1) -> dict:
    """Measure all.

    Returns
    -------
    dict
        `rows` a case, split and backend (`by_default`: error of predicting the default's value for all), `mean` over the
        policies beside table 6.4, `published`, `ok`.
    """
    parts = measure_all("causal", measure, data_dir, product(traces, policies, seeds), workers)
    rows = [row for part in parts for row in part]
    errors: dict[str, list[float]] = {}
    for row in rows:
        errors.setdefault(f"{row['trace']} {row['split']} {row['backend']}", []).append(row["error"])
    mean = {case: statistics.fmean(found) for case, found in errors.items()}
    return {"rows": rows, "mean": mean, "published": PUBLISHED, "ok": all(r["error"] <= NEEDED for r in rows)}
