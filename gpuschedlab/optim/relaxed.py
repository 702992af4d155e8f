"""Rounds by their linear relaxation and a shim: COpter-Sia, and LP* beside it (thesis 4.4 and 4.5)."""

import time
from dataclasses import replace

import numpy as np

from gpuschedlab.errors import SolverError
from gpuschedlab.optim.copter import Copter
from gpuschedlab.optim.highs import Highs
from gpuschedlab.optim.knapsack import MultipleChoice
from gpuschedlab.optim.program import Program, Solution, relative_gap
from gpuschedlab.optim.shims import bound_at, largest_share, possible_cells, relaxed


class Relaxed:
    """LP*: HiGHS solves the linear relaxation from scratch, and the shim makes the shares whole.

    Parameters
    ----------
    time_limit : float, optional
        Seconds of each solve.
    gap : float
        Gap to the relaxation's bound at which the status is ``optimal``; otherwise it is ``stopped``.
    method : str
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

    def __init__(self, time_limit: float | None = None, gap: float = 1e-4, *, method: str = "ipm"):
        self.gap = gap
        self._highs = Highs(time_limit, gap, method=method)

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

    def __init__(self, copter: Copter, ties: float = 0.005):
        self.copter, self.ties = copter, ties
        self.cells = 0
        self._kept: tuple | None = None

    def solve(self, problem: MultipleChoice) -> Solution:
        """Solve a round; the next one starts from its shares and prices."""
        start = time.perf_counter()
        n = len(problem.utility)
        cells = possible_cells(problem)
        self.cells = len(cells.job)
        if not self.cells and not problem.mandatory.any():
            return whole(problem, np.full(n, -1), 0.0, self.copter.gap, start, "copter")
        x0, y0 = self._carried(problem, cells)
        program = relaxed(problem, cells)
        program = replace(program, c=program.c * _spread(_names(problem, cells), self.ties))
        found = self.copter.solve(program, x0, y0)
        names = (_names(problem, cells), _keys(problem))
        self._kept = (*names, found.x, found.duals[:n], found.duals[n:])
        bound = bound_at(problem, cells, found.duals[n:])
        choice = largest_share(problem, cells, found.x)
        return whole(problem, choice, bound, self.copter.gap, start, found.solver, found.status)

    def _carried(self, problem, cells) -> tuple:
        """Shares and prices of the round before, by name; 0 for what is new."""
        if not self.copter.warm or self._kept is None:
            return None, None
        names, keys, x, jobs, types = self._kept
        same = len(types) == len(problem.capacity)
        y = [_looked_up(keys, jobs, _keys(problem)), types if same else np.zeros(len(problem.capacity))]
        return _looked_up(names, x, _names(problem, cells)), np.concatenate(y)


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


def whole(problem, choice, bound: float, gap: float, start: float, solver: str, status: str = "optimal") -> Solution:
    """A choice (n,) as a solution, with the gap that is left to a bound."""
    jobs = np.flatnonzero(choice >= 0)
    x = np.zeros(problem.shape)
    x[jobs, choice[jobs]] = 1.0
    objective = float(problem.utility[jobs, choice[jobs]].sum())
    bound = max(bound, objective)
    if status != "time limit":
        status = "optimal" if relative_gap(objective, bound) <= max(gap, 1e-9) else "stopped"
    return Solution(x.ravel(), status, objective, bound, time.perf_counter() - start, solver, None, problem.shape)
