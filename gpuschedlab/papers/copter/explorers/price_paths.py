"""Two ways down to the least bound: all prices of a round together, by COpter, and one price after another."""

import numpy as np
from scipy.optimize import minimize_scalar

from gpuschedlab import plots
from gpuschedlab.optim import MultipleChoice
from gpuschedlab.optim.programs.shims import possible_cells, relaxed
from gpuschedlab.papers.copter.explorers.similar_rounds import SimilarRounds
from gpuschedlab.papers.copter.solver.proximal import Copter
from gpuschedlab.papers.copter.solver.rounds import bound_at

STEPS = 30
"""Proximal steps, or moves of one price, at most."""


def copter_prices(problem: MultipleChoice, tol: float = 1e-5) -> np.ndarray:
    """Return an array (steps + 1, T): the prices of the types after each proximal step of COpter, from nothing."""
    types = len(problem.capacity)
    program = relaxed(problem, possible_cells(problem))
    path = [np.zeros(types)]
    for steps in range(1, STEPS):
        answer = Copter(tol=tol, steps=steps).solve(program)
        path.append(np.maximum(answer.duals[-types:], 0.0))
        if answer.status == "optimal":
            break
    return np.array(path)


def descent_prices(problem: MultipleChoice, moves: int = STEPS) -> np.ndarray:
    """Return an array (k, T) of the prices of a coordinate descent on the bound.

    One after the other goes to its best, until none moves.
    """
    cells = possible_cells(problem)
    prices = np.zeros(len(problem.capacity))
    highest = float(np.nanmax(problem.utility / problem.gpus))
    least_bound = bound_at(problem, cells, prices)
    path: list[np.ndarray] = []
    while len(path) < moves and _moved(path, prices, 1e-5 * highest):
        path.append(prices.copy())
        coordinate = (len(path) - 1) % len(prices)
        answer = _best_along(problem, cells, prices, coordinate, highest)
        if answer.fun < least_bound:
            prices = _with(prices, coordinate, answer.x)
            least_bound = answer.fun
    return np.array([*path, prices])


def _moved(path: list[np.ndarray], prices: np.ndarray, least: float) -> bool:
    """Whether some price has moved in the last two moves; at the beginning it counts as moved."""
    if len(path) < 2:
        return True
    largest_move = np.abs(prices - path[-2]).max()
    return bool(largest_move > least)


def _with(prices: np.ndarray, coordinate: int, value: float) -> np.ndarray:
    """Return a copy of the prices with another one in a coordinate, an array."""
    changed = prices.copy()
    changed[coordinate] = value
    return changed


def _best_along(problem: MultipleChoice, cells, prices: np.ndarray, coordinate: int, highest: float):
    """Search the price of one type that gives the least bound; return scipy's `OptimizeResult`. The other prices stay."""
    return minimize_scalar(
        lambda value: bound_at(problem, cells, _with(prices, coordinate, value)),
        bounds=(0.0, highest),
        method="bounded",
        options={"xatol": 1e-6 * highest},
    )


def price_map(rounds: SimilarRounds, size: int = 48) -> plots.Landscape:
    """Return the `Landscape` of the bound over the prices of two GPU types, with two ways down to the least one."""
    second = rounds.programs()[1]
    two_types = second.kinds < 2
    utility = second.utility[:, two_types]
    problem = MultipleChoice(utility, second.kinds[two_types], second.gpus[two_types], second.capacity[:2])
    cells = possible_cells(problem)
    paths = {"copter": copter_prices(problem), "one price at a time": descent_prices(problem)}
    all_prices = np.concatenate(list(paths.values()))
    top = 1.15 * all_prices.max(axis=0) + 1e-6
    horizontal = np.linspace(0.0, top[0], size)
    vertical = np.linspace(0.0, top[1], size)
    bound = np.empty((size, size))
    for price_row, second_price in enumerate(vertical):
        for column, first_price in enumerate(horizontal):
            bound[price_row, column] = bound_at(problem, cells, np.array([first_price, second_price]))
    least = min(bound.min(), *(bound_at(problem, cells, path[-1]) for path in paths.values()))
    above = np.log10(np.maximum(bound / max(least, 1e-12) - 1, 1e-4))
    map_titles = ("Two types alone: bound by prices", "price of type 0", "price of type 1", "above least, 10^")
    return plots.Landscape(*map_titles, horizontal, vertical, np.round(4 * above) / 4, paths)
