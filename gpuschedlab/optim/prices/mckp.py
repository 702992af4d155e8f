"""A multiple-choice knapsack by prices: at most one configuration a job, and a capacity a GPU type.

The dual of its linear relaxation has one unknown a type: the price of a GPU. For each job and type the upper hull of
value over GPUs is built once; then the best choices at given prices are a binary search each, some 40 prices are
tried, and a greedy repair makes the choices fit. What gap remains is closed over the few choices that it leaves open: by
labels where that is quick, otherwise by HiGHS where it is installed and the choices are few, otherwise by more labels.
"""

import time
from dataclasses import dataclass
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import OutOfTime, SolverError
from gpuschedlab.optim.prices.branching import close_cells
from gpuschedlab.optim.prices.dual import Assignment, Configurations, build_hulls, evaluate, search_prices
from gpuschedlab.optim.prices.labels import close_gap, core_choices
from gpuschedlab.optim.prices.repair import advance, repair, round_mix
from gpuschedlab.optim.programs.knapsack import MultipleChoice
from gpuschedlab.optim.programs.program import Program, Solution, relative_gap
from gpuschedlab.optim.programs.shims import possible_cells, variables_of, worth_of
from gpuschedlab.optim.programs.work_limits import Limits, steps

QUICK = 50_000
"""Labels that are tried before HiGHS: some milliseconds."""

SMALL = 5_000
"""Cells up to which `finished` closes the gap: if jobs are few, what makes shares whole loses most."""

PASSES = 8
"""Passes over all jobs in which they take free GPUs, at most."""

LARGE = 200_000
"""Cells from which on prices are searched only as closely as the gap asks for."""


class Choices(NamedTuple):
    """What `solve_mckp` found."""

    choice: np.ndarray  # (n,) configuration of each job, -1 for none
    objective: float  # sum of the chosen utilities
    bound: float  # what no choices can exceed
    prices: np.ndarray  # (T,) of a GPU of each type, in utility; a start for the next, similar problem
    status: str = "optimal"  # as in `Solution`

    @property
    def gap(self) -> float:
        """Proven distance from the optimum, relative to the larger of the two."""
        return relative_gap(self.objective, self.bound)


def solve_mckp(
    utility, type_of_config, gpus_of_config, capacity, *, quantum=0.0, prices=None, mandatory=None, **limits
) -> Choices:
    """Choose at most one configuration a job, for the largest sum of utilities within the GPUs of each type, as `Choices`.

    Parameters
    ----------
    utility, type_of_config, gpus_of_config, capacity, quantum, mandatory
        As in `MultipleChoice`; if jobs are mandatory, HiGHS solves the problem as a whole.
    prices : (T,) float array, optional
        Prices to begin with, such as those of the round before.
    **limits
        As in `Prices`.

    Returns
    -------
    Choices
        The bound holds whatever the limits; where they were too small, the gap says so.

    Raises
    ------
    SolverError, Infeasible
        As in `MultipleChoice`; the mandatory jobs do not fit.

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
    problem = MultipleChoice(utility, type_of_config, gpus_of_config, capacity, quantum, mandatory=mandatory)
    if prices is not None and np.shape(prices) != problem.capacity.shape:
        raise SolverError(
            f"{problem.name}: found prices of shape {np.shape(prices)}; expected {problem.capacity.shape}, one for each type."
        )
    return Prices(**limits).choose(problem, prices)


@dataclass(eq=False)
class Prices(Limits):
    """The solver of `solve_mckp` for a stream of programs: each starts from the prices of the one before."""

    word = "prices"
    # labels made at most while the gap is closed, some 30 ns each; 0 leaves it to the greedy repair
    labels: int = 1_000_000
    evaluations: int = 400  # prices tried at most
    # choices left open, at most, over which HiGHS closes the gap, if it is installed: those that lose least. 0: never
    cells: int = 3_000

    def __post_init__(self):
        self._prices: np.ndarray | None = None

    def solve(self, program: Program, x0: np.ndarray | None = None) -> Solution:
        """Return the `Solution` of a multiple-choice knapsack; its status says whether a limit left too large a gap."""
        wall_start = time.perf_counter()
        problem = MultipleChoice.of(program, x0, "'prices' starts from prices, kept by a Session")
        warm = self._prices if self._prices is not None and len(self._prices) == len(problem.capacity) else None
        choices = self.choose(problem, warm)
        self._prices, variables = choices.prices, variables_of(problem, choices.choice)
        seconds = time.perf_counter() - wall_start
        return Solution(
            variables, choices.status, choices.objective, choices.bound, seconds, "prices", None, program.shape
        )

    def choose(self, problem: MultipleChoice, prices) -> Choices:
        """Return `Choices` by prices, repair, and what closes the gap that is left; as in `solve_mckp`."""
        if problem.utility.size == 0 and not problem.mandatory.any():
            return Choices(np.full(len(problem.utility), -1), 0.0, 0.0, np.zeros(len(problem.capacity)))
        search = _Search(problem, prices, self)
        if problem.mandatory.any():
            search.whole()
        else:
            search.repair()
            search.close()
        return search.found()


def finished(problem: MultipleChoice, choice: np.ndarray, prices: np.ndarray, limits: Limits) -> np.ndarray:
    """Return an array, a choice (n,) that fits and is improved at prices (T,): jobs climb to what still fits.

    In a small round (`SMALL`) the gap is closed.
    """
    small = np.count_nonzero(problem.utility > 0) <= SMALL and not problem.mandatory.any()
    inner = Prices(limits.time_limit, limits.gap, limits.work, labels=Prices.labels if small else 0)
    search = _Search(problem, prices, inner)
    utility = problem.utility
    configs = search.configs
    search.choice = search._in_order(choice)
    chosen = search.choice[search.choice >= 0]
    used = np.bincount(configs.type_of[chosen], configs.gpus[chosen], len(configs.capacity))
    search.objective = advance(utility, configs, search.prices, Assignment(search.choice, used), PASSES)
    if small:
        hulls = build_hulls(utility, configs)
        best_choices = Assignment(np.empty(len(utility), np.int64), used)
        search.bound, _ = evaluate(utility, configs, hulls, search.prices, best_choices)
        search.close()
    return np.where(search.choice >= 0, configs.order[search.choice], -1)


class _Search:
    """One problem on its way: configurations by (type, GPUs), best choices and bound so far."""

    def __init__(self, problem: MultipleChoice, prices, limits: Prices):
        self.problem = problem
        self.limits = limits
        self.start = time.perf_counter()
        self.late = False
        types = len(problem.capacity)
        self.prices = np.zeros(types) if prices is None else np.maximum(np.asarray(prices, float), 0.0)
        config_order = np.lexsort((problem.gpus, problem.kinds))
        type_of = problem.kinds[config_order]
        gpus = problem.gpus[config_order].astype(float)
        starts = np.searchsorted(type_of, np.arange(types + 1))
        self.configs = Configurations(config_order, starts, gpus, type_of, problem.capacity.astype(float))

    def in_time(self) -> bool:
        """Whether the guard lets another stage begin; that it struck is kept, for the status."""
        limit = self.limits.time_limit
        self.late |= limit is not None and time.perf_counter() - self.start >= limit
        return not self.late

    def closed(self, job, config, slack: float, gap: float):
        """Let HiGHS close some cells, in what time is left, and return `Closed`."""
        limit = self.limits.time_limit
        seconds_left = None if limit is None else max(limit - (time.perf_counter() - self.start), 1e-3)
        closed_cells = close_cells(
            self.problem, job, config, slack=slack, gap=gap, time_limit=seconds_left, work=self.limits.work
        )
        self.late |= closed_cells.status == "time limit"
        return closed_cells

    def whole(self):
        """Let HiGHS solve all that is possible."""
        closed = self.closed(*possible_cells(self.problem)[:2], slack=0.0, gap=self.limits.gap)
        self.choice = self._in_order(closed.choice)
        self.bound = closed.bound

    def _in_order(self, choice) -> np.ndarray:
        """Return a choice, an array (n,), by (type, GPUs), from the caller's order of configurations."""
        return np.where(choice >= 0, np.argsort(self.configs.order)[choice], -1)

    def repair(self):
        """Search prices, round the mix of their answers, and make it fit."""
        utility = self.problem.utility
        types = len(self.configs.capacity)
        hulls = build_hulls(utility, self.configs)
        # Exact prices leave fewer choices open, and cost little where there are few cells.
        tolerance = 1e-7 if utility.size < LARGE else max(0.1 * self.limits.gap, 1e-7)
        # A search that is cut off leaves a valid bound, and prices good enough for the repair.
        most_evaluations = 1
        if self.in_time():
            most_evaluations = int(
                min(self.limits.evaluations, steps(self.limits.work, "prices", len(utility) * types))
            )
        searched = search_prices(utility, self.configs, hulls, self.prices, tolerance, most_evaluations)
        self.prices = searched.prices
        self.bound = searched.bound
        self.choice = np.empty(len(utility), np.int64)
        assignment = Assignment(self.choice, np.empty(types))
        round_mix(utility, self.configs, hulls, searched, assignment)
        self.objective = repair(utility, self.configs, hulls, self.prices, assignment, PASSES)

    @property
    def slack(self) -> float:
        """How far the objective may stay below the bound."""
        by_gap = self.limits.gap * abs(self.objective)
        return max(by_gap, self.problem.quantum * (1 - 1e-6), 1e-12 * abs(self.bound))

    def close(self):
        """Close the gap over the choices that could be part of anything better."""
        limit = self.bound - self.objective - self.slack
        if not self.limits.labels or limit <= 0 or not self.in_time():
            return
        core = core_choices(self.problem.utility, self.configs, self.prices, limit)
        exact = self.limits.cells > 0 and find_spec("highspy") is not None
        top = self.bound
        labels = int(min(self.limits.labels, steps(self.limits.work, "labels", 1)))
        quick = min(QUICK, labels) if exact else labels
        if not self._labels(core, limit, quick) and exact and self.in_time():
            self._cells(core, limit, top)

    def _labels(self, core, limit, labels) -> bool:
        """Close it by labels; return whether that succeeded."""
        width = max(labels // len(core.config), 1)
        least_loss, picks, dropped = close_gap(core, self.configs, self.prices, limit, width)
        top = self.bound
        if len(picks):
            self.choice = picks
            self.objective = top - least_loss
        # All other choices lose as much at least (the limit, if no choice loses less), or as much as a label that was given up.
        self.bound = top - min(least_loss, dropped)
        return self.bound - self.objective <= self.slack + 1e-9 * abs(self.bound)

    def _cells(self, core, limit, top):
        """Close it by HiGHS over the cells that lose least; a choice with another one is worth `top` less its loss at most."""
        choice_counts = np.diff(core.first)
        job = np.repeat(np.arange(len(choice_counts)), choice_counts)
        is_open = np.repeat(choice_counts > 1, choice_counts)
        if is_open.sum() > self.limits.cells:
            limit = np.partition(core.loss[is_open], self.limits.cells)[self.limits.cells]
        cheap = (core.loss < limit) | (core.loss == 0)
        open_cells = (core.config >= 0) & cheap
        config = self.configs.order[core.config[open_cells]]
        try:
            closed = self.closed(job[open_cells], config, slack=self.slack, gap=0.0)
        except OutOfTime as error:
            self.late |= error.status == "time limit"
            return
        worth = worth_of(self.problem, closed.choice)
        if worth > self.objective:
            self.objective = worth
            self.choice = self._in_order(closed.choice)
        self.bound = min(self.bound, max(closed.bound, top - limit))

    def found(self) -> Choices:
        """Return the best `Choices`, in the caller's order of configurations."""
        answer = np.where(self.choice >= 0, self.configs.order[self.choice], -1)
        objective = worth_of(self.problem, answer)
        bound = max(float(self.bound), objective)
        if bound - objective < self.problem.quantum * (1 - 1e-7):
            bound = objective
        done = relative_gap(objective, bound) <= max(self.limits.gap, 1e-9)  # to rounding
        status = "time limit" if self.late else "optimal" if done else "stopped"
        return Choices(answer, objective, bound, self.prices, status)
