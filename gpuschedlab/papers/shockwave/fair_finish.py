"""How late each job would end beside its fair end: finish-time fairness, rho, as Shockwave's artifact predicts it."""

from dataclasses import dataclass, field

import numpy as np

from gpuschedlab.policies.remaining import long_enough

LAST = 0.1
"""Weight of the last estimate of a fair end beside the mean of all (artifact)."""


@dataclass
class FairEnds:
    """Fair ends of jobs (s), by their rows in the trace: the last estimate, when it and the first were made, and their integral.

    An estimate is the end of a job that has its share of the GPUs from its submission on: submit + whole x max(1, jobs / GPUs). A
    new one is made whenever jobs or GPUs come or go. The fair end is the mean of all, each by the time for which it held, but for a
    tenth, which is the last one.
    """

    last: np.ndarray = field(default_factory=lambda: np.empty(0))
    since: np.ndarray = field(default_factory=lambda: np.empty(0))
    first: np.ndarray = field(default_factory=lambda: np.empty(0))
    integral: np.ndarray = field(default_factory=lambda: np.empty(0))

    def add(self, index: np.ndarray, now: float, estimates: np.ndarray) -> None:
        """Put new estimates (n,) in the place of the last ones; return nothing."""
        self.last = long_enough(self.last, index, np.nan)
        self.since = long_enough(self.since, index)
        self.first = long_enough(self.first, index)
        self.integral = long_enough(self.integral, index)
        new_jobs = index[np.isnan(self.last[index])]
        self.first[new_jobs] = now
        self.since[new_jobs] = now
        self.last[new_jobs] = 0.0
        self.integral[index] += self.last[index] * (now - self.since[index])
        self.since[index] = now
        self.last[index] = estimates

    def ends(self, index: np.ndarray, now: float) -> np.ndarray:
        """Return an array (n,) of the fair ends of jobs that have an estimate."""
        last_estimate = self.last[index]
        seconds = now - self.first[index]
        total_estimate = self.integral[index] + last_estimate * (now - self.since[index])
        has_held = seconds > 0
        mean = np.where(has_held, total_estimate / np.where(has_held, seconds, 1.0), last_estimate)
        return (1 - LAST) * mean + LAST * last_estimate
