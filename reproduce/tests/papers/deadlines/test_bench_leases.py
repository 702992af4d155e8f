"""A round of leases, in small."""

from gpuschedlab.cluster import Cluster
from gpuschedlab.optim import relative_gap
from reproduce.papers.deadlines import leases


def test_a_crowd_is_decided_within_its_gap():
    (first,) = leases.first_round(leases.crowd(40, 14, 3.0, 0), Cluster.homogeneous(7, 8)).rounds.to_dicts()
    assert relative_gap(first["objective"], first["bound"]) < 0.05
