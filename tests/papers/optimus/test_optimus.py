"""Optimus: its rule against a plain loop, what it knows of remaining work, and jobs worked out by hand."""

import numpy as np
import polars as pl
import pytest

from gpuschedlab.check import check_policy
from gpuschedlab.cluster import Cluster
from gpuschedlab.papers.optimus.policy import Optimus, grow
from gpuschedlab.policies import Pop
from gpuschedlab.sim import Delays, Scenario, simulate
from gpuschedlab.speeds import Speeds
from gpuschedlab.speeds.elapsed import seconds_to, segment_end

CLUSTER = Cluster.homogeneous(2, 2, "gpu")


def table(ends=(3000.0,), **rates) -> Speeds:
    """Models by their rates on 1, 2, ... GPUs, the same in all epochs."""
    rows = [
        {"model": model, "gpu_type": "gpu", "n_gpus": n, "progress": end, "rate": rate}
        for model, paces in rates.items()
        for n, rate in enumerate(paces, 1)
        for end in ends
        if rate
    ]
    return Speeds.from_frame(pl.DataFrame(rows, infer_schema_length=None))


def view_of(speeds, model, *, cluster=CLUSTER, gpus=1.0, estimate=3000.0, **arrays):
    """Waiting jobs of these models (None: rigid), each of 3,000 s on the one GPU that it asks for."""
    n = len(model)
    jobs = {"job_id": [f"j{i}" for i in range(n)], "submit": np.zeros(n), "gpus": np.broadcast_to(gpus, n)}
    jobs |= {"duration": np.full(n, 3000.0), "model": pl.Series(model, dtype=pl.Utf8), "target": np.full(n, 3000.0)}
    scenario = Scenario(pl.DataFrame(jobs), cluster, speeds=speeds)
    return scenario.view(Optimus(), estimate=np.broadcast_to(estimate, n), **arrays)


def given(view, **knobs):
    return Optimus(**knobs).allocate(view).gpus.tolist()


def plain(seconds, room):
    """The artifact's rule on one type and 1, 2, ... GPUs, one at a time, each time looking at all jobs."""
    gpus = [0] * len(seconds)
    for i in range(len(seconds)):
        if room > 0:
            gpus[i] = 1
            room = room - 1
    while room > 0:
        gain = [s[g - 1] - s[g] if 0 < g < len(s) and not np.isnan(s[g]) else 0.0 for s, g in zip(seconds, gpus)]
        best = int(np.argmax(gain))
        if gain[best] <= 0:
            break
        gpus[best] = gpus[best] + 1
        room = room - 1
    return gpus


@pytest.mark.parametrize("seed", range(20))
def test_growing_equals_the_plain_rule(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    most = 9
    room = int(rng.integers(1, 40))
    # Whole seconds, so that there are ties; not always fewer on more GPUs.
    seconds = np.round(rng.uniform(20, 60, (n, 1)) / np.arange(1, most + 1) ** 0.7 + rng.uniform(0, 3, (n, most)))
    for i, limit in enumerate(rng.integers(1, most + 1, n)):
        seconds[i, limit:] = np.nan
    kinds, gpus = grow(seconds[:, None, :], np.arange(1.0, most + 1), np.array([float(room)]), np.full(n, -1))
    assert gpus.tolist() == plain(seconds, room)
    assert not kinds.any()


def test_a_gap_is_crossed_where_each_gpu_saves_most():
    # From 1 GPU: 40 s for one more, or 45 s for three; then the first saves 5 s more on the next, which is too large.
    seconds = np.array([[[100.0, 60.0, 50.0]], [[180.0, np.nan, 45.0]]])
    counts = np.array([1.0, 2.0, 4.0])
    waiting = np.full(2, -1)
    assert grow(seconds, counts, np.array([4.0]), waiting)[1].tolist() == [2, 1]
    assert grow(seconds, counts, np.array([5.0]), waiting)[1].tolist() == [1, 4]


def test_a_job_starts_on_the_fastest_type_and_stays_where_it_is():
    seconds = np.array([[[9.0], [3.0]]] * 3)
    one = np.ones(1)
    room = np.array([1.0, 2.0])
    assert grow(seconds, one, room, np.array([-1, -1, -1]))[0].tolist() == [1, 1, 0]
    assert grow(seconds, one, room, np.array([0, -1, 0]))[0].tolist() == [0, 1, 1]  # the last finds its place taken


def test_more_remaining_work_comes_first():
    speeds = table(m=(1.0, 1.5, 1.8, 2.0))
    view = view_of(speeds, ["m", "m"])
    assert given(view) == [2, 2]
    # 3,000 and 1,000 s left: the third GPU saves 3000 (1/1.5 - 1/1.8) = 333 s, as the second of the other: the first wins
    assert given(view_of(speeds, ["m", "m"], progress=np.array([0.0, 2000.0]))) == [3, 1]
    assert given(view_of(speeds, ["m", "m"], estimate=np.array([1000.0, 3000.0]))) == [1, 3]


def test_a_gpu_that_does_not_help_is_left_free():
    assert given(view_of(table(m=(1.0, 0.9, 5.0)), ["m"])) == [1]
    assert given(view_of(table(m=(1.0, 2.0)), ["m"])) == [2]  # the table ends there


def test_epochs_count_as_done_when_they_begin():
    """Half an epoch counts, or does not: the second job then has one unit of progress left, in its last epoch."""
    speeds = table(ends=(1500.0, 3000.0), m=(1.0, 1.1, 1.15, 1.16), w=(1.0, 1.5, 1.8, 2.0))
    view = view_of(speeds, ["m", "w"], progress=np.array([1490.0, 1510.0]))
    assert given(view) == [1, 3]
    assert given(view, whole_epochs=True) == [3, 1]
    at_end = view_of(speeds, ["m", "w"], progress=np.array([1500.0, 1510.0]))
    assert given(at_end, whole_epochs=True) == [1, 3]  # both in the last epoch


def test_fewest_gpus_are_placed_first_where_most_is_free():
    """The first two stay; the third goes to the empty node, and the last, larger now, to what is left there and to node 0."""
    cluster = Cluster.homogeneous(3, 4, "gpu")
    speeds = table(one=(1.0,), two=(0, 1.0), five=(0, 0, 0, 0, 1.0))
    held = np.array([[0, 0, 2], [1, 1, 2], [3, 0, 2], [3, 1, 2]], float)
    view = view_of(
        speeds,
        ["two", "two", "one", "five"],
        cluster=cluster,
        nodes=held,
    )
    rows = Optimus().allocate(view).nodes
    assert rows.tolist() == [[0, 0, 2], [1, 1, 2], [2, 2, 1], [3, 0, 2], [3, 2, 3]]
    view.up[1] = False  # as for a part that does not have this node
    assert Optimus().allocate(view).nodes[1:3].tolist() == [[2, 2, 1], [1, 2, 2]]


def test_it_can_be_split_into_parts():
    check_policy(Pop(Optimus(interval=300.0), parts=2)).raise_if_failed()


def test_a_job_that_outlived_its_estimate_still_gets_gpus():
    assert given(view_of(table(m=(1.0, 2.0)), ["m"], estimate=np.array([10.0]), progress=np.array([2000.0]))) == [2]


def test_the_estimate_is_of_the_requested_gpus():
    """3,000 s on 2 GPUs are 4,500 s on one: the third GPU saves 1,500 s there, 1,000 s on the first job."""
    speeds = table(m=(1.0, 1.5, 1.8))
    asked = {"gpus": np.array([1.0, 2.0]), "capacity": np.array([3.0])}
    assert given(view_of(speeds, ["m", "m"], **asked)) == [1, 2]
    assert given(view_of(speeds, ["m", "m"], capacity=np.array([3.0]))) == [2, 1]  # a tie goes to the first


def test_rigid_jobs_have_what_they_ask_for_or_nothing():
    speeds = table(m=(1.0, 1.5, 1.8, 2.0))
    rigid = view_of(speeds, [None, "m", None], gpus=np.array([0.5, 1.0, 3.0]))
    assert given(rigid) == [0.5, 3, 0]
    earlier = view_of(speeds, [None, "m", None], gpus=np.array([3.0, 1.0, 1.0]))
    assert given(earlier) == [3, 1, 0]


def test_two_jobs_by_hand():
    """The first ends at 30 + 900 / 1.5 = 630 s; from 660 s on the second has all GPUs instead of two.

    It started at 60 s and has done (660 - 90) 1.5 = 855 of its 3,000; the rest takes 30 + 2145 / 2 = 1102.5 s.
    """
    columns = {"job_id": ["a", "b"], "submit": [0.0, 1.0], "gpus": [1.0, 1.0], "duration": [3000.0, 3000.0]}
    frame = pl.DataFrame(columns | {"model": ["short", "m"]})
    speeds = Speeds.join(table(ends=(900.0,), short=(1.0, 1.5)), table(m=(1.0, 1.5, 1.8, 2.0)))
    run = simulate(frame, CLUSTER, Optimus(), speeds=speeds, delays=Delays(switch=30.0))
    assert run.jobs["end"].to_list() == [630.0, 1762.5]
    assert run.jobs["restarts"].to_list() == [0, 1]


# What it reads


def test_seconds_to_add_up_over_epochs():
    speeds = Speeds.from_frame(
        pl.DataFrame({"model": "m", "gpu_type": "t", "n_gpus": 2, "progress": [10.0, 30.0], "rate": [1.0, 2.0]})
    )
    reach = np.array([0.0, 5.0, 10.0, 20.0, np.inf, 5.0, 5.0])
    model = np.array([0, 0, 0, 0, 0, -1, 0])
    gpus = np.array([2, 2, 2, 2, 2, 2, 3])
    found = seconds_to(speeds, model, reach, np.zeros(7), np.ones(7), gpus)
    np.testing.assert_array_equal(found, [0, 5, 10, 15, 20, np.nan, np.nan])
    np.testing.assert_array_equal(segment_end(speeds, [0, 0, 0, -1], [9.0, 10.0, 99.0, 1.0]), [10, 30, 30, np.nan])
