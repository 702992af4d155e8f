"""Rounds of choices by COpter: the relaxation, edited from round to round, and the shim that makes its shares whole."""

import numpy as np

from gpuschedlab.optim.programs.edits import EditedProgram
from gpuschedlab.optim.programs.knapsack import MultipleChoice
from gpuschedlab.optim.programs.program import Solution
from gpuschedlab.optim.programs.shims import Cells
from gpuschedlab.papers.copter.solver.relaxed import Relaxed


class CopterRounds(Relaxed):
    """COpter-Sia: copter solves the relaxation, edited from round to round by jobs' keys, and the shim makes the shares whole."""

    def __init__(self, copter, ties: float = 0.005):
        super().__init__(copter.time_limit, copter.gap, copter.work, finish=copter.finish)
        self.copter = copter
        self.ties = ties
        self.edited = EditedProgram({})

    def _shares(self, problem: MultipleChoice, cells: Cells) -> tuple[Solution, float]:
        n, _ = problem.shape
        amounts = dict(enumerate(problem.capacity.tolist()))
        if not self.copter.warm or len(amounts) != len(self.edited.amounts):
            self.edited = EditedProgram(amounts)
        keys = np.arange(n) if problem.keys is None else problem.keys
        worth = problem.utility[cells.job, cells.config] * _spread(keys[cells.job], problem, cells, self.ties)
        self.edited.amounts = amounts
        cell_columns = (problem.kinds[cells.config], problem.gpus[cells.config].astype(float), problem.mandatory)
        self.edited.put_requests(keys.tolist(), cells.first, worth, *cell_columns)
        relaxed_solution = self.edited.solved_by(self.copter)
        return relaxed_solution, bound_at(problem, cells, relaxed_solution.duals[n:])


def _spread(keys, problem: MultipleChoice, cells: Cells, ties: float) -> np.ndarray:
    """Return an array of factors 1 +- ties, by job, GPU type and GPUs."""
    cell_keys = keys * 2**30 + (problem.kinds * 2**20 + problem.gpus)[cells.config]
    mixed = cell_keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    bits = (mixed >> np.uint64(11)).astype(float)
    return 1.0 + ties * (2.0 * bits / 2.0**53 - 1.0)


def bound_at(problem: MultipleChoice, cells: Cells, prices: np.ndarray) -> float:
    """Return a float, the bound of all choices by the prices (T,) of GPUs: sum of each job's best at them, plus the GPUs' price."""
    prices = np.maximum(prices, 0.0)
    worth = problem.utility[cells.job, cells.config] - (prices[problem.kinds] * problem.gpus)[cells.config]
    best_worth = np.where(problem.mandatory, -np.inf, 0.0)
    np.maximum.at(best_worth, cells.job, worth)
    return float(best_worth.sum() + prices @ problem.capacity)
