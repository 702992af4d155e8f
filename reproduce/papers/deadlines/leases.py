"""A round of UniSched: the program of leases to a proven gap, and the placement of the jobs that it chose."""

from itertools import count

import numpy as np
import polars as pl
import pytest

from gpuschedlab.cluster import Cluster
from gpuschedlab.optim import relative_gap
from gpuschedlab.policies import UniSched
from gpuschedlab.sim import simulate
from gpuschedlab.traces import with_deadlines

SIZES = {"960 GPUs": (120, 700, 300, 40, 1.0), "10,000 GPUs": (1250, 7000, 3000, 5, 5.0)}
"""Nodes of 8, jobs with and without deadlines, rounds, and the seconds allowed (p99), placements included."""

GAP = 1e-2


def crowd(slo: int, others: int, slack: float, rng: int | np.random.Generator) -> pl.DataFrame:
    """Jobs that are all there at once, larger and longer than in the Chronus artifact's workloads, so that not all can be in time.

    Parameters
    ----------
    slo, others : int
        Jobs with deadlines (a third of them soft) and best-effort jobs.
    slack : float
        Largest deadline over the duration; the least is 1.1. The less, the more jobs have to run at once.
    rng : int or numpy.random.Generator

    Returns
    -------
    polars.DataFrame
        A trace.

    Examples
    --------
    >>> crowd(3, 1, 5.0, 0)["kind"].to_list()
    ['strict', 'strict', 'soft', 'best_effort']
    """
    rng = np.random.default_rng(rng)
    n = slo + others
    jobs = pl.DataFrame(
        {
            "job_id": [f"{i:05}" for i in range(n)],
            "submit": np.zeros(n),
            "gpus": rng.choice([1.0, 2.0, 4.0, 8.0], n, p=[0.5, 0.1, 0.2, 0.2]),
            "duration": (3600 * rng.lognormal(0.5, 1.3, n).clip(0.5, 100)).round(),
        }
    )
    strict = with_deadlines(jobs, strict=1.0, slack=(1.1, slack), rng=rng)
    soft = with_deadlines(jobs, strict=0.0, soft=1.0, slack=(1.1, slack), rng=rng)
    none = with_deadlines(jobs, strict=0.0)
    return pl.concat([strict[: slo - slo // 3], soft[slo - slo // 3 : slo], none[slo:]])


def first_round(jobs: pl.DataFrame, cluster: Cluster):
    """Run of the round that is decided when all jobs come."""
    return simulate(jobs, cluster, UniSched(profile=0), until=1.0)


@pytest.mark.parametrize("name", SIZES)
def test_round(name, budget):
    nodes, slo, others, rounds, seconds = SIZES[name]
    cluster, seeds = Cluster.homogeneous(nodes, 8), count(-1)  # the first compiles

    def setup():
        seed = max(next(seeds), 0)
        return crowd(slo, others, 1.2 + 3.8 * seed / max(rounds - 1, 1), seed), cluster

    found = budget(first_round, seconds, setup=setup, rounds=rounds, quantile=0.99)
    firsts = (run.rounds.row(0, named=True) for run in found)
    budget.also("gap", max(relative_gap(first["objective"], first["bound"]) for first in firsts), GAP)
