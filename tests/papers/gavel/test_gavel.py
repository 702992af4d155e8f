"""Gavel: its turns, its shares over time, and what it does with jobs that fit nowhere."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import PolicyError
from gpuschedlab.papers.gavel.policy import Gavel, rounds_in_order, serve, serving_order
from gpuschedlab.sim import Scenario, simulate
from gpuschedlab.speeds import Speeds

CLUSTER = Cluster.parse("1x2:slow,1x2:fast")


def speeds(**paces) -> Speeds:
    """Models by their rates on one GPU of each type; n GPUs are n times as fast."""
    rows = [
        {"model": model, "gpu_type": kind, "n_nodes": 1, "n_gpus": gpus, "rate": pace * gpus}
        for model, pair in paces.items()
        for kind, pace in zip(("slow", "fast"), pair, strict=True)
        for gpus in (1, 2)
    ]
    return Speeds.from_frame(pl.DataFrame(rows).with_columns(progress=float("inf")))


def trace(models, gpus, target=50_000.0) -> pl.DataFrame:
    n = len(models)
    return pl.DataFrame(
        {
            "job_id": [f"j{i}" for i in range(n)],
            "submit": np.zeros(n),
            "gpus": np.array(gpus, float),
            "duration": np.full(n, min(target, 1e8)),
            "model": pl.Series(models, dtype=pl.Utf8),
            "target": np.full(n, target),
        }
    )


def seconds_on(run, kind):
    """Seconds that each job ran on a type."""
    held = run.allocations.filter(gpu_type=kind).unique(["job", "start"])
    by_job = dict(held.group_by("job").agg((pl.col("end") - pl.col("start")).sum()).iter_rows())
    return np.array([by_job.get(i, 0.0) for i in range(run.jobs.height)])


def test_pairs_are_served_by_share_over_time_received():
    shares = np.array([[0.9, 0.1], [0.2, 0.8], [0.0, 0.0]])
    received = np.array([[0.9, 0.5], [0.1, 0.4], [0.0, 0.1]])
    order = serving_order(shares, received)
    # X / f: job 0 1.0 and 0.2, job 1 2.0 and 2.0 (the larger share first), job 2 nothing
    assert order[:4].tolist() == [3, 2, 0, 1]
    assert set(order[4:]) == {4, 5}


def test_what_does_not_fit_is_passed_over():
    order = np.array([0, 1, 2, 3, 4, 5])
    able = np.array([[True, True], [True, True], [False, True]])
    gpu_type, given = serve(order, able, np.array([2.0, 3.0, 1.0]), np.array([2.0, 1.0]))
    assert given.tolist() == [2, 0, 1]
    assert gpu_type[[0, 2]].tolist() == [0, 1]


def test_time_received_is_that_of_all_jobs_that_ever_were():
    """Half a round a job and type to begin with, a round for each that runs; jobs that have left still count."""
    table = speeds(a=(1.0, 1.0))
    jobs = trace(["a"] * 4, [2] * 4).with_columns(submit=pl.Series([0.0, 0.0, 0.0, 360.0]))
    scenario = Scenario(jobs, CLUSTER, speeds=table)
    kept = Gavel().begin()
    Gavel().allocate(scenario.view(Gavel(), memory=kept))
    assert kept.total.tolist() == [3 * 180 + 360] * 2
    Gavel().allocate(scenario.view(Gavel(), now=360.0).take(np.array([2, 3]), memory=kept))
    assert kept.total.tolist() == [4 * 180 + 2 * 360] * 2


def test_jobs_go_where_the_whole_gains_most():
    """Both are faster on the fast type; only one gains much by it."""
    run = simulate(trace(["a", "b"], [2, 2]), CLUSTER, Gavel(), speeds=speeds(a=(1.0, 5.0), b=(1.0, 1.2)), until=3600)
    assert seconds_on(run, "fast").tolist() == [3600, 0]
    assert seconds_on(run, "slow").tolist() == [0, 3600]


@pytest.mark.parametrize("objective", ["max_sum", "max_min", "water_filling"])
def test_alike_jobs_take_turns(objective):
    """Five jobs of two GPUs on two types of two GPUs: each runs two fifths of the time."""
    models = ["a"] * 5
    hours = 40
    run = simulate(
        trace(models, [2] * 5, 1e9),
        CLUSTER,
        Gavel(objective=objective),
        speeds=speeds(a=(1.0, 1.0)),
        until=hours * 3600,
    )
    executed = run.jobs["executed"].to_numpy() / (hours * 3600)
    assert executed == pytest.approx([0.4] * 5, abs=0.03)


def test_max_min_levels_what_max_sum_does_not():
    """One job gains six times from the fast type, the other twice: max-sum gives it all, max-min shares."""
    table = speeds(a=(1.0, 6.0), b=(1.0, 2.0))
    runs = {
        name: simulate(trace(["a", "b"], [2, 2], 1e9), CLUSTER, Gavel(objective=name), speeds=table, until=72 * 3600)
        for name in ("max_sum", "max_min")
    }
    assert seconds_on(runs["max_sum"], "fast")[1] == 0
    progress = {name: seconds_on(run, "slow") * [1, 1] + seconds_on(run, "fast") * [6, 2] for name, run in runs.items()}
    normal = {name: p / [3.5, 1.5] for name, p in progress.items()}  # by what an equal share would give
    assert normal["max_min"].min() > 1.2 * normal["max_sum"].min()
    assert normal["max_min"][0] == pytest.approx(normal["max_min"][1], rel=0.05)


def test_the_programs_that_each_solver_solves_agree():
    runs = [
        simulate(
            trace(["a", "b", "a"], [1, 2, 2]), CLUSTER, Gavel(solver=s), speeds=speeds(a=(1, 3), b=(2, 3)), until=3600
        )
        for s in ("highs", "mip")
    ]
    both = runs[0].rounds.join(runs[1].rounds, on="time")
    assert both.height > 0
    np.testing.assert_allclose(both["objective"].to_numpy(), both["objective_right"].to_numpy(), rtol=1e-4)


def test_rigid_jobs_without_speeds_and_fractions_run():
    frame = trace([None] * 4, [0.5, 0.5, 2, 1], 1000.0)
    run = simulate(frame, CLUSTER, Gavel())
    assert run.jobs["end"].null_count() == 0
    assert run.jobs["executed"].to_list() == [1000.0] * 4


def test_a_type_that_is_too_small_or_unknown_is_never_given():
    table = Speeds.from_frame(
        pl.DataFrame({"model": ["a"], "gpu_type": ["fast"], "n_nodes": [1], "n_gpus": [2], "rate": [1.0]})
    )
    run = simulate(trace(["a", "a"], [2, 2], 700.0), CLUSTER, Gavel(), speeds=table)
    assert seconds_on(run, "slow").tolist() == [0, 0]
    assert run.jobs["end"].null_count() == 0


def test_an_empty_view_gets_an_empty_answer():
    view = Scenario(trace(["a"], [1]), CLUSTER).view(Gavel(), now=-1.0)
    assert len(view) == 0
    assert len(Gavel().allocate(view).gpus) == 0


@dataclass(frozen=True)
class Anew(Gavel):
    """Gavel that solves each round, as if it were the first."""

    def allocate(self, view):
        view.memory.inputs = None
        return replace(super().allocate(view), wake=None)

    def _plan(self, view, kept):
        super()._plan(view, kept)
        kept.settled = None  # received time counts in each round


def random_trace(seed, n=10):
    """Jobs of two models with a best type that changes as they progress; some wait, some find room."""
    rng = np.random.default_rng(seed)
    frame = trace(rng.choice(["a", "b"], n).tolist(), rng.choice([1, 2], n), 30_000.0)
    return frame.with_columns(submit=np.sort(rng.uniform(0, 40_000, n)))


def changing_speeds(half=9000.0):
    """First the slow type is better for model a, then the fast one."""
    rates = {("a", "slow"): (3.0, 1.0), ("a", "fast"): (1.0, 4.0), ("b", "slow"): (1.0, 1.0), ("b", "fast"): (2.0, 2.5)}
    rows = [
        {"model": m, "gpu_type": kind, "n_nodes": 1, "n_gpus": gpus, "rate": rate * gpus, "progress": end}
        for (m, kind), pair in rates.items()
        for gpus in (1, 2)
        for rate, end in zip(pair, (half, 60_000.0), strict=True)
    ]
    return Speeds.from_frame(pl.DataFrame(rows))


@pytest.mark.parametrize("objective", ["max_sum", "max_min", "water_filling"])
@pytest.mark.parametrize("seed", range(3))
def test_rounds_that_are_not_solved_again_would_have_had_the_same_answer(objective, seed, monkeypatch):
    plans = []
    monkeypatch.setattr(Gavel, "_plan", lambda self, *a, plan=Gavel._plan: (plans.append(1), plan(self, *a)))
    runs = []
    solved = []
    for kind in (Gavel, Anew):
        plans.clear()
        runs.append(simulate(random_trace(seed), CLUSTER, kind(objective=objective), speeds=changing_speeds()))
        solved.append(len(plans))
    for frame in ("jobs", "allocations", "timeline"):  # rounds slept through are steps in which sums were not added up
        assert_frame_equal(getattr(runs[0], frame), getattr(runs[1], frame), rel_tol=1e-9)
    assert solved[0] <= 4 * 10 + 1  # arrivals, segments, ends; and rounds that fall onto the end of a segment
    assert solved[1] > 1.5 * solved[0]


@pytest.mark.parametrize("seed", range(12))
def test_the_order_stays_for_as_long_as_is_said(seed):
    """Followed round by round; it may change one round after the number that is said, and does so half the time."""
    rng = np.random.default_rng(seed)
    n = 4
    T = 2
    step = 360.0
    shares = rng.choice([0.0, 0.25, 0.5, 1.0], (n, T))
    shares[0] = shares[1]
    received = step * (rng.integers(0, 30, (n, T)) + 0.5)
    received[0] = received[1]  # tied
    total = received.sum(axis=0) + step * rng.integers(0, 9, T)
    gained = np.zeros((n, T))
    gained[2, rng.integers(T)] = gained[3, rng.integers(T)] = step
    given = gained.sum(axis=0)

    def order_after(k):
        return serving_order(shares, (received + k * gained) / (total + k * given)).tolist()

    said = rounds_in_order(np.array(order_after(0)), shares, received, gained, total, given)
    same = [order_after(k) == order_after(0) for k in range(3000)]
    assert all(same[: int(min(said, 2999)) + 1])
    assert said >= min(same.index(False) if False in same else 3000, 3000) - 2


def test_alike_jobs_that_run_and_wait_change_places_when_it_was_said():
    """One of two jobs runs: X / f of the one that waits is ahead from the first round on."""
    shares = np.full((2, 1), 0.5)
    received = np.array([[180.0], [540.0]])
    total = np.array([720.0])
    order = serving_order(shares, received / total)
    assert order.tolist() == [0, 1]
    gained = np.array([[360.0], [0.0]])
    assert rounds_in_order(order, shares, received, gained, total, np.array([360.0])) == 0  # level after one round
    received[1] = 540.0 + 10 * 360
    assert rounds_in_order(order, shares, received, gained, total, np.array([360.0])) == 10  # level after eleven
    assert rounds_in_order(order, shares, received, 0 * gained, total, np.array([0.0])) == np.inf


def test_a_job_that_could_run_on_either_type_sleeps_where_it_is():
    run = simulate(trace([None], [1], 50 * 86_400.0), CLUSTER, Gavel())
    assert run.jobs["end"].to_list() == [50 * 86_400.0]
    assert run.rounds.height == 3  # the first, the one that finds the answer in force, and the last


def test_a_segment_that_ends_at_a_round_is_seen_in_the_next():
    """Slow is better up to 10,800, which a job of one GPU reaches at 3,600 s, a round; then it moves."""
    run = simulate(trace(["a"], [1], 60_000.0), CLUSTER, Gavel(), speeds=changing_speeds(10_800.0))
    moves = run.allocations.select("gpu_type", "start").rows()
    assert moves == [("slow", 0.0), ("fast", 3960.0)]


def test_a_job_that_fits_nowhere_is_an_error():
    rows = {"model": ["a"], "gpu_type": ["fast"], "n_nodes": [1], "n_gpus": [2], "rate": [1.0]}
    with pytest.raises(PolicyError, match="let none of 1 jobs progress"):
        simulate(trace(["a"], [1], 700.0), CLUSTER, Gavel(), speeds=Speeds.from_frame(pl.DataFrame(rows)))


def test_a_job_alone_is_planned_once(monkeypatch):
    plans = []
    monkeypatch.setattr(Gavel, "_plan", lambda self, *a, plan=Gavel._plan: (plans.append(1), plan(self, *a)))
    run = simulate(trace(["a"], [2], 5 * 86_400 * 5.0), CLUSTER, Gavel(), speeds=speeds(a=(1.0, 2.5)))
    assert run.jobs["end"].to_list() == [5 * 86_400]
    assert len(plans) == 1


def test_time_received_counts_rounds_that_were_skipped():
    """Two jobs run on; whether Gavel is asked each round or once in ten, they received the same."""
    totals = []
    scenario = Scenario(trace(["a"] * 2, [2] * 2), CLUSTER)
    for step in (1, 10):
        kept = Gavel().begin()
        for k in range(0, 21, step):
            kept.catch_up(scenario.view(Gavel(), now=360.0 * k), 360.0)
            kept.given = np.array([1, 1])
            kept.total += kept.given * 360.0
        totals.append(kept.total.tolist())
    assert totals[0] == totals[1] == [2 * 180 + 21 * 360.0] * 2
