"""Work: limits that are counted, so that an answer depends neither on the machine nor on what else it does."""

from dataclasses import dataclass

import numpy as np

RATES = {"simplex": 2e8, "ipm": 6e6, "pdlp": 1e8, "highs": 1.5e5, "cbc": 3e5}
RATES |= {"evaluations": 1e8, "prices": 4e7, "labels": 3e7}
"""What a unit of work is: so many steps times the entries that each goes through. Steps are iterations of HiGHS' methods, its and CBC's
nodes, evaluations of a dual, prices tried, and labels (of one entry each). Chosen so that a unit takes about a CPU second (0.3 to 3)
on one core of 2026: rounds of 100 to 2,000 jobs, shards (128/16, 512/64), leases, market-split and knapsack programs."""


def steps(work: float | None, step: str, entries: int) -> float:
    """Steps of a kind that some work pays for, 1 at least; inf without a limit."""
    return np.inf if work is None else max(float(work * RATES[step] // max(entries, 1)), 1.0)


@dataclass(eq=False)
class Limits:
    """When a solver stops."""

    # seconds of each solve, a guard: the best point reached by then is returned, with status ``time limit``
    time_limit: float | None = None
    gap: float = 1e-4  # relative distance between objective and bound at which an integer program counts as solved
    # units of work (`RATES`) of each solve; the best point reached by then is returned, with status ``stopped``
    work: float | None = None
