"""State of Shockwave from round to round: the plan of a window, and the needs of jobs as it is made."""

from dataclasses import dataclass, field

import numpy as np

from gpuschedlab.optim import Solution, relative_gap
from gpuschedlab.papers.shockwave.fair_finish import FairEnds
from gpuschedlab.policies.remaining import work_left


@dataclass(frozen=True)
class Needs:
    """Jobs at a round: submission and age, seconds left and in all on their GPUs, share of the work done, and jobs over GPUs."""

    submit: np.ndarray
    age: np.ndarray
    seconds: np.ndarray
    whole: np.ndarray
    done: np.ndarray
    crowd: float

    @classmethod
    def of(cls, view, rate: np.ndarray) -> "Needs":
        """Return the `Needs` of the jobs of a view, by their rates (n, T)."""
        best_rate = np.maximum(rate.max(axis=1), 1e-300)
        work = work_left(view)
        total_work = view.progress + work
        jobs = len(view.index)
        crowd = max(1.0, jobs / max(view.capacity.sum(), 1e-300))
        return cls(view.submit, view.age, work / best_rate, total_work / best_rate, 1 - work / total_work, crowd)

    def rho(self, contention: np.ndarray) -> np.ndarray:
        """Return an array (n,): predicted finish-time fairness if contention stays (n,) the mean of the past."""
        return (self.age + self.seconds * contention) / (self.whole * contention)

    def fair_ends(self) -> np.ndarray:
        """Return an array (n,): estimates of the instants (s) at which jobs would end with their shares of the GPUs since they came."""
        return self.submit + self.whole * self.crowd


@dataclass
class Plan:
    """Rounds of the window that each job has, its weight, the worth of each round, for which jobs and GPUs, and rounds left."""

    index: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    capacity: np.ndarray = field(default_factory=lambda: np.empty(0))
    rounds: np.ndarray = field(default_factory=lambda: np.empty(0))
    weight: np.ndarray = field(default_factory=lambda: np.empty(0))
    gain: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    served: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    proved: tuple[float, float, str] = (np.nan, np.nan, "")
    left: int = 0
    ends: FairEnds = field(default_factory=FairEnds)

    def is_of(self, view) -> bool:
        """Whether it was made for the same jobs and GPUs."""
        return np.array_equal(self.index, view.index) and np.array_equal(self.capacity, view.capacity)

    def begin(self, view, window: int) -> None:
        """Forget the last window, and return nothing; no job has a round in the new one yet."""
        jobs = len(view.index)
        self.index = view.index
        self.capacity = view.capacity
        self.rounds = np.zeros(jobs)
        self.weight = np.zeros(jobs)
        self.gain = np.zeros((jobs, window))
        self.served = np.zeros(jobs, np.int64)
        self.proved = (np.nan, np.nan, "")
        self.left = window


def proved(program, solution: Solution, rounds: np.ndarray, gap: float) -> tuple[float, float, str]:
    """Return a tuple: objective, bound and status of whole rounds; "rounded" if these differ from the relaxed solution, to the gap.

    Rounded up, they may be more than there are GPUs: the part of them that is then done is not known, nor is its worth.
    """
    window = (len(program.c) - 1) // len(rounds)
    planned = (np.arange(window) < rounds[:, None]).ravel()
    used = program.A[:, :-1] @ planned
    last_end = max((program.row_lower - used)[1:].max(), 0.0)
    fits = used[0] <= program.row_upper[0] * (1 + 1e-9)
    objective = float(program.c @ np.append(planned, last_end)) if fits else np.nan
    same = solution.status != "optimal" or relative_gap(objective, solution.bound) <= gap
    return objective, solution.bound, solution.status if same else "rounded"
