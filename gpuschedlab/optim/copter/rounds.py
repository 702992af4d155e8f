"""COpter-Sia: rounds by their linear relaxation, warm from the last one, and a shim (thesis 4.4)."""

from dataclasses import replace

import numpy as np

from gpuschedlab.optim.knapsack import MultipleChoice
from gpuschedlab.optim.program import Solution
from gpuschedlab.optim.relaxed import round_by_shares
from gpuschedlab.optim.shims import Cells, bound_at, relaxed


class CopterRounds:
    """COpter-Sia: copter solves the relaxation, warm by jobs' keys, and the shim makes the shares whole.

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
        self.cells = 0
        self._kept: tuple | None = None

    def solve(self, problem: MultipleChoice) -> Solution:
        """Solve a round; the next one starts from its shares and prices."""
        return round_by_shares(problem, self.copter.gap, "copter", self._shares)

    def _shares(self, problem: MultipleChoice, cells: Cells) -> tuple[Solution, float, str]:
        self.cells, n, names = len(cells.job), len(problem.utility), _names(problem, cells)
        program = relaxed(problem, cells)
        program = replace(program, c=program.c * _spread(names, self.ties))
        found = self.copter.solve(program, *self._carried(problem, names))
        self._kept = (names, _keys(problem), found.x, found.duals[:n], found.duals[n:])
        return found, bound_at(problem, cells, found.duals[n:]), found.solver

    def _carried(self, problem, wanted) -> tuple:
        """Shares and prices of the round before, by name; 0 for what is new."""
        if not self.copter.warm or self._kept is None:
            return None, None
        names, keys, x, jobs, types = self._kept
        same = len(types) == len(problem.capacity)
        y = [_looked_up(keys, jobs, _keys(problem)), types if same else np.zeros(len(problem.capacity))]
        return _looked_up(names, x, wanted), np.concatenate(y)


def _keys(problem: MultipleChoice) -> np.ndarray:
    return np.arange(len(problem.utility)) if problem.keys is None else problem.keys


def _names(problem, cells) -> np.ndarray:
    """A number for each cell, the same in every round: of its job, GPU type and GPUs."""
    config = problem.kinds * 2**20 + problem.gpus
    return _keys(problem)[cells.job] * 2**30 + config[cells.config]


def _spread(names, ties: float) -> np.ndarray:
    """Factors 1 +- ties, by name."""
    mixed = names.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return 1.0 + ties * (2.0 * (mixed >> np.uint64(11)).astype(float) / 2.0**53 - 1.0)


def _looked_up(names, values, wanted) -> np.ndarray:
    """Values by name, 0 where there are none."""
    order = np.argsort(names)
    at = np.minimum(np.searchsorted(names[order], wanted), max(len(names) - 1, 0))
    return np.where(names[order][at] == wanted, values[order][at], 0.0) if len(names) else np.zeros(len(wanted))
