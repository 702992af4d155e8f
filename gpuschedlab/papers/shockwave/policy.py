"""Shockwave (Zheng et al., NSDI'23): a market for the next rounds, efficient and fair over the whole window."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from gpuschedlab.knobs import Knob
from gpuschedlab.optim import Solution, relative_gap, solve
from gpuschedlab.papers.shockwave.program import shockwave_window
from gpuschedlab.policies.remaining import requested_rates, work_left
from gpuschedlab.policies.serving import serve
from gpuschedlab.sim.policy import Round
from gpuschedlab.sim.rounds.allocation import Allocation


@dataclass(frozen=True)
class Shockwave(Round):
    """Plan how many of the next rounds each job has: fair by Nash social welfare, and without a long last job.

    An integer program (`shockwave_window`) weighs the logarithm of each job's progress by its predicted finish-time
    fairness to the power `fairness`, less `makespan` times the end of the last job. Jobs that have planned rounds left are
    served in the order of what their next round is worth for each GPU; GPUs that are left go to the others. It is solved
    anew when a job has come or gone, and at the end of the window.

    Differs from the paper in
    -------------------------
    The paper decides each job in each round of the window; as the rounds are alike, only their number is decided, and
    whether they can be packed on nodes is left to serving them. The program is relaxed, and its answer
    rounded, unless `whole`. Batch sizes that change as jobs train are
    not forecast by a Bayesian update: work that is left follows from the estimate of the duration. It knows no GPU types
    (Sia thesis, 3.4.3): speeds are those of the fastest type, and a job goes where it was, or where most GPUs are free.
    Restated from the paper; its code needs Gurobi and was not used.

    References
    ----------
    Zheng et al., Shockwave, NSDI'23, sections 5 and 6; (k, lambda) = (10, 0.1), rounds of 360 s: Jayaram Subramanya, PhD
    thesis, CMU 2025, 3.4.3.

    Examples
    --------
    >>> Shockwave(window=10).knobs["makespan"]
    0.1
    """

    fairness: Annotated[float, Knob(0, 20, help="power k of predicted finish-time fairness in a job's weight")] = 10.0
    makespan: Annotated[float, Knob(0, 10, help="weight lambda of the end of the last job")] = 0.1
    window: Annotated[int, Knob(1, 100, log=True, unit="rounds", help="that are planned")] = 20
    whole: Annotated[bool, Knob(help="whether rounds are planned in whole numbers; if not, they are rounded")] = False
    gap: Annotated[float, Knob(1e-9, 0.1, log=True, help="relative gap at which the solver may stop")] = 1e-3
    interval: Annotated[float, Knob(1, 36_000, log=True, unit="s", help="between rounds")] = 360.0
    placement = "pack"
    set_aside: ClassVar = (*Round.set_aside, "gap")

    def begin(self) -> "_Plan":
        """What is carried from round to round."""
        return _Plan()

    def allocate(self, view) -> Allocation:
        """Serve the plan; make it anew where jobs have changed or its window is over."""
        n = len(view.index)
        T = len(view.capacity)
        if n == 0:
            return Allocation(np.empty(0, np.int64), np.empty(0))
        rate = np.nan_to_num(requested_rates(view))
        plan = view.memory
        if not plan.holds(view):
            self._solve(view, rate, plan)
        used = np.where(
            view.running, 1.0, np.maximum(1 - view.restart / self.interval, 0.0)
        )  # one that starts loses time
        worth = (
            plan.gain[np.arange(n), np.minimum(plan.served, plan.gain.shape[1] - 1)] / view.gpus
        )  # of the next round, by GPU
        order = np.lexsort((np.arange(n), -worth * used, plan.served >= plan.rounds))
        held = np.arange(T) == view.gpu_type[:, None]
        types = np.lexsort((np.broadcast_to(-view.capacity, (n, T)), ~held), axis=1)[order]
        pairs = (order[:, None] * T + types).ravel()
        gpu_type, gpus = serve(pairs, rate > 0, view.gpus, view.capacity.astype(float))
        plan.served += gpus > 0
        plan.left -= 1
        return Allocation(gpu_type, gpus, *plan.proved)

    def _solve(self, view, rate, plan) -> None:
        """Plan the rounds of the next window."""
        best = np.maximum(rate.max(axis=1), 1e-300)
        work = work_left(view)
        seconds = work / best
        whole = (view.progress + work) / best
        crowd = np.maximum(1.0, view.contention)
        rho = (view.age + seconds * crowd) / (whole * crowd)
        largest = rho.max() ** self.fairness  # all of the objective is divided by it
        program = shockwave_window(
            done=1 - work / (view.progress + work),
            step=self.interval / whole,
            left=seconds,
            gpus=view.gpus,
            weights=rho**self.fairness / largest,
            capacity=float(view.capacity.sum()),
            rounds=self.window,
            interval=self.interval,
            makespan=self.makespan / largest,
            whole=self.whole,
        )
        found = solve(program, gap=self.gap)
        plan.rounds = np.round(found.x[:-1].reshape(len(rate), -1).sum(axis=1))
        plan.proved = _proved(program, found, plan.rounds, self.gap)
        plan.gain = program.c[:-1].reshape(len(rate), -1)
        plan.served = np.zeros(len(rate), np.int64)
        plan.index = view.index
        plan.capacity = view.capacity
        plan.left = self.window


@dataclass
class _Plan:
    """Rounds of the window that each job has, what each of them is worth, for which jobs and GPUs, and how many are left."""

    index: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    capacity: np.ndarray = field(default_factory=lambda: np.empty(0))
    rounds: np.ndarray = field(default_factory=lambda: np.empty(0))
    gain: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    served: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    proved: tuple[float, float, str] = (np.nan, np.nan, "")
    left: int = 0

    def holds(self, view) -> bool:
        """Whether it was made for the same jobs and GPUs, and its window is not over."""
        same = np.array_equal(self.index, view.index) and np.array_equal(self.capacity, view.capacity)
        return self.left > 0 and same


def _proved(program, found: Solution, rounds, gap: float) -> tuple[float, float, str]:
    """Objective, bound and status of whole rounds; "rounded" where these are not what the relaxed program found, to the gap.

    Rounded up, they may be more than there are GPUs: what is then done of them is not known, nor is its worth.
    """
    planned = (np.arange((len(program.c) - 1) // len(rounds)) < rounds[:, None]).ravel()
    used = program.A[:, :-1] @ planned
    last = max((program.row_lower - used)[1:].max(), 0.0)
    fits = used[0] <= program.row_upper[0] * (1 + 1e-9)
    objective = float(program.c @ np.append(planned, last)) if fits else np.nan
    same = found.status != "optimal" or relative_gap(objective, found.bound) <= gap
    return objective, found.bound, found.status if same else "rounded"
