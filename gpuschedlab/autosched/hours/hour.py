"""One decided hour as plain data: the state that a tuner saw at its beginning, its forecasts, trials and decision."""

from dataclasses import dataclass, field
from typing import NamedTuple

from gpuschedlab.autosched.causal.graph import CausalGraph
from gpuschedlab.autosched.tuner.space import Axis

STEP = 1800.0
AHEAD = 24
"""Seconds in which arrivals are counted, and hours of a forecast that are shown at most."""
BUCKETS = 12
"""Counts of an hour: of five minutes each."""


class HourTrial(NamedTuple):
    """A configuration of a search.

    `round` counts from 1; up to 0 are those measured before: the default, the policy in force, the hints. `fate` is "measured",
    "rejected" or "known". `predicted` and `reward` are times the default's (None if nothing was predicted, or measured);
    `u` (k,) its coordinates, 0 to 1, in the order of `Hour.axes`. `would`: reward of a rejected one, measured afterwards, times the
    default's; None if it is not measured.
    """

    round: int
    fate: str
    predicted: float | None
    reward: float | None
    u: list[float]
    would: float | None = None


@dataclass(frozen=True)
class Hour:
    """Events at one decision of a tuner, before the hour after it was played; times in s."""

    now: float  # instant
    ahead: float  # how far the forecast is shown
    recent: list[int]  # (12,) submissions of the last hour, in five minutes each
    nearest: list[int]  # (12,) those of the past hour most like it; empty if the tuner looks for none
    nearest_at: float  # end of that hour; below 0 in the history
    jobs: list[list[float]]  # of each likely future, by rank: jobs that come in each half hour
    service: list[list[float]]  # GPU-hours that these ask for
    owed: list[float]  # GPU-hours that the jobs in the system still ask for, as predicted in each future
    turn: int  # rank of the future that was searched on
    trials: list[HourTrial] = field(repr=False)
    ranks: list[int]  # futures that finalists were measured on again
    saved: int  # configurations that the model rejected, and that no round measured
    again: list  # finalists: coordinates, and their gain over what was in force on each of `ranks` (as many as were measured)
    gain: float  # of the best, measured again where it was
    threshold: float  # gain above which it switches
    switched: bool
    reason: str  # the rule in words
    sentence: str  # knobs that changed and what was promised
    axes: tuple[Axis, ...] = field(repr=False)  # coordinates of the policy's knobs
    default: list[float]  # (k,) coordinates of the policy as it comes
    before: list[float]  # (k,) coordinates in force before the decision
    after: list[float]  # (k,) and after it
    graph: CausalGraph | None = field(repr=False)  # that the model asked; None if the tuner has no model
    strengths: dict = field(repr=False)  # of each edge of the graph: `strengths`, in the samples learnt from so far
    place: int  # number of the last switch in the line
