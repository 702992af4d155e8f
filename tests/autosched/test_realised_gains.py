"""What `gpuschedlab tune` says of its switches: realised beside announced, the gain of a loop, and the most that was possible."""

import math

import numpy as np
import polars as pl
import pytest
from small_jobs import ONE, jobs

from gpuschedlab import Cluster, Fifo, Scenario, Sjf, Srtf, Tiresias
from gpuschedlab.autosched import Space, attach
from gpuschedlab.autosched.realised_gains import (
    Promise,
    fastest,
    gain_of_loop,
    loop_in_words,
    most_possible,
    promises_table,
    room_in_words,
)
from gpuschedlab.cli.progress import EVERY, next_line
from gpuschedlab.metrics import PairedRatio
from gpuschedlab.speeds import Speeds

LONG = PairedRatio(1.2, 1.1, 1.3, 900, 90.0)
WORSE = PairedRatio(0.8, 0.7, 0.9, 900, 90.0)
OPEN = PairedRatio(1.05, 0.9, 1.2, 900, 90.0)
SHORT = PairedRatio(1.1, math.nan, math.nan, 40, 3.0)


def random_trace(seed: int, n: int = 60) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    columns = {
        "submit": np.sort(rng.uniform(0, 900, n)),
        "gpus": rng.integers(1, 5, n),
        "duration": rng.exponential(60, n) + 1,
    }
    return pl.DataFrame({"job_id": [f"{i:03}" for i in range(n)], **columns})


@pytest.mark.parametrize("seed", range(6))
def test_no_schedule_gains_more_than_is_possible(seed):
    scenario = Scenario(random_trace(seed), Cluster.homogeneous(2, 4))
    runs = [scenario.run(policy) for policy in (Fifo(), Sjf(), Srtf(), Tiresias())]
    for base in runs:
        most = most_possible(base, None)
        assert all(gain_of_loop(base, other).ratio <= most + 1e-9 for other in runs)
    assert room_in_words(runs[0], None, "fifo") == ""


def test_the_bound_is_reached_where_no_job_waits():
    scenario = Scenario(jobs((0, 1, 10), (100, 1, 20)), ONE)
    run = scenario.run(Fifo())
    assert most_possible(run, None) == 1.0
    assert room_in_words(run, None, "default").startswith("This trace is too small for its cluster to gain anything")
    waits = Scenario(jobs((0, 1, 10), (0, 1, 10)), ONE).run(Fifo())
    assert most_possible(waits, None) == 1.5, "30 s of JCT, 20 s of run time"


def test_the_bound_knows_the_speeds():
    def table(rate: float, relative: bool = True) -> Speeds:
        rows = pl.DataFrame({"model": ["m"], "gpu_type": ["gpu"], "n_nodes": [1], "n_gpus": [1], "rate": [rate]})
        return Speeds.from_frame(rows, relative=relative)

    run = Scenario(jobs((0, 1, 10)), ONE).run(Fifo())
    assert fastest(None) == 1.0
    assert fastest(table(0.5)) == 1.0
    assert most_possible(run, table(3.0)) == 3.0
    assert math.isnan(most_possible(run, table(3.0, relative=False)))


def test_each_switch_stands_beside_what_came_of_it():
    made = [
        Promise("search", 3600.0, 1.18, 1.05, 1.3, LONG),
        Promise("search", 7200.0, 1.05, math.nan, math.nan, WORSE),
        Promise("selftune", 9000.0, 1.02, 1.0, 1.04, OPEN),
        Promise("kept", 9000.0, 1.5, 1.4, 1.6, None),
    ]
    lines = promises_table(made, "jct").splitlines()
    assert lines[0].split("  ")[0] == "method"
    assert [word in lines[1] for word in ("1.0", "1.18x", "1.05 to 1.30", "1.20x", "1.10 to 1.30")] == [True] * 5
    assert "one future" in lines[2]
    assert "not played again" in lines[4]
    assert "1 surely better, 1 surely worse, 1 undecided" in lines[-1]
    assert "3 switches were announced as 1.08 times each and came to 1.00 times" in lines[-1]
    assert promises_table([], "jct") == ""
    assert made[3].record() == {"at": 9000.0, "announced": 1.5, "announced_low": 1.4, "announced_high": 1.6}
    assert made[1].record()["announced_low"] is None


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        (LONG, "1.20 times sooner than under default (95 %: 1.10 to 1.30): better."),
        (WORSE, "1.25 times later than under default (95 %: 0.70 to 0.90): worse."),
        (OPEN, "(95 %: 0.90 to 1.20): undecided."),
        (SHORT, "too short to tell: its 40 jobs span 3 times over which waits are alike; an interval needs 30."),
        (PairedRatio(1.0, 1.0, 1.0, 9, 1.0), "the jobs end as under default."),
    ],
)
def test_the_gain_of_a_loop_in_words(gain, words):
    assert words in loop_in_words("search", "default", gain)


def test_a_promise_is_played_on_from_its_switch():
    """Six hours in which many short jobs come behind long ones: a loop that may search switches, and each switch is played both ways."""
    rng = np.random.default_rng(4)
    n = 240
    columns = {
        "submit": np.sort(rng.uniform(0, 21_600, n)),
        "gpus": rng.integers(1, 9, n),
        "duration": rng.lognormal(6.0, 1.6, n),
    }
    trace = pl.DataFrame({"job_id": [f"{i:03}" for i in range(n)], **columns})
    scenario = Scenario(trace, Cluster.homogeneous(2, 8))
    policy = Tiresias()
    simulation = scenario.simulation(policy)
    loop = attach("optimal", simulation, space=Space(scenario.fitted(policy)))
    decisions = [decision for decision in loop.run(21_600.0) if decision.switched]
    assert decisions
    promise = Promise.of("optimal", decisions[0])
    assert promise.announced == decisions[0].gain
    assert promise.realised.ratio > 0
    assert promise.realised == decisions[0].realised


def test_a_phase_of_an_hour_has_few_lines_in_a_file():
    instants = [EVERY]
    while instants[-1] < 3600:
        instants.append(next_line(0.0, instants[-1]))
    assert len(instants) - 1 <= 10
