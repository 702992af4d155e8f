"""Numbers that are none, and instants that coincide but for rounding."""

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

from gpuschedlab import Cluster, Ordered, Scenario, Simulation, Tiresias, simulate
from gpuschedlab.check import small_trace
from gpuschedlab.errors import PolicyError


def jobs(*rows) -> pl.DataFrame:
    """Jobs from rows of submit (s), GPUs, duration (s)."""
    frame = pl.DataFrame(rows, schema=["submit", "gpus", "duration"], orient="row").cast(pl.Float64)
    return frame.with_columns(job_id=pl.format("j{}", pl.int_range(pl.len())))


@dataclass(frozen=True)
class Impatient(Ordered):
    """GPUs over the time since submission, which is 0 at first."""

    preemptive = True

    @staticmethod
    def key(now, job, knobs):
        return -job.gpus / (now - job.submit)


@dataclass(frozen=True)
class Forgetful(Ordered):
    """Does not know when its key changes."""

    preemptive = True
    moving = "none"

    @staticmethod
    def key(now, job, knobs):
        return job.attained

    @staticmethod
    def change(now, job, knobs):
        return np.nan


@dataclass(frozen=True)
class Fenced(Ordered):
    """A gate that is no number."""

    preemptive = True
    fraction = 0.5

    @staticmethod
    def key(now, job, knobs):
        return job.submit

    @staticmethod
    def gate(now, job, knobs):
        return np.nan


@dataclass(frozen=True)
class Asserting(Ordered):
    """Asserts something of a job."""

    @staticmethod
    def key(now, job, knobs):
        assert job.gpus < 8
        return job.submit


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (Impatient(), "Impatient.key gave job job-000 at t=.* s a value that is not finite; expected a finite number"),
        (Forgetful(), "Forgetful.change gave job job-000 at t=.* s a value that is no number; expected an instant"),
        (Fenced(), "Fenced.gate gave job .* at t=.* s a value that is no number; expected a number"),
        (Asserting(), "Asserting.key has a raise or assert statement, which compiled code cannot report"),
    ],
)
def test_a_policy_whose_numbers_are_none_is_named(policy, words):
    with pytest.raises(PolicyError, match=words):
        simulate(small_trace(40), Cluster.homogeneous(5, 4), policy)


def test_a_switch_to_such_a_policy_is_refused():
    simulation = Simulation(Scenario(small_trace(40), Cluster.homogeneous(1, 8)), Tiresias())
    simulation.advance(500.0)
    with pytest.raises(PolicyError, match="Forgetful.change gave job"):
        simulation.switch(Forgetful())


def test_jobs_that_end_at_the_same_instant_end_before_its_decision():
    """The sixth and seventh job end at 52 s in exact arithmetic; an ulp apart, one was preempted at the other's end."""
    trace = jobs((12, 4, 3), (13, 4, 5), (18, 3, 7), (19, 4, 4), (20, 1, 21), (30, 1, 21), (30, 3, 7))
    run = simulate(trace, Cluster.homogeneous(1, 4), Tiresias(queues=2, thresholds=(20.0,)))
    assert run.jobs["end"][-2:].to_list() == [52.0, 52.0]


@pytest.mark.parametrize("unit", [1.0, 0.1, 1 / 3, 7e5])
def test_the_unit_of_time_changes_no_decision(unit):
    """Durations and thresholds are whole multiples of a unit that floating point may not hold: all decisions are the same."""
    rng = np.random.default_rng(0)
    rows = [(int(rng.integers(0, 40)), int(rng.integers(1, 5)), int(rng.integers(1, 25))) for _ in range(60)]
    policy = Tiresias(queues=2, thresholds=(20.0,), starve_limit=0.0)
    plain = simulate(jobs(*sorted(rows)), Cluster.homogeneous(2, 4), policy)
    scaled = jobs(*[(s * unit, g, d * unit) for s, g, d in sorted(rows)])
    slower = Tiresias(queues=2, thresholds=(20.0 * unit,), starve_limit=0.0)
    found = simulate(scaled, Cluster.homogeneous(2, 4), slower)
    assert found.jobs["end"].to_numpy() == pytest.approx(plain.jobs["end"].to_numpy() * unit, rel=1e-9)
    assert found.jobs["preemptions"].to_list() == plain.jobs["preemptions"].to_list()
