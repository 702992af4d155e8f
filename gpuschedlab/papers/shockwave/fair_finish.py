"""When each job would end with a fair share of the cluster, and how late it is beside that (finish-time fairness, rho)."""

from dataclasses import dataclass, field

import numpy as np

from gpuschedlab.policies.remaining import long_enough

LAST = 0.1
"""Weight of the last estimate of a job's fair end beside the mean of all (artifact)."""


@dataclass
class FairEnds:
    """Fair ends of jobs, by their rows in the trace: the last estimate, since when it holds, and the integral of all before it.

    An estimate is submit + whole x max(1, jobs / GPUs), made whenever jobs come or go. The fair end is the mean of all
    estimates over the time in which they held, but for a tenth, which is the last one.
    """

    last: np.ndarray = field(default_factory=lambda: np.empty(0))
    since: np.ndarray = field(default_factory=lambda: np.empty(0))
    first: np.ndarray = field(default_factory=lambda: np.empty(0))
    integral: np.ndarray = field(default_factory=lambda: np.empty(0))

    def add(self, index: np.ndarray, now: float, estimates: np.ndarray) -> None:
        """Put new estimates (n,) in the place of the last ones."""
        known = len(self.last)
        self.last = long_enough(self.last, index, np.nan)
        self.since = long_enough(self.since, index, now)
        self.first = long_enough(self.first, index, now)
        self.integral = long_enough(self.integral, index)
        del known
        fresh = index[np.isnan(self.last[index])]
        self.first[fresh] = now
        self.since[fresh] = now
        self.last[fresh] = estimates[np.isnan(self.last[index])]
        self.integral[index] += self.last[index] * (now - self.since[index])
        self.since[index] = now
        self.last[index] = estimates

    def of(self, index: np.ndarray, now: float) -> np.ndarray:
        """Fair ends (n,) of jobs that have an estimate."""
        last = self.last[index]
        seconds = now - self.first[index]
        total = self.integral[index] + last * (now - self.since[index])
        mean = np.where(seconds > 0, total / np.where(seconds > 0, seconds, 1.0), last)
        return (1 - LAST) * mean + LAST * last
