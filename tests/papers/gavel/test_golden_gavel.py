"""Golden answers of Gavel: its programs, and rounds with each knob elsewhere."""

import numpy as np
import polars as pl
import pytest
from golden_answers import digest, golden, ran, refusal, varied

from gpuschedlab import Cluster, Delays, Scenario, Speeds
from gpuschedlab.optim import solve
from gpuschedlab.papers.gavel import program
from gpuschedlab.papers.gavel.policy import Gavel, serving_order


def asked(seed: int) -> tuple:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    throughput = rng.uniform(0.5, 3, (n, 1)) * rng.uniform(0.5, 2, (n, 2))
    throughput[rng.random((n, 2)) < 0.15] = np.nan
    return throughput, rng.choice([1.0, 2.0, 4.0], n), np.array([4.0, 2.0]), rng


@pytest.mark.parametrize("seed", range(4))
@golden
def test_programs(seed):
    throughput, gpus, capacity, rng = asked(seed)
    given = (throughput, gpus, capacity)
    n = len(gpus)
    weights = rng.uniform(0.5, 3, n)
    age = rng.uniform(0, 100, n)
    made = [
        program.gavel_max_sum(*given),
        program.gavel_max_min(*given),
        program.gavel_max_min(*given, weights, relative=False),
    ]
    filled = program.gavel_water_filling(*given, weights)
    fair = program.gavel_finish_time(*given, age, rng.uniform(10, 90, n), rng.uniform(100, 200, n))
    goes = np.nan_to_num(throughput)
    return {
        "programs": [digest(each) for each in made],
        "optima": [f"{solve(each).objective:.6g}" for each in made],
        "filled": [f"{v:.4g}" for v in (goes * filled).sum(axis=1)],
        "fair": [f"{v:.2g}" for v in (goes * fair).sum(axis=1)],
        "order": serving_order(filled, np.ones_like(filled)),
        "refused": [
            refusal(program.gavel_max_min, *given, -weights),
            refusal(program.gavel_max_sum, throughput, gpus[:-1], capacity),
        ],
    }


def scenario(seed: int) -> Scenario:
    """Jobs of two models on two types."""
    rng = np.random.default_rng(seed)
    rows = [
        (m, t, g, r * g**0.8)
        for m, a in (("x", 1.0), ("y", 1.5))
        for t, r in (("k80", 1.0), ("v100", 2.0 * a))
        for g in (1, 2, 4)
    ]
    table = Speeds.from_frame(pl.DataFrame(rows, ["model", "gpu_type", "n_gpus", "rate"], orient="row"), relative=True)
    n = 14
    trace = pl.DataFrame(
        {
            "job_id": [f"{i:02}" for i in range(n)],
            "submit": np.sort(rng.uniform(0, 3000, n)),
            "gpus": rng.choice([1.0, 2.0, 4.0], n),
            "duration": rng.lognormal(7, 1, n),
            "model": rng.choice(["x", "y"], n),
        }
    )
    return Scenario(trace, Cluster.parse("2x4:k80,1x4:v100"), speeds=table, delays=Delays(restart=20.0), until=40_000.0)


@golden
def test_rounds():
    found = {}
    for name, policy in varied(Gavel(), "interval", "time_limit").items():
        found[name] = ran(scenario(1), policy)
        if "objective" in name or name == "begin":
            found[f"{name} again"] = ran(scenario(2), policy)
    for objective in ("max_min", "max_sum", "finish_time", "water_filling", "las"):
        try:
            found[objective] = ran(scenario(3), Gavel(objective=objective))
        except Exception as error:
            found[objective] = f"{type(error).__name__}: {error}"
    return found
