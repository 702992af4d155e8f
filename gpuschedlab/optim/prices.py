"""A multiple-choice knapsack by prices: at most one configuration a job, and a capacity a GPU type.

The dual of its linear relaxation has one unknown a type: the price of a GPU. For each job and type the upper hull of
value over GPUs is built once; then the best choices at given prices are a binary search each, some 40 prices are
tried, a greedy repair makes the choices fit, and what gap remains is closed by labels over the few choices that it
leaves open.
"""

import time
from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import SolverError
from gpuschedlab.optim._dual import build_hulls, search_prices
from gpuschedlab.optim._labels import close_gap, core_choices
from gpuschedlab.optim._repair import repair, round_mix
from gpuschedlab.optim.knapsack import MultipleChoice
from gpuschedlab.optim.program import Program, Solution, relative_gap


class Choices(NamedTuple):
    """What `solve_mckp` found.

    Parameters
    ----------
    choice : (n,) int array
        Configuration of each job, -1 for none.
    objective, bound : float
        Sum of the chosen utilities, and what no choices can exceed.
    prices : (T,) float array
        Price of a GPU of each type, in utility; a start for the next, similar problem.
    """

    choice: np.ndarray
    objective: float
    bound: float
    prices: np.ndarray

    @property
    def gap(self) -> float:
        """Proven distance from the optimum, relative to the larger of the two."""
        return relative_gap(self.objective, self.bound)


def solve_mckp(
    utility,
    type_of_config,
    gpus_of_config,
    capacity,
    *,
    gap: float = 1e-4,
    quantum: float = 0.0,
    prices=None,
    labels: int = 1_000_000,
    evaluations: int = 400,
) -> Choices:
    """Choose at most one configuration a job, for the largest sum of utilities within the GPUs of each type.

    Parameters
    ----------
    utility : (n, C) float array
        Of each job in each configuration, against none at 0; nan where impossible.
    type_of_config : (C,) int array
        GPU type, 0 to T - 1.
    gpus_of_config : (C,) int array
        GPUs, at least 1.
    capacity : (T,) int array
        GPUs of each type.
    gap : float
        Relative distance to the bound at which to stop; 0 for exact (to rounding).
    quantum : float
        All utilities are multiples of it (0: of nothing), which lets a gap below it count as closed.
    prices : (T,) float array, optional
        Prices to begin with, such as those of the round before.
    labels : int
        Labels made at most while the gap is closed, some 30 ns each; 0 leaves it to the greedy repair.
    evaluations : int
        Prices tried at most.

    Returns
    -------
    Choices
        The bound holds whatever the limits; where they were too small, the gap says so.

    Raises
    ------
    SolverError
        Arrays that do not fit together, utilities that are infinite, or GPUs that are not whole.

    References
    ----------
    Dantzig & Wolfe, Operations Research 8 (1960); Wentges, Int. Trans. Oper. Res. 4 (1997), for the smoothed prices;
    Kellerer, Pferschy & Pisinger, Knapsack Problems (2004), 11.2 and 11.6, for hulls and cores.

    Examples
    --------
    >>> found = solve_mckp([[3.0, 5.0], [2.0, 4.5]], type_of_config=[0, 0], gpus_of_config=[1, 2], capacity=[3])
    >>> found.choice.tolist(), found.objective, round(found.bound, 6)
    ([0, 1], 7.5, 7.5)
    """
    problem = MultipleChoice(utility, type_of_config, gpus_of_config, capacity, quantum)
    return _choose(problem, gap, prices, labels, evaluations)


class Prices:
    """The solver of `solve_mckp` for a stream of programs: each starts from the prices of the one before.

    Parameters
    ----------
    gap, labels, evaluations
        As in `solve_mckp`.

    Examples
    --------
    >>> Prices().solve(MultipleChoice([[3.0, 5.0], [2.0, 4.5]], [0, 0], [1, 2], [3])).table.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def __init__(self, gap: float = 1e-4, *, labels: int = 1_000_000, evaluations: int = 400):
        self.gap, self.labels, self.evaluations = gap, labels, evaluations
        self._prices: np.ndarray | None = None

    def solve(self, program: Program, x0: np.ndarray | None = None) -> Solution:
        """Solve a multiple-choice knapsack; the status is ``stopped`` where a limit left a larger gap than asked for.

        Raises
        ------
        SolverError
            The program is no multiple-choice knapsack, or there is a point to start from.
        """
        if x0 is not None:
            raise SolverError(f"{program.name}: found a warm start; 'prices' starts from prices, kept by a Session.")
        start = time.perf_counter()
        problem = MultipleChoice.of(program)
        warm = self._prices if self._prices is not None and len(self._prices) == len(problem.capacity) else None
        found = _choose(problem, self.gap, warm, self.labels, self.evaluations)
        self._prices = found.prices
        x = np.zeros(problem.shape)
        jobs = np.flatnonzero(found.choice >= 0)
        x[jobs, found.choice[jobs]] = 1.0
        status = "optimal" if found.gap <= self.gap else "stopped"
        seconds = time.perf_counter() - start
        return Solution(x.ravel(), status, found.objective, found.bound, seconds, "prices", None, program.shape)


def _choose(problem: MultipleChoice, gap: float, prices, labels: int, evaluations: int) -> Choices:
    """Prices, repair, and labels for the gap that is left; as in `solve_mckp`."""
    v, kind, gpus, capacity = problem.utility, problem.kinds, problem.gpus, problem.capacity
    types = len(capacity)
    if v.size == 0:
        return Choices(np.full(len(v), -1), 0.0, 0.0, np.zeros(types))
    order = np.lexsort((gpus, kind))
    kind, gpus = kind[order], gpus[order].astype(float)
    starts = np.searchsorted(kind, np.arange(types + 1))
    room = capacity.astype(float)
    hulls = build_hulls(v, order, starts, gpus, room)
    warm = np.zeros(types) if prices is None else np.maximum(np.asarray(prices, float), 0.0)
    best, bound, _, tried, weights, _ = search_prices(v, order, starts, gpus, *hulls, room, warm, 1e-7, evaluations)
    choice, used = np.empty(len(v), np.int64), np.empty(types)
    round_mix(v, order, starts, gpus, kind, *hulls, room, best, tried, weights, choice, used)
    objective = repair(v, order, starts, gpus, kind, *hulls, room, best, choice, used, 8)
    slack = max(gap * abs(objective), problem.quantum * (1 - 1e-6), 1e-12 * abs(bound))
    limit = bound - objective - slack
    if labels and limit > 0:
        at, config, loss = core_choices(v, order, starts, gpus, kind, room, best, limit)
        width = max(labels // len(config), 1)
        found, picks, dropped = close_gap(at, config, loss, kind, gpus, capacity, best, limit, width)
        if len(picks):
            choice, objective = picks, bound - found
        # All others lose `found` at least (the limit, where none was found), or what was given up.
        bound -= min(found, dropped)
    answer = np.where(choice >= 0, order[choice], -1)
    taken = answer >= 0
    objective = float(v[taken, answer[taken]].sum())
    closed = bound - objective < problem.quantum * (1 - 1e-7)
    return Choices(answer, objective, objective if closed else max(float(bound), objective), best)
