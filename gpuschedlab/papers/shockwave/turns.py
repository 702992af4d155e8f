"""In which of its rounds a plan lets each job run: the turns of the jobs that have planned rounds left."""

from enum import IntEnum

import numpy as np


class Turn(IntEnum):
    """Which jobs are served first in a round."""

    NOW = 0
    """Its planned rounds are as many as are left of the window: if it waits, one of them is lost."""
    PLANNED = 1
    """It has planned rounds left, and may have them later."""
    SPARE = 2
    """It has no planned rounds left, and may have GPUs that are left over."""


def turns_of(unserved: np.ndarray, rounds_left: int) -> np.ndarray:
    """Return an array (n,): turn of each job by its planned rounds that it has not had (n,), and the window's rounds that are left."""
    turn = np.full(len(unserved), Turn.PLANNED)
    turn[unserved >= rounds_left] = Turn.NOW
    turn[unserved <= 0] = Turn.SPARE
    return turn


def order_of_turns(turn: np.ndarray, value: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Return an array (n,): the order in which jobs are served in a round.

    Jobs come by their turn. Those with planned rounds left come by value, the largest first; the others by the seconds that they
    still need, the longest first. Ties keep the order of the jobs.

    Parameters
    ----------
    turn : (n,) int array
        As `turns_of` gives it.
    value : (n,) float array
        Weight of a job in the plan, for each of its planned rounds and GPUs.
    seconds : (n,) float array
        Time that a job would still run.

    Examples
    --------
    >>> turn = turns_of(np.array([0, 1, 2, 0]), rounds_left=2)
    >>> order_of_turns(turn, value=np.array([9.0, 1.0, 0.5, 9.0]), seconds=np.array([60.0, 120.0, 240.0, 90.0])).tolist()
    [2, 1, 3, 0]
    """
    within = np.where(turn == Turn.SPARE, seconds, value)
    return np.lexsort((np.arange(len(turn)), -within, turn))
