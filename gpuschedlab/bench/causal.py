"""AutoSched's causal performance model on configurations and instants that it has not seen (table 6.4 of the thesis).

For each real trace and policy configurations are measured at instants of the two weeks, with the jobs in the system and
those that came in the three days after (`gather`). Three quarters of the instants train, their arrivals multiplied where
GPUs were idle, as in the offline phase; at the others, as they were, the model foretells the objective of other
configurations, once as trained offline, and once fine-tuned with the configurations that precede each in the same instant,
as the tuner does. The others are the last quarter (`later`: days and loads not seen), or each fourth (`between`: their three
days overlap those of their neighbours). Errors are |foretold - measured| / measured.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
import polars as pl

from gpuschedlab.bench.autosched import knowing, stretch
from gpuschedlab.errors import LabError

TRACES, POLICIES, BACKENDS = ("philly", "venus", "pai"), ("tiresias", "themis", "lucid"), ("boosted", "network")
NEEDED = 0.15
LEARNT, ASKED = 48, 24
"""Configurations at each instant."""
#: Table 6.4 of the thesis: mean relative difference, seconds to predict and to fine-tune 1,000 samples.
PUBLISHED = {"philly": 0.1423, "venus": 0.1117, "pai": 0.1516, "predict_s": 0.0927, "tune_s": 1.4731}


def measure(data_dir, name: str, policy: str, seed: int = 0, instants: int = 24) -> list[dict]:
    """One row a split and backend."""
    from gpuschedlab.autosched import Space, gather
    from gpuschedlab.policies import ALL
    from gpuschedlab.sim import Delays

    history, trace, cluster, speeds, _ = stretch(data_dir, name, None, seed)
    space = Space(ALL[policy]())
    given = {"speeds": speeds, "estimator": knowing(policy, history), "delays": Delays(restart=60.0)}
    given |= {"instants": instants, "days": 14.0, "rng": seed}
    busy = gather(trace, cluster, space, configurations=LEARNT, **given)
    plain = gather(trace, cluster, space, configurations=ASKED, load=0.0, **given)
    segment, rows = pl.col("segment"), []
    for split, held in {"later": segment > busy["segment"].max() * 0.75, "between": segment % 4 == 1}.items():
        known, asked = busy.filter(~held), plain.filter(held)
        about = {"trace": name, "policy": policy, "seed": seed, "split": split, "test": asked.height}
        about["by_default"] = float(_errors(0.0, asked["reward"].to_numpy()).mean())
        rows += [about | {"backend": b} | foretell(known, asked, space, b, seed) for b in BACKENDS]
    return rows


def foretell(known: pl.DataFrame, asked: pl.DataFrame, space, backend: str, seed: int) -> dict:
    """Mean relative errors offline and fine-tuned, and seconds for 1,000 samples."""
    from gpuschedlab.autosched import train

    model = train(known, space, backend=backend, rng=seed)
    given = list(model.graph.layers.given)
    begin = time.perf_counter()
    seen = model.predict(asked.select(given)).mean
    predict_s = (time.perf_counter() - begin) / asked.height * 1000
    offline, tuned, spent = _errors(seen, asked["reward"].to_numpy()), [], 0.0
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


def run(data_dir=None, traces=TRACES, policies=POLICIES, seeds=(0,)) -> dict:
    """Measure all.

    Parameters
    ----------
    data_dir : str or Path
        Folder of the reference data.
    traces, policies, seeds : tuples
        Fewer cases.

    Returns
    -------
    dict
        `rows` a case and backend (`by_default`: error of foretelling the default's value for all), `published`, `ok`.
    """
    if data_dir is None:
        raise LabError("bench causal: found no reference data; expected a folder with traces/. Pass --data FOLDER.")
    rows = [row for n in traces for p in policies for s in seeds for row in measure(data_dir, n, p, s)]
    pairs = [(b, s) for b in BACKENDS for s in ("later", "between")]
    mean = {
        f"{b} {s}": statistics.fmean(r["error"] for r in rows if (r["backend"], r["split"]) == (b, s)) for b, s in pairs
    }
    return {"rows": rows, "mean": mean, "published": PUBLISHED, "ok": all(r["error"] <= NEEDED for r in rows)}
