"""Themis (Mahajan et al., NSDI'20): finish-time fairness by leases and a partial auction."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from gpuschedlab.knobs import Knob
from gpuschedlab.policies.remaining import requested_rates, work_left
from gpuschedlab.policies.serving import serve
from gpuschedlab.policies.simple import Placement, Skew
from gpuschedlab.sim.ordered import Ordered
from gpuschedlab.sim.policy import Round
from gpuschedlab.sim.rounds.allocation import Allocation

TIME = 0


@dataclass(frozen=True)
class Themis(Ordered):
    """Offer the GPUs of ended leases to the jobs that are treated worst, and among them to those that are served least.

    A started job keeps its GPUs for a lease, which ends on a full minute. When leases end, and at arrivals and
    completions, the (1 - f) share of competing jobs with the largest rho goes first, in order of least executed time
    or attained service; the others take the rest. rho is the job's finish time if it ran from now on, over its
    time alone on a 1/n share of the cluster, n being the average contention it has met, at least 1.

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
        Knob(60, 86_400, True, unit="s", tuned=(300, 86_400), help="lease of a started job", words="keeps GPUs for"),
    ] = 1800.0
    priority: Annotated[
        str, Knob(choices=("time", "service"), help="least executed time or attained service first")
    ] = "service"
    f: Annotated[float, Knob(0, 0.99, help="fairness knob: 1 - f of the jobs, the worst treated, go first")] = 0.8
    threshold: Skew = 0.9
    placement: Placement = "relax"
    preemptive = True
    first = "jobs that have run less"
    lease_grid = 60.0
    moving = "running"
    goals: ClassVar = ("fair",)
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
        """Executed time (s) or attained service (GPU-s).

        Return it, a float.
        """
        return job.executed if knobs.priority == TIME else job.attained

    @staticmethod
    def gate(now: float, job: np.void, knobs: np.void) -> float:
        """Return minus rho, a float."""
        seconds_left = max(0.0, job.estimate - job.progress)
        return -(now - job.submit + seconds_left) / (job.estimate * max(1.0, job.contention))


@dataclass(frozen=True)
class ThemisRounds(Round):
    """Themis for jobs with speed tables: leases of a round, GPUs to the jobs that are treated worst, on their fastest type.

    Each round, the (1 - f) share of the jobs with the largest rho goes first, and among them those with the largest rho;
    then the others. rho is the job's finish time if it ran from now on, on its GPUs of the fastest type, over its time
    alone there on a 1/n share of the cluster, n being the average contention it has met, at least 1.

    Differs from the paper in
    -------------------------
    As in `Themis`, an order takes the place of the auction. All leases last one round, and end together. Work that is
    left follows from the estimate of the duration.

    References
    ----------
    Mahajan et al., Themis, NSDI'20, sections 3 and 5; Jayaram Subramanya, PhD thesis, CMU 2025, 3.4.3 (rounds of 360 s).

    Examples
    --------
    >>> ThemisRounds(f=0.5).interval
    360.0
    """

    f: Annotated[float, Knob(0, 0.99, help="fairness knob: 1 - f of the jobs, the worst treated, go first")] = 0.8
    interval: Annotated[float, Knob(1, 36_000, log=True, unit="s", help="between rounds, which is the lease")] = 360.0
    placement = "pack"
    goals: ClassVar = ("fair",)

    def allocate(self, view) -> Allocation:
        """Order the jobs by fairness, serve them, and return the `Allocation`."""
        job_count = len(view.index)
        T = len(view.capacity)
        if job_count == 0:
            return Allocation(np.empty(0, np.int64), np.empty(0))
        rate = np.nan_to_num(requested_rates(view))
        able = rate > 0
        best_rate = np.maximum(rate.max(axis=1), 1e-300)
        work_of_jobs = work_left(view)
        alone = (view.progress + work_of_jobs) / best_rate * np.maximum(1.0, view.contention)
        rho = (view.age + work_of_jobs / best_rate) / alone
        worst = np.argsort(-rho, kind="stable")
        gated_jobs = int(np.ceil((1 - self.f) * job_count))
        jobs_before_gate = worst[: max(1, gated_jobs)]
        jobs_behind_gate = np.setdiff1d(np.arange(job_count), jobs_before_gate)
        fair_order = np.concatenate(
            [jobs_before_gate, jobs_behind_gate[np.argsort(view.attained[jobs_behind_gate], kind="stable")]]
        )
        held_type = np.arange(T) == view.gpu_type[:, None]  # at equal speed a job stays on its type
        types = np.lexsort((~held_type, -rate), axis=1)[fair_order]
        gpu_type, gpus = serve((fair_order[:, None] * T + types).ravel(), able, view.gpus, view.capacity.astype(float))
        return Allocation(gpu_type, gpus)
