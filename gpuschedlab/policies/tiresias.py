"""Tiresias (Gu et al., NSDI'19): least attained service, or Gittins index, in discretised queues."""

import itertools
import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from gpuschedlab.knobs import Constraint, Data, Knob
from gpuschedlab.policies.simple import Interval, Placement, Skew
from gpuschedlab.sim.ordered import Ordered

GRID = 64  # points of the Gittins table, evenly spaced in log of attained service
WIDEST = math.log1p(1e9)  # GPU-s of the last point

SERVICE, TIME, GITTINS = range(3)


def _ascends(thresholds: tuple) -> bool:
    """Whether each threshold is above the one before."""
    return all(lower < upper for lower, upper in itertools.pairwise(thresholds))


def _ascending(knobs: dict) -> dict:
    """Return a dict of the sorted thresholds; too many are dropped, missing ones added tenfold apart, or in the widest gap."""
    thresholds = sorted(set(knobs["thresholds"]))[: knobs["queues"] - 1] or [3250.0][: knobs["queues"] - 1]
    while len(thresholds) < knobs["queues"] - 1:
        if thresholds[-1] <= 1e7:
            added_threshold = thresholds[-1] * 10
        elif thresholds[0] >= 10:
            added_threshold = thresholds[0] / 10
        else:
            low, high = max(itertools.pairwise(thresholds), key=lambda pair: pair[1] / pair[0])
            added_threshold = math.sqrt(low * high)
        thresholds = sorted([*thresholds, added_threshold])
    return {"thresholds": tuple(thresholds)}


def gittins_ranks(services: np.ndarray) -> tuple[float, ...]:
    """Return a tuple of the rank of the Gittins index at each point of the grid of attained service, 0 for the highest."""
    # The index of a job with attained service a is the largest, over quanta d, of P(S - a <= d | S > a) / E[min(S - a,
    # d) | S > a] (section 3.3), with S drawn from `services` (m,), the total service (GPU-s) of jobs of the past.
    service_quantiles = np.quantile(np.asarray(services, float), np.linspace(0, 1, min(len(services), 512)))
    gittins_index = np.zeros(GRID)
    for grid_point, attained_service in enumerate(np.expm1(np.linspace(0, WIDEST, GRID))):
        service_left = service_quantiles[service_quantiles > attained_service] - attained_service
        if len(service_left):
            # Each quantum tried is one of the jobs' ends.
            spent = np.cumsum(service_left) + service_left * np.arange(len(service_left) - 1, -1, -1)
            gittins_index[grid_point] = (np.arange(1, len(service_left) + 1) / spent).max()
    return tuple(float(rank) for rank in np.argsort(np.argsort(-gittins_index, kind="stable"), kind="stable"))


_LOG_SERVICES = np.random.default_rng(0).normal(np.log(600.0), 2.5, 4096)
_UNTIL_FITTED = gittins_ranks(np.exp(_LOG_SERVICES))


@dataclass(frozen=True)
class Tiresias(Ordered):
    """Least attained service first, in discretised queues; first come, first served within a queue.

    A job enters the first queue and moves to the next as its attained service (GPUs x time), or time, crosses a
    threshold. With "gittins" the jobs of a queue go by Gittins index instead, from the services that `fit` saw. A
    job that has waited `starve_limit` times as long as it has run goes to the first queue, and stays while its new
    stretch would; its Gittins index remains that of all it has attained.

    Differs from the paper in
    -------------------------
    The skew of a model's tensors is measured by its effect: `pack_limit` is the relative speed on spread nodes below
    which a job insists on consolidation. Without `fit`, the Gittins index assumes log-normal services (median 600
    GPU-s, sigma 2.5).

    References
    ----------
    Gu et al., Tiresias, NSDI'19, sections 3.2 to 3.4; knobs as in the AutoSched thesis, 6.6.3.

    Examples
    --------
    >>> Tiresias(queues=3, thresholds=(3250, 57_600)).thresholds
    (3250.0, 57600.0)
    """

    metric: Annotated[str, Knob(choices=("service", "time", "gittins"), help="what priority follows from")] = "service"
    queues: Annotated[int, Knob(1, 5, help="priority queues")] = 2
    thresholds: Annotated[
        tuple[float, ...],
        Knob(1, 1e8, True, unit="GPU-s", many=4, help="attained service that moves a job", words="next queue after"),
    ] = (57_600.0,)
    starve_limit: Annotated[float, Knob(0, 100, unit="x executed time", help="wait that promotes; 0: never")] = 0.0
    pack_limit: Skew = 0.9
    placement: Placement = "relax"
    interval: Interval = 0
    ranks: Annotated[tuple[float, ...], Data(GRID)] = _UNTIL_FITTED
    preemptive = True
    first = "jobs that have used less"
    moving = "none"
    constraints: ClassVar = (
        Constraint(
            "thresholds that ascend, one fewer than queues",
            lambda k: len(k["thresholds"]) == k["queues"] - 1 and _ascends(k["thresholds"]),
            _ascending,
        ),
    )

    @property
    def skew(self) -> float:
        """Relative speed below which rule "relax" insists."""
        return self.pack_limit

    def fit(self, history: pl.DataFrame) -> "Tiresias":
        """Return a copy, `Tiresias`, with a Gittins index over the services (gpus x duration) of an earlier trace."""
        services = history["gpus"] * history["duration"]
        return replace(self, ranks=gittins_ranks(services.to_numpy()))

    @staticmethod
    def key(now: float, job: np.void, knobs: np.void) -> float:
        """Queue, and rank within it.

        Return both as one float.
        """
        waited = (job.started if job.held > 0 else now) - job.waiting_since
        stretch = now - job.started if job.held > 0 else 0.0
        executed_before = job.executed - stretch
        promoted = (
            knobs.starve_limit > 0
            and executed_before > 0
            and waited * (1 + 1e-9) >= knobs.starve_limit * executed_before
        )
        service = stretch * job.gpus if promoted else job.attained
        attained_in_queue = service if knobs.metric != TIME else (stretch if promoted else job.executed)
        level = 0
        while level < knobs.queues - 1 and attained_in_queue * (1 + 1e-9) >= knobs.thresholds[level]:
            level += 1
        if knobs.metric == GITTINS:
            step = int((GRID - 1) * math.log1p(job.attained) / WIDEST + 1e-9)
            return level * 1e3 + knobs.ranks[min(GRID - 1, step)]
        return float(level)

    @staticmethod
    def change(now: float, job: np.void, knobs: np.void) -> float:
        """Return the instant (s) of the next threshold (running) or of promotion (waiting), a float."""
        if job.held == 0:
            promotion_time = job.waiting_since + knobs.starve_limit * job.executed
            return promotion_time if knobs.starve_limit > 0 < job.executed and promotion_time > now else math.inf
        stretch = now - job.started
        executed_before = job.executed - stretch
        waited = job.started - job.waiting_since
        promoted = (
            knobs.starve_limit > 0
            and executed_before > 0
            and waited * (1 + 1e-9) >= knobs.starve_limit * executed_before
        )
        pace = 1.0 if knobs.metric == TIME else job.gpus
        attained_in_queue = stretch * pace if promoted else (job.executed if knobs.metric == TIME else job.attained)
        when = math.inf
        for queue in range(knobs.queues - 1):
            if attained_in_queue * (1 + 1e-9) < knobs.thresholds[queue]:
                when = now + (knobs.thresholds[queue] - attained_in_queue) / pace
                break
        if knobs.metric == GITTINS:
            step = int((GRID - 1) * math.log1p(job.attained) / WIDEST + 1e-9)
            next_step = math.expm1((step + 1) * WIDEST / (GRID - 1))
            when = min(when, now + (next_step - job.attained) / pace)
        return when
