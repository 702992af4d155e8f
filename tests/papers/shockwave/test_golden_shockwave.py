"""Golden answers of Shockwave: its program, and rounds with each knob elsewhere."""

import numpy as np
import pytest
from golden_answers import digest, golden, ran, varied
from small_jobs import random_trace

from gpuschedlab import Cluster, Scenario
from gpuschedlab.optim import solve
from gpuschedlab.papers.shockwave.policy import Shockwave
from gpuschedlab.papers.shockwave.program import shockwave_window


@pytest.mark.parametrize("seed", range(4))
@golden
def test_programs(seed):
    rng = np.random.default_rng(seed)
    n = 4
    given = (
        rng.uniform(0, 0.6, n),
        rng.uniform(0.05, 0.3, n),
        rng.uniform(60, 900, n),
        rng.choice([1.0, 2.0], n),
        rng.uniform(0.5, 2, n),
    )
    made = [
        shockwave_window(*given, capacity=3, rounds=4, interval=60.0, makespan=m, whole=w)
        for m, w in ((0.1, True), (2.0, False))
    ]
    return {"programs": [digest(each) for each in made], "optima": [f"{solve(each).objective:.5g}" for each in made]}


@golden
def test_rounds():
    scenario = Scenario(random_trace(10, 3, 1.5, 8), Cluster.parse("2x4,1x8"), until=9000.0)
    return {
        name: ran(scenario, policy)
        for name, policy in varied(Shockwave(interval=300.0, window=4), "interval", "time_limit", "window").items()
    }
