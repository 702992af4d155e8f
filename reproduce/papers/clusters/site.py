"""Seconds of a site's policies: a week of 10,000 jobs on 560 GPUs."""

import math

import numpy as np
import polars as pl
import pytest

from gpuschedlab import Fifo, Kueue, Plan, Scenario, Slurm
from gpuschedlab.papers.clusters.queues import Queue
from gpuschedlab.papers.clusters.schedulers.fairshare import ShareTree
from reproduce.budgets.engine import Case


def week():
    """Trace and cluster."""
    return Case("fifo", 10_000, "70x8", 0.9).arguments()[:2]


@pytest.mark.parametrize(("depth", "tested", "seconds"), [(50, math.inf, 0.35), (math.inf, 500, 0.65)])
def test_planned_backfill(depth, tested, seconds, budget):
    """Of this week, whose queue is longer than on weeks as busy as Venus: those take .17 to .25 and .26 to .34 s."""
    trace, cluster = week()
    scenario, policy = (
        Scenario(trace, cluster),
        Fifo(backfill="plan", depth=depth, plan=Plan(tested=tested)),
    )
    budget(lambda: scenario.run(policy), seconds)


def test_quotas(budget):
    """Ten queues of a cohort that take back what they lent; a round at each arrival and completion."""
    trace, cluster = week()
    queues = tuple(Queue(f"q{i}", "all", ((cluster.gpu_types[0], 56),), reclaim="Any") for i in range(10))
    trace = trace.with_columns(vc=pl.format("q{}", pl.int_range(pl.len()) % 10))
    scenario = Scenario(trace, cluster)
    budget(lambda: scenario.run(Kueue(queues)), 5.0, rounds=3)


def test_fair_share_of_many_users(budget):
    """A week of 300 users in 20 accounts: Fair Tree is recalculated each 300 s, all waiting jobs with it."""
    trace, cluster = week()
    who = np.random.default_rng(0).integers(300, size=trace.height)
    names = {"user": pl.Series([f"u{i}" for i in who]), "account": pl.Series([f"a{i % 20}" for i in who])}
    accounts = tuple((f"a{i}", "", "", 1.0 + i) for i in range(20))
    tree = ShareTree((*accounts, *((f"a{i % 20}", f"u{i}", "", 1.0) for i in range(300))))
    scenario = Scenario(trace.with_columns(**names), cluster)
    budget(lambda: scenario.run(Slurm(tree=tree)), 4.0)
