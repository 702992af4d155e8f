"""A multiple-choice knapsack by prices: at most one configuration a job, and a capacity a GPU type.

The dual of its linear relaxation has one unknown a type: the price of a GPU. For each job and type the upper hull of
value over GPUs is built once; then the best choices at given prices are a binary search each, some 40 prices are
tried, a greedy repair makes the choices fit, and what gap remains is closed by labels over the few choices that it
leaves open.
"""

from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import SolverError
from gpuschedlab.optim._dual import build_hulls, search_prices
from gpuschedlab.optim._labels import close_gap, core_choices
from gpuschedlab.optim._repair import repair, round_mix
from gpuschedlab.optim.program import relative_gap


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
    v, kind, gpus, capacity = _check(utility, type_of_config, gpus_of_config, capacity)
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
    slack = max(gap * abs(objective), quantum * (1 - 1e-6), 1e-12 * abs(bound))
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
    closed = bound - objective < quantum * (1 - 1e-7)
    return Choices(answer, objective, objective if closed else max(float(bound), objective), best)


def _check(utility, type_of_config, gpus_of_config, capacity):
    """The arguments as arrays, checked at the door."""
    v = np.ascontiguousarray(utility, float)
    kind, gpus, room = (np.asarray(a) for a in (type_of_config, gpus_of_config, capacity))
    if v.ndim != 2 or kind.shape != (v.shape[1],) or gpus.shape != kind.shape or room.ndim != 1:
        raise SolverError(
            f"solve_mckp: found utility {v.shape}, types {kind.shape}, GPUs {gpus.shape}, capacity {room.shape}; "
            "expected (n, C), (C,), (C,), (T,)."
        )
    if kind.size and not 0 <= kind.min() <= kind.max() < room.size:
        raise SolverError(f"solve_mckp: found type {kind.max()}; expected 0 to {room.size - 1}, as capacity says.")
    if (gpus != np.floor(gpus)).any() or (gpus < 1).any() or (room != np.floor(room)).any() or (room < 0).any():
        raise SolverError("solve_mckp: found GPUs that are not whole or below 1; count in a smaller unit.")
    if np.isinf(v).any():
        raise SolverError("solve_mckp: found an infinite utility; expected numbers, or nan where impossible.")
    return v, kind.astype(np.int64), gpus.astype(np.int64), room.astype(np.int64)
