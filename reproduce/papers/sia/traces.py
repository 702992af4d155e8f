"""Whole traces under Sia: the workloads of its artifact, with our solver and with HiGHS. Reads reference data."""

import os
import time
from itertools import cycle

import pytest

from gpuschedlab.policies import Sia
from gpuschedlab.sim import simulate
from reproduce.papers.sia import workloads
from reproduce.published import DATA
from reproduce.published.data import read_data

SHARE = 0.1
"""Of the seconds that the same workload takes where HiGHS solves the rounds."""

LARGE = ("scale/scale_32x", 1, 32)
"""The workload on 2,048 GPUs, and how many of the usual clusters these are."""


def arguments(name: str, number: int, times: int = 1) -> tuple:
    """Trace, cluster and speeds of a workload."""
    data = os.environ.get(DATA)
    form = workloads.adaptive(data, "typed", workloads.workload(data, name, number))
    return workloads.workload_trace(form), workloads.cluster("typed", times), form.speeds


def run(trace, cluster, speeds, solver="prices"):
    """Simulate; returns the trace."""
    simulate(trace, cluster, Sia(solver=solver), speeds=speeds)
    return trace


@pytest.mark.parametrize("name", ["philly", "saturn"])
def test_workloads_of_160_jobs(name, budget):
    """All workloads of a set: the slowest counts; HiGHS solves the last."""
    held = read_data(os.environ.get(DATA), "reference/sia_workloads.parquet").filter(set=name)["idx"].unique().sort()
    each = cycle([arguments(name, number) for number in held])
    budget(run, 1.0, setup=lambda: next(each), rounds=len(held), quantile=1.0)
    if budget.benchmark.stats is not None:
        last = arguments(name, held[-1])
        begin = time.process_time()
        run(*last, "highs")
        highs = time.process_time() - begin
        budget.also("median over HiGHS' seconds", budget.benchmark.stats.stats.median / highs, SHARE)


def test_workload_on_2048_gpus(budget):
    large = arguments(*LARGE)
    budget(run, 10.0, setup=lambda: large, rounds=1, warmup=0)
