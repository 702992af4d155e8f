"""One recorded hour: what a tuner saw, foresaw, tried and decided at its beginning."""

from dataclasses import dataclass, field
from typing import NamedTuple

STEP, AHEAD = 1800.0, 24
"""Seconds in which arrivals are counted, and hours of a future that are kept."""
FUTURES, BUCKETS, POINTS = 9, 12, 21
"""Likely futures; five-minute counts of an hour; points of a response curve."""


class Trial(NamedTuple):
    """A configuration of a search.

    `round` counts from 1; up to 0 are those measured before: the default, what was in force, the hints. `fate` is "measured",
    "rejected" or "known". `predicted` and `reward` are times the default's (None where nothing was predicted, or measured);
    `u` (k,) its coordinates, 0 to 1, in the order of `Recording.axes`.
    """

    round: int
    fate: str
    predicted: float | None
    reward: float | None
    u: list[float]


@dataclass(frozen=True)
class Hour:
    """What was recorded at one decision of AutoSched, before the hour after it was played.

    Parameters
    ----------
    now : float
        Instant (s).
    recent, nearest : list of int (12,)
        Submissions of the last hour, in five minutes each, and of the past hour after which the first future goes on: the one most
        like it (`GlobalGenerator.match`).
    nearest_at : float
        End of that hour (s; below 0 in the history).
    jobs, service : list of 9 lists (48,)
        Of each likely future, by rank: jobs that come in each half hour of the next day, and the GPU-hours that they ask for.
    horizon : list of 9 pairs
        Jobs and GPU-hours of each future over its whole horizon.
    owed : list of 9 floats
        GPU-hours that the jobs in the system still ask for, as predicted in each future.
    turn : int
        Rank of the future that was searched on.
    cause : {"day", "burst", "hour"}
        Why it tuned: a wide search, or a check.
    trials : list of Trial
    ranks : list of int
        Futures that finalists were measured on again.
    again : list of (u, list of float)
        Finalists: coordinates, and their gain over what was in force on each of `ranks` (as many as were measured).
    gain, threshold, switched : float, float, bool
        Gain of the best, measured again where it was, that above which it switches, and whether it did.
    reason, sentence : str
        The rule in words; causes of the change in JCT where it switched.
    before, after : list of float (k,)
        Coordinates in force before the decision and after it.
    knobs : dict
        Knobs in force after it.
    graph : int
        Number of the graph in `Recording.graphs`.
    strengths : list of (float, int)
        Of each edge of the graph: standardised total effect and sign (`strengths`), in the samples learnt from so far.
    curves : dict of str to three lists (21,)
        By axis, predicted reward (times the default's) at 21 coordinates from 0 to 1, or at those of a category: mean, 10 % and 90 %
        point. The others are as in force after the decision.
    """

    now: float
    recent: list[int]
    nearest: list[int]
    nearest_at: float
    jobs: list[list[int]]
    service: list[list[float]]
    horizon: list[list[float]]
    owed: list[float]
    turn: int
    cause: str
    trials: list[Trial] = field(repr=False)
    ranks: list[int]
    again: list
    gain: float
    threshold: float
    switched: bool
    reason: str
    sentence: str
    before: list[float]
    after: list[float]
    knobs: dict
    graph: int
    strengths: list = field(repr=False)
    curves: dict = field(repr=False)
