"""Shockwave (Zheng et al., NSDI'23): a market for the next rounds, efficient and fair over the whole window."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from gpuschedlab.knobs import Knob
from gpuschedlab.optim import solve
from gpuschedlab.papers.shockwave.plan import Needs, Plan, proved
from gpuschedlab.papers.shockwave.program import ORIGIN, shockwave_window
from gpuschedlab.papers.shockwave.turns import Turn, order_of_turns, turns_of
from gpuschedlab.policies.remaining import requested_rates
from gpuschedlab.policies.serving import serve
from gpuschedlab.sim.policy import Round
from gpuschedlab.sim.rounds.allocation import Allocation

FAIR_ENDS = ("contention", "estimates")
"""What a job's finish-time fairness is measured by: its mean contention until now; the mean of all estimates of its fair end."""


@dataclass(frozen=True)
class Shockwave(Round):
    """Plan how many of the next rounds each job has: fair by Nash social welfare, and without a long last job.

    An integer program (`shockwave_window`) weighs the logarithm of each job's progress by its predicted finish-time
    fairness to the power `fairness`, less `makespan` times the end of the last job. It is solved anew when a job has come or gone,
    after `replan` rounds, and at the end of the window.

    In each round, jobs whose planned rounds are as many as are left of the window come first: a round later it would be too late. Then
    come the others that have planned rounds left, by their weight for each planned round and GPU. GPUs that are left go to the
    jobs that need the longest.

    Differs from the paper in
    -------------------------
    The paper decides each job in each round of the window; as the rounds are alike, only their number is decided, and
    whether they can be packed on nodes is left to serving them. Which rounds they are is decided by the order above, not by a
    program: among jobs of one GPU no planned round is lost, and the turns are nearly as early as the program's. The program is relaxed, and
    its answer rounded, unless `whole`. Batch sizes that change as jobs train are not forecast by a Bayesian update: work that is
    left follows from the estimate of the duration. It knows no GPU types (Sia thesis, 3.4.3): speeds are those of the fastest
    type, and a job goes where it was, or where most GPUs are free. Restated from the paper; its code needs Gurobi and was not used.
    Its artifact differs from the paper in turn: the switches `fair_end`, `end_late_first`, `second`, `origin` and `replan` are its rules.

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
    makespan: Annotated[float, Knob(0, 1000, help="weight lambda of the end of the last job")] = 0.1
    window: Annotated[int, Knob(1, 100, log=True, unit="rounds", help="that are planned")] = 20
    whole: Annotated[bool, Knob(help="whether rounds are planned in whole numbers; if not, they are rounded")] = False
    keep_rounds: Annotated[
        bool, Knob(help="whether jobs get the rounds that are planned for them; if not, the next round's worth decides")
    ] = True
    replan: Annotated[int, Knob(1, 100, log=True, unit="rounds", help="after which the plan is made anew")] = 100
    fair_end: Annotated[str, Knob(choices=FAIR_ENDS, help="by what finish-time fairness is measured")] = "contention"
    end_late_first: Annotated[bool, Knob(help="whether late jobs that one round would end come first")] = False
    second: Annotated[
        float, Knob(0, 1e6, unit="s", help="in which the end of the last job is measured; 0: the longest job left")
    ] = 0.0
    origin: Annotated[float, Knob(1e-9, 0.2, log=True, help="share of its work that a job counts as having done")] = (
        ORIGIN
    )
    gap: Annotated[float, Knob(1e-9, 0.1, log=True, help="relative gap at which the solver may stop")] = 1e-3
    interval: Annotated[float, Knob(1, 36_000, log=True, unit="s", help="between rounds")] = 360.0
    placement = "pack"
    set_aside: ClassVar = (*Round.set_aside, "gap")

    def begin(self) -> Plan:
        """Return the state that is carried from round to round, a `Plan`."""
        return Plan()

    def allocate(self, view) -> Allocation:
        """Return the `Allocation` that serves the plan. It is made anew if jobs have changed, or when its time is over."""
        n = len(view.index)
        T = len(view.capacity)
        if n == 0:
            return Allocation(np.empty(0, np.int64), np.empty(0))
        rate = np.nan_to_num(requested_rates(view))
        plan = view.memory
        needs = Needs.of(view, rate)
        changed = not plan.is_of(view)
        if changed and self.fair_end == "estimates":
            plan.ends.add(view.index, view.now, needs.fair_ends())
        if changed or plan.left <= max(self.window - self.replan, 0):
            self._solve(view, needs, plan)
        turn = turns_of(plan.rounds - plan.served, plan.left)
        if self.keep_rounds:
            round_worth = plan.weight / np.maximum(plan.rounds, 1.0) / view.gpus
            turn_order = order_of_turns(turn, round_worth, needs.seconds)
        else:
            turn_order = self._by_worth(view, plan)
        on_own_type = np.arange(T) == view.gpu_type[:, None]
        types = np.lexsort((np.broadcast_to(-view.capacity, (n, T)), ~on_own_type), axis=1)[turn_order]
        pairs = (turn_order[:, None] * T + types).ravel()
        gpu_type, gpus = serve(pairs, rate > 0, view.gpus, view.capacity.astype(float))
        served = gpus > 0
        if self.keep_rounds:
            served &= turn < Turn.SPARE
        plan.served += served
        plan.left -= 1
        return Allocation(gpu_type, gpus, *plan.proved)

    def _by_worth(self, view, plan) -> np.ndarray:
        """Return an array (n,): order of jobs by the worth of their next round per GPU.

        First are those that have planned rounds left.
        """
        next_round = np.minimum(plan.served, plan.gain.shape[1] - 1)
        worth = plan.gain[np.arange(len(next_round)), next_round] / view.gpus
        lost = np.minimum(view.restart / self.interval, 1.0)  # a job that starts loses time
        worth = np.where(view.running, worth, worth * (1 - lost))
        return np.lexsort((np.arange(len(next_round)), -worth, plan.served >= plan.rounds))

    def _solve(self, view, needs, plan) -> None:
        """Plan the rounds of the next window."""
        if self.fair_end == "estimates":
            rho = (view.now + needs.seconds * needs.crowd) / plan.ends.ends(view.index, view.now)
        else:
            rho = needs.rho(np.maximum(1.0, view.contention))
        plan.begin(view, self.window)
        first_served = np.zeros(len(rho), bool)
        if self.end_late_first:
            first_served = (rho > 1) & (needs.seconds < self.interval)
        plan.rounds[first_served] = 1
        plan.weight[first_served] = np.inf
        later_jobs = np.flatnonzero(~first_served)
        if len(later_jobs) == 0:
            return
        largest = rho[later_jobs].max() ** self.fairness  # all of the objective is divided by it
        longest = needs.seconds[later_jobs].max()
        unit = self.second if self.second > 0 else longest
        promised_gpus = view.gpus[first_served].sum() / self.window
        program = shockwave_window(
            done=needs.done[later_jobs],
            step=self.interval / needs.whole[later_jobs],
            left=needs.seconds[later_jobs],
            gpus=view.gpus[later_jobs],
            weights=rho[later_jobs] ** self.fairness / largest,
            capacity=max(view.capacity.sum() - promised_gpus, 0.0),
            rounds=self.window,
            interval=self.interval,
            makespan=self.makespan * longest / unit / largest,
            whole=self.whole,
            origin=self.origin,
        )
        solution = solve(program, gap=self.gap)
        shares = solution.x[:-1].reshape(len(later_jobs), -1)
        rounds = np.round(shares.sum(axis=1))
        plan.rounds[later_jobs] = rounds
        plan.weight[later_jobs] = rho[later_jobs] ** self.fairness / largest
        plan.gain[later_jobs] = program.c[:-1].reshape(len(later_jobs), -1)
        plan.proved = proved(program, solution, rounds, self.gap)
