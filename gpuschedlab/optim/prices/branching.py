"""Chosen cells of a multiple-choice knapsack as a program of their own, which HiGHS's branch and cut closes."""

from functools import cache
from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import Infeasible
from gpuschedlab.optim.programs.knapsack import MultipleChoice, cell_rows
from gpuschedlab.optim.programs.program import Program

WHOLE = {"mip_detect_symmetry": False}
"""Options of HiGHS: jobs that are alike being one, there is no symmetry left worth a search."""

OPEN = WHOLE | {
    "presolve": "off",
    "mip_heuristic_run_root_reduced_cost": False,
    "mip_heuristic_run_feasibility_jump": False,
}
"""Of cells that prices have left open presolve removes few, and its restarts double the slowest rounds; both heuristics take a
third of the time, and find nothing that the others do not."""


class Closed(NamedTuple):
    """What was found over the cells."""

    choice: np.ndarray  # (n,) configuration of each job, -1 for none
    bound: float  # what no choice among the cells exceeds
    status: str  # as in `Solution`


def close_cells(problem: MultipleChoice, job, config, *, slack, gap, time_limit=None, work=None) -> Closed:
    """Solve a multiple-choice knapsack over some of its cells, as `Closed`."""
    from gpuschedlab.optim.solvers.highs import CLOSED, Highs

    job_count = problem.shape[0]
    if (problem.mandatory & (np.bincount(job, minlength=job_count) == 0)).any():
        raise Infeasible(f"{problem.name}: infeasible; a mandatory job has no configuration that fits.")
    alike, first_of_class = _alike(problem, job, config)
    lead = first_of_class[alike[job]] == job  # one cell stands for those of all jobs that are alike
    job = job[lead]
    config = config[lead]
    largest = float(np.abs(problem.utility[job, config]).max(initial=0.0))
    slack = max(slack, CLOSED * largest)
    solver = Highs(time_limit, gap, work=work, mip_abs_gap=slack, **(WHOLE if problem.mandatory.any() else _known()))
    solution = solver.solve(_program(problem, alike, first_of_class, job, config))
    choice = np.full(job_count, -1)
    members = np.split(
        np.argsort(alike, kind="stable"), np.cumsum(np.bincount(alike, minlength=len(first_of_class)))[:-1]
    )
    placed_members = np.zeros(len(first_of_class), np.int64)
    for cell in np.flatnonzero(solution.x > 0.5):
        job_class = alike[job[cell]]
        many = round(solution.x[cell])
        choice[members[job_class][placed_members[job_class] : placed_members[job_class] + many]] = config[cell]
        placed_members[job_class] += many
    return Closed(choice, solution.bound, solution.status)


@cache
def _known() -> dict:
    """Return the dict `OPEN`, as far as the version of HiGHS at hand has its options."""
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    return {
        option_name: option_value
        for option_name, option_value in OPEN.items()
        if highs.getOptionValue(option_name)[0] == highspy.HighsStatus.kOk
    }


def _alike(problem: MultipleChoice, job, config) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of two arrays: the class (n,) of each job, and the first job of each class.

    Jobs with the same worth in the same cells are one class.
    """
    worth = np.full(problem.shape, np.nan)
    worth[job, config] = problem.utility[job, config]
    keys = [
        job_worth.tobytes() + bytes([is_mandatory])
        for job_worth, is_mandatory in zip(worth, problem.mandatory.tolist(), strict=True)
    ]
    classes: dict[bytes, int] = {}
    alike = np.array([classes.setdefault(worth_key, len(classes)) for worth_key in keys])
    return alike, np.unique(alike, return_index=True)[1]


def _program(problem: MultipleChoice, alike, first_of_class, job, config) -> Program:
    """Return the `Program` of how many jobs of each class get each of its cells."""
    classes = len(first_of_class)
    types = len(problem.capacity)
    members = np.bincount(alike, minlength=classes).astype(float)
    return Program(
        problem.utility[job, config],
        cell_rows(alike[job], classes + problem.kinds[config], problem.gpus[config], classes + types),
        np.concatenate([np.where(problem.mandatory[first_of_class], members, -np.inf), np.full(types, -np.inf)]),
        np.concatenate([members, problem.capacity]),
        upper=members[alike[job]],
        integrality=True,
        maximize=True,
        name=problem.name,
    )
