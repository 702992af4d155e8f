"""Rounds by their linear relaxation and a shim, from scratch (LP*, Sia thesis 4.5.1)."""

import time
from dataclasses import dataclass

import numpy as np

from gpuschedlab.optim.prices.mckp import finished
from gpuschedlab.optim.programs.knapsack import MultipleChoice
from gpuschedlab.optim.programs.program import Program, Solution
from gpuschedlab.optim.programs.shims import Cells, largest_share, possible_cells, relaxed, whole
from gpuschedlab.optim.programs.work_limits import Limits
from gpuschedlab.optim.solvers.highs import Highs


@dataclass(eq=False)
class Relaxed(Limits):
    """LP*: HiGHS solves the linear relaxation from scratch, and the shim makes the shares whole.

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

    word = "relaxed"
    method: str = "ipm"  # as in `Highs`
    finish: bool = False  # whether `prices.mckp.finished` improves what the shim made whole; it is not in the thesis

    def __post_init__(self):
        self._highs = Highs(self.time_limit, self.gap, work=self.work, method=self.method)

    def solve(self, program: Program, x0: np.ndarray | None = None) -> Solution:
        """Return the `Solution` of a multiple-choice knapsack."""
        start = time.perf_counter()
        problem = MultipleChoice.of(program, x0, "rounds start from nothing, or from the last one")
        cells = possible_cells(problem)
        if not len(cells.job) and not problem.mandatory.any():
            return whole(problem, np.full(len(problem.utility), -1), 0.0, self.gap, start, "no cells")
        relaxed_solution, bound = self._shares(problem, cells)
        choice = largest_share(problem, cells, relaxed_solution.x)
        if self.finish:
            choice = finished(problem, choice, relaxed_solution.duals[len(choice) :], self)
        return whole(problem, choice, bound, self.gap, start, relaxed_solution.solver, relaxed_solution.status)

    def _shares(self, problem: MultipleChoice, cells: Cells) -> tuple[Solution, float]:
        """Return a tuple: the relaxation's `Solution`, and a bound."""
        relaxed_solution = self._highs.solve(relaxed(problem, cells))
        return relaxed_solution, relaxed_solution.bound
