"""3Sigma (Park et al., EuroSys'18): start times by the distribution of runtimes, one program a cycle."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from gpuschedlab.errors import OutOfTime
from gpuschedlab.estimators import History
from gpuschedlab.knobs import Knob
from gpuschedlab.optim import Solution, solve
from gpuschedlab.papers.deadlines.chronus import Gap, Guard, Work
from gpuschedlab.papers.deadlines.leases.program import growing_blocks
from gpuschedlab.papers.deadlines.placing import CHOSEN, MUST, chosen_by_count, placed, proved
from gpuschedlab.papers.deadlines.starts import start_program
from gpuschedlab.sim.policy import Round
from gpuschedlab.sim.rounds.allocation import Allocation
from gpuschedlab.sim.rounds.view import View

SLO = 1000.0
BEST_EFFORT = 25.0
"""Rewards of a job that is in time, and of a best-effort job of one slot (TitanSched)."""


@dataclass(frozen=True)
class ThreeSigma(Round):
    """Choose start times by expected reward; jobs with deadlines are never suspended, best-effort jobs are for them.

    A job that starts at t earns the value of its value table for each deadline, times the probability that it is done by then;
    it holds its GPUs in a later slot with the probability that it still runs. Best-effort jobs earn the more the sooner they
    end. Durations are lognormal around the estimate.

    Differs from the paper in
    -------------------------
    The distribution is one sigma for all jobs, which `fit` takes from the errors of `History` on the last third of the
    history; the paper keeps a histogram for each feature of a job. Rewards, and best effort for late jobs, are those of the
    author's later code. Starts are considered in slots that grow, for the `window` jobs with the least time to spare and as
    many best-effort jobs; GPUs that are left go to other jobs by remaining time. Over-estimates are not handled apart: a job
    that outlives its estimate is expected to go on by the distribution's tail.

    References
    ----------
    Park et al., 3Sigma, EuroSys'18, sections 3 and 4; Gao, PhD thesis, NTU 2025, section 5.4.3.

    Examples
    --------
    >>> ThreeSigma(sigma=0.5).interval
    60
    """

    sigma: Annotated[float, Knob(0, 5, help="of the logarithm of durations over their estimates; 0: exact")] = 0.0
    slot: Annotated[float, Knob(60, 14_400, log=True, unit="s", help="first slots of start times")] = 600
    horizon: Annotated[int, Knob(1, 1000, log=True, help="slots ahead")] = 32
    window: Annotated[int, Knob(1, 1000, log=True, help="jobs of either kind in a program")] = 48
    interval: Annotated[float, Knob(1, 3600, log=True, unit="s", help="between rounds")] = 60
    gap: Gap = 1e-2
    work: Work = 5
    time_limit: Guard = None
    set_aside: ClassVar = (*Round.set_aside, "gap", "work", "time_limit")

    def fit(self, history: pl.DataFrame) -> "ThreeSigma":
        """Return the same `ThreeSigma`, with the spread of the errors that `History` makes on the last third of a history."""
        history = history.sort("submit")
        cut = 2 * history.height // 3
        later = history[cut:]
        if cut == 0 or later.is_empty():
            return self
        predicted = History().fit(history[:cut]).predict(later)
        error = np.log(later["duration"].to_numpy() / predicted)
        return replace(self, sigma=float(np.clip(error.std(), 0, 5)))

    def allocate(self, view: View) -> Allocation:
        """Solve for start times, and return the `Allocation` of those of now."""
        n = len(view)
        if n == 0:
            return Allocation(np.empty(0, np.int64), np.empty(0))
        seconds_left = np.maximum(view.estimate - view.executed, 1.0)
        capacity = float(np.floor(view.capacity).sum())
        in_time = view.now + seconds_left <= np.where(np.isfinite(view.deadlines), view.deadlines, -1).max(axis=1)
        slo = (view.kind > 0) & (in_time | view.running)
        fixed = view.running & slo
        running_best_effort = np.flatnonzero(view.running & ~slo)
        waiting = np.flatnonzero(~view.running)
        chosen = np.zeros(n, bool)
        start_solution = None
        worth = np.zeros(n)
        chosen[running_best_effort] = True
        room = capacity - view.gpus[view.running].sum()
        most_room = room + view.gpus[running_best_effort].sum()  # without a place for any, no plan starts one now
        if (
            self.work
            and slo[waiting].any()
            and view.gpus[waiting].sum() > room
            and view.gpus[waiting].min() <= most_room
        ):
            chosen[running_best_effort] = False
            starts_now, worth[starts_now], start_solution = self._solve(
                view, seconds_left, slo, fixed, running_best_effort, waiting, capacity
            )
            chosen[starts_now] = True
        unchosen = np.flatnonzero(~fixed & ~chosen)
        if start_solution is None or start_solution.status != "optimal":
            unchosen = np.concatenate([unchosen[slo[unchosen]], unchosen[~slo[unchosen]]])
        by_seconds_left = unchosen[np.argsort(seconds_left[unchosen], kind="stable")]
        ahead = capacity - view.gpus[fixed | chosen].sum()
        chosen |= chosen_by_count(by_seconds_left, view.gpus, ahead)
        level = np.where(fixed, MUST, np.where(chosen, CHOSEN, 0))
        served = np.flatnonzero(fixed | chosen)
        answer = placed(view, served[np.argsort(seconds_left[served], kind="stable")], level)
        if start_solution is None:
            return answer
        lost = worth[answer.gpus == 0].sum()  # found no place
        return proved(answer, start_solution.objective - lost, start_solution.bound, start_solution.status, self.gap)

    def _solve(self, view, seconds_left, slo, fixed, running_best_effort, waiting, capacity):
        """Return a tuple: arrays of jobs that start or go on now and of their rewards, and the solver's `Solution`."""
        last_deadline = np.where(np.isfinite(view.deadlines), view.deadlines, 0).max(axis=1)
        spare = last_deadline - view.now - seconds_left
        urgent = waiting[slo[waiting]]
        best_effort = waiting[~slo[waiting]]
        urgent = urgent[np.argsort(spare[urgent], kind="stable")][: self.window]
        best_effort = best_effort[np.argsort((seconds_left * view.gpus)[best_effort], kind="stable")][: self.window]
        jobs = np.concatenate([urgent, best_effort])
        lengths = growing_blocks(self.horizon) * self.slot
        slot_edges = np.cumsum(lengths) - lengths
        reward = self._reward(view, seconds_left, slo, jobs, slot_edges)
        after = slot_edges[None, :] - slot_edges[:, None]  # slot t, seen from a start in slot k
        runs = np.where(
            after[None] >= 0, self._running(np.maximum(after[None], 0), seconds_left[jobs, None, None]), 0.0
        )
        gone = self._running(slot_edges[None, :], seconds_left[view.running, None]) * view.gpus[view.running, None]
        starts_now = fixed[view.running]
        free = np.maximum(capacity - gone[starts_now].sum(axis=0), 0.0)
        keep = self._worth(seconds_left[running_best_effort]) * 1.01  # at a tie, a job goes on
        program = start_program(reward, runs * view.gpus[jobs, None, None], keep, gone[~starts_now], free)
        try:
            start_solution = solve(program, work=self.work, time_limit=self.time_limit, gap=self.gap)
        except OutOfTime as error:  # no point: nothing new starts by plan
            return (
                running_best_effort,
                0.0,
                Solution(np.zeros(0), f"cached, {error.status}", np.nan, np.nan, np.nan, ""),
            )
        starts = start_solution.x[: reward.size].reshape(reward.shape)
        s = starts[:, 0] > 0.5
        y = start_solution.x[reward.size :] > 0.5
        return (
            np.concatenate([jobs[s], running_best_effort[y]]),
            np.concatenate([reward[s, 0], keep[y]]),
            start_solution,
        )

    def _reward(self, view, left, slo, jobs, at):
        """Return an array (n, K) of expected rewards of jobs that start at `at` seconds from now."""
        due = view.deadlines[jobs] - view.now
        step = view.rewards[jobs] - np.append(view.rewards[jobs], np.zeros((len(jobs), 1)), axis=1)[:, 1:]
        done = 1 - self._running(np.maximum(due[:, None, :] - at[:, None], 0), left[jobs, None, None])
        steps = np.where(np.isfinite(due), step, 0.0)
        earned = SLO / 100 * (steps[:, None, :] * done).sum(axis=2)
        return np.where(slo[jobs, None], earned, self._worth(left[jobs, None] + at))

    def _worth(self, seconds):
        """Return the reward, an array, of best effort that ends in so many seconds."""
        return BEST_EFFORT / (1 + seconds / self.slot)

    def _running(self, seconds, left):
        """Return the probability, an array, that a job still runs after so many seconds; one that ends just then is done."""
        if self.sigma == 0:
            return (seconds < left).astype(float)
        from scipy.special import ndtr  # loaded when used: every import would wait for it

        with np.errstate(divide="ignore"):
            return 1 - ndtr(np.log(seconds / left) / self.sigma)
