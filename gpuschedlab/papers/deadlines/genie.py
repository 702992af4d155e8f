"""GENIE (Chen et al.): elastic jobs with deadlines, the least time to spare first, none suspended."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gpuschedlab.knobs import Knob
from gpuschedlab.papers.deadlines.placing import CHOSEN, MUST, chosen_by_count, placed, time_left
from gpuschedlab.policies.remaining import on_types
from gpuschedlab.sim.policy import Round
from gpuschedlab.sim.rounds.allocation import Allocation
from gpuschedlab.sim.rounds.view import View


@dataclass(frozen=True)
class Genie(Round):
    """Start waiting jobs with deadlines by least laxity, on the GPUs that take the least GPU-time of those in time.

    A job may have a quarter to four times the GPUs that it requests, in powers of two. The first job that does not fit stops
    the others with deadlines; best-effort jobs, and those that are late on any number, come last, in order of submission. A
    started job is never suspended nor resized.

    Differs from the paper in
    -------------------------
    Speeds are those of the speed table instead of the paper's fitted model, and a job without one has the GPUs that it
    requests. The author's later code ends a job that cannot be in time; here it is served last.

    References
    ----------
    Chen et al., GENIE, TPDS 2020; Gao, PhD thesis, NTU 2025, section 5.4.3.

    Examples
    --------
    >>> Genie(stretch=2).knobs["stretch"]
    2
    """

    stretch: Annotated[int, Knob(1, 16, unit="x", help="most GPUs over those requested, and the reverse")] = 4
    interval: Annotated[float, Knob(1, 3600, log=True, unit="s", help="between rounds")] = 60

    def allocate(self, view: View) -> Allocation:
        """Return the `Allocation`: choose GPUs for each waiting job, and start those that fit, in order."""
        n = len(view)
        if n == 0:
            return Allocation(np.empty(0, np.int64), np.empty(0))
        gpus, laxity = self._configurations(view, time_left(view))
        gpus = np.where(view.running, view.running_gpus, gpus)
        hopeful = (view.kind > 0) & (laxity >= 0)
        waiting = np.flatnonzero(~view.running)
        hopeful_jobs = waiting[hopeful[waiting]]
        hopeful_jobs = hopeful_jobs[np.argsort(laxity[hopeful_jobs], kind="stable")]
        room = np.floor(view.capacity).sum() - gpus[view.running].sum()
        fits = np.cumsum(gpus[hopeful_jobs]) <= room + 1e-9
        starts = np.zeros(n, bool)
        starts[hopeful_jobs[fits]] = True
        room -= gpus[starts].sum()
        starts |= chosen_by_count(waiting[~hopeful[waiting]], gpus, room)
        level = np.where(view.running, MUST, CHOSEN)
        return placed(view, np.flatnonzero(view.running | starts), level, gpus=gpus)

    def _configurations(self, view, left):
        """Return a tuple of arrays (n,): GPUs that each job is to have, and the time (s) that it can then wait."""
        requested_gpus = np.ceil(view.gpus)
        due = np.where(np.isfinite(view.deadlines), view.deadlines, view.now).max(axis=1)
        gpus = view.gpus.copy()
        laxity = due - view.now - left
        elastic_jobs = np.flatnonzero(view.elastic & ~view.running)
        if not len(elastic_jobs):
            return gpus, laxity
        most_gpus = int(view.cluster.capacity.max())
        powers = 2 ** np.arange(int(np.log2(most_gpus)) + 1)
        gpu_counts = np.unique(np.concatenate([powers, requested_gpus[elastic_jobs].astype(np.int64)]))
        gpu_counts = gpu_counts[gpu_counts <= most_gpus]
        kind = view.usable().argmax(axis=1)[elastic_jobs]  # the first that has a speed
        rates = view.rates(*on_types(view.cluster, gpu_counts))[elastic_jobs]
        by_type = rates.reshape(len(elastic_jobs), -1, len(gpu_counts))
        rate = by_type[np.arange(len(elastic_jobs)), kind]
        requested_rate = np.take_along_axis(
            rate, np.searchsorted(gpu_counts, requested_gpus[elastic_jobs])[:, None], axis=1
        )
        near = (gpu_counts >= requested_gpus[elastic_jobs, None] / self.stretch) & (
            gpu_counts <= requested_gpus[elastic_jobs, None] * self.stretch
        )
        seconds = np.where(near & (rate > 0), left[elastic_jobs, None] * requested_rate / rate, np.inf)
        spare = (due[elastic_jobs] - view.now)[:, None] - seconds
        cost = np.where(spare >= 0, seconds * gpu_counts, np.inf)
        cheapest = cost.argmin(axis=1)
        able = np.isfinite(cost.min(axis=1)) & (view.kind[elastic_jobs] > 0)
        gpus[elastic_jobs[able]] = gpu_counts[cheapest[able]]
        laxity[elastic_jobs[able]] = spare[np.flatnonzero(able), cheapest[able]]
        return gpus, laxity
