"""Clusters: sizes, types, outages, and what is refused."""

import itertools

import pytest

from gpuschedlab.cluster import Cluster, Nodes, Outage
from gpuschedlab.errors import ClusterError


def test_nodes_are_numbered_group_by_group():
    cluster = Cluster((Nodes("a", 2, 4), Nodes("b", 1, 8), Nodes("a", 1, 2)))
    assert cluster.gpu_types == ("a", "b")
    assert cluster.node_type.tolist() == [0, 0, 1, 0]
    assert cluster.node_gpus.tolist() == [4, 4, 8, 2]
    assert cluster.capacity.tolist() == [10, 8]
    assert cluster.total_gpus == 18


def test_parse_reads_what_str_writes():
    cluster = Cluster.parse("6x4:aws, 2x8:dgx")
    assert Cluster.parse(str(cluster)) == cluster


@pytest.mark.parametrize("text", ["", "70", "70x", "x8", "70x8x2", "0x8", "7x0", "7x65"])
def test_a_cluster_that_cannot_be_is_refused(text):
    with pytest.raises(ClusterError, match="expected"):
        Cluster.parse(text)


@pytest.mark.parametrize("outage", [Outage(2, 0, 1), Outage(-1, 0, 1), Outage(0, 5, 5), Outage(0, -1, 5)])
def test_an_impossible_outage_is_refused(outage):
    with pytest.raises(ClusterError, match="expected"):
        Cluster((Nodes("a", 2, 4),), (outage,))


def test_no_groups_is_refused():
    with pytest.raises(ClusterError, match="at least one group"):
        Cluster(())


def test_failures_are_seeded_and_never_overlap_on_a_node():
    make = lambda: Cluster.homogeneous(20, 8).with_failures(1e5, 1e4, until=1e6, rng=3)  # noqa: E731
    assert make() == make()
    assert len(make().events) > 20
    for node in range(20):
        spans = [(e.start, e.end) for e in make().events if e.node == node]
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
    with pytest.raises(ClusterError, match="both > 0"):
        Cluster.homogeneous(1, 1).with_failures(0, 1, 1)
