"""POP (Narayanan et al., SOSP'21) on a round: deal jobs and GPUs to parts, and solve each by itself."""

import time
from collections.abc import Callable

import numpy as np

from gpuschedlab.errors import Infeasible, SolverError
from gpuschedlab.optim.programs.knapsack import MultipleChoice
from gpuschedlab.optim.programs.program import Program, Solution, worst_status
from gpuschedlab.optim.programs.shims import whole
from gpuschedlab.optim.programs.work_limits import Limits


class Pop(Limits):
    """A multiple-choice knapsack in parts with equal GPUs and jobs, by any solver.

    Each job goes to the part with the fewest jobs, and stays there while it is known (`MultipleChoice.keys`). The GPUs of
    each type are dealt out `node` by `node`.

    Parameters
    ----------
    sessions : callable
        `gpuschedlab.optim.Session`, or a maker of others like it.
    time_limit, gap, work
        As in `work.Limits`, of each part.
    parts : int
        Parts at most: fewer if the fewest GPUs that some job can run on are more than a part has.
    inner : str
        The solver of each part.
    node : int
        GPUs that stay together.
    idle : float, optional
        Worth of an impossible configuration. The artifact's program takes the penalty of a job without GPUs, 1.1, for
        it, so that jobs may hold GPUs on which they cannot run; here such a job gets nothing once the parts are solved.
        Default: such configurations cannot be chosen.

    Differs from the paper in
    -------------------------
    The artifact solves parts at the same time; here one after another. Jobs are not divisible, and are not split (4.2 of the
    paper). There are never so many parts that a job would find no place in any of them.

    References
    ----------
    Narayanan et al., SOSP'21, section 3; Jayaram Subramanya, PhD thesis, CMU 2025, 4.5.1.

    Examples
    --------
    >>> program = MultipleChoice([[3.0, 5.0], [2.0, 4.5]], [0, 0], [1, 2], [3])
    >>> from gpuschedlab.optim import Session
    >>> Pop(Session, parts=2, inner="prices").solve(program).table.tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    word = "pop"

    def __init__(
        self, sessions: Callable, time_limit=None, gap=1e-4, *, work=None, parts=16, inner="highs", node=1, idle=None
    ):
        if parts < 1 or node < 1:
            raise SolverError(f"pop: found parts={parts}, node={node}; expected whole numbers from 1.")
        super().__init__(time_limit, gap, work)
        self.parts = parts
        self.node = node
        self.idle = idle
        self._sessions = [sessions(inner, gap=gap, time_limit=time_limit, work=work) for _ in range(parts)]
        self._part: dict[int, int] = {}

    def solve(self, program: Program, x0: np.ndarray | None = None) -> Solution:
        """Return the `Solution` of a multiple-choice knapsack, solved part by part; nothing is proved.

        It is one part if mandatory jobs do not fit into theirs.
        """
        start = time.perf_counter()
        problem = MultipleChoice.of(program, x0, "'pop' keeps what its solvers keep")
        parts = _parts_that_fit(problem, self.parts, self.node)
        try:
            choice, status = self._solve(problem, parts)
        except Infeasible:
            if parts == 1:
                raise
            parts = 1
            choice, status = self._solve(problem, parts)
        chosen_jobs = np.flatnonzero(choice >= 0)
        choice[chosen_jobs[np.isnan(problem.utility[chosen_jobs, choice[chosen_jobs]])]] = -1
        return whole(problem, choice, np.inf, self.gap, start, f"pop, {parts} part{'s' * (parts > 1)}", status)

    def _solve(self, problem: MultipleChoice, parts: int) -> tuple[np.ndarray, str]:
        """Return a tuple: the choice (n,) of each job in its part, and the status of the worst part, a string."""
        part_of_job = self._dealt(problem, parts)
        choice = np.full(len(problem.utility), -1)
        status = "optimal"
        for k, session in enumerate(self._sessions[:parts]):
            part_jobs = np.flatnonzero(part_of_job == k)
            if not part_jobs.size:
                continue
            utility = problem.utility[part_jobs]
            keys = None if problem.keys is None else problem.keys[part_jobs]
            if self.idle is not None:
                utility = np.where(np.isnan(utility), self.idle, utility)
            room = _share(problem.capacity, parts, k, self.node)
            piece = (problem.quantum, problem.name, problem.mandatory[part_jobs], keys)
            session.update(MultipleChoice(utility, problem.kinds, problem.gpus, room, *piece))
            part_solution = session.solve()
            job, config = np.nonzero(part_solution.table > 0.5)
            choice[part_jobs[job]] = config
            status = worst_status([status, part_solution.status])
        return choice, status

    def _dealt(self, problem: MultipleChoice, parts: int) -> np.ndarray:
        """Return an array (n,): part of each job, the one it was in, otherwise the one with the fewest jobs."""
        keys = range(len(problem.utility)) if problem.keys is None else problem.keys.tolist()
        self._part = {job_key: self._part[job_key] for job_key in keys if self._part.get(job_key, parts) < parts}
        jobs = np.bincount(list(self._part.values()), minlength=parts)
        for job_key in keys:
            if job_key not in self._part:
                self._part[job_key] = int(jobs.argmin())
                jobs[self._part[job_key]] += 1
        return np.array([self._part[job_key] for job_key in keys], np.int64)


def _parts_that_fit(problem: MultipleChoice, most: int, node: int) -> int:
    """Return the largest number of parts, of so many at most, in each of which any job finds its fewest GPUs."""
    able = ~np.isnan(problem.utility)
    for parts in range(most, 1, -1):
        least = problem.capacity // node // parts * node
        if ((able & (problem.gpus <= least[problem.kinds])).any(axis=1) | ~able.any(axis=1)).all():
            return parts
    return 1


def _share(capacity: np.ndarray, parts: int, k: int, node: int) -> np.ndarray:
    """Return an array (T,): GPUs of part k; nodes are dealt out in turn, the rest of a node goes to the first part."""
    nodes = capacity // node
    share = node * (nodes // parts + (k < nodes % parts))
    if k == 0:
        share += capacity % node
    return share
