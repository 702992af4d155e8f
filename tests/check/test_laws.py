"""Laws of runs: a sound run obeys them, a forged one does not."""

import re
from dataclasses import replace

import polars as pl
import pytest
from dice import Dice, parts

from gpuschedlab import simulate
from gpuschedlab.check import laws, small_trace
from gpuschedlab.check.recount import books_add_up
from gpuschedlab.check.stretches import Stretch, Table
from gpuschedlab.cluster import Cluster, Outage
from gpuschedlab.policies import Srtf
from gpuschedlab.sim import Delays, Scenario
from gpuschedlab.speeds import Speeds

SPEEDS = ["model", "gpu_type", "n_nodes", "n_gpus", "rate"]

CLUSTER = Cluster.homogeneous(3, 4)


@pytest.fixture(scope="module")
def sound():
    jobs = small_trace(40, rng=2).filter(pl.col("gpus") >= 1)
    return simulate(jobs, CLUSTER, Srtf(), delays=Delays(restart=20.0))


def test_a_sound_run_obeys_all_laws(sound):
    every = laws.BOOKS + laws.ENDED
    assert [law(sound, CLUSTER) for law in every] == [None] * len(every)
    assert len(every) == 9
    assert sound.jobs["preemptions"].sum() > 0


def forged(run, frame, **columns):
    return replace(run, **{frame: getattr(run, frame).with_columns(**columns)})


first = pl.int_range(pl.len()) == 0

FORGERIES = {
    "all_finish": [
        ({"end": pl.when(first).then(None).otherwise(pl.col("end"))}, "jobs", "1 of .* never end"),
        ({"start": pl.col("submit") - 1}, "jobs", "expected this order"),
    ],
    "capacity_holds": [({"gpus": 2 * pl.col("gpus")}, "allocations", "node 0 gave .* it has 4")],
    "gpu_time_is_conserved": [
        ({"attained": pl.col("attained") + pl.when(first).then(1.0).otherwise(0.0)}, "jobs", "expected the same"),
        ({"used": pl.col("used") * 1.001}, "timeline", "expected the same"),
        ({"end": pl.col("end") + 1}, "allocations", "expected the same"),
    ],
    "littles_law_holds": [({"waiting": pl.col("waiting") + 1}, "timeline", "expected the same")],
    "times_add_up": [
        ({"queueing": pl.col("queueing") + 1}, "jobs", "waiting . holding"),
        ({"executed": pl.col("executed") + 1, "queueing": pl.col("queueing") - 1}, "jobs", "waiting . holding"),
    ],
    "idle_time_is_left_out": [
        ({"capacity": pl.col("capacity") * 1.001}, "timeline", "from the first submission to the last end"),
    ],
}
CASES = [(law, *case) for law, cases in FORGERIES.items() for case in cases]


@pytest.mark.parametrize(("law", "columns", "frame", "message"), CASES)
def test_each_law_finds_a_forgery(sound, law, columns, frame, message):
    problem = getattr(laws, law)(forged(sound, frame, **columns), CLUSTER)
    assert re.search(message, problem)


def test_gpus_of_a_node_that_is_down_are_found(sound):
    row = sound.allocations.row(0, named=True)
    broken = Cluster(CLUSTER.groups, (Outage(row["node"], row["start"] + 1, row["start"] + 2),))
    assert "the node was down" in laws.capacity_holds(sound, broken)


# --- reservations and bills


@pytest.fixture(scope="module")
def reserving():
    """A run of rounds that reserve GPUs of two types, while nodes fail; what it was made in, and its policy."""
    jobs, cluster, more = parts(3)
    scenario = Scenario(jobs, cluster, **more)
    policy = Dice(3)
    run = scenario.run(policy)
    assert books_add_up(run, scenario, policy) is None
    assert run.pools["gpus"].max() > 1
    assert run.pools["gpu_type"].n_unique() == 2
    return run, scenario, policy


POOLS = {
    "more than there are": ({"gpus": pl.col("gpus") + 6}, "held, reserved or down at t=.*; there are"),
    "never given back": ({"gpus": pl.when(pl.col("gpus") == 0).then(3.0).otherwise("gpus")}, "held, reserved or down"),
}


@pytest.mark.parametrize("name", POOLS)
def test_reservations_that_do_not_fit_are_found(reserving, name):
    run, scenario, policy = reserving
    columns, message = POOLS[name]
    assert re.search(message, books_add_up(forged(run, "pools", **columns), scenario, policy))


def test_a_policy_that_orders_jobs_has_no_reservations(reserving):
    run, scenario, policy = reserving
    assert "Srtf, from t=0 s on, has" in books_add_up(run, scenario, Srtf())
    late = run.pools["time"].max() + 5
    policies = ((0.0, policy), (late, Srtf()))
    assert "reserved as pool at t=" in books_add_up(run, scenario, policies)
    back = run.pools.unique(["name", "gpu_type"], maintain_order=True).with_columns(time=pl.lit(late), gpus=pl.lit(0.0))
    assert books_add_up(replace(run, pools=pl.concat([run.pools, back])), scenario, policies) is None


@pytest.mark.parametrize("wrong", [lambda held: held * 1.001, lambda held: held + 50])
def test_a_wrong_bill_is_found(reserving, wrong, monkeypatch):
    run, scenario, policy = reserving
    real = laws.cost
    monkeypatch.setattr(laws, "cost", lambda run, prices: wrong(real(run, prices)))
    assert "GPU-s are billed at 1.0" in books_add_up(run, scenario, policy)
    # one price for all types, where each has its own
    monkeypatch.setattr(laws, "cost", lambda run, prices: real(run, 1.0))
    assert "are billed at {'slow': 1.0, 'fast': 2.0}" in books_add_up(run, scenario, policy)


@pytest.mark.parametrize(
    ("jobs", "cells", "rate"), [(1, ((0, 4.0),), 4.0), (2, ((0, 4.0),), 2.0), (4, ((0, 4.0),), 1.0)]
)
def test_jobs_of_one_row_share_its_gpus(jobs, cells, rate):
    frame = pl.DataFrame([("m", "t", 1, g, float(g)) for g in (1, 2, 4)], SPEEDS, orient="row")
    stretch = Stretch(0.0, 1.0, False, False, None, None, False, None, cells, ("t",))
    assert Table(Speeds.from_frame(frame), 0).rates(stretch, jobs).tolist() == [rate]
