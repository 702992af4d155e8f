"""Rounds by their linear relaxation and a shim: from scratch (LP*, thesis 4.5.1), and warm from the last one (COpter-Sia, 4.4)."""

import time
from dataclasses import dataclass

import numpy as np

from gpuschedlab.optim.prices.mckp import finished
from gpuschedlab.optim.programs.edits import EditedProgram
from gpuschedlab.optim.programs.knapsack import MultipleChoice
from gpuschedlab.optim.programs.program import Program, Solution
from gpuschedlab.optim.programs.shims import Cells, bound_at, largest_share, possible_cells, relaxed, whole
from gpuschedlab.optim.programs.work_limits import Limits
from gpuschedlab.optim.solvers.highs import Highs


@dataclass(eq=False)
class Relaxed(Limits):
    """LP*: HiGHS solves the linear relaxation from scratch, and the shim makes the shares whole.

    Parameters
    ----------
    time_limit, gap, work
        As in `work.Limits`; the status is ``optimal`` where the gap to the relaxation's bound is that small.
    method : str
        As in `Highs`.
    finish : bool
        Whether `prices.search.finished` improves what the shim made whole; it is not in the thesis.

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

    method: str = "ipm"
    finish: bool = False

    def __post_init__(self):
        self._highs = Highs(self.time_limit, self.gap, work=self.work, method=self.method)

    def solve(self, program: Program, x0: np.ndarray | None = None) -> Solution:
        """Solve a multiple-choice knapsack.

        Raises
        ------
        SolverError, Infeasible
            As in `gpuschedlab.optim.solve`; a mandatory job for which the shim finds no room.
        """
        problem, start = (
            MultipleChoice.of(program, x0, "rounds start from nothing, or from the last one"),
            time.perf_counter(),
        )
        cells = possible_cells(problem)
        if not len(cells.job) and not problem.mandatory.any():
            return whole(problem, np.full(len(problem.utility), -1), 0.0, self.gap, start, "no cells")
        found, bound = self._shares(problem, cells)
        choice = largest_share(problem, cells, found.x)
        if self.finish:
            choice = finished(problem, choice, found.duals[len(choice) :], self)
        return whole(problem, choice, bound, self.gap, start, found.solver, found.status)

    def _shares(self, problem: MultipleChoice, cells: Cells) -> tuple[Solution, float]:
        """The relaxation's solution, and a bound."""
        found = self._highs.solve(relaxed(problem, cells))
        return found, found.bound


class CopterRounds(Relaxed):
    """COpter-Sia: copter solves the relaxation, edited from round to round by jobs' keys, and the shim makes the shares whole.

    Parameters
    ----------
    copter : Copter
        Its tolerance and limits.
    ties : float
        Relative amount by which the worth of cells is spread, the same for a cell in each round, so that of cells alike one
        is chosen in whole (the artifact: 0.5 %). Objective and bound are of the worth as it is.
    """

    def __init__(self, copter, ties: float = 0.005):
        super().__init__(copter.time_limit, copter.gap, copter.work, finish=copter.finish)
        self.copter, self.ties, self.edited = copter, ties, EditedProgram({})

    def _shares(self, problem: MultipleChoice, cells: Cells) -> tuple[Solution, float]:
        (n, _), amounts = problem.shape, dict(enumerate(problem.capacity.tolist()))
        if not self.copter.warm or len(amounts) != len(self.edited.amounts):
            self.edited = EditedProgram(amounts)
        keys = np.arange(n) if problem.keys is None else problem.keys
        worth = problem.utility[cells.job, cells.config] * _spread(keys[cells.job], problem, cells, self.ties)
        self.edited.amounts = amounts
        parts = (problem.kinds[cells.config], problem.gpus[cells.config].astype(float), problem.mandatory)
        self.edited.put_requests(keys.tolist(), cells.first, worth, *parts)
        found = self.edited.solved_by(self.copter)
        return found, bound_at(problem, cells, found.duals[n:])


def _spread(keys, problem: MultipleChoice, cells: Cells, ties: float) -> np.ndarray:
    """Factors 1 +- ties, by job, GPU type and GPUs."""
    names = keys * 2**30 + (problem.kinds * 2**20 + problem.gpus)[cells.config]
    mixed = names.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return 1.0 + ties * (2.0 * (mixed >> np.uint64(11)).astype(float) / 2.0**53 - 1.0)
