"""Snapshots: all jobs of a simulation at one instant."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.sim.engine.jobs.logs import refresh_active
from gpuschedlab.sim.engine.jobs.records import DONE, UNSEEN

SEEN = ("submit", "gpus", "attained", "executed", "progress", "queued", "contention", "preemptions")
TRUE = ("work", "overhead", "shared", "first", "end")


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
        (GPU-s), `progress` and `work` (done and in all, in the job's own unit), `contention`, `preemptions`, `first` (s, of its first
        start; inf before it), `end` (s; inf while unfinished), `rows` (jobs that the row stands for: `gpus` and `attained` are those of
        one), `submitted` and `done` (bool).
    """

    now: float
    capacity: float
    logged: int
    jobs: Mapping[str, np.ndarray]


def take_snapshot(simulation) -> Snapshot:
    """Copy the present state of a simulation into a `Snapshot`."""
    state = simulation.state
    refresh_active(state)
    job = state.job
    job_bodies = state.body
    scalar = state.scalar[0]
    jobs = {field_name: job[field_name].copy() for field_name in SEEN} | {
        field_name: job_bodies[field_name].copy() for field_name in TRUE
    }
    jobs |= {"rows": job_bodies["jobs"].copy(), "submitted": job["state"] != UNSEEN, "done": job["state"] == DONE}
    logged = int(scalar["ticks"] + scalar["stretches"])
    return Snapshot(simulation.now, float(scalar["capacity"]) / SLOTS, logged, jobs)
