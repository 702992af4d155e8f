"""One proximal step: Newton's method on the prices of the coupling rows."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg

from gpuschedlab.papers.copter.solver import kernels
from gpuschedlab.papers.copter.solver.groups import Grouped

DENSE = 400
"""Priced rows up to which a step is factorised; beyond, it is found by conjugate gradients."""

TRIALS = 40
REFUSALS = 20
"""Newton steps of one proximal step, and trials of one of them, at most."""


class Answer:
    """The point of some prices, with the values of `kernels.project`; columns in no group count as one more, which never binds."""

    def __init__(self, lp: Grouped):
        n = len(lp.c)
        groups = len(lp.room)
        self.point = kernels.Point(
            x=np.zeros(n),
            inside=np.empty(n, np.int64),
            count=np.zeros(groups + 1, np.int64),
            tight=np.zeros(groups + 1, bool),
            price=np.zeros(groups),
            activity=np.zeros(len(lp.rl)),
        )
        self.worst = 0.0

    @property
    def x(self) -> np.ndarray:
        """Array (n,) of the variables."""
        return self.point.x

    @property
    def price(self) -> np.ndarray:
        """Array (G,) of the best price of each group's row."""
        return self.point.price

    @property
    def activity(self) -> np.ndarray:
        """Array A x (m,)."""
        return self.point.activity


class Newton:
    """Semismooth Newton on the dual of a proximal step (Li, Sun & Toh, SIAM J. Optim. 30 (2020)), of `most` evaluations.

    Products with the curvature count as the share of the columns that they touch.
    """

    def __init__(self, lp: Grouped, most: float = np.inf):
        self.lp = lp
        self.most = most
        self.done = 0.0
        self.now = Answer(lp)
        self.spare = Answer(lp)
        self.groups = kernels.Groups(lp.begin, lp.room, lp.equal)
        self.columns = kernels.Columns(lp.ptr, lp.at, lp.val, lp.c)
        self.A = sp.csc_array((lp.val, lp.at, lp.ptr), (len(lp.rl), len(lp.c)))
        self.loose = self.A[:, lp.begin[-1] :]
        self._loose_by_column = self.loose.T
        self.has_low = np.isfinite(lp.rl)
        self.has_high = np.isfinite(lp.ru)
        self._low = np.where(self.has_low, lp.rl, 0.0)
        self._high = np.where(self.has_high, lp.ru, 0.0)
        mean = max(len(lp.c) / len(lp.room), 1.0) if len(lp.room) else 1.0
        self.floor = 1e-2 * np.bincount(lp.at, lp.val**2, len(lp.rl)) / mean + 1e-12

    def evaluate(self, x0, tau: float, y, a: Answer) -> Answer:
        """Return the point of prices y in a step of size tau around x0, as an `Answer` that is overwritten."""
        lp = self.lp
        point = a.point
        activity = point.activity
        activity[:] = 0.0
        moved, a.cost, proved = kernels.project(self.groups, self.columns, x0, tau, y, point)
        if self.loose.shape[1]:
            free = slice(lp.begin[-1], None)
            low = lp.low
            high = lp.high
            reduced = lp.c[free] - self._loose_by_column @ y
            x = np.clip(x0[free] - tau * reduced, low, high)
            point.x[free] = x
            within = np.flatnonzero((low < x) & (x < high))
            n = point.count[:-1].sum()
            point.count[-1] = len(within)
            point.inside[n : n + len(within)] = lp.begin[-1] + within
            edge = np.where(reduced > 0, low, high)
            a.worst = np.abs(reduced[np.isinf(edge)]).max(initial=0.0)
            proved += (reduced * np.where(np.isinf(edge), 0.0, edge)).sum()
            moved = moved + ((x - x0[free]) ** 2).sum()
            a.cost = a.cost + (lp.c[free] * x).sum()
            activity += self.loose @ x
        sides = np.where(y > 0, self._low, self._high)
        a.dual = a.cost + moved / (2 * tau) + float(y @ (sides - activity))
        a.proved = proved + float(y @ sides)
        self.done += 1
        return a

    def gradient(self, y) -> np.ndarray:
        """Return an array: by how much each row misses the bound that its price is of, or is broken; 0 if neither."""
        row_activity = self.now.activity
        lp = self.lp
        loose = np.maximum(lp.rl - row_activity, 0.0) + np.minimum(lp.ru - row_activity, 0.0)
        return np.where(y > 0, self._low - row_activity, np.where(y < 0, self._high - row_activity, loose))

    def step(self, x0, y, tau: float, tol: float) -> tuple[np.ndarray, bool]:
        """Return a tuple: prices of one proximal step, an array, and whether all rows are within tol of their sizes.

        `now` has its point.
        """
        self.evaluate(x0, tau, y, self.now)
        damping = 1e-4
        for _ in range(TRIALS):
            g = self.gradient(y)
            if (np.abs(g) / self.lp.sizes).max(initial=0.0) <= tol:
                return y, True
            if self.done >= self.most:
                break
            free = np.flatnonzero((y != 0) | (g != 0))
            solver = self._conjugate
            if len(free) <= DENSE:
                solver = self._factorised
            direction = solver(free, g[free] / tau)
            for _ in range(REFUSALS):
                tried_prices = y.copy()
                tried_prices[free] += direction(damping)
                changes_sign = ((y > 0) & (tried_prices < 0)) | ((y < 0) & (tried_prices > 0))
                tried_prices[changes_sign] = 0.0  # it stops at a change of sign
                tried_prices[((tried_prices > 0) & ~self.has_low) | ((tried_prices < 0) & ~self.has_high)] = 0.0
                promise = float(g @ (tried_prices - y))
                tried_answer = self.evaluate(x0, tau, tried_prices, self.spare)
                gain = tried_answer.dual - self.now.dual
                if promise >= 0 and gain >= 1e-3 * promise - 1e-12 * abs(self.now.dual):
                    break
                damping = max(damping * 6, 1e-5)
            else:
                return y, False
            damping = max(damping / (6 if gain >= 0.25 * promise else 1), 1e-8)
            y, self.now, self.spare = tried_prices, self.spare, self.now
        return y, False

    def _factorised(self, free, b):
        """Return a function of the damping: the Newton step of some rows, an array, exact."""
        row_place = np.full(len(self.lp.rl), -1)
        H = np.empty((len(free), len(free)))
        row_place[free] = np.arange(len(free))
        kernels.curvature(self.columns, self.now.point, row_place, H)
        floor = np.maximum(np.diag(H), self.floor[free])
        return lambda damping: np.linalg.solve(H + np.diag(damping * floor), b)

    def _conjugate(self, free, b):
        """Return the same function by conjugate gradients, to a tenth of the gradient; preconditioner: diagonal, no groups."""
        point = self.now.point
        group_counts = point.count
        k = group_counts.sum()
        inside = point.inside[:k]
        B = self.A[:, inside].tocsr()[free]
        share = np.where(point.tight, 1 / np.sqrt(np.maximum(group_counts, 1)), 0.0)
        group = np.repeat(np.arange(len(share)), group_counts)
        means = sp.csr_array((np.repeat(share, group_counts), group, np.arange(k + 1)))
        C = (B @ means).tocsr()
        BT = B.T.tocsr()
        squares = B.multiply(B).sum(axis=1)
        diagonal = np.asarray(squares).ravel()
        CT = C.T.tocsr()
        floor = np.maximum(diagonal, self.floor[free])

        def direction(damping: float) -> np.ndarray:
            def times(v):
                self.done += k / max(len(point.x), 1)
                return B @ (BT @ v) - C @ (CT @ v) + damping * floor * v

            shape = (len(b), len(b))
            scale = diagonal + damping * floor
            within = LinearOperator(shape, lambda v: v / scale, dtype=float)
            return cg(LinearOperator(shape, times, dtype=float), b, rtol=0.1, maxiter=60, M=within)[0]

        return direction
