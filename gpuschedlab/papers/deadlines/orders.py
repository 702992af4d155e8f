"""Rules for deadlines that need no program: Hydra's order, and two bars of our own for every program to clear."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gpuschedlab.knobs import Knob
from gpuschedlab.policies.simple import Interval, Patience, Placement
from gpuschedlab.sim.ordered import Ordered

AFTER = 1e11
"""Added to the key of jobs that come after all of another kind (s)."""


@dataclass(frozen=True)
class Hydra(Ordered):
    """Jobs with deadlines before all others, the shortest remaining time first among each; no job is suspended.

    Differs from the paper in
    -------------------------
    It follows the reduction in UniSched's evaluation, on GPUs of one kind; Hydra itself searches, by branch and bound, for
    the order with the least completion times and penalties for tardiness.

    References
    ----------
    Yang et al., Hydra, TPDS 2023; Gao, PhD thesis, NTU 2025, section 5.4.3.

    Examples
    --------
    >>> Hydra().preemptive
    False
    """

    placement: Placement = "consolidate"
    patience: Patience = 86_400
    interval: Interval = 0
    moving = "none"

    @staticmethod
    def key(now: float, job: np.void, knobs: np.void) -> float:
        """Estimated duration (s), after `AFTER` if there is no deadline to be met.

        Return it, a float.
        """
        return job.estimate + (0.0 if job.kind > 0 else AFTER)


@dataclass(frozen=True)
class TriagedEdf(Ordered):
    """Earliest deadline first among the jobs that can still be in time; then all others by remaining time.

    Differs from the paper in
    -------------------------
    No paper has it: it is ours, a bar for the programs. Of soft deadlines it sees the first.

    Examples
    --------
    >>> TriagedEdf().interval
    300
    """

    placement: Placement = "consolidate"
    patience: Patience = 86_400
    interval: Interval = 300
    preemptive = True

    @staticmethod
    def key(now: float, job: np.void, knobs: np.void) -> float:
        """Deadline (s) while it can be met, otherwise remaining time (s) after `AFTER`.

        Return it, a float.
        """
        seconds_left = max(0.0, job.estimate - job.progress)
        return job.deadline if job.kind > 0 and now + seconds_left <= job.deadline else AFTER + seconds_left


@dataclass(frozen=True)
class Urgent(Ordered):
    """Shortest remaining time first, but jobs that must start soon to be in time before all, and late ones last.

    Differs from the paper in
    -------------------------
    No paper has it: it is ours, a bar for the programs. Of soft deadlines it sees the first.

    Examples
    --------
    >>> Urgent(laxity=600).knobs["laxity"]
    600
    """

    laxity: Annotated[float, Knob(0, 86_400, unit="s", help="time to spare below which a job is urgent")] = 1800
    placement: Placement = "consolidate"
    patience: Patience = 86_400
    interval: Interval = 300
    preemptive = True

    @staticmethod
    def key(now: float, job: np.void, knobs: np.void) -> float:
        """Time to spare (s) of urgent jobs less `AFTER`, remaining time (s), and that after `AFTER` for late ones.

        Return it, a float.
        """
        seconds_left = max(0.0, job.estimate - job.progress)
        spare = job.deadline - now - seconds_left
        if job.kind == 0:
            return seconds_left
        if spare < 0:
            return AFTER + seconds_left
        return spare - AFTER if spare < knobs.laxity else seconds_left
