"""Schedulers that Sia is compared with: Shockwave, Themis in rounds, Gavel's other objectives, tuned jobs."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from gpuschedlab.cluster import Cluster
from gpuschedlab.optim import solve
from gpuschedlab.papers.shockwave.program import FIFTHS, ORIGIN
from gpuschedlab.policies import Gavel, Shockwave, Themis, ThemisRounds
from gpuschedlab.problems import gavel_finish_time, shockwave_window
from gpuschedlab.sim import simulate
from gpuschedlab.speeds import Speeds

ONE = Cluster.parse("1x1:t4")


def table(**paces) -> Speeds:
    """Models by their rates on one GPU of types "slow" and "fast"."""
    rows = [(m, kind, 1, rate) for m, pair in paces.items() for kind, rate in zip(("slow", "fast"), pair, strict=True)]
    return Speeds.from_frame(pl.DataFrame(rows, schema=["model", "gpu_type", "n_gpus", "rate"], orient="row"))


def jobs(durations, submit=None, models=None) -> pl.DataFrame:
    n = len(durations)
    columns = {"job_id": [f"j{i}" for i in range(n)], "submit": np.zeros(n) if submit is None else submit}
    frame = pl.DataFrame(
        columns | {"gpus": 1.0, "duration": np.array(durations, float)}, schema_overrides={"submit": pl.Float64}
    )
    if models is None:
        return frame
    return frame.with_columns(model=pl.Series(models), target=pl.Series(durations, dtype=pl.Float64))


def worth(program_of, rounds, y):
    """Objective of whole rounds by its definition."""
    n, w = len(y), program_of["weights"]
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


def test_themis_serves_the_job_that_is_treated_worst():
    """Both have waited; the short one's finish time has suffered more."""
    frame = jobs([3000.0, 600.0, 6000.0], submit=[0.0, 600.0, 600.0])
    run = simulate(frame, ONE, ThemisRounds(f=0.9, interval=60.0))
    end = run.jobs["end"].to_list()
    assert end[1] < end[0] < end[2]


@pytest.mark.parametrize(("contention", "rho"), [(0.5, 1.5), (1.0, 1.5), (3.0, 0.5)])
def test_the_share_of_themis_is_at_most_the_whole_cluster(contention, rho):
    """Submitted at 0, at 30 s with all of its 60 s to go: 90 s, over 60, or over 180 on a third of the cluster."""
    job = SimpleNamespace(submit=0.0, estimate=60.0, progress=0.0, contention=contention)
    assert Themis.gate(30.0, job, None) == pytest.approx(-rho)


def test_themis_takes_the_fastest_type_that_is_free():
    speeds = table(a=(1.0, 4.0), b=(1.0, 2.0))
    cluster = Cluster.parse("1x1:slow,1x1:fast")
    run = simulate(
        jobs([400.0, 400.0], models=["a", "b"]), cluster, ThemisRounds(interval=60.0), speeds=speeds, until=60.0
    )
    assert sorted(run.allocations["gpu_type"]) == ["fast", "slow"]


def test_worst_finish_time_is_least():
    """Against a fine grid of all shares of two jobs on one GPU."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        rate, age, left = rng.uniform(0.5, 2, (2, 1)), rng.uniform(0, 300, 2), rng.uniform(100, 900, 2)
        work = left + rng.uniform(0, 500, 2)
        X = gavel_finish_time(rate, [1, 1], [1], age, left, work)
        alone = rate[:, 0] / 2

        def rho(x, age=age, left=left, rate=rate, work=work, alone=alone):
            return ((age + left / (rate[:, 0] * x)) / (work / alone)).max()

        best = min(rho(np.array([x, 1 - x])) for x in np.linspace(0.001, 0.999, 4000))
        assert X.sum() <= 1 + 1e-9
        assert rho(X[:, 0]) == pytest.approx(best, rel=5e-3)


def test_a_job_that_can_run_nowhere_has_no_finish_time():
    X = gavel_finish_time([[np.nan], [1.0]], [1, 1], [1], age=[10, 10], left=[5, 5], work=[5, 5])
    assert X.ravel().round(3).tolist() == [0, 1]


def test_the_makespan_objective_ends_all_together_and_fifo_one_by_one():
    frame = jobs([36_000.0, 18_000.0], submit=[0.0, 1.0])
    ends = {
        o: simulate(frame, ONE, Gavel(objective=o)).jobs["end"].to_list() for o in ("makespan", "fifo", "finish_time")
    }
    assert ends["fifo"] == pytest.approx([36_000, 54_000], abs=361)
    assert ends["makespan"] == pytest.approx([54_000, 54_000], abs=1500)
    assert max(ends["finish_time"]) == pytest.approx(54_000, abs=721)
    assert ends["finish_time"][1] < 50_000


def test_the_shortest_job_goes_first_whenever_it_comes():
    frame = jobs([36_000.0, 18_000.0], submit=[0.0, 1.0])
    ends = simulate(frame, ONE, Gavel(objective="shortest_first")).jobs["end"].to_list()
    assert ends == pytest.approx([54_000, 18_360], abs=361)


def test_shockwave_proves_its_plan_for_a_job_that_is_alone():
    trace = pl.DataFrame({"job_id": ["a"], "submit": [0.0], "gpus": [1.0], "duration": [100.0]})
    first = simulate(trace, Cluster.homogeneous(1, 1), Shockwave()).rounds.row(0, named=True)
    assert first["status"] == "optimal"
    assert first["objective"] == pytest.approx(first["bound"])
