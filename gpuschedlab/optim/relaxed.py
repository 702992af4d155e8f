"""LP*: rounds by their linear relaxation, from scratch, and a shim (thesis 4.5.1)."""

import time

import numpy as np

from gpuschedlab.errors import SolverError
from gpuschedlab.optim.highs import Highs
from gpuschedlab.optim.knapsack import MultipleChoice
from gpuschedlab.optim.program import Program, Solution
from gpuschedlab.optim.shims import largest_share, possible_cells, relaxed, whole


class Relaxed:
    """LP*: HiGHS solves the linear relaxation from scratch, and the shim makes the shares whole.

    Parameters
    ----------
    time_limit : float, optional
        Seconds of each solve, a guard.
    gap : float
        Gap to the relaxation's bound at which the status is ``optimal``; otherwise it is ``stopped``.
    work, method
        As in `Highs`.

    Differs from the paper in
    -------------------------
    The thesis solves with CPLEX over all cells; here over the possible ones.

    References
    ----------
    Jayaram Subramanya, PhD thesis, CMU 2025, 4.5.1.

    Examples
    --------
    >>> Relaxed().solve(MultipleChoice([[3.0, 5.0], [2.0, 4.5]], [0, 0], [1, 2], [3])).table.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def __init__(
        self, time_limit: float | None = None, gap: float = 1e-4, *, work: float | None = None, method: str = "ipm"
    ):
        self.gap = gap
        self._highs = Highs(time_limit, gap, work=work, method=method)

    def solve(self, program: Program, x0: np.ndarray | None = None) -> Solution:
        """Solve a multiple-choice knapsack.

        Raises
        ------
        SolverError, Infeasible
            As in `gpuschedlab.optim.solve`; a mandatory job for which the shim finds no room.
        """
        if x0 is not None:
            raise SolverError(f"{program.name}: found a warm start; 'relaxed' solves from scratch.")
        start = time.perf_counter()
        problem = MultipleChoice.of(program)
        cells = possible_cells(problem)
        if not len(cells.job) and not problem.mandatory.any():
            return whole(problem, np.full(len(problem.utility), -1), 0.0, self.gap, start, "relaxed")
        found = self._highs.solve(relaxed(problem, cells))
        choice = largest_share(problem, cells, found.x)
        return whole(problem, choice, found.bound, self.gap, start, "relaxed", found.status)
