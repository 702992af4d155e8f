"""Terms that smooth ones lack: steps of a setting, as a scheduler's threshold makes, and products of the columns held fixed."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

PLACES = 20
"""A step may lie at each of so many quantiles of a setting but the outer ones; the best is then moved between its neighbours."""
SURE = 25.0
"""Squared t from which on a term enters: the greatest of some hundred that are chance is below it in 99.99 % of logs."""
MOST = 12
"""Terms that enter at most."""
NEAR = 12
NEAREST = 30
"""Rows of a twelfth of the log, and at least so many, are near a setting."""
HEAVIEST = 5.0
"""Weight of a row near a setting at most, beside the middle one."""

Terms = Callable[[np.ndarray], np.ndarray]
"""Terms (n, t) at a setting (n,)."""


@dataclass(frozen=True)
class Entered:
    """Terms that entered: `at` gives them (n, t) at a setting (n,); `steps` are places of steps, nan of other terms."""

    at: Terms
    steps: tuple[float, ...]


def entered(smooth: Terms, a: np.ndarray, y: np.ndarray, line: np.ndarray, steps: bool) -> Entered:
    """Return, as `Entered`, terms that explain the part of y (n,) that smooth terms (n, t) of a setting a (n,) leave.

    They are chosen one after the other, the best first.

    Steps of the setting (if it takes many values), their products with columns `line` (n, p), and products of two columns.
    """
    column_pairs = itertools.combinations_with_replacement(line.T, 2)
    products = np.column_stack(
        [np.empty((len(a), 0)), *(first_column * second_column for first_column, second_column in column_pairs)]
    )
    factors = np.column_stack([np.ones(len(a)), line])
    grid = np.empty(0)
    if steps:
        grid = np.unique(np.quantile(a, np.arange(1, PLACES) / PLACES))
    unexplained = _Unexplained(smooth(a), y)
    terms: list[Terms] = []
    borders: list[float] = []
    while len(terms) < MOST and unexplained.free > 1:
        candidates = [(*unexplained.best(products), -1)]
        for factor in range(factors.shape[1]):
            stepped = (a[:, None] > grid) * factors[:, factor : factor + 1]
            candidates.append((*unexplained.best(stepped), factor))
        score, entered_column, factor = max(candidates)
        if score < SURE:
            break
        if factor < 0:
            term = _product(products[:, entered_column])
            border = float("nan")
        else:
            border = unexplained.moved(a, grid, entered_column, factors[:, factor])
            term = _step(border, factors[:, factor])
        unexplained.take(term(a)[:, 0])
        terms.append(term)
        borders.append(border)

    def terms_at(asked_setting):
        return np.hstack([np.empty((len(a), 0)), *(term(asked_setting) for term in terms)])

    return Entered(terms_at, tuple(borders))


def _product(product_column: np.ndarray) -> Terms:
    return lambda asked_setting: product_column[:, None]


def _step(threshold: float, factor: np.ndarray) -> Terms:
    return lambda asked_setting: ((asked_setting > threshold) * factor)[:, None]


class _Unexplained:
    """Part of y (n,) that terms (n, t) leave, and how much of it a further column would explain."""

    def __init__(self, rows: np.ndarray, y: np.ndarray):
        self.basis = np.linalg.qr(rows)[0]
        self.residual = y - self.basis @ (self.basis.T @ y)
        self.free = len(y) - rows.shape[1]

    def scores(self, columns: np.ndarray) -> np.ndarray:
        """Return an array (m,) of the squared t of each column (n, m); 0 of one that the terms hold already."""
        columns = columns - self.basis @ (self.basis.T @ columns)
        column_squares = (columns**2).sum(axis=0)
        least_square = 1e-4 * len(self.residual)
        variance = float(self.residual @ self.residual) / max(self.free, 1)
        explained = (columns.T @ self.residual) ** 2 / np.maximum(column_squares, least_square)
        return np.where(column_squares > least_square, explained, 0.0) / max(variance, 1e-300)

    def best(self, columns: np.ndarray) -> tuple[float, int]:
        """Return the highest score of columns (n, m), and the index of its column, as a tuple; (0, 0) without columns."""
        if not columns.shape[1]:
            return 0.0, 0
        scores = self.scores(columns)
        return float(scores.max()), int(scores.argmax())

    def moved(self, a: np.ndarray, grid: np.ndarray, column: int, factor: np.ndarray) -> float:
        """Best place of a step between the neighbours of a place of the grid, halfway between two values that were seen."""
        low = grid[max(column - 1, 0)]
        high = grid[min(column + 1, len(grid) - 1)]
        settings = np.unique(a[(a >= low) & (a <= high)])
        borders = (settings[1:] + settings[:-1]) / 2
        if not len(borders):
            return float(grid[column])
        _, best = self.best((a[:, None] > borders) * factor[:, None])
        return float(borders[best])

    def take(self, column: np.ndarray):
        """Add a column to the terms."""
        column = column - self.basis @ (self.basis.T @ column)
        column = column / np.sqrt(column @ column)
        self.basis = np.column_stack([self.basis, column])
        self.residual = self.residual - column * (column @ self.residual)
        self.free -= 1


def near_weights(a: np.ndarray, predicted: np.ndarray, setting: float) -> np.ndarray:
    """Return an array (n,) of weights of the rows near a setting, which sum to 1.

    Rows that the columns held fixed make unlikely there weigh more.
    """
    setting_distance = np.abs(a - setting)
    near_count = min(len(a), max(NEAREST, len(a) // NEAR))
    nearest_reach = np.partition(setting_distance, near_count - 1)[near_count - 1]
    kernel_width = max(nearest_reach * (1 + 1e-9), 1e-300)
    near = np.maximum(1 - (setting_distance / kernel_width) ** 2, 0.0)
    setting_deviation = max((a - predicted).std(), 1e-12)
    likely = np.exp(-0.5 * ((setting - predicted) / setting_deviation) ** 2)
    weights = near / np.maximum(likely, 1e-12)
    used = weights > 0
    weights = np.minimum(weights, HEAVIEST * np.median(weights[used]))
    return weights / weights.sum()
