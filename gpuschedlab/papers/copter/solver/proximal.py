"""COpter's solver: a linear program by proximal steps, warm from the last one."""

import time
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from gpuschedlab.errors import OutOfTime, SolverError
from gpuschedlab.optim.programs.knapsack import MultipleChoice
from gpuschedlab.optim.programs.program import Program, Solution, directions, unsolvable
from gpuschedlab.optim.programs.work_limits import Limits
from gpuschedlab.optim.programs.work_limits import steps as work_steps
from gpuschedlab.papers.copter.solver.bound import proved_bound, signed
from gpuschedlab.papers.copter.solver.groups import Grouped, grouped
from gpuschedlab.papers.copter.solver.newton import Newton
from gpuschedlab.papers.copter.solver.sift import Sift

TOLERANCE = 1e-4
"""Residuals at which a program counts as solved."""

LARGEST = 3e3
GROWTH = 3.0
"""Size of a proximal step at most, and how much larger one is than the one before, if that was solved."""

UNSOLVED = 3
ENDLESS = 10
"""Steps in a row that are not solved after which one asks whether there is any point, and steps after which whether any is best."""

WITHIN = 0.05
"""Share of the tolerance within which a proximal step is solved."""


@dataclass(frozen=True, eq=False)
class Residuals:
    """How far a proximal step's point and prices are from the optimum."""

    step: int  # from 1
    evaluations: float  # of the dual, until then
    primal: float  # largest amount by which a row is broken, over its bound, or over the usual one where that is larger
    dual: float  # largest reduced cost that no bound of its variable allows, over the usual cost
    gap: float  # |objective - bound| / max(unit, |objective|, |bound|); the unit is 1, or less where usual costs and variables are

    @property
    def worst(self) -> float:
        """The largest of the three."""
        return max(self.primal, self.dual, self.gap)


@dataclass(eq=False)
class Copter(Limits):
    """Proximal point method for linear programs with bounds of any kind.

    A step moves to the optimum with a quadratic penalty on the distance from the point before. Rows that hold disjoint groups of
    variables (`groups.grouped`) are kept in closed form; the prices of the others are found by Newton's method (`newton.Newton`).
    The next program of the same shape starts from the last point and prices.

    Parameters
    ----------
    time_limit, gap, work
        As in `work.Limits`; counted are evaluations of the dual, and the gap is that of rounds of choices.
    tol : float
        Residuals (`Residuals.worst`) at which a program counts as solved.
    steps : int
        Proximal steps at most.
    warm : bool
        Whether the next program starts from the last point and prices.
    vertex : bool
        Whether the point is moved to a vertex by sifting (`sift.Sift`), which is exact.
    finish : bool
        Of rounds, whether `prices.mckp.finished` improves the whole point of the shim; it is not in the thesis.

    Differs from the paper in
    -------------------------
    The artifact leaves out its solver (`pylpsparse`). The thesis settles the rows of each step by coordinate descent, one at a
    time; here those of requests are projections, and a Newton step, factorised if the rest are few, takes the place of the
    descent. Step sizes grow, in place of the artifact's constant eta of 1; and the proof (bound, no point, no best) is reported.

    References
    ----------
    Jayaram Subramanya, PhD thesis, CMU 2025, 4.3.2; Rockafellar, SIAM J. Control Optim. 14 (1976); Li, Sun & Toh, SIAM J. Optim.
    30 (2020).

    Examples
    --------
    >>> found = Copter().solve(Program([1.0, 2.0], [[1.0, 1.0]], row_upper=1.0, maximize=True))
    >>> found.x.round(4).tolist(), found.duals.round(4).tolist()
    ([0.0, 1.0], [2.0])
    """

    tol: float = TOLERANCE
    steps: int = 300
    warm: bool = True
    vertex: bool = False
    finish: bool = True

    def __post_init__(self):
        self.trace: list[Residuals] = []
        self.rounds = None
        self._last: tuple[np.ndarray, np.ndarray, float] | None = None

    def solve(self, program: Program, x0: np.ndarray | None = None, y0: np.ndarray | None = None) -> Solution:
        """Return the `Solution` of a linear program, from a point and prices (of its rows) if there are some.

        Raises
        ------
        Infeasible, SolverError
            No point, no best one, or whole variables.
        OutOfTime
            The time limit is over before the first step.
        """
        if isinstance(program, MultipleChoice):
            return self._round(program, x0)
        if program.whole:
            raise SolverError(
                f"{program.name}: found {program.integrality.sum()} whole variables; 'copter' solves linear programs. Relax "
                "it (integrality=False) and round, or use solver 'highs', or MultipleChoice."
            )
        start = time.perf_counter()
        lp = grouped(program)
        until = start + (np.inf if self.time_limit is None else self.time_limit)
        state = _Steps(self, program, lp, *self._start(lp, x0, y0), until)
        status = state.run()
        self.trace = state.trace
        if status in ("infeasible", "unbounded"):
            raise unsolvable(program, status)
        if not state.trace:
            raise OutOfTime(f"{program.name}: no step in time; give more than time_limit={self.time_limit}.")
        x, y = lp.unscaled(state.x, state.y, state.newton.now.price)
        self._last = (x, y, state.size)
        solver = f"copter {len(self.trace)} steps"
        if self.vertex:
            sift_solution = Sift(self.time_limit, self.gap, self.work).solve(program, x, y)
            return replace(
                sift_solution, seconds=time.perf_counter() - start, solver=f"{solver}, {sift_solution.solver}"
            )
        x, objective, bound = state.found or state.answer()
        return Solution(x, status, objective, bound, time.perf_counter() - start, solver, y, program.shape)

    def _round(self, problem: MultipleChoice, x0) -> Solution:
        """Return the `Solution` of a round of choices by its relaxation and the shim."""
        from gpuschedlab.papers.copter.solver.rounds import CopterRounds

        self.rounds = self.rounds or CopterRounds(replace(self))
        round_solution = self.rounds.solve(problem, x0)
        self.trace = self.rounds.copter.trace
        return round_solution

    def _start(self, lp: Grouped, x0, y0) -> tuple[np.ndarray, np.ndarray, float]:
        """Return a tuple: point and prices to begin with, arrays, and the size of the first step."""
        x, y, step_size = self._last if self.warm and self._last is not None else (np.empty(0), np.empty(0), 1.0)
        x = x if x0 is None else np.asarray(x0, float)
        y = y if y0 is None else np.asarray(y0, float)
        x = x[lp.order] / lp.by_column if len(x) == len(lp.c) else np.zeros(len(lp.c))
        has_prices = len(y) == len(lp.rows) + len(lp.groups)
        y = y[lp.rows] / lp.by_row * lp.sign if has_prices else np.zeros(len(lp.rows))
        return x, y, max(step_size / GROWTH, 1.0)


class _Steps:
    """Proximal steps of one program, and their residuals."""

    def __init__(self, limits: Copter, program: Program, lp: Grouped, x, y, size: float, until: float):
        self.limits = limits
        self.program = program
        self.lp = lp
        self.x = x
        self.y = signed(y, lp.rl, lp.ru)
        self.size = size
        self.until = until
        self.newton = Newton(lp, work_steps(limits.work, "evaluations", len(lp.c)))
        size_x, self.cost = lp.scales
        self.tau = size_x / self.cost
        self.unit = min(1.0, max(size_x * self.cost, 1e-6))
        self.trace: list[Residuals] = []
        self.found: tuple[np.ndarray, float, float] | None = None  # `answer`, where the residuals are small

    def run(self) -> str:
        """Step until solved, proved impossible, or out of steps, evaluations or time, and return the status, a string."""
        newton = self.newton
        tol = self.limits.tol
        unsolved = 0
        for k in range(1, self.limits.steps + 1):
            if newton.done >= newton.most:
                return "stopped"
            if time.perf_counter() > self.until:
                return "time limit"
            self.y, solved = newton.step(self.x, self.y, self.tau * self.size, WITHIN * tol)
            self.x = newton.now.x.copy()
            self.found = None
            self.trace.append(self._residuals(k))
            if self.trace[-1].worst <= tol:
                self.found = self.answer()
                if self.gap(*self.found[1:]) <= tol:
                    return "optimal"
            self.size = min(self.size * GROWTH, LARGEST) if solved else max(self.size / 2, 1e-2)
            unsolved = 0 if solved else unsolved + 1
            if unsolved == UNSOLVED and not self.has_point():
                return "infeasible"
            if k == ENDLESS and newton.now.worst > 0 and not self.has_best():
                return "unbounded" if self.has_point() else "infeasible"
        return "stopped"

    def has_point(self) -> bool:
        """Whether any point satisfies all rows: those that couple may be missed at a cost, of which the least is found to be nothing."""
        program = self.program
        coupling_rows = self.lp.rows
        miss = sp.csc_array(
            (np.ones(len(coupling_rows)), (coupling_rows, np.arange(len(coupling_rows)))),
            (len(program.row_lower), len(coupling_rows)),
        )
        n = len(program.c)
        more = np.zeros(2 * len(coupling_rows))
        elastic = Program(
            np.append(np.zeros(n), more + 1), sp.hstack([program.A, miss, -miss]), program.row_lower, program.row_upper,
            np.append(program.lower, more), np.append(program.upper, more + np.inf), name=program.name,
        )  # fmt: skip
        sides = np.concatenate([program.row_lower[coupling_rows], program.row_upper[coupling_rows]])
        largest = np.abs(sides[np.isfinite(sides)]).max(initial=0.0)
        return self._closely(elastic).bound <= 1e-7 * max(1.0, largest)

    def has_best(self) -> bool:
        """Whether no direction improves for good."""
        largest_cost = np.abs(self.program.c).max(initial=0.0)
        return abs(self._closely(directions(self.program)).objective) <= 1e-6 * largest_cost

    def _closely(self, program: Program) -> Solution:
        return replace(self.limits, warm=False, vertex=False, tol=1e-9).solve(program)

    def _residuals(self, k: int) -> Residuals:
        dual_answer = self.newton.now
        lp = self.lp
        broken = np.maximum(dual_answer.activity - lp.ru, lp.rl - dual_answer.activity) / lp.sizes
        gap = self.gap(dual_answer.cost, dual_answer.proved)
        return Residuals(
            k, self.newton.done, float(max(broken.max(initial=0.0), 0.0)), dual_answer.worst / self.cost, gap
        )

    def answer(self) -> tuple[np.ndarray, float, float]:
        """Return a tuple: a point within its bounds, its objective, and the bound by the prices.

        The bound is less than the step's if these have a remainder.
        """
        dual_answer = self.newton.now
        lp = self.lp
        program = self.program
        x, y = lp.unscaled(self.x, self.y, dual_answer.price)
        x = np.clip(x, program.lower, program.upper)
        return x, program.value(x), lp.sign * dual_answer.proved if dual_answer.worst == 0 else proved_bound(program, y)

    def gap(self, objective: float, bound: float) -> float:
        """Distance of a bound from an objective, relative to the larger of both and the unit."""
        return abs(objective - bound) / max(self.unit, abs(objective), abs(bound))
