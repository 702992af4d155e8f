"""Shockwave: its program beside all plans, and its turns."""

from itertools import product

import numpy as np
import polars as pl
import pytest
from paced_jobs import jobs

from gpuschedlab.check import check_policy
from gpuschedlab.cluster import Cluster
from gpuschedlab.optim import solve
from gpuschedlab.papers.shockwave.program import FIFTHS, ORIGIN
from gpuschedlab.policies import Shockwave, ThemisRounds
from gpuschedlab.problems import shockwave_window
from gpuschedlab.sim import simulate

ONE = Cluster.parse("1x1:t4")


def worth(program_of, rounds, y):
    """Objective of whole rounds by its definition."""
    n = len(y)
    w = program_of["weights"]
    share = np.minimum(program_of["done"] + y * program_of["step"], 1.0)
    log = np.interp(share, FIFTHS, np.log(np.maximum(FIFTHS, ORIGIN)))
    begin = np.interp(program_of["done"], FIFTHS, np.log(np.maximum(FIFTHS, ORIGIN)))
    end = (program_of["left"] - y * program_of["interval"]).max(initial=0.0) / program_of["left"].max()
    return (w * (log - begin)).sum() / n - program_of["makespan"] * max(end, 0.0)


@pytest.mark.parametrize("seed", range(6))
def test_shockwaves_program_is_as_good_as_the_best_of_all_plans(seed):
    rng = np.random.default_rng(seed)
    seconds = rng.uniform(100, 2000, 3)
    one = {"done": rng.uniform(0, 0.8, 3), "step": 100 / seconds, "left": seconds, "gpus": rng.choice([1.0, 2.0], 3)}
    one |= {"weights": rng.uniform(0.1, 1, 3), "interval": 100.0, "makespan": 0.3}
    plans = (np.array(y) for y in product(range(5), repeat=3))
    best = max(worth(one, 4, y) for y in plans if one["gpus"] @ y <= 2 * 4)
    found = solve(shockwave_window(**one, capacity=2, rounds=4), gap=1e-9)
    y = found.x[:-1].reshape(3, 4).sum(axis=1)
    assert worth(one, 4, y) == pytest.approx(best)
    assert found.objective == pytest.approx(best)


def test_the_makespan_term_prefers_the_longest():
    one = {"done": np.zeros(2), "step": np.array([0.05, 0.5]), "left": np.array([2000.0, 200.0]), "gpus": np.ones(2)}
    one |= {"weights": np.ones(2), "capacity": 1, "rounds": 2, "interval": 100.0}
    plans = [solve(shockwave_window(**one, makespan=m)).x[:-1].reshape(2, 2).sum(axis=1).round() for m in (0.0, 50.0)]
    assert plans[0].tolist() == [0, 2]
    assert plans[1].tolist() == [2, 0]


@pytest.mark.parametrize(
    "policy", [Shockwave(interval=60.0), Shockwave(interval=60.0, whole=True), ThemisRounds(interval=60.0)]
)
def test_alike_jobs_take_turns_and_a_gpu_is_never_idle(policy):
    run = simulate(jobs([600.0] * 3), ONE, policy)
    assert sorted(run.jobs["end"])[-1] == pytest.approx(1800, abs=61)
    assert run.jobs["restarts"].sum() > 0


def test_shockwave_proves_its_plan_for_a_job_that_is_alone():
    trace = pl.DataFrame({"job_id": ["a"], "submit": [0.0], "gpus": [1.0], "duration": [100.0]})
    first = simulate(trace, Cluster.homogeneous(1, 1), Shockwave()).rounds.row(0, named=True)
    assert first["status"] == "optimal"
    assert first["objective"] == pytest.approx(first["bound"])


@pytest.mark.parametrize(("weight", "kept", "end"), [(10.0, True, 2500), (0.0, True, 3000), (10.0, False, 3200)])
def test_planned_rounds_that_are_kept_let_the_longest_job_end_with_the_others(weight, kept, end):
    """Ten jobs of 300 s and one of 2,000 s on two GPUs: 2,500 s of work for each. All gain most by a first round."""
    policy = Shockwave(fairness=0.0, makespan=weight, interval=100.0, window=10, keep_rounds=kept)
    run = simulate(jobs([300.0] * 10 + [2000.0]), Cluster.homogeneous(2, 1), policy)
    assert run.jobs["end"].max() == pytest.approx(end)


@pytest.mark.parametrize(
    "knobs",
    [
        {"fair_end": "estimates", "end_late_first": True, "second": 1000.0, "replan": 2, "origin": 1e-6},
        {"keep_rounds": False},
        {"makespan": 1000.0},
    ],
)
def test_its_switches_keep_the_laws_of_all_policies(knobs):
    check_policy(Shockwave(interval=300.0, **knobs)).raise_if_failed()
