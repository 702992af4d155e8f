"""Sources of views: fields of the state, columns of the trace, speeds and estimates of the jobs."""

from functools import cached_property

import numpy as np

from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.sim.engine.jobs.records import RUNNING
from gpuschedlab.sim.engine.jobs.state import State

_OF_JOB = ("submit", "gpus", "attained", "executed", "progress", "estimate", "deadline", "reward", "queued")
_OF_JOB += ("contention", "model", "kind", "user", "vc")
FIELDS = {name: ("job", name, None) for name in _OF_JOB} | {
    "running_gpus": ("job", "held", None),
    "gpu_type": ("body", "type", -1),
    "running_nodes": ("body", "nodes", 0),
    "pause": ("body", "pause", 0.0),
    "effort": ("body", "effort", None),
    "profiled": ("body", "idled", None),
    "source": ("body", "source", None),
    "seconds_on": ("seconds_on", ..., None),
    "merged": ("body", "joint", None),
    "profiling": ("body", "idle", 0),
}
"""Attributes of a view that are a field of the state: array, field, and the value of jobs that wait (None: any)."""
FLAGS = ("merged", "profiling")
"""Those of them that are true or false."""
IN_TOTAL = ("gpus", "attained", "running_gpus")
"""Those of them of which the state has the part of one job, where a row stands for several."""


class OfJobs:
    """Attributes of a view that follow from the state of its jobs; each is made when it is first read."""

    def __getattr__(self, name):
        if name not in FIELDS:
            raise AttributeError(f"a view has no {name!r}; it has {', '.join(FIELDS)} and what its docstring lists.")
        array, field, waiting = FIELDS[name]
        job_field = getattr(self._state, array)[field][self.index]
        if waiting is not None:
            job_field = np.where(self._state.job["state"][self.index] == RUNNING, job_field, waiting)
        if name in IN_TOTAL:
            job_field = job_field * self._state.body["jobs"][self.index]
        if name in FLAGS:
            job_field = job_field == 1
        setattr(self, name, job_field)
        return job_field

    @cached_property
    def age(self) -> np.ndarray:
        """Array (n,) of seconds since submission."""
        return self.now - self.submit

    @cached_property
    def elastic(self) -> np.ndarray:
        """Array (n,) of bools: runs on other numbers of GPUs than it requests."""
        return self.model >= 0 if self.speeds is None else (self.model >= 0) & ~self.speeds.relative[self.model]

    @cached_property
    def running(self) -> np.ndarray:
        """Array (n,) of bools: holding GPUs now."""
        return self._state.job["state"][self.index] == RUNNING

    @cached_property
    def restarts(self) -> np.ndarray:
        """Array (n,) of starts after the first."""
        return np.maximum(self._state.job["starts"][self.index] - 1, 0)

    @cached_property
    def restart(self) -> np.ndarray:
        """Array (n,) of seconds of delay at a restart."""
        return self._state.body["restart"][self.index] + self._state.body["switch"][self.index]

    @cached_property
    def partner(self) -> np.ndarray:
        """Array (n,) of the position of the job that it shares GPUs with, -1: none."""
        position_of_row = np.full(len(self._state.job) + 1, -1)  # the last entry means no partner
        position_of_row[self.index] = np.arange(len(self))
        return position_of_row[self._state.body["partner"][self.index]]

    @cached_property
    def nodes(self) -> np.ndarray:
        """Array (m, 3) of rows (job, node, GPUs) of running jobs, in order; without jobs that share another's GPUs."""
        first_entry = np.where(self.running, self._state.body["head"][self.index], -1)
        entry = self._state.entry
        jobs_with_entry = np.flatnonzero(first_entry >= 0)
        next_ = first_entry[jobs_with_entry]
        node_rows = [np.zeros((0, 3))]
        while len(jobs_with_entry):  # the entries of a job are a linked list: one step for all jobs at a time
            node_rows.append(np.column_stack([jobs_with_entry, entry["node"][next_], entry["slots"][next_] / SLOTS]))
            next_ = entry["next"][next_]
            jobs_with_entry = jobs_with_entry[next_ >= 0]
            next_ = next_[next_ >= 0]
        cells_of_jobs = np.concatenate(node_rows)
        return cells_of_jobs[np.lexsort((cells_of_jobs[:, 1], cells_of_jobs[:, 0]))]


def metric_shown(view, state: State, count: float) -> np.ndarray:
    """Return an array (n,) of the metric that jobs showed at their progress, or a measurement before; nan: none yet."""
    metric = np.full(len(view), np.nan)
    curves = None if view.speeds is None else view.speeds.curves
    if curves is None:
        return metric
    partner = state.body["partner"][view.index]
    paired = view.merged & (partner >= 0)
    alone = np.ones(len(view), bool)
    ways = (
        ("own", alone, np.full(len(view), -1), view.progress),
        ("merged", paired, partner, view.effort),
        ("transfer", ~paired & (view.source >= 0), view.source, view.effort),
    )
    for mode, curve_jobs, partners, reached in ways:
        curve_jobs = np.flatnonzero(curve_jobs)
        model = view.model[curve_jobs]
        reached = reached[curve_jobs]
        partner_model = np.where(partners[curve_jobs] < 0, -1, state.job["model"][partners[curve_jobs]])
        measured_progress = curves.measured(mode, model, partner_model, 1.0 if np.isinf(count) else count)
        measured_metric = curves.at_pair(mode, model, partner_model, reached if np.isinf(count) else measured_progress)
        metric[curve_jobs] = np.where(
            np.isnan(measured_progress),
            metric[curve_jobs],
            np.where(reached >= measured_progress - 1e-9, measured_metric, np.nan),
        )
    return metric
