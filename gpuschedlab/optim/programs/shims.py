"""From shares to choices: what makes the answer of a relaxed multiple-choice knapsack whole (thesis 4.4.1)."""

import time
from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.errors import SolverError
from gpuschedlab.optim.programs.knapsack import MultipleChoice, cell_rows
from gpuschedlab.optim.programs.program import Program, Solution, relative_gap

LEAST = 1e-3
"""Share from which on a configuration is considered."""


class Cells(NamedTuple):
    """The possible cells of a knapsack: those that fit into the cluster and are worth something; job by job."""

    job: np.ndarray  # (k,)
    config: np.ndarray  # (k,)
    first: np.ndarray  # (n + 1,) first cell of each job, and the end


def possible_cells(problem: MultipleChoice) -> Cells:
    """Return the `Cells` that any good choice could have."""
    worth = problem.utility > 0
    if problem.mandatory.any():
        worth |= problem.mandatory[:, None] & ~np.isnan(problem.utility)
    worth &= problem.gpus <= problem.capacity[problem.kinds]
    job, config = np.nonzero(worth)
    return Cells(job, config, np.searchsorted(job, np.arange(len(problem.utility) + 1)))


def relaxed(problem: MultipleChoice, cells: Cells) -> Program:
    """Return the linear relaxation over some cells, a `Program`: n rows of jobs, then T of types; a variable a cell."""
    job_count = len(problem.utility)
    A = cell_rows(
        cells.job,
        job_count + problem.kinds[cells.config],
        problem.gpus[cells.config],
        job_count + len(problem.capacity),
    )
    row_bounds = (problem.row_lower, problem.row_upper)
    worth = problem.utility[cells.job, cells.config]
    return Program(worth, A, *row_bounds, upper=1.0, maximize=True, name=problem.name)


def largest_share(problem: MultipleChoice, cells: Cells, share: np.ndarray) -> np.ndarray:
    """Return an array (n,) of the configuration with the largest share that still fits each job.

    Rule of Jayaram Subramanya, PhD thesis, CMU 2025, 4.4.1.
    """
    # Jobs take turns by their largest share, mandatory ones first; the thesis gives no order.
    job_count = len(problem.utility)
    largest = np.zeros(job_count)
    np.maximum.at(largest, cells.job, share)
    job_order = np.lexsort((np.arange(job_count), -largest, ~problem.mandatory))
    ranked = np.lexsort((-share, cells.job))
    negligible = (share < LEAST) & ~problem.mandatory[cells.job]
    choice = _fit(job_order, ranked, negligible, cells, problem.kinds, problem.gpus, problem.capacity)
    unserved_jobs = np.flatnonzero(problem.mandatory & (choice < 0))
    if unserved_jobs.size:
        raise SolverError(
            f"{problem.name}: found no room for mandatory job {unserved_jobs[0]} ({unserved_jobs.size} such) when shares were made whole; "
            "solve it with 'prices' or 'highs'."
        )
    return choice


@njit
def _fit(job_order, ranked, negligible, cells, config_types, gpus, capacity):
    """Return an array, the choice (n,) of `largest_share`: each job's first cell, as ranked, that fits and is not negligible."""
    choice = np.full(job_order.shape[0], -1)
    room = capacity.copy()
    for job in job_order:
        for ranked_cell in range(cells.first[job], cells.first[job + 1]):
            cell = ranked[ranked_cell]
            if negligible[cell]:
                break
            config = cells.config[cell]
            if gpus[config] <= room[config_types[config]]:
                choice[job] = config
                room[config_types[config]] -= gpus[config]
                break
    return choice


def whole(problem, choice, bound: float, gap: float, start: float, solver: str, status: str = "optimal") -> Solution:
    """Return a choice (n,) as a `Solution`, with the gap that is left to a bound."""
    variables = variables_of(problem, choice)
    objective = worth_of(problem, choice)
    bound = max(bound, objective)
    if status != "time limit":
        status = "optimal" if relative_gap(objective, bound) <= max(gap, 1e-9) else "stopped"
    return Solution(variables, status, objective, bound, time.perf_counter() - start, solver, None, problem.shape)


def worth_of(problem: MultipleChoice, choice: np.ndarray) -> float:
    """Sum of the utilities of a choice (n,)."""
    jobs = np.flatnonzero(choice >= 0)
    return float(problem.utility[jobs, choice[jobs]].sum())


def variables_of(problem: MultipleChoice, choice: np.ndarray) -> np.ndarray:
    """Return an array (n C,) of the variables of a choice (n,)."""
    jobs = np.flatnonzero(choice >= 0)
    variables = np.zeros(problem.shape)
    variables[jobs, choice[jobs]] = 1.0
    return variables.ravel()
