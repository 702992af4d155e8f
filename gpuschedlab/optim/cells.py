"""Chosen cells of a multiple-choice knapsack as a program of their own, which HiGHS's branch and cut closes."""

import importlib.util
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from gpuschedlab.errors import Infeasible
from gpuschedlab.optim.knapsack import MultipleChoice
from gpuschedlab.optim.program import Program


class Closed(NamedTuple):
    """What was found over the cells.

    Parameters
    ----------
    choice : (n,) int array
        Configuration of each job, -1 for none.
    bound : float
        What no choice among the cells exceeds.
    status : str
        As in `Solution`.
    """

    choice: np.ndarray
    bound: float
    status: str


def has_highs() -> bool:
    """Whether HiGHS is installed (the extra `optim`)."""
    return importlib.util.find_spec("highspy") is not None


def close_cells(
    problem: MultipleChoice, job: np.ndarray, config: np.ndarray, *, slack: float, gap: float, time_limit: float
) -> Closed:
    """Solve a multiple-choice knapsack over some of its cells.

    Parameters
    ----------
    problem : MultipleChoice
    job, config : (k,) int arrays
        The cells: which job may have which configuration; all others are left out.
    slack, gap : float
        Absolute and relative distance from the bound at which to stop.
    time_limit : float
        Seconds.

    Returns
    -------
    Closed

    Raises
    ------
    Infeasible
        The mandatory jobs cannot all have a configuration.
    OutOfTime
        No point was found in time.
    MissingExtra
        HiGHS is not installed.

    Examples
    --------
    >>> problem = MultipleChoice([[3.0, 5.0], [2.0, 4.5]], [0, 0], [1, 2], [3])
    >>> close_cells(problem, np.array([0, 1, 1]), np.array([0, 0, 1]), slack=0, gap=0, time_limit=9).choice.tolist()
    [0, 1]
    """
    from gpuschedlab.optim.highs import Highs

    n, k, types = problem.shape[0], len(job), len(problem.capacity)
    has_cell = np.bincount(job, minlength=n) > 0
    if (problem.mandatory & ~has_cell).any():
        raise Infeasible(f"{problem.name}: infeasible; a mandatory job has no configuration that fits.")
    columns = np.arange(k)
    rows = np.concatenate([job, n + problem.kinds[config]])
    weights = np.concatenate([np.ones(k), problem.gpus[config]])
    A = sp.csc_array((weights, (rows, np.tile(columns, 2))), shape=(n + types, k))
    named = np.flatnonzero(np.concatenate([has_cell, np.ones(types, bool)]))
    limits = {} if np.isinf(time_limit) else {"time_limit": max(time_limit, 1e-3)}
    solver = Highs(gap=gap, mip_abs_gap=max(slack, 1e-9), **limits)
    found = solver.solve(
        Program(
            problem.utility[job, config],
            A.tocsr()[named],
            problem.row_lower[named],
            problem.row_upper[named],
            upper=1.0,
            integrality=True,
            maximize=True,
            name=problem.name,
        )
    )
    choice = np.full(n, -1)
    taken = found.x > 0.5
    choice[job[taken]] = config[taken]
    return Closed(choice, found.bound, found.status)
