"""COpter's solver: a linear program by proximal steps, warm from the last one."""

import time
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.sparse as sp

from gpuschedlab.errors import OutOfTime, SolverError
from gpuschedlab.optim.copter.bound import proved_bound
from gpuschedlab.optim.copter.edits import EditedProgram
from gpuschedlab.optim.copter.groups import Grouped, grouped
from gpuschedlab.optim.copter.newton import Newton
from gpuschedlab.optim.copter.rays import no_best, no_point
from gpuschedlab.optim.knapsack import MultipleChoice
from gpuschedlab.optim.program import Program, Solution, unsolvable
from gpuschedlab.optim.sift import Sift
from gpuschedlab.optim.work import Limits
from gpuschedlab.optim.work import steps as work_steps

TOLERANCE = 1e-4
"""Residuals at which a program counts as solved."""

LARGEST, GROWTH = 3e3, 3.0
"""Size of a proximal step at most, and how much larger one is than the one before, if that was solved."""

DOUBTFUL = 3
"""Steps in a row that are not solved after which one asks whether there is any point."""

WITHIN = 0.05
"""Share of the tolerance within which a proximal step is solved."""


@dataclass(frozen=True, eq=False)
class Residuals:
    """How far a proximal step's point and prices are from the optimum.

    Parameters
    ----------
    step : int
        Proximal step, from 1.
    evaluations : float
        Of the dual, until then.
    primal : float
        Largest amount by which a row is broken, over its bound.
    dual : float
        Largest reduced cost that no bound of its variable allows, over the usual cost.
    gap : float
        |objective - bound| / (unit + |objective| + |bound|); the unit is 1, or less where usual costs and variables are.
    """

    step: int
    evaluations: float
    primal: float
    dual: float
    gap: float

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
        Of rounds, whether `prices.search.finished` improves what the shim made whole; it is not in the thesis.

    Differs from the paper in
    -------------------------
    The artifact leaves out its solver (`pylpsparse`). The thesis settles the rows of each step by coordinate descent, one at a
    time; here those of requests are projections, and a Newton step, factorised where the rest are few, takes the place of the
    descent. Step sizes grow, in place of the artifact's constant eta of 1; and what is proved (bound, no point, no best) is said.

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

    takes_edits = True

    def solve(self, program: Program, x0: np.ndarray | None = None, y0: np.ndarray | None = None) -> Solution:
        """Solve a linear program, or an edited one, from a point and prices (of its rows) if there are some.

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
        edited = program if isinstance(program, EditedProgram) else None
        lp = grouped(program) if edited is None else edited.grouped()
        x, y, size = self._start(lp, x0, y0, edited)
        until = start + (np.inf if self.time_limit is None else self.time_limit)
        has_point = partial(self._has_point, program, lp.rows)
        state = _Steps(lp, x, y, size, self.tol, has_point, until, work_steps(self.work, "copter", len(lp.c)))
        status = state.run(self.steps)
        self.trace = state.trace
        if status == "unbounded" and not has_point():
            status = "infeasible"
        if status in ("infeasible", "unbounded"):
            raise unsolvable(program, status)
        if not state.trace:
            raise OutOfTime(
                f"{program.name}: copter made no step in time; give more than time_limit={self.time_limit}."
            )
        x, y = lp.unscaled(state.x, state.y, state.newton.now.price[:-1])
        if edited is None:
            self._last = x, y, state.size
        else:
            edited.x, edited.prices, edited.size = state.x, state.y, state.size
        if self.vertex:
            found = Sift(self.time_limit, self.gap, self.work).solve(edited.program() if edited else program, x, y)
            return replace(
                found, seconds=time.perf_counter() - start, solver=f"copter {len(self.trace)} steps, {found.solver}"
            )
        x = np.clip(x, program.lower, program.upper)
        bound = lp.sign * state.newton.now.proved if state.trace[-1].dual == 0 else proved_bound(program, y)
        seconds = time.perf_counter() - start
        return Solution(
            x, status, program.value(x), bound, seconds, f"copter {len(self.trace)} steps", y, program.shape
        )

    def _round(self, problem: MultipleChoice, x0) -> Solution:
        """Solve a round of choices by its relaxation and the shim."""
        from gpuschedlab.optim.copter.rounds import CopterRounds

        problem = MultipleChoice.of(problem, x0, "in rounds, copter starts from the last one's shares")
        if self.rounds is None:
            self.rounds = CopterRounds(replace(self))
        found = self.rounds.solve(problem)
        self.trace = self.rounds.copter.trace
        return found

    def _start(self, lp: Grouped, x0, y0, edited: EditedProgram | None) -> tuple[np.ndarray, np.ndarray, float]:
        """Point and prices to begin with, and the size of the first step."""
        x, y, size = np.zeros(len(lp.c)), np.zeros(len(lp.rows)), 1.0
        if self.warm and edited is not None:
            x, y, size = edited.x, edited.prices, edited.size
        elif self.warm and self._last is not None:
            last_x, last_y, size = self._last
            if len(last_x) == len(x) and len(last_y) == len(lp.rows) + len(lp.groups):
                x, y = lp.scaled(last_x, last_y)
        x = x if x0 is None else np.asarray(x0, float)[lp.order] / lp.by_column
        y = y if y0 is None else np.asarray(y0, float)[lp.rows] / lp.by_row * lp.sign
        return x, y, max(size / GROWTH, 1.0)

    def _has_point(self, program: Program, rows: np.ndarray) -> bool:
        """Whether any point satisfies all rows: those given may be missed at a cost, of which the least is found to be nothing."""
        program = program.program() if isinstance(program, EditedProgram) else program
        miss = sp.csc_array((np.ones(len(rows)), (rows, np.arange(len(rows)))), (len(program.row_lower), len(rows)))
        n, more = len(program.c), np.zeros(2 * len(rows))
        elastic = Program(
            np.append(np.zeros(n), more + 1), sp.hstack([program.A, miss, -miss]), program.row_lower, program.row_upper,
            np.append(program.lower, more), np.append(program.upper, more + np.inf), name=program.name,
        )  # fmt: skip
        sides = np.concatenate([program.row_lower[rows], program.row_upper[rows]])
        nothing = 1e-7 * max(1.0, np.abs(sides[np.isfinite(sides)]).max(initial=0.0))
        return replace(self, warm=False, vertex=False, tol=1e-9).solve(elastic).bound <= nothing


class _Steps:
    """Proximal steps of one program, and their residuals."""

    def __init__(self, lp: Grouped, x, y, size: float, tol: float, has_point, until: float, most: float):
        y = np.where(((y > 0) & np.isinf(lp.rl)) | ((y < 0) & np.isinf(lp.ru)), 0.0, y)
        self.lp, self.x, self.y, self.size, self.tol, self.until = lp, x, y, size, tol, until
        self.has_point = has_point
        self.newton = Newton(lp, most)
        size_x, self.cost = lp.scales
        self.tau, self.unit = size_x / self.cost, min(1.0, max(size_x * self.cost, 1e-6))
        self.trace: list[Residuals] = []

    def run(self, steps: int) -> str:
        """Step until solved, proved impossible, or out of steps, evaluations or time: the status."""
        newton, refused = self.newton, 0
        for k in range(1, steps + 1):
            if newton.done >= newton.most:
                return "stopped"
            if time.perf_counter() > self.until:
                return "time limit"
            x0, y0 = self.x, self.y
            self.y, solved = newton.step(x0, y0, self.tau * self.size, WITHIN * self.tol)
            self.x = newton.now.x.copy()
            self.trace.append(self._residuals(k))
            if self.trace[-1].worst <= self.tol:
                return "optimal"
            if not solved and any(no_point(newton, ray) for ray in (self.y - y0, self.y)):
                return "infeasible"
            if self.trace[-1].dual > 0 and any(no_best(self.lp, ray) for ray in (self.x - x0, self.x)):
                return "unbounded"
            self.size = min(self.size * GROWTH, LARGEST) if solved else max(self.size / 2, 1e-2)
            refused = 0 if solved else refused + 1
            if refused == DOUBTFUL and not self.has_point():
                return "infeasible"
        return "stopped"

    def _residuals(self, k: int) -> Residuals:
        now, lp = self.newton.now, self.lp
        broken = np.maximum(now.activity - lp.ru, lp.rl - now.activity) / lp.sizes
        gap = abs(now.cost - now.proved) / (self.unit + abs(now.cost) + abs(now.proved))
        return Residuals(k, self.newton.done, float(max(broken.max(initial=0.0), 0.0)), now.worst / self.cost, gap)
