"""One proximal step: Newton's method on the prices of the coupling rows."""

import numpy as np

from gpuschedlab.optim.copter import kernels
from gpuschedlab.optim.copter.groups import Grouped

DENSE = 400
"""Priced rows up to which a step is factorised; beyond, it is found by conjugate gradients."""

TRIALS, REFUSALS = 40, 20
"""Newton steps of one proximal step, and trials of one of them, at most."""


class Answer:
    """The point of some prices, with what the compiled code says of it."""

    def __init__(self, lp: Grouped):
        n, groups = len(lp.c), len(lp.room)
        self.x, self.inside = np.zeros(n), np.empty(n, np.int64)
        self.count, self.tight, self.price = np.zeros(groups, np.int64), np.zeros(groups, bool), np.zeros(groups)
        self.activity, self.dual, self.cost, self.proved, self.worst = np.zeros(len(lp.rl)), 0.0, 0.0, 0.0, 0.0


class Newton:
    """Semismooth Newton on the dual of a proximal step (Li, Sun & Toh, SIAM J. Optim. 30 (2020)).

    Parameters
    ----------
    lp : Grouped
    most : float
        Evaluations at most; products with the curvature count as the share of the columns that they touch.
    """

    def __init__(self, lp: Grouped, most: float = np.inf):
        self.lp, self.most, self.done = lp, most, 0.0
        self.now, self.spare = Answer(lp), Answer(lp)
        self.has_low, self.has_high = np.isfinite(lp.rl), np.isfinite(lp.ru)
        self._low, self._high = np.where(self.has_low, lp.rl, 0.0), np.where(self.has_high, lp.ru, 0.0)
        mean = max(len(lp.c) / max(len(lp.groups), 1), 1.0) if len(lp.groups) else 1.0
        self.floor = 1e-2 * np.bincount(lp.at, lp.val**2, len(lp.rl)) / mean + 1e-12

    def evaluate(self, x0, tau: float, y, answer: Answer | None = None, c=None) -> Answer:
        """The point of prices y in a step of size tau around x0, in an answer that is overwritten."""
        lp, a = self.lp, answer or self.now
        parts = (lp.begin, lp.end, lp.room, lp.equal, lp.ptr, lp.at, lp.val, lp.c if c is None else c, lp.low, lp.high)
        value, a.cost, proved, a.worst = kernels.project(
            *parts, x0, tau, y, a.x, a.inside, a.count, a.tight, a.price, a.activity
        )
        sides = float(y @ np.where(y > 0, self._low, self._high))
        a.dual, a.proved = value - y @ a.activity + sides, proved + sides
        self.done += 1
        return a

    def gradient(self, y) -> np.ndarray:
        """By how much each row misses the bound that its price is of, or is broken; 0 where neither."""
        rows, lp = self.now.activity, self.lp
        loose = np.maximum(lp.rl - rows, 0.0) + np.minimum(lp.ru - rows, 0.0)
        return np.where(y > 0, self._low - rows, np.where(y < 0, self._high - rows, loose))

    def step(self, x0, y, tau: float, tol: float) -> tuple[np.ndarray, bool]:
        """Prices of one proximal step, and whether all rows are within tol of their sizes; `now` has its point."""
        self.evaluate(x0, tau, y)
        damping = 1e-4
        for _ in range(TRIALS):
            g = self.gradient(y)
            if (np.abs(g) / self.lp.sizes).max(initial=0.0) <= tol:
                return y, True
            if self.done >= self.most:
                break
            free = np.flatnonzero((y != 0) | (g != 0))
            direction = self._directions(free, g[free], tau)
            for _ in range(REFUSALS):
                new = y.copy()
                new[free] += direction(damping)
                new[((y > 0) & (new < 0)) | ((y < 0) & (new > 0))] = 0.0  # it stops at a change of sign
                new[((new > 0) & ~self.has_low) | ((new < 0) & ~self.has_high)] = 0.0
                promise = float(g @ (new - y))
                then = self.evaluate(x0, tau, new, self.spare)
                gain = then.dual - self.now.dual
                if promise >= 0 and gain >= 1e-3 * promise - 1e-12 * abs(self.now.dual):
                    break
                damping = max(damping * 6, 1e-5)
            else:
                return y, False
            damping = max(damping / (6 if gain >= 0.25 * promise else 1), 1e-8)
            y, self.now, self.spare = new, self.spare, self.now
        return y, False

    def _directions(self, free, g, tau: float):
        """Function of the damping: the Newton step of some rows."""
        lp, a = self.lp, self.now
        where = np.full(len(lp.rl), -1)
        where[free] = np.arange(len(free))
        dense = len(free) <= DENSE
        diagonal, H = np.empty(len(free)), np.empty((len(free),) * 2 if dense else (0, 0))
        support = (lp.begin, lp.ptr, lp.at, lp.val, a.inside, a.count, a.tight, where)
        kernels.curvature(*support, diagonal, H)
        floor = np.maximum(diagonal if not dense else np.diag(H), self.floor[free])
        if dense:
            return lambda damping: np.linalg.solve(H + np.diag(damping * floor), g / tau)
        share, out = a.count.sum() / max(len(lp.c), 1), np.empty(len(free))

        def gradients(damping: float) -> np.ndarray:
            """Preconditioned by the diagonal, to a tenth of the gradient."""
            extra, b = damping * floor, g / tau
            d, r, scale = np.zeros(len(b)), b.copy(), diagonal + extra
            z = r / scale
            p, rz = z.copy(), float(r @ z)
            for _ in range(60):
                kernels.multiplied(*support, p, out)
                self.done += share
                q = out + extra * p
                alpha = rz / float(p @ q)
                d, r = d + alpha * p, r - alpha * q
                if r @ r <= 1e-2 * (b @ b):
                    break
                z = r / scale
                old, rz = rz, float(r @ z)
                p = z + (rz / old) * p
            return d

        return gradients
