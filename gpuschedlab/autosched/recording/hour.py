"""One recorded hour: what a tuner saw, foresaw, tried and decided at its beginning."""

from dataclasses import dataclass, field
from typing import NamedTuple

STEP = 1800.0
AHEAD = 24
SAMPLED = 4
"""Seconds in which arrivals are counted, hours of a future that are kept, and rejected configurations of an hour that are measured."""
FUTURES = 9
BUCKETS = 12
POINTS = 21
"""Likely futures; five-minute counts of an hour; points of a response curve."""


class Trial(NamedTuple):
    """A configuration of a search.

    `round` counts from 1; up to 0 are those measured before: the default, what was in force, the hints. `fate` is "measured",
    "rejected" or "known". `predicted` and `reward` are times the default's (None where nothing was predicted, or measured);
    `u` (k,) its coordinates, 0 to 1, in the order of `Recording.axes`. `would`: what a rejected one was measured as afterwards, for
    the recording, times the default's; None where it was not.
    """

    round: int
    fate: str
    predicted: float | None
    reward: float | None
    u: list[float]
    would: float | None = None


@dataclass(frozen=True)
class Hour:
    """What was recorded at one decision of AutoSched, before the hour after it was played; times in s."""

    now: float  # instant
    recent: list[int]  # (12,) submissions of the last hour, in five minutes each
    nearest: list[int]  # (12,) those of the past hour most like it, after which the first future goes on
    nearest_at: float  # end of that hour; below 0 in the history
    jobs: list[list[int]]  # (9, 48) of each likely future, by rank: jobs that come in each half hour of the next day
    service: list[list[float]]  # (9, 48) GPU-hours that these ask for
    horizon: list[list[float]]  # (9, 2) jobs and GPU-hours of each future over its whole horizon
    owed: list[float]  # (9,) GPU-hours that the jobs in the system still ask for, as predicted in each future
    turn: int  # rank of the future that was searched on
    cause: str  # why it tuned: "day" or "burst", a wide search, or "hour", a check
    trials: list[Trial] = field(repr=False)
    ranks: list[int]  # futures that finalists were measured on again
    saved: int  # configurations that the model rejected, and that no round measured
    again: list  # finalists: coordinates, and their gain over what was in force on each of `ranks` (as many as were measured)
    gain: float  # of the best, measured again where it was
    interval: list  # ends of its 90 % interval over `ranks` where it switched; None elsewhere
    realised: list  # where it switched, average JCT without over with it on the true days, its 95 % interval, and jobs; else empty
    threshold: float  # gain above which it switches
    switched: bool
    reason: str  # the rule in words
    sentence: str  # causes of the change in JCT where it switched
    before: list[float]  # (k,) coordinates in force before the decision
    after: list[float]  # (k,) and after it
    knobs: dict  # in force after it
    graph: int  # number in `Recording.graphs`
    strengths: list = field(repr=False)  # of each edge of the graph: `strengths`, in the samples learnt from so far
    # By axis, predicted reward (times the default's) at 21 coordinates from 0 to 1, or at those of a category: mean, 10 % and
    # 90 % point; the others are as in force after the decision.
    curves: dict = field(repr=False)
