"""First come first served, shortest first, earliest deadline: the orders that need no paper of their own."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from gpuschedlab.knobs import Knob
from gpuschedlab.sim.ordered import Ordered, Plan

PLACEMENTS = ("pack", "spread", "widest", "consolidate", "relax", "buddy")

Placement = Annotated[str, Knob(choices=PLACEMENTS, help="which nodes a job is given")]
Backfill = Annotated[
    str, Knob(choices=("none", "easy", "greedy", "plan"), words="backfill", help="jobs that pass one that waits")
]
Depth = Annotated[
    float, Knob(0, 100, step=1, unlimited=True, unit="jobs", help="that a plan promises a start (backfill plan)")
]
Interval = Annotated[float, Knob(0, 3600, unit="s", words="decides every", help="between decisions; 0: at every event")]
Skew = Annotated[float, Knob(0, 1, help="relative speed when spread below which a job waits for consolidation")]
Patience = Annotated[float, Knob(0, 86_400, unit="s", help="waiting after which a job takes any nodes (rule relax)")]


@dataclass(frozen=True)
class Fifo(Ordered):
    """First come, first served; no job is suspended.

    With `backfill="none"` a job that does not fit holds up all behind it; "easy" lets later jobs pass if, by the
    estimates, they do not delay it (Lifka, JSSPP'95); "greedy" lets all pass that fit; "plan" lets those pass that do not delay the
    first `depth` ones (inf: conservative backfill), as `Plan` says.

    Differs from the paper in
    -------------------------
    Nothing known. Nothing is reserved for a job that needs nodes which are
    down, since no scheduler knows when they will be repaired: jobs behind it pass.

    Examples
    --------
    >>> Fifo(backfill="easy").knobs["backfill"]
    'easy'
    """

    backfill: Backfill = "none"
    placement: Placement = "consolidate"
    patience: Patience = 86_400
    interval: Interval = 0
    depth: Depth = 1
    plan: Plan = Plan()
    moving = "none"
    set_aside: ClassVar = (*Ordered.set_aside, "depth")
    first = "jobs submitted before it"

    @staticmethod
    def key(now: float, job: np.void, knobs: np.void) -> float:
        """Instant of submission (s).

        Return it, a float.
        """
        return job.submit


@dataclass(frozen=True)
class Sjf(Fifo):
    """Shortest job first, by estimated duration; no job is suspended.

    Differs from the paper in
    -------------------------
    Nothing known.

    Examples
    --------
    >>> Sjf().preemptive
    False
    """

    backfill: Backfill = "greedy"
    first = "shorter jobs"

    @staticmethod
    def key(now: float, job: np.void, knobs: np.void) -> float:
        """Estimated duration (s).

        Return it, a float.
        """
        return job.estimate


@dataclass(frozen=True)
class Srtf(Ordered):
    """Shortest remaining time first, by estimate; running jobs are suspended for shorter ones.

    Differs from the paper in
    -------------------------
    Nothing known; a job that outlives its estimate counts as about to end.

    Examples
    --------
    >>> Srtf().preemptive
    True
    """

    placement: Placement = "consolidate"
    patience: Patience = 86_400
    interval: Interval = 0
    preemptive = True
    moving = "falling"
    first = "jobs with less time left"

    @staticmethod
    def key(now: float, job: np.void, knobs: np.void) -> float:
        """Estimated remaining time (s).

        Return it, a float.
        """
        return max(0.0, job.estimate - job.progress)


NEVER = 1e300
"""Deadline (s) of jobs that have none."""


@dataclass(frozen=True)
class Edf(Ordered):
    """Earliest deadline first; jobs without one come last, in order of submission.

    Differs from the paper in
    -------------------------
    Nothing known.

    Examples
    --------
    >>> Edf(preemptive=False).preemptive
    False
    """

    preemptive: Annotated[bool, Knob(help="whether an earlier deadline suspends a later one")] = True
    placement: Placement = "consolidate"
    patience: Patience = 86_400
    interval: Interval = 0
    moving = "none"
    first = "jobs with earlier deadlines"

    @staticmethod
    def key(now: float, job: np.void, knobs: np.void) -> float:
        """Deadline (s from the trace's zero).

        Return it, a float.
        """
        return min(job.deadline, NEVER)
