"""Proofs that a program has no point, or no best one: rays along which the proximal steps run away."""

import numpy as np

from gpuschedlab.optim.copter.bound import dual_value, signed
from gpuschedlab.optim.copter.scale import Scaled

SURE = 1e6
"""A ray counts where it proves this much more than its own error can undo for a unit of a variable."""


def no_point(scaled: Scaled, ray: np.ndarray) -> bool:
    """Whether prices along a ray prove more than any point can be worth: the program is infeasible (Farkas).

    Examples
    --------
    >>> from gpuschedlab.optim.copter.scale import scale
    >>> two = scale([0.0], [[1.0], [1.0]], [2.0, -np.inf], [np.inf, 1.0], [-np.inf], [np.inf], 1.0)
    >>> no_point(two, np.array([1.0, -1.0])), no_point(two, np.array([1.0, 0.0]))
    (True, False)
    """
    ray = signed(ray, scaled.rl, scaled.ru)
    largest = np.abs(ray).max(initial=0.0)
    if not largest > 0:
        return False
    ray = ray / largest
    reduced = -(scaled.A.T @ ray)
    reduced[np.abs(reduced) < 1e-12] = 0.0
    value, error = dual_value(ray, reduced, scaled.rl, scaled.ru, scaled.low, scaled.high)
    return bool(value > 1e-7 + SURE * error)


def no_best(scaled: Scaled, ray: np.ndarray) -> bool:
    """Whether one can go along a ray for good, always improving.

    Examples
    --------
    >>> from gpuschedlab.optim.copter.scale import scale
    >>> one = scale([-1.0, 0.0], [[1.0, -1.0]], [-np.inf], [0.0], [0.0, 0.0], [np.inf, np.inf], 1.0)
    >>> no_best(one, np.array([1.0, 1.0])), no_best(one, np.array([1.0, 0.0]))
    (True, False)
    """
    ray = np.where(((ray < 0) & np.isfinite(scaled.low)) | ((ray > 0) & np.isfinite(scaled.high)), 0.0, ray)
    largest = np.abs(ray).max(initial=0.0)
    if not largest > 0:
        return False
    ray = ray / largest
    moved = scaled.A @ ray
    over = np.where(np.isfinite(scaled.ru), moved, 0.0).max(initial=0.0)
    under = np.where(np.isfinite(scaled.rl), -moved, 0.0).max(initial=0.0)
    return bool(-float(scaled.c @ ray) > 1e-7 + SURE * max(over, under, 1e-14))
