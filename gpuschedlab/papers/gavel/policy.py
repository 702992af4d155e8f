"""Gavel (Narayanan et al., OSDI'20): shares of time on each GPU type from a linear program, kept by rounds."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from gpuschedlab.knobs import Knob
from gpuschedlab.optim import Session, Solution
from gpuschedlab.papers.gavel import program
from gpuschedlab.papers.gavel.centre import ROOM, bisected, gavel_makespan_centre
from gpuschedlab.policies.remaining import requested_rates, work_left
from gpuschedlab.policies.serving import serve
from gpuschedlab.policies.unchanged import Inputs, in_force
from gpuschedlab.sim.policy import Round
from gpuschedlab.sim.rounds.allocation import Allocation

OBJECTIVES = ("max_sum", "max_min", "water_filling", "finish_time", "makespan", "fifo", "shortest_first")
"""Sum of throughputs; least attained service, once or level by level; worst finish-time fairness; end of the last job; first
come, first served; shortest job first."""


@dataclass(frozen=True)
class Gavel(Round):
    """Run jobs on the GPU types where the whole gains most, in turns.

    A linear program gives X_ij, the share of time that job i should run on type j. Each round, pairs are served in
    the order of X_ij / f_ij, where f_ij is job i's share of the time that jobs have received on type j, as long as
    their GPUs fit (section 5.2); GPUs that are left go to pairs with X_ij = 0. Jobs have the GPUs that they ask for.

    Four switches, which are off, are rules of the round loop of its artifact. With `renewal`, a program waits until so long after
    the last one; the first, which sees the jobs of one instant only, does not count. With `recount`, received time starts anew with
    each program. With `newcomers_wait`, a job waits for the next program, though GPUs may be idle. With `centre`, the makespan is
    bisected to this tolerance, and the shares are the analytic centre of all that reach it. How starts are charged and when a round
    ends is for `LenientRounds` to say.

    Differs from the paper in
    -------------------------
    Each job counts as having received half a round on every type before it starts (artifact), so that f_ij is not 0.
    Jobs do not share GPUs (space sharing, 4.4). The program is solved whenever jobs, GPUs or rates change, and not in
    between, but for `renewal`. Objectives "finish_time", "makespan" and "shortest_first" take the work that is left from the
    estimate of the duration; the time that a job would have had to itself, in the first, is its whole work at its isolated
    throughput. Costs, with or without deadlines, hierarchies of users and weights of jobs are not among the objectives: traces have
    neither prices of GPUs nor weights.

    References
    ----------
    Narayanan et al., Gavel, OSDI'20, sections 3.1, 4.1 to 4.3 and 5.2; objectives of table 1 and appendix A.

    Examples
    --------
    >>> Gavel(objective="max_min").interval
    360.0
    """

    objective: Annotated[str, Knob(choices=OBJECTIVES, help="what the shares are best for")] = "max_sum"
    solver: Annotated[str, Knob(choices=("highs", "mip"), help="who solves the linear program")] = "highs"
    interval: Annotated[float, Knob(1, 36_000, log=True, unit="s", help="between rounds")] = 360.0
    renewal: Annotated[float, Knob(0, 36_000, unit="s", help="least time from one program to the next")] = 0.0
    recount: Annotated[bool, Knob(help="whether each program counts the time received from then on only")] = False
    newcomers_wait: Annotated[bool, Knob(help="whether jobs that no program has seen wait for the next one")] = False
    centre: Annotated[
        float, Knob(0, 1, help="tolerance of the makespan whose shares are in the middle; 0: the program's")
    ] = 0.0
    placement = "pack"
    set_aside: ClassVar = (*Round.set_aside, "solver")

    def begin(self) -> "_Carried":
        """Return the solver and its options, a `_Carried`."""
        # The middle of the optimal face, as an interior point gives it: tied jobs share, where a vertex starves some.
        options = {"method": "ipm", "crossover": False} if self.solver == "highs" else {}
        return _Carried(Session(self.solver, **options))

    def allocate(self, view) -> Allocation:
        """Solve the program, unless it is that of the round before, and return the `Allocation` that serves the pairs by priority."""
        gavel_memory = view.memory
        gavel_memory.catch_up(view, self.interval)
        if len(view.index) == 0:
            return Allocation(np.empty(0, np.int64), np.empty(0))
        stale = gavel_memory.inputs is None or not gavel_memory.inputs.hold(view)
        if stale and view.now >= gavel_memory.planned_at + self.renewal:
            self._plan(view, gavel_memory)
            stale = False
        shares, before = gavel_memory.of_jobs(view.index)
        received = view.seconds_on - before + self.interval / 2
        total_received = gavel_memory.total.copy()
        answer = None if stale else gavel_memory.settled
        pair_order = None
        if answer is None:
            pair_order = serving_order(shares, received / total_received)
            answer = self._serve(view, gavel_memory, pair_order)
        gavel_memory.given = np.bincount(answer.gpu_type[answer.gpus > 0], minlength=len(view.capacity))
        gavel_memory.total += gavel_memory.given * self.interval
        if stale or not in_force(view, answer.gpu_type, answer.gpus) or not gavel_memory.inputs.last(view):
            return answer  # what is not yet in force, or is about to change, is looked at again in the next round
        rounds = np.inf
        if pair_order is not None:
            gained = np.zeros(received.shape)
            gained[answer.gpus > 0, answer.gpu_type[answer.gpus > 0]] = self.interval
            rounds = rounds_in_order(
                pair_order, shares, received, gained, total_received, gavel_memory.given * self.interval
            )
        return replace(answer, wake=view.now + rounds * self.interval) if rounds > 1 else answer

    def _plan(self, view, gavel_memory):
        """Solve the program; if each job has one type, and all fit, received time does not matter: it is settled."""
        throughput = requested_rates(view)
        gavel_memory.inputs = Inputs.of(view, "index", "capacity")
        # The first program sees the jobs of one instant only; the time between two counts from the second on.
        gavel_memory.planned_at = -np.inf if gavel_memory.shares is None else view.now
        gavel_memory.shares, gavel_memory.solution = self._shares(throughput, view, gavel_memory.session)
        gavel_memory.before = np.zeros(throughput.shape)
        if self.recount:
            gavel_memory.before = view.seconds_on.copy()
            gavel_memory.total = np.full(len(view.capacity), len(view.index) * self.interval / 2)
        planned = gavel_memory.shares > 0
        fits_at_once = planned.sum(axis=1).max() <= 1 and (view.gpus @ planned <= view.capacity + 1e-9).all()
        pair_order = serving_order(gavel_memory.shares, np.ones(planned.shape))
        gavel_memory.settled = self._serve(view, gavel_memory, pair_order) if fits_at_once else None

    def _serve(self, view, gavel_memory, order) -> Allocation:
        able = np.nan_to_num(requested_rates(view)) > 0
        if self.newcomers_wait:
            able[~np.isin(view.index, gavel_memory.inputs.seen["index"])] = False
        gpu_type, served_gpus = serve(order, able, view.gpus, view.capacity.astype(float))
        round_solution = gavel_memory.solution
        proved = (
            () if round_solution is None else (round_solution.objective, round_solution.bound, round_solution.status)
        )
        return Allocation(gpu_type, served_gpus, *proved)

    def _shares(self, throughput, view, session):
        """Return a tuple: shares X, an array (n, T), and the solver's `Solution`; None if the objective needs many programs."""
        program_inputs = (throughput, view.gpus, view.capacity)
        if self.objective == "water_filling":
            return program.gavel_water_filling(*program_inputs), None
        if self.objective == "finish_time":
            remaining_work = work_left(view)
            return program.gavel_finish_time(
                *program_inputs, view.age, remaining_work, remaining_work + view.progress
            ), None
        session.update(self._program(program_inputs, view))
        answer = session.solve()
        X = np.clip(answer.x[: throughput.size].reshape(throughput.shape), 0.0, 1.0)
        if self.objective == "makespan" and self.centre > 0:
            return self._centre(program_inputs, work_left(view), X), answer
        return np.round(X, 5), answer

    def _centre(self, asked, left, best):
        """Return an array (n, T), the middle of shares by which the last job ends when a bisection says (`best`: the least)."""
        throughput = np.nan_to_num(asked[0])
        pace = (throughput * best).sum(axis=1)
        can_run = pace > 0
        least = (left[can_run] / pace[can_run]).max(initial=self.interval)
        excess = bisected(least / self.interval, self.centre) * self.interval / least - 1
        return gavel_makespan_centre(*asked, left, best, max(excess, ROOM))

    def _program(self, asked, view):
        """Return the linear `Program` of objectives that need but one."""
        throughput = asked[0]
        if self.objective == "max_min":
            return program.gavel_max_min(*asked)
        if self.objective == "makespan":
            # The end of the last is earliest where the least throughput per work is largest.
            return program.gavel_max_min(throughput / work_left(view)[:, None], *asked[1:], relative=False)
        if self.objective in ("fifo", "shortest_first"):
            # The first counts most, by its throughput over that on its fastest type.
            fastest = np.nanmax(np.nan_to_num(throughput), axis=1, initial=1e-300)
            queue_value = view.submit if self.objective == "fifo" else work_left(view) / np.maximum(fastest, 1e-30)
            ahead = np.argsort(np.lexsort((view.index, queue_value)))
            return program.gavel_max_sum(throughput * ((len(ahead) - ahead) / fastest)[:, None], *asked[1:])
        return program.gavel_max_sum(*asked)


@dataclass
class _Carried:
    """State of Gavel: the solver and its plan, and the time that all jobs ever received on each type."""

    session: Session
    inputs: Inputs | None = None
    planned_at: float = -np.inf
    shares: np.ndarray | None = None
    before: np.ndarray | None = None
    solution: Solution | None = None
    settled: Allocation | None = None
    total: np.ndarray | None = None
    given: np.ndarray | None = None
    seen: int = 0
    at: float = 0.0

    def of_jobs(self, index) -> tuple[np.ndarray, np.ndarray]:
        """Return a tuple of arrays (n, T): shares, and seconds on each type before the program, of these jobs, ascending.

        They are 0 if no program has seen them.
        """
        planned = self.inputs.seen["index"]
        if np.array_equal(planned, index):
            return self.shares, self.before
        has_shares = np.isin(index, planned)
        still_there = np.isin(planned, index)
        shares = np.zeros((len(index), self.shares.shape[1]))
        before = np.zeros_like(shares)
        shares[has_shares] = self.shares[still_there]
        before[has_shares] = self.before[still_there]
        return shares, before

    def catch_up(self, view, interval: float):
        """Count the rounds since the last one, in which jobs went on, and half a round for each job that is new."""
        if self.total is None:
            self.total = np.zeros(len(view.capacity))
            self.given = np.zeros(len(view.capacity), np.int64)
        rounds = round((view.now - self.at) / interval)
        self.total += self.given * (max(rounds - 1, 0) * interval)
        self.given = np.zeros(len(view.capacity), np.int64)
        self.at = view.now
        if len(view.index):
            # The youngest jobs may be gone already: those that came are never fewer than before.
            jobs = max(int(view.index.max()) + 1, self.seen)
            self.total += (jobs - self.seen) * interval / 2
            self.seen = jobs


def serving_order(shares, received) -> np.ndarray:
    """Return an array of pairs (job, type), as job x T + type, in the order of X / f; ties to the larger X, then by type and job.

    `shares` (n, T) are X, `received` (n, T) f, each job's share of the time received on each type.
    """
    T = shares.shape[1]
    priority = np.divide(shares, received, out=shares * 1e9, where=received > 0)
    pair_order = np.lexsort((-shares.T.ravel(), -priority.T.ravel()))  # by type, then job, where all else is equal
    job = pair_order % len(shares)
    kind = pair_order // len(shares)
    return job * T + kind


def rounds_in_order(order, shares, received, gained, total, given) -> float:
    """Rounds for which `serving_order` stays the same, if the same jobs run on: never too many; inf: for good.

    The priorities X total / received of two neighbours in the order meet where a quadratic in the number of rounds is 0; the first
    such meeting counts. Ties that last are no meeting. By job and type (n, T), and by type (T,) for all jobs that ever were: seconds
    received until now, > 0, and gained in each round.
    """
    p = order[:-1]
    q = order[1:]
    T = shares.shape[1]
    X, a, da = shares.ravel(), received.ravel(), gained.ravel()

    def terms(p, q):
        b = total[p % T]
        db = given[p % T]
        return np.array([X[p] * b * a[q], X[p] * (b * da[q] + db * a[q]), X[p] * db * da[q]])

    ours = terms(p, q)
    theirs = terms(q, p)
    tied = (X[p] == X[q]) & (ours == theirs).all(axis=0)
    c0, c1, c2 = ours * (1 - 1e-9) - theirs  # too early rather than late
    inside = c1 * c1 - 4 * c2 * c0
    slope = np.sqrt(np.maximum(inside, 0.0)) - c1
    with np.errstate(divide="ignore", invalid="ignore"):
        meet = np.where((inside >= 0) & (slope > 0), 2 * c0 / slope, np.inf)
    meet = np.where(tied, np.inf, np.where(c0 > 0, meet, 0.0))
    return float(np.floor(meet.min(initial=np.inf)))
