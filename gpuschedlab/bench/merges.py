"""Time of a round of Ymir: thousands of waiting fine-tuning jobs, hundreds that run, all in one program."""

import time
from itertools import permutations
from pathlib import Path

import numpy as np
import polars as pl

from gpuschedlab.bench.timing import timed
from gpuschedlab.cluster import Cluster
from gpuschedlab.optim import relative_gap
from gpuschedlab.policies import Ymir
from gpuschedlab.sim import simulate
from gpuschedlab.speeds import Speeds

BUDGET = {"max": 1.0, "gap": 1e-3}
"""CPU seconds and proven gap of a round on 240 GPUs with 3,000 jobs that wait and 200 that run."""

TASKS = tuple(f"fm@{name}" for name in "abcdefghi")
ROUNDS = 5
FIRST = 120.0


def run(data_dir: str | Path | None = None) -> dict:
    """Let Ymir decide on crowds of jobs of nine tasks, every pair of which may gain or lose.

    Parameters
    ----------
    data_dir : str or Path, optional
        Not used; all benches have it.

    Returns
    -------
    dict
        `waiting, running, gpus, rounds, merged` (pairs made, mean), `p50, max` (CPU s), `gap` (largest proven), `status`, `ok`.
    """
    measure(2, 20, 4, rounds=1)  # compiles
    found = measure(30, 3000, 200, rounds=ROUNDS)
    ok = found["max"] <= BUDGET["max"] and found["gap"] <= BUDGET["gap"] and found["status"] == "optimal"
    return {"bench": "merges", **found, "budget_s": BUDGET["max"], "ok": bool(ok)}


def task_speeds(rng: np.random.Generator) -> Speeds:
    """Nine tasks on 1 to 64 GPUs of nodes of 8, with less from each further GPU; factors of pairs from 0.5 to 2."""
    counts = np.array([1, 2, 3, *range(4, 65, 4)])
    rows = [
        (task, int(-(-n // 8)), int(n), 10.0, rate * n / (1 + slow * (n - 1)))
        for task in TASKS
        for rate, slow in [(rng.uniform(0.005, 0.05), rng.uniform(0.02, 0.1))]
        for n in counts
    ]
    frame = pl.DataFrame(rows, ["model", "n_nodes", "n_gpus", "progress", "rate"], orient="row")
    factors = [{pair: float(rng.uniform(0.5, 2)) for pair in permutations(TASKS, 2)} for _ in range(2)]
    return Speeds.from_frame(frame.with_columns(gpu_type=pl.lit("v100")), merged=factors[0], transfer=factors[1])


def crowd(waiting: int, running: int, speeds: Speeds, rng: np.random.Generator) -> pl.DataFrame:
    """So many jobs that come at once, and others that were there a round earlier."""
    n = running + waiting
    model, gpus = rng.integers(0, len(TASKS), n), rng.choice([1, 2, 4], n, p=[0.6, 0.25, 0.15])
    rate = speeds.rates(model, np.zeros(n), gpus * 0, gpus * 0 + 1, gpus)[np.arange(n), np.arange(n)]
    return pl.DataFrame(
        {
            "job_id": [f"{i:05}" for i in range(n)],
            "submit": np.repeat([0.0, FIRST - 1], [running, waiting]),
            "gpus": gpus.astype(float),
            "duration": 10.0 / rate,
            "model": [TASKS[m] for m in model],
        }
    )


def measure(nodes: int, waiting: int, running: int, rounds: int) -> dict:
    """Time the round in which all wait or run, of so many crowds on nodes of 8 GPUs."""
    taken, cluster = [], Cluster.homogeneous(nodes, 8, "v100")
    for seed in range(rounds):
        rng = np.random.default_rng(seed)
        speeds, seconds = task_speeds(rng), []
        policy = timed(Ymir(entrants=1000.0), seconds, time.process_time)
        found = simulate(crowd(waiting, running, speeds, rng), cluster, policy, speeds=speeds, until=FIRST + 1)
        last = found.rounds.row(-1, named=True)
        taken.append((seconds[-1], relative_gap(last["objective"], last["bound"]), last["status"]))
    cpu, gaps, status = zip(*taken, strict=True)
    return {
        "waiting": waiting,
        "running": running,
        "gpus": 8 * nodes,
        "rounds": rounds,
        "p50": float(np.median(cpu)),
        "max": float(np.max(cpu)),
        "gap": float(np.max(gaps)),
        "status": " ".join(dict.fromkeys(status)),
    }
