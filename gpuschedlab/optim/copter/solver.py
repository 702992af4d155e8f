"""COpter's solver: a linear program by proximal steps, each by coordinate descent on the dual, warm from the last one."""

import time
from dataclasses import dataclass, replace

import numpy as np

from gpuschedlab.errors import Infeasible, OutOfTime, SolverError
from gpuschedlab.optim.copter import kernels
from gpuschedlab.optim.copter.bound import dual_value, proved_bound, signed
from gpuschedlab.optim.copter.rays import no_best, no_point
from gpuschedlab.optim.copter.scale import Scaled, scale
from gpuschedlab.optim.knapsack import MultipleChoice
from gpuschedlab.optim.program import Program, Solution, unsolvable
from gpuschedlab.optim.work import Limits
from gpuschedlab.optim.work import steps as work_steps

TOLERANCE, ROUNDS = 1e-6, 2e-3
"""Residuals at which a linear program, and a round of choices, count as solved."""

SWEEPS = 400.0
"""Sweeps over the matrix in one proximal step, at most."""


@dataclass(frozen=True, eq=False)
class Residuals:
    """How far a proximal step's point and prices are from the optimum, in the scaled program.

    Parameters
    ----------
    step : int
        Proximal step, from 1.
    sweeps : float
        Entries of the matrix read until then, in multiples of all.
    primal : float
        Largest amount by which a row is broken.
    dual : float
        Largest reduced cost that no bound of its variable allows.
    gap : float
        |objective - bound| / (unit + |objective| + |bound|); the unit is 1, or less where 1 of the program's own is.
    """

    step: int
    sweeps: float
    primal: float
    dual: float
    gap: float

    @property
    def worst(self) -> float:
        """The largest of the three."""
        return max(self.primal, self.dual, self.gap)


@dataclass(eq=False)
class Copter(Limits):
    """Proximal point method with coordinate descent on the dual, for linear programs with bounds of any kind.

    A step moves to the saddle point of the Lagrangian with a quadratic penalty on the distance from the point and the prices
    before. Coordinate descent, which needs no factorisation, settles one row's price after another; rows that stand still are
    left out of most sweeps. The next program of the same shape starts from the last point and prices.

    Parameters
    ----------
    time_limit, gap, work
        As in `work.Limits`; counted are sweeps, and the gap is that of rounds of choices.
    tol : float, optional
        Residuals (`Residuals.worst`) at which a program counts as solved; default: 1e-6, and 2e-3 for rounds of choices.
    steps : int
        Proximal steps at most.
    warm : bool
        Whether the next program starts from the last point and prices.
    size : float
        Size of the first proximal step: large ones are few, and cost more sweeps each.
    balance : bool
        Whether the sizes of the prices' and the point's steps follow how far they moved; otherwise they are the same.

    Differs from the paper in
    -------------------------
    The artifact leaves out its solver (`pylpsparse`). Here the point is eliminated from each step, so that descent is over
    prices alone; rows and columns are equilibrated first; step sizes follow the work of the steps before, in place of the
    artifact's constant eta of 1; and what is proved (bound, no point, no best) is said.

    References
    ----------
    Jayaram Subramanya, PhD thesis, CMU 2025, 4.3.2; Yen et al., NIPS 2015 (sparse linear programming by augmented coordinate
    descent); Rockafellar, SIAM J. Control Optim. 14 (1976); Banjac et al., J. Optim. Theory Appl. 183 (2019), for the rays.

    Examples
    --------
    >>> found = Copter().solve(Program([1.0, 2.0], [[1.0, 1.0]], row_upper=1.0, maximize=True))
    >>> found.x.round(4).tolist(), found.duals.round(4).tolist()
    ([0.0, 1.0], [2.0])
    """

    tol: float | None = None
    steps: int = 3000
    warm: bool = True
    size: float = 1.0
    balance: bool = True

    def __post_init__(self):
        self.trace: list[Residuals] = []
        self.rounds = None
        self._last: tuple[np.ndarray, np.ndarray, float] | None = None

    def solve(self, program: Program, x0: np.ndarray | None = None, y0: np.ndarray | None = None) -> Solution:
        """Solve a linear program, from a point and prices if there are some.

        Raises
        ------
        Infeasible, SolverError
            No point, no best one, or whole variables.
        OutOfTime
            The time limit is over before the first step.
        """
        if isinstance(program, MultipleChoice):
            return self._round(program, x0)
        if program.integrality.any():
            raise SolverError(
                f"{program.name}: found {program.integrality.sum()} whole variables; 'copter' solves linear programs. Relax "
                "it (integrality=False) and round, or use solver 'highs', or MultipleChoice."
            )
        start = time.perf_counter()
        sign = -1.0 if program.maximize else 1.0
        scaled = scale(program.c, program.A, program.row_lower, program.row_upper, program.lower, program.upper, sign)
        x, y, ratio = self._start(scaled, x0, y0)
        until = start + (np.inf if self.time_limit is None else self.time_limit)
        state = _Steps(self, scaled, x, y, ratio, until, work_steps(self.work, "copter", program.A.nnz))
        status = state.run(self.steps)
        self.trace = state.trace
        if status == "unbounded" and not self._has_point(program):
            status = "infeasible"
        if status in ("infeasible", "unbounded"):
            raise unsolvable(program, status)
        if not state.trace:
            raise OutOfTime(
                f"{program.name}: copter made no step in time; give more than time_limit={self.time_limit}."
            )
        self._last = (*scaled.unscaled(state.x, state.y), state.ratio)
        x, y = self._last[:2]
        x = np.clip(x, program.lower, program.upper)
        bound = proved_bound(program, y)
        seconds = time.perf_counter() - start
        return Solution(
            x, status, program.value(x), bound, seconds, f"copter {len(self.trace)} steps", y, program.shape
        )

    def _round(self, problem: MultipleChoice, x0) -> Solution:
        """Solve a round of choices by its relaxation and the shim."""
        from gpuschedlab.optim.copter.rounds import CopterRounds

        problem = MultipleChoice.of(problem, x0, "in rounds, copter starts from the last one's shares")
        if self.rounds is None:
            # Rounds are alike in scale: large steps from the first on, and of the same sizes.
            self.rounds = CopterRounds(replace(self, tol=self.tol or ROUNDS, size=10, balance=False))
        found = self.rounds.solve(problem)
        self.trace = self.rounds.copter.trace
        return found

    def _start(self, scaled: Scaled, x0, y0) -> tuple[np.ndarray, np.ndarray, float]:
        """Point and prices to begin with, and the ratio of their step sizes."""
        m, n = scaled.A.shape
        x, y, ratio = np.zeros(n), np.zeros(m), 1.0
        last = self._last if self.warm else None
        if last is not None and last[0].shape == (n,) and last[1].shape == (m,):
            x, y = last[:2]
        if last is not None:
            ratio = last[2]
        x, y = (x if x0 is None else np.asarray(x0, float)), (y if y0 is None else np.asarray(y0, float))
        x, y = scaled.scaled(x, y)
        return np.clip(x, scaled.low, scaled.high), signed(y, scaled.rl, scaled.ru), ratio

    def _has_point(self, program: Program) -> bool:
        """Whether any point satisfies rows and bounds."""
        try:
            again = replace(self, warm=False, size=1.0, balance=True)
            again.solve(replace(program, c=np.zeros(len(program.c))))
        except Infeasible:
            return False
        return True


class _Steps:
    """Proximal steps of one scaled program, and their residuals."""

    def __init__(self, how: Copter, scaled: Scaled, x, y, ratio: float, until: float, most: float):
        self.scaled, self.x, self.y, self.ratio = scaled, x.copy(), y.copy(), ratio
        self.tol, self.size, self.balance = how.tol or TOLERANCE, how.size, how.balance
        self.until, self.most, self.sweeps = until, most, 0.0
        self.q = scaled.A.T @ self.y
        self.trace: list[Residuals] = []

    def run(self, steps: int) -> str:
        """Step until solved, proved impossible, or out of steps, sweeps or time: the status."""
        reached = 0.1
        for k in range(1, steps + 1):
            if self.sweeps >= self.most:
                return "stopped"
            if time.perf_counter() > self.until:
                return "time limit"
            x0, y0 = self.x, self.y.copy()
            self._step(x0, y0, float(np.clip(min(0.2 * reached, 0.3 / k**1.5), 0.1 * self.tol, 0.1)))
            now = self._residuals(k)
            self.trace.append(now)
            reached = min(now.primal, now.worst)
            if now.worst <= self.tol:
                return "optimal"
            dx, dy = self.x - x0, self.y - y0
            if k % 5 == 0:
                if no_point(self.scaled, dy) or no_point(self.scaled, self.y):
                    return "infeasible"
                if no_best(self.scaled, dx) or no_best(self.scaled, self.x):
                    return "unbounded"
            self._balance(dx, dy, k)
        return "stopped"

    def _step(self, x0, y0, tol: float) -> None:
        """One proximal step to a tolerance; the step sizes follow the work that it takes."""
        s = self.scaled
        ptr, at, val, c, low, high = s.parts
        tau, sigma = self.size / self.ratio, self.size * self.ratio
        rest = (self.y, ptr, at, val, c, low, high, x0, self.q, tau, tol, min(SWEEPS, self.most - self.sweeps))
        left, sweeps = kernels.descend(s.rl, s.ru, y0, sigma, *rest)
        self.q = s.A.T @ self.y
        self.x = np.clip(x0 + tau * (self.q - c), low, high)
        self.sweeps += sweeps
        if left > tol:
            self.size = max(self.size / 2, 1e-3)
        elif sweeps < 0.1 * SWEEPS:
            self.size = min(self.size * 1.5, 1e4)

    def _residuals(self, k: int) -> Residuals:
        s = self.scaled
        rows = s.A @ self.x
        primal = max((rows - s.ru).max(initial=0.0), (s.rl - rows).max(initial=0.0))
        bound, dual = dual_value(self.y, s.c - self.q, s.rl, s.ru, s.low, s.high)
        value = float(s.c @ self.x)
        gap = abs(value - bound) / (s.unit + abs(value) + abs(bound))
        return Residuals(k, self.sweeps, float(primal), dual, gap)

    def _balance(self, dx, dy, k: int) -> None:
        """Let the prices' share of the step follow how far prices and point moved; less and less."""
        far_x, far_y = float(np.linalg.norm(dx)), float(np.linalg.norm(dy))
        if self.balance and far_x > 1e-12 and far_y > 1e-12:
            weight = 0.5 / np.sqrt(k)
            self.ratio = float(np.clip((far_y / far_x) ** weight * self.ratio ** (1 - weight), 1e-3, 1e3))
