"""Time of a round of UniSched: the program of leases to a proven gap, and the placement of the jobs that it chose."""

import time
from pathlib import Path

import numpy as np
import polars as pl

from gpuschedlab.bench.timing import timed
from gpuschedlab.cluster import Cluster
from gpuschedlab.optim import relative_gap
from gpuschedlab.policies import UniSched
from gpuschedlab.sim import simulate
from gpuschedlab.traces import with_deadlines

BUDGET = {"p99": 1.0, "gap": 1e-2}
"""CPU seconds and proven gap at 960 GPUs with 700 jobs with deadlines and 300 others."""

AIM = {"p99": 5.0, "gap": 1e-2}
"""The same at 10,000 GPUs with 10,000 jobs."""

ROUNDS = 40


def run(data_dir: str | Path | None = None) -> dict:
    """Let UniSched decide on random crowds of jobs, from ones that all can be in time to ones that cannot.

    Parameters
    ----------
    data_dir : str or Path, optional
        Not used; all benches have it.

    Returns
    -------
    dict
        `sizes`: one dict a size with `gpus, slo, others, rounds, p50, p99` (CPU s of a round, placements included), `gap`
        (largest proven), `ok`; `ok`: the first within `BUDGET`.
    """
    measure(2, 10, 5, rounds=1)  # compiles
    sizes = [measure(120, 700, 300, rounds=ROUNDS) | {"budget_s": BUDGET["p99"]}]
    sizes.append(measure(1250, 7000, 3000, rounds=ROUNDS // 8) | {"budget_s": AIM["p99"]})
    for size in sizes:
        size["ok"] = bool(size["p99"] <= size["budget_s"] and size["gap"] <= BUDGET["gap"])
    return {"bench": "leases", "sizes": sizes, "ok": sizes[0]["ok"]}


def crowd(slo: int, others: int, slack: float, rng: int | np.random.Generator) -> pl.DataFrame:
    """Jobs that are all there at once, larger and longer than in the Chronus artifact's workloads, so that not all can be in time.

    Parameters
    ----------
    slo, others : int
        Jobs with deadlines (a third of them soft) and best-effort jobs.
    slack : float
        Largest deadline over the duration; the least is 1.1. The less, the more jobs have to run at once.
    rng : int or numpy.random.Generator

    Returns
    -------
    polars.DataFrame
        A trace.

    Examples
    --------
    >>> crowd(3, 1, 5.0, 0)["kind"].to_list()
    ['strict', 'strict', 'soft', 'best_effort']
    """
    rng = np.random.default_rng(rng)
    n = slo + others
    jobs = pl.DataFrame(
        {
            "job_id": [f"{i:05}" for i in range(n)],
            "submit": np.zeros(n),
            "gpus": rng.choice([1.0, 2.0, 4.0, 8.0], n, p=[0.5, 0.1, 0.2, 0.2]),
            "duration": (3600 * rng.lognormal(0.5, 1.3, n).clip(0.5, 100)).round(),
        }
    )
    strict = with_deadlines(jobs, strict=1.0, slack=(1.1, slack), rng=rng)
    soft = with_deadlines(jobs, strict=0.0, soft=1.0, slack=(1.1, slack), rng=rng)
    none = with_deadlines(jobs, strict=0.0)
    return pl.concat([strict[: slo - slo // 3], soft[slo - slo // 3 : slo], none[slo:]])


def measure(nodes: int, slo: int, others: int, rounds: int) -> dict:
    """Time the first round of so many crowds on nodes of 8 GPUs."""
    cluster, taken = Cluster.homogeneous(nodes, 8), []
    for seed in range(rounds):
        seconds: list[float] = []
        policy = timed(UniSched(profile=0), seconds, time.process_time)
        run = simulate(crowd(slo, others, 1.2 + 3.8 * seed / max(rounds - 1, 1), seed), cluster, policy, until=1.0)
        first = run.rounds.row(0, named=True)
        taken.append((seconds[0], relative_gap(first["objective"], first["bound"])))
    cpu, gaps = np.array(taken).T
    return {
        "gpus": 8 * nodes,
        "slo": slo,
        "others": others,
        "rounds": rounds,
        "p50": float(np.median(cpu)),
        "p99": float(np.quantile(cpu, 0.99)),
        "gap": float(gaps.max()),
    }
