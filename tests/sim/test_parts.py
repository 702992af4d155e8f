"""Parts of a scenario run as scenarios made of the same jobs do, bit for bit."""

import math

import numpy as np
import polars as pl
import pytest

from gpuschedlab import Cluster, Nodes, Scenario, generate
from gpuschedlab.errors import TraceError
from gpuschedlab.policies import ALL, Fifo, Srtf, Tiresias
from gpuschedlab.sim.ordered import Ordered
from gpuschedlab.speeds import Delays, default_speeds

JOBS = 120
ORDERED = sorted(name for name, policy in ALL.items() if issubclass(policy, Ordered))


@pytest.fixture(scope="module")
def pool() -> Scenario:
    """Four intervals, with deadlines."""
    trace = generate("pai", days=4, jobs=4 * JOBS, load=2.0, cluster_gpus=32, rng=3)
    trace = trace.with_columns(deadline=pl.col("duration") * 3)
    return Scenario(trace, Cluster.homogeneous(8, 8), delays=Delays(restart=300.0))


def alone(whole: Scenario, first: int, count: int, pace: float) -> Scenario:
    """The same jobs as a scenario of their own."""
    trace = whole.trace[first : first + count]
    trace = trace.with_columns(submit=(trace["submit"] - trace["submit"][0]) * pace)
    return whole.replace(trace=trace, history=None, warm=None, estimator=whole.knowledge)


def assert_same_runs(part: Scenario, scenario: Scenario, policy):
    """Hold all frames of two runs equal."""
    run = part.run(policy)
    expected = scenario.run(policy)
    for name in ("jobs", "allocations", "timeline"):
        assert getattr(run, name).equals(getattr(expected, name)), name


@pytest.mark.parametrize("name", ORDERED)
def test_a_part_runs_as_its_jobs_do_alone(pool, name):
    policy = ALL[name]()
    if name == "lucid":
        policy = policy.with_knobs(profiler_nodes=1)
    for number, pace in ((0, 0.4), (3, 1.7)):
        part = pool.part(number * JOBS, JOBS, pace)
        assert_same_runs(part, alone(pool, number * JOBS, JOBS, pace), policy)


def test_fields_of_a_part_are_those_of_its_jobs_alone(pool):
    part = pool.part(JOBS, JOBS, 0.7).prepared
    expected = alone(pool, JOBS, JOBS, 0.7).prepared
    for fields, others in ((part.job, expected.job), (part.body, expected.body), (part.constant, expected.constant)):
        assert fields.keys() == others.keys()
        for name, values in fields.items():
            assert np.array_equal(values, others[name]), name


def test_a_part_keeps_speeds_types_and_partitions():
    trace = generate("venus", days=2, jobs=2 * JOBS, load=0.8, cluster_gpus=32, rng=1).filter(pl.col("gpus") <= 8)
    wanted = np.where(np.arange(trace.height) % 5 == 0, "V100", None)
    trace = trace.with_columns(gpu_type=pl.Series(wanted, dtype=pl.String))
    cluster = Cluster((Nodes("A100", 2, 8), Nodes("V100", 2, 8)))
    whole = Scenario(trace, cluster, speeds=default_speeds, types="requested", limits=20_000.0)
    rows = trace.height // 2
    assert_same_runs(whole.part(rows, rows, 1.3), alone(whole, rows, rows, 1.3), Tiresias())


def test_a_part_of_a_scenario_with_warm_jobs_begins_empty(pool):
    warm = pool.trace[:50].with_columns(pl.col("submit") - 1e6, job_id=pl.format("w{}", "job_id"))
    whole = pool.replace(warm=warm)
    assert_same_runs(whole.part(JOBS, JOBS), pool.part(JOBS, JOBS), Srtf())


def test_arrivals_that_become_one_are_sorted_again():
    trace = pl.DataFrame({"job_id": ["b", "a"], "submit": [1.0, 1.0 + 2**-52], "gpus": [1, 1], "duration": [9.0, 9.0]})
    whole = Scenario(trace, Cluster.homogeneous(1, 1))
    part = whole.part(0, 2, 1e-320)
    assert part.trace["job_id"].to_list() == ["a", "b"]
    assert_same_runs(part, alone(whole, 0, 2, 1e-320), Fifo())


@pytest.mark.parametrize(
    ("first", "count", "pace"), [(-1, 2, 1.0), (0, 0, 1.0), (0, 9_999, 1.0), (0, 2, 0.0), (0, 2, math.inf)]
)
def test_a_part_that_there_is_not_is_refused(pool, first, count, pace):
    with pytest.raises(TraceError, match="expected one or more rows of the 480 jobs, and a pace above 0"):
        pool.part(first, count, pace)


def test_a_part_whose_jobs_would_come_too_late_is_refused(pool):
    with pytest.raises(TraceError, match="seconds since the trace's start"):
        pool.part(0, JOBS, 1e9)
