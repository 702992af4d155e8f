"""Themis (Mahajan et al., NSDI'20): finish-time fairness by leases and a partial auction."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from gpuschedlab.knobs import Knob
from gpuschedlab.policies.simple import Placement
from gpuschedlab.sim.policy import Ordered

TIME = 0


@dataclass(frozen=True)
class Themis(Ordered):
    """Offer the GPUs of ended leases to the jobs that are treated worst, and among them to those that are served least.

    A started job keeps its GPUs for a lease, which ends on a full minute. When leases end, and at arrivals and
    completions, the (1 - f) share of competing jobs with the largest rho goes first, in order of least executed time
    or attained service; the others take what is left. rho is the job's finish time if it ran from now on, over its
    time alone on a 1/n share of the cluster, n being the average contention it has met.

    Differs from the paper in
    -------------------------
    The auction's bids are replaced by an order, as in the AutoSched thesis (6.6.4): no hidden payments, no random
    allocation of leftovers. rho uses the policy's estimate of the duration.

    References
    ----------
    Mahajan et al., Themis, NSDI'20, sections 3 and 5; knobs as in the AutoSched thesis, 6.6.4.

    Examples
    --------
    >>> Themis(f=0.5).fraction
    0.5
    """

    lease_term: Annotated[
        float,
        Knob(60, 86_400, log=True, unit="s", help="time for which a started job keeps its GPUs", tuned=(300, 86_400)),
    ] = 1800.0
    priority: Annotated[
        str, Knob(choices=("time", "service"), help="least executed time or attained service first")
    ] = "service"
    f: Annotated[float, Knob(0, 0.99, help="fairness knob: 1 - f of the jobs, the worst treated, go first")] = 0.8
    threshold: Annotated[
        float, Knob(0, 1, help="relative speed when spread below which a job waits for consolidation")
    ] = 0.9
    placement: Placement = "relax"
    preemptive = True
    lease_grid = 60.0
    moving = "running"
    goal: ClassVar = "fair"
    watched: ClassVar = ("queueing", "utilisation", "overhead", "preemptions", "slowdown", "backlog")

    @property
    def lease(self) -> float:
        """Seconds for which a started job may not be suspended."""
        return self.lease_term

    @property
    def fraction(self) -> float:
        """Share of jobs that the gate lets pass."""
        return 1 - self.f

    @property
    def skew(self) -> float:
        """Relative speed below which rule "relax" insists."""
        return self.threshold

    @staticmethod
    def key(now: float, job: np.void, knobs: np.void) -> float:
        """Executed time (s) or attained service (GPU-s)."""
        return job.executed if knobs.priority == TIME else job.attained

    @staticmethod
    def gate(now: float, job: np.void, knobs: np.void) -> float:
        """Minus rho."""
        left = max(0.0, job.estimate - job.progress)
        return -(now - job.submit + left) / (job.estimate * job.contention)
