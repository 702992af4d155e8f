"""Laws of runs: a sound run obeys them, a forged one does not."""

import re
from dataclasses import replace

import polars as pl
import pytest

from gpuschedlab import simulate
from gpuschedlab.check import laws, small_trace
from gpuschedlab.cluster import Cluster, Outage
from gpuschedlab.policies import Srtf
from gpuschedlab.sim import Delays

CLUSTER = Cluster.homogeneous(3, 4)


@pytest.fixture(scope="module")
def sound():
    jobs = small_trace(40, rng=2).filter(pl.col("gpus") >= 1)
    return simulate(jobs, CLUSTER, Srtf(), delays=Delays(restart=20.0))


def test_a_sound_run_obeys_all_laws(sound):
    every = laws.ALWAYS + laws.RIGID
    assert [law(sound, CLUSTER) for law in every] == [None] * len(every)
    assert len(every) == 11
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
    "starts_take_time": [
        ({"restarts": pl.col("restarts") + 1}, "jobs", "expected fewer restarts than these"),
        ({"preemptions": pl.col("restarts") + 1}, "jobs", "one after each stop"),
    ],
    "work_is_done": [
        ({"lost": pl.col("lost") + 1}, "jobs", "duration = held"),
        ({"duration": pl.col("duration") * 1.01}, "jobs", "duration = held"),
    ],
    "requests_are_met": [({"gpus": pl.col("gpus") + 1}, "allocations", "it requested")],
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
