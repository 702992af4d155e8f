"""Sia's round: which configuration each job gets (thesis 3.3.3 and 3.3.4)."""

from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import njit, plain_array
from gpuschedlab.errors import SolverError
from gpuschedlab.optim import MultipleChoice
from gpuschedlab.policies.restarts import restart_factor

CLIP = 3000.0
"""Largest normalised goodput raised to the power (artifact's `sia_goodput_clip_val`)."""


def sia_utility(
    goodput: np.ndarray,
    gpus: np.ndarray,
    *,
    power: float = -0.5,
    penalty: float | np.ndarray = 1.1,
    decimals: int = 2,
    factor: np.ndarray | None = None,
    current: np.ndarray | None = None,
) -> np.ndarray:
    """Return an array: worth of each configuration to each job, against nothing at 0 (equation 3.4).

    With G the goodput over the row's least, times the GPUs of that least configuration, and r the restart factor
    where the configuration is not the current one: penalty - (r G)^p for p < 0, (r G)^p + penalty for p > 0.

    Parameters
    ----------
    goodput : (n, C) float array
        Progress a second; nan or 0 if impossible.
    gpus : (C,) int array
        GPUs of each configuration.
    power : float
        Fairness p, not 0.
    penalty : float or (n,) float array
        Cost lambda of a job without GPUs.
    decimals : int
        Digits to which (r G)^p is rounded; below 0: not at all.
    factor : (n,) float array, optional
        Restart factors.
    current : (n,) int array, optional
        Configuration that each job runs in, -1 for none: exempt from the factor.

    Returns
    -------
    (n, C) float array
        nan if impossible.

    Raises
    ------
    SolverError
        p is 0.

    Examples
    --------
    >>> sia_utility([[1.0, 1.8]], gpus=[1, 2]).tolist()
    [[0.10000000000000009, 0.3500000000000001]]
    """
    if power == 0:
        raise SolverError(
            "sia_utility: found power 0, under which all configurations are alike; expected p below or above 0."
        )
    goodput = plain_array(np.atleast_2d(goodput), float)
    n = len(goodput)
    gpus = plain_array(gpus, float)
    penalties = plain_array(np.broadcast_to(penalty, n), float)
    if factor is None:
        factor = np.ones(n)
        current = np.full(n, -1)
    moves = _Moves(plain_array(current, np.int64), plain_array(factor, float))
    return _utilities(goodput, gpus, penalties, moves, _Scale(float(power), decimals, CLIP))


class _Moves(NamedTuple):
    """Costs of moving n jobs."""

    current: np.ndarray  # (n,) configuration that each job runs in, -1 for none
    factor: np.ndarray  # (n,) factor of the goodput of its other configurations


class _Scale(NamedTuple):
    """From normalised goodput to utility."""

    power: float  # fairness p
    decimals: int  # digits to which powers are rounded; below 0: not at all
    clip: float  # largest power


@njit
def _utilities(goodput, gpus, penalty, moves, scale):
    """Return an array (n, C), the utilities of `sia_utility`, row by row."""
    current = moves.current
    power = scale.power
    decimals = scale.decimals
    utilities = np.full(goodput.shape, np.nan)
    digits = 10.0 ** max(decimals, 0)
    for i in range(goodput.shape[0]):
        least = -1
        for c in range(goodput.shape[1]):
            if goodput[i, c] > 0 and (least < 0 or goodput[i, c] < goodput[i, least]):
                least = c
        for c in range(goodput.shape[1]):
            if not goodput[i, c] > 0:
                continue
            G = goodput[i, c] * (gpus[least] / goodput[i, least])
            if current[i] >= 0 and c != current[i]:
                G *= moves.factor[i]
            powered = scale.clip
            if G != 0 or power >= 0:
                powered = min(G**power, scale.clip)
            if decimals >= 0:
                powered = np.rint(powered * digits) / digits
            if power < 0:
                utilities[i, c] = penalty[i] - powered
            else:
                utilities[i, c] = powered + penalty[i]
    return utilities


def sia_steady_for(
    goodput: np.ndarray,
    gpus: np.ndarray,
    *,
    age: np.ndarray,
    restarts: np.ndarray,
    restart: np.ndarray,
    current: np.ndarray,
    power: float = -0.5,
    decimals: int = 2,
) -> float:
    """Return the time (s, a float) for which `sia_utility` stays as it is, if only time passes.

    The restart factor r = (T - N S) / (T + S) rises with the age T, and (r G)^p moves to where it is rounded to another
    number. Solved for T at that edge, this gives the instant for each job and configuration; the first one counts.

    Parameters
    ----------
    goodput, gpus, power, decimals, current
        As in `sia_utility`.
    age, restarts, restart
        As in `restart_factor`.

    Returns
    -------
    float
        Seconds, never too many; inf: for good. 0 if utilities are not rounded and a job could move.

    Examples
    --------
    >>> job = {"restarts": [0], "restart": [30.0], "current": [0]}
    >>> round(sia_steady_for([[1.0, 1.8]], [1, 2], age=[600.0], **job), 1)
    551.9
    >>> factor = restart_factor(np.array([[600.0], [1151.7], [1152.0]]), 0, 30.0)
    >>> sia_utility([[1.0, 1.8]] * 3, [1, 2], factor=factor[:, 0], current=[0] * 3)[:, 1].round(2).tolist()
    [0.34, 0.34, 0.35]
    """
    moving = np.asarray(current) >= 0
    moving_count = np.count_nonzero(moving)
    goodput = plain_array(np.asarray(goodput, float)[moving], float)
    gpus = plain_array(gpus, float)
    stays = _Moves(np.full(moving_count, -1), np.ones(moving_count))
    as_it_is = _Scale(1.0, -1, np.inf)
    G = _utilities(goodput, gpus, np.zeros(moving_count), stays, as_it_is)  # goodputs over the least
    G[np.arange(len(G)), np.asarray(current)[moving]] = np.nan
    if np.isnan(G).all():
        return np.inf
    if decimals < 0:
        return 0.0
    age, N, S = (np.asarray(a, float)[moving, None] for a in (age, restarts, restart))
    with np.errstate(divide="ignore", invalid="ignore"):
        powered = (restart_factor(age, N, S) * G) ** power
        rounded = np.round(np.minimum(powered, CLIP), decimals)
        edge = rounded + np.sign(power) * 0.5 * 10.0**-decimals
        factor_at_edge = np.maximum(edge, 0.0) ** (1 / power) / G
        r = np.where(edge > 0, factor_at_edge, np.inf) - 1e-12  # too early rather than late
        reached = np.where(r < 1, (N + r) * S / (1 - r), np.inf)
    reached = np.where(np.isnan(G), np.inf, np.where(age < S, S, reached))
    return float(max((reached * (1 - 1e-9) - age).min(), 0.0))


def sia_round(
    utility: np.ndarray,
    type_of_config: np.ndarray,
    gpus_of_config: np.ndarray,
    capacity: np.ndarray,
    quantum: float = 0.0,
    mandatory: np.ndarray | None = None,
    keys: np.ndarray | None = None,
) -> MultipleChoice:
    """Return the `MultipleChoice` of Sia's integer program (equation 3.4) on utilities against no allocation.

    maximise sum u_ij x_ij subject to sum_j x_ij <= 1 for each job i (= 1 for those that must run), and
    sum gpus_j x_ij <= capacity_t for each type t, x binary.

    Parameters
    ----------
    utility : (n, C) float array
        From `sia_utility`; nan if impossible.
    type_of_config, gpus_of_config : (C,) int arrays
    capacity : (T,) int array
        GPUs of each type.
    quantum : float
        Step that all utilities are multiples of, 0 for nothing.
    mandatory : (n,) bool array, optional
        Jobs that must run (3.3.4, preemption and reservation).
    keys : (n,) int array, optional
        Name of each job from round to round (copter starts from the last round's shares).

    Returns
    -------
    MultipleChoice
        n rows for jobs, then T for types; variables laid out (n, C).

    Examples
    --------
    >>> from gpuschedlab.optim import solve
    >>> solve(sia_round([[3.0, 5.0], [2.0, 4.5]], [0, 0], [1, 2], [3])).table.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    utility = np.atleast_2d(np.asarray(utility, float))
    return MultipleChoice(utility, type_of_config, gpus_of_config, capacity, quantum, "Sia round", mandatory, keys)
