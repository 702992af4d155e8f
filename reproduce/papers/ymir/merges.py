"""A round of Ymir: thousands of waiting fine-tuning jobs, hundreds that run, all in one program."""

from itertools import count, permutations

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.optim import relative_gap
from gpuschedlab.policies import Ymir
from gpuschedlab.sim import Scenario
from gpuschedlab.speeds import Speeds

NODES = 30
WAITING = 3000
RUNNING = 200
"""Nodes of 8 GPUs, jobs that wait, and jobs that run."""

SECONDS = 1.0
GAP = 1e-3
ROUNDS = 5
TASKS = tuple(f"fm@{name}" for name in "abcdefghi")
FIRST = 120.0


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
    model = rng.integers(0, len(TASKS), n)
    gpus = rng.choice([1, 2, 4], n, p=[0.6, 0.25, 0.15])
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


def test_round(budget):
    """The round in which all wait or run; every pair of tasks may gain or lose."""
    seeds = count(-1)  # the first compiles

    def setup():
        rng = np.random.default_rng(max(next(seeds), 0))
        speeds = task_speeds(rng)
        scenario = Scenario(crowd(WAITING, RUNNING, speeds, rng), Cluster.homogeneous(NODES, 8, "v100"), speeds=speeds)
        simulation = scenario.simulation(Ymir())
        simulation.advance(FIRST - 0.5)
        return (simulation,)

    def decide(simulation):
        return simulation.run(FIRST + 1).rounds.row(-1, named=True)

    found = budget(decide, SECONDS, setup=setup, rounds=ROUNDS, quantile=1.0)
    budget.also("gap", max(relative_gap(last["objective"], last["bound"]) for last in found), GAP)
    assert {last["status"] for last in found} == {"optimal"}
