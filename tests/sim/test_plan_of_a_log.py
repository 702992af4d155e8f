"""EASY on a log of ten weeks that a busy cluster of 25 nodes might have: whole jobs on few nodes, limits that users round up."""

import numpy as np
import polars as pl
import pytest
from plan_by_hand import PART, ByHand, Job

from gpuschedlab import Cluster, Fifo, Scenario
from gpuschedlab.estimators import Requested

pytestmark = pytest.mark.compiled("29,400 jobs take a minute and a half without machine code")
CLUSTER = Cluster.homogeneous(25, 8)
EASY = Fifo(backfill="easy", placement="consolidate")
HOUR = 3600
WEEKS = 10
LOAD = 0.84
LIMITS = np.array([0.5, 1, 2, 4, 8, 12, 24, 48, 72]) * HOUR


def drawn(seed: int = 3) -> pl.DataFrame:
    """Jobs: more of them by day, durations over four orders of magnitude, limits in steps, one in 25 stopped at its own."""
    rng = np.random.default_rng(seed)
    jobs = int(LOAD * 200 * WEEKS * 168 / 9.6)
    submit: list[float] = []
    while len(submit) < jobs:
        at = rng.uniform(0, WEEKS * 168 * HOUR, jobs)
        hour = at / HOUR % 24
        submit += list(at[rng.uniform(size=jobs) < 0.4 + 0.6 * ((hour > 8) & (hour < 20))])
    gpus = rng.choice([1, 2, 4, 8, 16, 32], jobs, p=[0.55, 0.1, 0.1, 0.17, 0.05, 0.03])
    duration = np.minimum(np.exp(rng.normal(np.log(1800), 1.8, jobs)), 48 * HOUR).round() + 1
    limit = LIMITS[np.minimum(np.searchsorted(LIMITS, duration * rng.uniform(1.1, 4, jobs)), len(LIMITS) - 1)]
    stopped = rng.uniform(size=jobs) < 0.04
    return pl.DataFrame(
        {
            "job_id": [f"{i:05}" for i in range(jobs)],
            "submit": np.sort(np.floor(submit[:jobs])),
            "gpus": gpus.astype(float),
            "duration": np.where(stopped, limit, np.minimum(duration, limit)),
            "requested_time": limit,
        }
    )


@pytest.fixture(scope="module")
def log() -> pl.DataFrame:
    return drawn()


@pytest.fixture(scope="module")
def starts(log) -> np.ndarray:
    return Scenario(log, CLUSTER, estimator=Requested()).run(EASY).jobs["start"].to_numpy()


def test_jobs_wait_as_long_as_under_another_planner(log, starts):
    # 5,140 s: a planner in another program, which chooses among promised nodes in the same way.
    assert len(log) == 29_400
    assert (starts - log["submit"].to_numpy()).mean() == pytest.approx(5140, rel=0.02)


def test_its_first_jobs_start_as_by_hand(log, starts):
    columns = (log[name].head(500) for name in ("submit", "gpus", "duration", "requested_time"))
    jobs = [Job(s, round(g) * PART, d, limit) for s, g, d, limit in zip(*columns, strict=True)]
    by_hand = ByHand(jobs, [8 * PART] * 25, [0] * 25, rule="consolidate", depth=1).starts()
    assert starts[:500].tolist() == by_hand
    assert np.mean(starts[:500] > log["submit"].head(500).to_numpy()) > 0.05
