"""COpter-Sia: rounds by their linear relaxation, warm from the last one, and a shim (thesis 4.4)."""

import numpy as np

from gpuschedlab.optim.copter.edits import EditedProgram
from gpuschedlab.optim.knapsack import MultipleChoice
from gpuschedlab.optim.program import Solution
from gpuschedlab.optim.relaxed import round_by_shares
from gpuschedlab.optim.shims import Cells, bound_at


class CopterRounds:
    """COpter-Sia: copter solves the relaxation, edited from round to round by jobs' keys, and the shim makes the shares whole.

    Parameters
    ----------
    copter : Copter
        Its tolerance and limits.
    ties : float
        Relative amount by which the worth of cells is spread, the same for a cell in each round, so that of cells alike one
        is chosen in whole (the artifact: 0.5 %). Objective and bound are of the worth as it is.

    References
    ----------
    Jayaram Subramanya, PhD thesis, CMU 2025, 4.4.
    """

    def __init__(self, copter, ties: float = 0.005):
        self.copter, self.ties = copter, ties
        self.cells, self.edited = 0, EditedProgram({})

    def solve(self, problem: MultipleChoice) -> Solution:
        """Solve a round; the next one starts from its shares and prices."""
        return round_by_shares(problem, self.copter, "copter", self._shares, self.copter.finish)

    def _shares(self, problem: MultipleChoice, cells: Cells) -> tuple[Solution, float, str]:
        self.cells, (n, _), amounts = len(cells.job), problem.shape, dict(enumerate(problem.capacity.tolist()))
        if not self.copter.warm or len(amounts) != len(self.edited.amounts):
            self.edited = EditedProgram(amounts)
        keys = np.arange(n) if problem.keys is None else problem.keys
        worth = problem.utility[cells.job, cells.config] * _spread(keys[cells.job], problem, cells, self.ties)
        at, val = problem.kinds[cells.config].astype(np.uint32), problem.gpus[cells.config].astype(float)
        self.edited.amounts = amounts
        self.edited.put_requests(keys.tolist(), cells.first, worth, at, val, problem.mandatory)
        found = self.edited.solved_by(self.copter)
        return found, bound_at(problem, cells, found.duals[n:]), found.solver


def _spread(keys, problem: MultipleChoice, cells: Cells, ties: float) -> np.ndarray:
    """Factors 1 +- ties, by job, GPU type and GPUs."""
    names = keys * 2**30 + (problem.kinds * 2**20 + problem.gpus)[cells.config]
    mixed = names.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return 1.0 + ties * (2.0 * (mixed >> np.uint64(11)).astype(float) / 2.0**53 - 1.0)
