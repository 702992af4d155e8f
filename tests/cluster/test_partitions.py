"""Partitions and requested GPU types: who may have which nodes, in which order, and who waits for whom."""

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

from gpuschedlab import Allocation, Cluster, Fifo, Nodes, Round, Scenario, Srtf, Tiresias
from gpuschedlab.check import small_trace
from gpuschedlab.check.laws import BOOKS, ENDED, nodes_were_asked_for
from gpuschedlab.errors import ClusterError, PolicyError, TraceError
from gpuschedlab.metrics.fairness import finish_time_fairness_by_type
from gpuschedlab.speeds import default_speeds

TWO = Cluster.parse("1x4:v100@a,1x4:v100@b")


def jobs(*rows, **columns):
    """Trace of rows (submit, GPUs, duration), with columns of its own."""
    submit, gpus, duration = zip(*rows, strict=True)
    frame = {"submit": submit, "gpus": gpus, "duration": duration}
    ids = [f"j{i:03}" for i in range(len(rows))]
    return pl.DataFrame({"job_id": ids} | {n: np.array(v, float) for n, v in frame.items()} | columns)


def test_a_cluster_says_its_partitions_and_reads_them():
    cluster = Cluster((Nodes("v100", 2, 8, ("main", "debug")), Nodes("v100", 4, 8, ("main",)), Nodes("t4", 1, 4)))
    assert str(cluster) == "2x8:v100@debug+main,4x8:v100@main,1x4:t4"
    assert Cluster.parse(str(cluster)) == cluster
    assert cluster.gpu_types == ("v100@debug+main", "v100@main", "t4")
    with pytest.raises(ClusterError, match="expected a name without any of"):
        Nodes("v100", 1, 8, ("a+b",))


def test_jobs_run_in_their_partitions_alone():
    trace = jobs((0, 4, 10), (1, 4, 10), (2, 4, 10), (3, 4, 10), vc=["a", "a", "b", None])
    run = Scenario(trace, TWO).run(Fifo(backfill="none"))
    assert run.jobs["start"].to_list() == [0, 10, 2, 12]
    assert run.jobs["gpu_type"].to_list() == ["v100@a", "v100@a", "v100@b", "v100@b"]


@pytest.mark.parametrize("backfill", ["none", "easy", "plan"])
def test_a_job_that_waits_holds_up_its_own_partition_alone(backfill):
    trace = jobs(
        (0, 2, 100), (1, 4, 10), (2, 2, 500), (3, 3, 100), (4, 4, 10), (5, 1, 50), vc=["a", "a", "a", "b", "b", "b"]
    )
    run = Scenario(trace, TWO).run(Fifo(backfill=backfill))
    # In a: the second waits for the first, and the third would delay it. In b: the sixth passes the fifth if backfill lets it.
    assert run.jobs["start"].to_list() == [0, 100, 110, 3, 103, 113 if backfill == "none" else 5]


def test_each_partition_has_promises_of_its_own():
    """With one promise for the whole cluster, that of a, b would have none, and its large job would wait for both small ones."""
    rows = (0, 2, 100), (0, 2, 100), (1, 4, 10), (1, 4, 10), (2, 2, 500), (2, 2, 500)
    run = Scenario(jobs(*rows, vc=["a", "b"] * 3), TWO).run(Fifo(backfill="easy"))
    assert run.jobs["start"].to_list() == [0, 0, 100, 100, 110, 110]


def test_partitions_that_share_nodes():
    cluster = Cluster.parse("1x4:v100@debug+main,1x4:v100@main")
    trace = jobs((0, 4, 10), (0, 4, 10), (1, 4, 5), (2, 4, 5), vc=["main", "main", "debug", "main"])
    run = Scenario(trace, cluster).run(Fifo(backfill="none"))
    assert run.jobs["start"].to_list() == [0, 0, 10, 10]
    several = trace.with_columns(partitions=pl.Series([["main"], None, ["debug", "main"], ["main"]])).drop("vc")
    assert Scenario(several, cluster).run(Fifo(backfill="none")).jobs["start"].to_list() == [0, 0, 10, 10]


def test_requested_types_bind_in_order_of_preference():
    cluster = Cluster.parse("1x4:k80,1x4:v100,1x4:t4")
    wish = [["t4", "k80"], ["t4", "k80"], ["t4", "k80"], ["v100"], None]
    trace = jobs((0, 4, 10), (1, 4, 10), (2, 4, 3), (3, 4, 10), (4, 4, 10), gpu_types=wish)
    for policy in (Fifo(), Fifo(backfill="easy"), Srtf(), Tiresias()):
        run = Scenario(trace, cluster, types="requested").run(policy)
        assert run.allocations.sort("start", maintain_order=True)["node"].to_list()[:2] == [2, 0], policy
        assert run.jobs["gpu_type"][3] == "v100"
    single = trace.drop("gpu_types").with_columns(gpu_type=pl.Series(["T4", "T4", "k80", "v100", None]))
    run = Scenario(single, cluster, types="requested").run(Fifo())
    assert run.jobs["gpu_type"].to_list() == ["t4", "t4", "k80", "v100", "k80"]


def test_what_the_cluster_lacks_is_counted_at_the_door():
    trace = jobs((0, 1, 1), (0, 1, 1), (0, 1, 1), vc=["a", "c", "c"])
    with pytest.raises(
        ClusterError, match=r"2 of 3 jobs ask for partitions that no node has: c \(2\); expected v100@a, v100@b"
    ):
        Scenario(trace, TWO)
    trace = jobs((0, 1, 1), (0, 1, 1), gpu_types=[["h100", "t4"], ["v100"]])
    with pytest.raises(ClusterError, match=r"1 of 2 jobs ask for gpu types that no node has: h100 or t4 \(1\)"):
        Scenario(trace, Cluster.homogeneous(1, 4), types="requested")
    with pytest.raises(TraceError, match="expected None"):
        Scenario(trace, Cluster.homogeneous(1, 4), types="asked")
    with pytest.raises(ClusterError, match="could never place"):
        Scenario(jobs((0, 8, 1), vc=["a"]), TWO).run(Fifo())


@pytest.mark.parametrize("seed", range(10))
def test_partitions_that_share_nothing_are_clusters_of_their_own(seed):
    """Each partition alone, with its own jobs, gives the same starts, under every backfill and under preemption.

    On one node each: where free GPUs are split over nodes, an event of another partition lets a plan try its nodes once more.
    """
    rng = np.random.default_rng(seed)
    n = 60
    rows = list(zip(np.sort(rng.uniform(0, 400, n)), rng.integers(1, 7, n), rng.integers(5, 120, n), strict=True))
    trace = jobs(*rows, vc=list(rng.choice(["a", "b"], n)))
    whole = Cluster((Nodes("v100", 1, 8, ("a",)), Nodes("v100", 1, 12, ("b",))))
    policies = [Fifo(backfill=name) for name in ("none", "easy", "greedy")]
    policies += [Fifo(backfill="plan", depth=depth) for depth in (2, np.inf)] + [Srtf(), Tiresias()]
    for policy in policies:
        found = Scenario(trace, whole).run(policy).jobs.select("job_id", "start", "end")
        for name, gpus in (("a", 8), ("b", 12)):
            own = trace.filter(vc=name)
            alone = (
                Scenario(own.drop("vc"), Cluster.homogeneous(1, gpus)).run(policy).jobs.select("job_id", "start", "end")
            )
            both = found.filter(pl.col("job_id").is_in(own["job_id"].to_list()))
            assert both.sort("job_id").equals(alone.sort("job_id")), (seed, policy, name)


def test_the_law_is_broken_where_nodes_are_not_those_asked_for():
    trace = jobs((0, 4, 10), (1, 4, 10), vc=["a", "b"], gpu_types=[["v100"], None])
    run = Scenario(trace, TWO, types="requested").run(Fifo())
    assert [law(run, TWO) for law in BOOKS + ENDED] == [None] * 9
    swapped = Cluster.parse("1x4:v100@b,1x4:v100@a")
    assert "held GPUs of node 0, of b, at t=0 s; expected one of its partitions: a" in nodes_were_asked_for(
        run, swapped
    )
    other = Cluster.parse("1x4:t4@a,1x4:v100@b")
    assert "expected one of its gpu_types: v100" in nodes_were_asked_for(run, other)


@dataclass(frozen=True)
class Careless(Round):
    """All GPUs of the first type, whoever asks."""

    on_event = True
    interval = 0.0

    def allocate(self, view):
        """Answer."""
        first = np.arange(len(view)) == 0
        return Allocation(np.zeros(len(view), int), np.where(first, view.gpus, 0.0))


@dataclass(frozen=True)
class Careful(Careless):
    """To each job the GPUs that it asks for, of the first type that it may have."""

    def allocate(self, view):
        """Answer."""
        return Allocation(view.allowed.argmax(axis=1), view.gpus)


def test_a_round_is_held_to_what_jobs_ask_for():
    trace = jobs((0, 2, 10), (1, 2, 10), vc=["b", "a"])
    with pytest.raises(PolicyError, match=r"job j000 is given GPUs of v100@a; expected v100@b, which it asks for"):
        Scenario(trace, TWO).run(Careless())
    assert Scenario(trace, TWO).run(Careful()).jobs["gpu_type"].to_list() == ["v100@b", "v100@a"]
    view = Scenario(trace, TWO).view(Careless(), now=1.0)
    assert view.allowed.tolist() == view.usable().tolist() == [[False, True], [True, False]]
    assert np.isnan(view.rates([0, 1], [1, 1], [2, 2])).tolist() == [[True, False], [False, True]]


def test_fairness_by_type_is_that_of_the_type_whatever_its_partition():
    """The same run where all nodes are in one partition: another name of the type, and the same figures."""
    found = []
    for word in ("3x4:v100", "3x4:v100@main"):
        cluster = Cluster.parse(word)
        trace = small_trace(30, rng=1).with_columns(model=pl.lit("vgg16"), vc=pl.lit("main"))
        scenario = Scenario(trace, cluster, speeds=default_speeds)
        found.append(finish_time_fairness_by_type(scenario.run(Fifo()), scenario.speeds))
    assert found[0].tolist() == found[1].tolist()
    assert np.isfinite(found[0]).all()
