"""CPU seconds of an explanation: five causes of a change of the average JCT, over a week of 2,000 jobs."""

from dataclasses import replace

import polars as pl

import gpuschedlab as lab
from gpuschedlab.autosched import why

SECONDS = 2.0


def sides() -> tuple:
    """A week like Venus' and another one, on 16 nodes and on 15, with one knob changed: arrivals, mix, nodes and two knobs."""
    found = []
    for seed, nodes, policy in (
        (0, 16, lab.Tiresias()),
        (1, 15, replace(lab.Tiresias(), pack_limit=0.0, starve_limit=2.0)),
    ):
        trace = lab.generate("venus", days=7, jobs=2_000, load=1.0, cluster_gpus=128, rng=seed).filter(
            pl.col("gpus") <= 64
        )
        found.append((lab.Scenario(trace, lab.Cluster.homogeneous(nodes, 8), delays=lab.Delays(restart=60.0)), policy))
    return tuple(found)


def test_why(budget):
    found = budget(why, SECONDS, setup=sides)
    assert {len(each.causes) for each in found} == {5}
    for each in found:
        assert abs(each.shares.sum() - (each.after - each.before).sum()) < 1e-6
