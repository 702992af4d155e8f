"""What is seen of jobs from outside: by policies, in a view, and by tools that steer or measure a simulation, in a snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.sim.engine.active import refresh_active
from gpuschedlab.sim.engine.records import DONE, RUNNING, UNSEEN
from gpuschedlab.sim.engine.state import State

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


def field_of(state: State, index: np.ndarray, name: str) -> np.ndarray:
    """Attribute of a view, one of FIELDS, of the jobs of some rows."""
    array, field, waiting = FIELDS[name]
    values = getattr(state, array)[field][index]
    if waiting is not None:
        values = np.where(state.job["state"][index] == RUNNING, values, waiting)
    if name in IN_TOTAL:
        return values * state.body["jobs"][index]
    return values == 1 if name in FLAGS else values


def held_rows(state: State, jobs: np.ndarray) -> np.ndarray:
    """(m, 3) rows (position, node, GPUs) of what jobs hold, in order; without those that share another's GPUs.

    Parameters
    ----------
    state : State
    jobs : (n,) int array
        Rows of the jobs, by position; -1: it holds nothing.
    """
    head, entry = np.where(jobs < 0, -1, state.body["head"][jobs]), state.entry
    at = np.flatnonzero(head >= 0)
    next_ = head[at]
    rows = [np.zeros((0, 3))]
    while len(at):  # the entries of a job are a linked list: one step for all jobs at a time
        rows.append(np.column_stack([at, entry["node"][next_], entry["slots"][next_] / SLOTS]))
        next_ = entry["next"][next_]
        at, next_ = at[next_ >= 0], next_[next_ >= 0]
    held = np.concatenate(rows)
    return held[np.lexsort((held[:, 1], held[:, 0]))]


def known_rates(view, estimator, types, nodes, gpus) -> np.ndarray:
    """Progress a second (n, C) of each job in each of C configurations; `View.rates`."""
    types, nodes, gpus = (np.asarray(a, np.int64) for a in (types, nodes, gpus))
    asked = np.ceil(view.gpus)[:, None] == gpus
    rates = np.where(asked, 1.0, np.nan)
    if view.speeds is None:
        return rates
    known, named = view.speeds.type_codes(view.cluster.gpu_types)[types], view.model >= 0
    table = view.speeds.rates(view.model[named], view.progress[named], np.maximum(known, 0), nodes, gpus)
    rates[named] = np.where((known >= 0) & (asked | view.elastic[:, None])[named], table, np.nan)
    return estimator.rates(rates, view.learnt, types, gpus) if estimator.learns_speeds else rates


def metric_shown(view, state: State, most: float) -> np.ndarray:
    """Metric (n,) that jobs showed at their progress, or at `most` where that is less; nan: no curve, or not yet.

    Parameters
    ----------
    view : View
    state : State
    most : float
        In the unit of progress, as `View.effort`; inf: now.
    """
    curves = None if view.speeds is None else view.speeds.curves
    if curves is None:
        return np.full(len(view), np.nan)
    shown = _until(curves.at(view.model, np.minimum(view.progress, most)), view.progress, most)
    partner = state.body["partner"][view.index]
    paired = view.merged & (partner >= 0)
    for mode, rows, other in (("merged", paired, partner), ("transfer", ~paired & (view.source >= 0), view.source)):
        rows = np.flatnonzero(rows)
        models, effort = state.job["model"][other[rows]], view.effort[rows]
        seen = curves.at_pair(mode, view.model[rows], models, np.minimum(effort, most))
        shown[rows] = np.where(np.isnan(seen), shown[rows], _until(seen, effort, most))
    return shown


def _until(shown: np.ndarray, reached: np.ndarray, most: float) -> np.ndarray:
    """What was shown, nan for jobs that have not come so far."""
    return shown if np.isinf(most) else np.where(reached >= most - 1e-9, shown, np.nan)


SEEN = ("submit", "gpus", "attained", "executed", "progress", "queued", "contention", "preemptions")
TRUE = ("work", "overhead", "shared", "end")


@dataclass(frozen=True)
class Snapshot:
    """All jobs of a simulation at one instant, for tools that steer or measure it; policies see a `View`.

    Parameters
    ----------
    now : float
        The instant (s).
    capacity : float
        GPUs up.
    logged : int
        Rows in the logs so far: how much has happened.
    jobs : mapping of str to (n,) array
        In the order of the trace: `submit, executed, queued, overhead, shared` (s), `gpus` (requested), `attained`
        (GPU-s), `progress` and `work` (done and in all, in the job's own unit), `contention`, `preemptions`, `end` (s;
        inf while unfinished), `rows` (jobs that the row stands for: `gpus` and `attained` are those of one), `submitted`
        and `done` (bool).
    """

    now: float
    capacity: float
    logged: int
    jobs: Mapping[str, np.ndarray]


def take_snapshot(simulation) -> Snapshot:
    """Copy what a simulation holds now."""
    state = simulation.state
    refresh_active(state)
    job, body, scalar = state.job, state.body, state.scalar[0]
    jobs = {name: job[name].copy() for name in SEEN} | {name: body[name].copy() for name in TRUE}
    jobs |= {"rows": body["jobs"].copy(), "submitted": job["state"] != UNSEEN, "done": job["state"] == DONE}
    logged = int(scalar["ticks"] + scalar["stretches"])
    return Snapshot(simulation.now, float(scalar["capacity"]) / SLOTS, logged, jobs)
