"""What the twin says that it lacks: checkpoints, first starts and slow nodes as mechanisms, and what is left over by name."""

import math

import numpy as np
import polars as pl
import pytest

from gpuschedlab.autosched.mechanisms.checkpoints import checkpoint_of
from gpuschedlab.autosched.mechanisms.misfits import of_failures, of_predictions
from gpuschedlab.autosched.mechanisms.playing import numbers_of, with_slow_nodes
from gpuschedlab.autosched.mechanisms.rates import NodeFailures, failed_nodes, failures_by_node
from gpuschedlab.autosched.mechanisms.work.first_starts import first_start_of
from gpuschedlab.autosched.mechanisms.work.pace import Pace, restarts, work_of
from gpuschedlab.autosched.mechanisms.work.slow_nodes import NodeEffects, slowest_of, split_of
from gpuschedlab.cluster import Cluster, Nodes, Outage
from gpuschedlab.policies import Fifo
from gpuschedlab.sim import Scenario
from gpuschedlab.speeds import Delays
from reproduce.autosched.lacks import bench
from reproduce.autosched.lacks.world import (
    FAILING_NODE,
    FIRST_START,
    HONESTY,
    LOST_WORK,
    MECHANISMS,
    NONE,
    SLOW_NODE,
    VARIED,
    secret,
    world_of,
)

DAY = 86_400.0


def log_of(rows: list[tuple]) -> pl.DataFrame:
    """Attempts by hand: job, attempt, start, end, and why they ended."""
    log = pl.DataFrame(rows, schema=["job", "attempt", "start", "end", "why"], orient="row")
    return log.with_columns(status=pl.lit("completed"), gpus=pl.lit(8.0))


@pytest.mark.parametrize(("period", "kept"), [(0.0, 950.0), (400.0, 750.0), (2000.0, 0.0), (math.inf, 0.0)])
def test_a_failure_keeps_what_was_done_at_the_last_checkpoint(period, kept):
    log = log_of([(0, 0, 0.0, 1000.0, "node"), (0, 1, 2000.0, 3000.0, "done")])
    pace = Pace(np.array([50.0, 100.0]), np.zeros(2), period)
    assert work_of(log, pace).tolist() == [kept + 900.0]
    rows = restarts(log, pace)
    assert rows.failed.all()
    assert rows.spent.tolist() == [1000.0 - (950.0 - kept)]
    assert rows.before.tolist() == [950.0]


def test_the_engine_keeps_what_the_twin_counts():
    """Work that is inferred from a log in which a node fails is that of the job, at its speed."""
    trace = pl.DataFrame({"job_id": ["a"], "submit": [0.0], "gpus": [8], "duration": [3000.0]})
    for period in (0.0, 700.0, None):
        delays = Delays(restart=60.0, switch=40.0, checkpoint=period)
        cluster = Cluster((Nodes("v100", 1, 8),), (Outage(0, 2000.0, 2500.0),))
        jobs = Scenario(trace, cluster, delays=delays).run(Fifo()).jobs
        end = jobs["end"].item()
        log = log_of([(0, 0, 0.0, 2000.0, "node"), (0, 1, 2500.0, end, "done")])
        pace = Pace(np.array([40.0, 100.0]), np.zeros(2), math.inf if period is None else period)
        np.testing.assert_allclose(work_of(log, pace), [3000.0])


def many(lengths: np.ndarray) -> pl.DataFrame:
    """A log of jobs that ran in one piece."""
    count = len(lengths)
    return log_of([(i, 0, 0.0, float(lengths[i]), "done") for i in range(count)])


def test_a_first_start_is_told_from_a_log_without_short_jobs():
    rng = np.random.default_rng(3)
    work = np.exp(rng.normal(5.0, 2.2, 800))
    paid = first_start_of(many(work + 900.0))
    assert paid.seen
    assert paid.low <= 900.0 <= paid.high
    assert paid.high - paid.low < 70
    assert not first_start_of(many(work)).seen
    for least in (60.0, 600.0):  # only long jobs are logged
        assert not first_start_of(many(work[work > least])).seen, least
    assert not first_start_of(many(work[:10] + 900.0)).seen


def test_nodes_are_split_only_if_they_differ_by_more_than_chance():
    rng = np.random.default_rng(1)
    names = [str(i) for i in range(12)]
    alike = [split_of(NodeEffects(names, rng.normal(0, 0.1, 12), np.full(12, 0.1)))[1] for _ in range(400)]
    assert np.mean(np.array(alike) < 0.05) < 0.09
    effect = rng.normal(0, 0.1, 12)
    effect[[3, 7]] += 1.0
    slow, chance = split_of(NodeEffects(names, effect, np.full(12, 0.1)))
    assert set(slow) == {"3", "7"}
    assert chance < 1e-6
    assert split_of(NodeEffects(["a"], np.ones(1), np.ones(1))) == ((), 1.0)


def test_one_slow_node_and_nodes_of_a_type_are_looked_for_first():
    names = [str(i) for i in range(16)]
    deviation = np.full(16, 0.1)
    one = np.where(np.arange(16) == 5, 0.47, 0.0)
    slow, chance = slowest_of(NodeEffects(names, one, deviation), [])
    assert slow == ("5",)
    assert chance < 1e-3 < split_of(NodeEffects(names, one, deviation))[1]
    rng = np.random.default_rng(4)
    half = np.where(np.arange(16) < 8, 0.22, 0.0) + rng.normal(0, 0.1, 16)
    slow, chance = slowest_of(NodeEffects(names, half, deviation), [tuple(names[:8]), tuple(names[8:])])
    assert slow == tuple(names[:8])
    assert chance < 1e-3
    assert slowest_of(NodeEffects(["a"], np.ones(1), np.ones(1)), []) == ((), 1.0)


def test_slow_nodes_are_played_and_the_others_stay_as_they_were():
    jobs = {"job_id": ["a", "b", "c"], "submit": [0.0] * 3, "gpus": [8] * 3, "duration": [100.0] * 3}
    scenario = Scenario(pl.DataFrame(jobs), Cluster.homogeneous(3, 8))
    slow = with_slow_nodes(scenario, (1,), 0.5)
    assert sorted(slow.run(Fifo()).jobs["end"].to_list()) == [100.0, 100.0, 200.0]
    assert slow.cluster.total_nodes == 3
    all_slow = with_slow_nodes(scenario, (0, 1, 2), 0.5)
    assert all_slow.cluster.gpu_types == scenario.cluster.gpu_types
    assert all_slow.run(Fifo()).jobs["end"].to_list() == [200.0] * 3


def test_jobs_that_ask_for_a_type_may_have_its_slow_nodes_too():
    jobs = pl.DataFrame(
        {"job_id": ["a", "b"], "submit": [0.0] * 2, "gpus": [8] * 2, "duration": [100.0] * 2, "gpu_type": ["v100"] * 2}
    )
    cluster = Cluster((Nodes("v100", 2, 8), Nodes("t4", 1, 8)))
    slow = with_slow_nodes(Scenario(jobs, cluster, types="requested"), (0,), 0.25)
    assert sorted(slow.run(Fifo()).jobs["end"].to_list()) == [100.0, 400.0]


@pytest.mark.parametrize("column", [{}, {"gpu_type": ["v100"] * 2}])
def test_the_history_is_played_with_the_slow_nodes_too(column):
    """Both nodes are needed at once; one takes four times as long."""
    jobs = {"job_id": ["a", "b"], "submit": [0.0] * 2, "gpus": [8] * 2, "duration": [100.0] * 2} | column
    history = pl.DataFrame(jobs).with_columns(submit=pl.lit(-1000.0), job_id=pl.format("{}-before", "job_id"))
    types = "requested" if column else None
    scenario = Scenario(pl.DataFrame(jobs), Cluster.homogeneous(2, 8), history=history, types=types)
    past = with_slow_nodes(scenario, (0,), 0.25).past
    assert sorted(past.run(Fifo()).jobs["end"].to_list()) == [100.0, 400.0]


def test_names_of_nodes_become_numbers_only_if_they_tell():
    cluster = Cluster.homogeneous(4, 8)
    assert numbers_of(("2",), ["0", "2"], cluster) == (2,)
    assert numbers_of(("gpu07",), ["gpu01", "gpu07"], cluster) == (3,)
    mixed = Cluster((Nodes("v100", 2, 8), Nodes("t4", 2, 8)))
    assert numbers_of(("gpu07",), ["gpu01", "gpu07"], mixed) is None


def test_the_node_that_failed_is_the_one_that_stays_unused():
    columns = ["job", "submit", "start", "end", "at", "why"]
    rows = [
        (0, 0.0, 0.0, 100.0, ["x", "y"], "node"), (1, 50.0, 100.0, 300.0, ["y"], "done"), (2, 50.0, 250.0, 400.0, ["x"], "done"),
        (3, 400.0, 400.0, 500.0, ["x", "y"], "done"),
    ]  # fmt: skip
    log = pl.DataFrame(rows, schema=columns, orient="row").with_columns(nodes=pl.col("at").list.len())
    assert failed_nodes(log)["at"].to_list() == ["x"]
    found = failures_by_node(log)
    assert dict(zip(found.names, found.count)) == {"x": 1.0, "y": 0.0}
    assert dict(zip(found.names, found.busy)) == {"x": 250.0, "y": 300.0}  # until the last submission, at 400 s


def test_a_node_that_fails_is_named_and_one_that_fails_by_chance_is_not():
    busy = np.full(4, 10 * DAY)
    names = ["a", "b", "c", "d"]
    misfit = of_failures(NodeFailures(names, np.array([1.0, 9.0, 1.0, 1.0]), busy), DAY)[0]
    assert "node b fails 9 times as often as the others do: 9 of 12 failures" in misfit.words
    assert misfit.low < 3 / 30 < 9 / 10 < misfit.high
    assert not of_failures(NodeFailures(names, np.array([3.0, 5.0, 3.0, 1.0]), busy), DAY)
    doubtful = of_failures(NodeFailures(names, np.array([1.0, 6.0, 1.0, 1.0]), busy), DAY)[0]
    assert not doubtful.words
    assert doubtful.low < 3 / 30 < 6 / 10 < doubtful.high
    assert not of_failures(NodeFailures(names, np.array([4.0, 0.0, 0.0, 0.0]), busy), DAY)


def test_users_of_different_honesty_are_named():
    rng = np.random.default_rng(0)
    user = np.repeat([f"u{i}" for i in range(20)], 30)
    noise = rng.normal(0, 0.3, len(user))
    frame = pl.DataFrame({"user": user, "model": "job", "ratio": noise})
    assert not of_predictions(frame)
    lean = frame.with_columns(ratio=noise + np.repeat(rng.normal(0, 0.6, 20), 30))
    assert [misfit.by for misfit in of_predictions(lean)] == ["user"]
    rough = frame.with_columns(ratio=noise * np.repeat(np.exp(rng.normal(0, 1, 20)), 30))
    assert [misfit.by for misfit in of_predictions(rough)] == ["user"]


def test_worlds_differ_from_none_in_their_mechanism_alone():
    for seed in range(40):
        plain = secret(NONE, seed)
        assert (plain.start, plain.scatter, plain.speed, plain.often, plain.bias, plain.spread) == (0, 0, 1, 1, 0, 0)
        assert plain.checkpoint == plain.believed_checkpoint
        lost = secret(LOST_WORK, seed)
        assert 7200 <= lost.checkpoint <= 43_200
        assert lost.believed_checkpoint in (0.0, None)
        assert 600 <= secret(FIRST_START, seed).start <= 1800
        assert 0.4 <= secret(SLOW_NODE, seed).speed <= 0.65
        assert secret(FAILING_NODE, seed).often >= 8
        honest = secret(HONESTY, seed)
        assert (honest.bias > 0) != (honest.spread > 0)


@pytest.mark.parametrize("mechanism", [FIRST_START, SLOW_NODE, FAILING_NODE, HONESTY])
def test_the_twin_names_what_it_lacked(mechanism):
    row = bench.measure(None, mechanism, 0)
    assert bench.right(row)
    assert not bench.false_words(row)
    assert not row["missed"]


def test_the_twin_plays_what_it_found():
    world = world_of(LOST_WORK, 2)
    shown = world.shown()
    found = shown.mechanisms["checkpoint"]
    assert found.low <= world.secret.checkpoint <= found.high
    assert shown.scenario.delays.checkpoint == found.value
    assert shown.at(checkpoint=math.inf).delays.checkpoint is None
    assert shown.at(first_start=120.0).trace["switch"].unique().to_list() == [120.0]
    assert "checkpoint" in shown.surprises


def test_without_failures_the_checkpoint_stays_as_it_is_believed():
    log = log_of([(i, 0, 0.0, 100.0 + i, "done") for i in range(30)])
    nothing = np.full(30, np.nan)
    found = checkpoint_of(log, Pace(np.zeros(30), np.zeros(30), 500.0), nothing)
    assert not found.seen
    assert found.value == 500.0


def test_an_interval_misses_if_the_truth_is_outside_by_half_its_width():
    assert not bench.misses(10, 20, 24.9)
    assert bench.misses(10, 20, 25.1)
    assert bench.misses(10, 20, 4.9)
    assert not bench.misses(0, 0, 0)
    assert bench.misses(0, 0, 1)
    assert not bench.misses(100, math.inf, math.inf)
    assert bench.misses(100, math.inf, 40)


def row_of(mechanism: str, said: list[str], missed: list[str]) -> dict:
    """Row of a world by hand."""
    return {"mechanism": mechanism, "seed": 0, "said": said, "missed": missed, "intervals": {"restart": [1, 1, 1]}}


def test_words_and_intervals_are_counted():
    rows = [row_of(name, [bench.WORDS[name]], []) for name in MECHANISMS for _ in range(5)]
    rows += [row_of(NONE, [], []) for _ in range(30)]
    assert all(bench.verdict(rows).values())
    for row in rows[:7]:
        row["said"] = []
    for row in rows[:4]:
        row["missed"] = ["restart"]
    for row in rows[-3:]:
        row["said"] = ["slow_nodes"]
    assert not any(bench.verdict(rows).values())
    found = {row["mechanism"]: row for row in bench.judge(rows)}
    assert found["one mechanism"]["right"] == 23
    assert found[NONE]["false"] == 3
    assert found[VARIED]["worlds"] == 5
    assert len(bench.cases(bench.SEEDS)) == 60
