"""Proofs that a program has no point, or no best one: rays along which the proximal steps run away."""

import numpy as np
import scipy.sparse as sp

from gpuschedlab.optim.copter.groups import Grouped
from gpuschedlab.optim.copter.newton import Answer, Newton

SURE = 1e6
"""A ray counts where it proves this much more than its own error can undo for a unit of a variable."""


def no_point(newton: Newton, ray: np.ndarray) -> bool:
    """Whether prices along a ray prove more than any point can be worth: the program is infeasible (Farkas).

    Examples
    --------
    >>> from gpuschedlab.optim import Program
    >>> from gpuschedlab.optim.copter.groups import grouped
    >>> two = Newton(grouped(Program([0.0], [[1.0], [1.0]], [2.0, -np.inf], [np.inf, 1.0], -np.inf)))
    >>> no_point(two, np.array([1.0, -1.0])), no_point(two, np.array([1.0, 0.0]))
    (True, False)
    """
    ray = np.where(((ray > 0) & ~newton.has_low) | ((ray < 0) & ~newton.has_high), 0.0, ray)
    largest = np.abs(ray).max(initial=0.0)
    if not largest > 0:
        return False
    nothing = np.zeros(len(newton.lp.c))
    found = newton.evaluate(nothing, 1.0, ray / largest, Answer(newton.lp), nothing)
    error = found.worst if found.worst > 1e-12 else 0.0
    return bool(found.proved > 1e-7 + SURE * error)


def no_best(lp: Grouped, ray: np.ndarray) -> bool:
    """Whether one can go along a ray for good, always improving.

    Examples
    --------
    >>> from gpuschedlab.optim import Program
    >>> from gpuschedlab.optim.copter.groups import grouped
    >>> one = grouped(Program([-1.0, 0.0], [[1.0, -1.0]], row_upper=0.0))
    >>> no_best(one, np.array([1.0, 1.0])), no_best(one, np.array([1.0, 0.0]))
    (True, False)
    """
    ray = np.where(((ray < 0) & np.isfinite(lp.low)) | ((ray > 0) & np.isfinite(lp.high)), 0.0, ray)
    ray[: lp.begin[-1]] = 0.0  # a group has room for so much
    largest = np.abs(ray).max(initial=0.0)
    if not largest > 0:
        return False
    ray = ray / largest
    moved = sp.csc_array((lp.val, lp.at, lp.ptr), (len(lp.rl), len(ray))) @ ray
    over = np.where(np.isfinite(lp.ru), moved, 0.0).max(initial=0.0)
    under = np.where(np.isfinite(lp.rl), -moved, 0.0).max(initial=0.0)
    return bool(-float(lp.c @ ray) / lp.scales[1] > 1e-7 + SURE * max(over, under, 1e-14))
