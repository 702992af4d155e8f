"""The slowest rounds of COpter on a whole trace: where its tail lies."""

import time

import numpy as np

from reproduce.papers.copter import trace

WARM = ("2k", 2)
"""A small set and times 256 GPUs, whose run loads all machine code first: otherwise the first round would be the slowest."""


def measure(data_dir, name: str, scale: int, solver: str) -> dict[str, float]:
    """CPU seconds of a trace's rounds, on so many times 256 GPUs: `p90` and `slowest`."""
    _rounds(data_dir, *WARM, solver)
    seconds = _rounds(data_dir, name, scale, solver)
    return {"p90": float(np.quantile(seconds, 0.9)), "slowest": max(seconds)}


def _rounds(data_dir, name: str, scale: int, solver: str) -> list[float]:
    """CPU seconds of each round."""
    from gpuschedlab.policies import Sia
    from gpuschedlab.sim import simulate
    from reproduce.published.timing import timed

    jobs = trace.workload(data_dir, name)
    cluster = trace.cluster_of(scale)
    table = trace.speeds(data_dir, scale)
    seconds: list[float] = []
    simulate(jobs, cluster, timed(Sia(power=trace.POWER, solver=solver), seconds, time.process_time), speeds=table)
    return seconds
