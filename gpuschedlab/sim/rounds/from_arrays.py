"""States that arrays describe instead of a simulation, so that a policy's rounds can be tried one by one."""

import numpy as np

from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.errors import RunError
from gpuschedlab.sim.engine.jobs.records import RUNNING, WAITING
from gpuschedlab.sim.engine.jobs.state import State
from gpuschedlab.sim.rounds.view_attributes import FIELDS, IN_TOTAL
from gpuschedlab.sim.setup.arrays import build_state
from gpuschedlab.sim.setup.prepared import Prepared


def state_by_hand(prepared: Prepared, policy, now: float, arrays: dict) -> tuple[State, np.ndarray]:
    """Return a tuple: the `State` at an instant, and an array (n,) of the rows of the jobs submitted by then.

    The jobs wait, unless arrays say otherwise.
    """
    state = build_state(prepared, policy)
    submitted_jobs = np.arange(np.searchsorted(state.job["submit"], now, "right"))
    state.scalar["now"] = now
    state.scalar["arrived"] = len(submitted_jobs)
    state.job["state"][submitted_jobs] = WAITING
    if "up" in arrays:
        state.nodes["down"] = ~np.asarray(arrays.pop("up"), bool)
    if "restarts" in arrays:
        state.job["starts"][submitted_jobs] = 1 + np.asarray(arrays.pop("restarts"))
    if "partner" in arrays:
        state.body["partner"][submitted_jobs] = arrays.pop("partner")
    for array_name in FIELDS.keys() & arrays.keys():
        array, field, _ = FIELDS[array_name]
        given_array = np.asarray(arrays.pop(array_name))
        if given_array.ndim == 0 or len(given_array) != len(submitted_jobs):
            raise RunError(
                f"view: {array_name} has shape {given_array.shape}; expected ({len(submitted_jobs)},), an entry "
                "for each job submitted by now."
            )
        getattr(state, array)[field][submitted_jobs] = (
            given_array / state.body["jobs"][submitted_jobs] if array_name in IN_TOTAL else given_array
        )
    _give_nodes(state, np.asarray(arrays.pop("nodes", ()), float).reshape(-1, 3), prepared.cluster.node_type)
    runs = np.flatnonzero(state.job["held"] > 0)
    state.job["state"][runs], state.job["starts"][runs] = RUNNING, np.maximum(state.job["starts"][runs], 1)
    return state, submitted_jobs


def _give_nodes(state: State, node_rows: np.ndarray, node_type: np.ndarray):
    """Let jobs hold the GPUs of rows (job, node, GPUs), as linked entries in order of node."""
    if not len(node_rows):
        return
    job = node_rows[:, 0].astype(int)
    node = node_rows[:, 1].astype(int)
    gpus_of_job = np.bincount(job, node_rows[:, 2], len(state.job)) / state.body["jobs"]
    state.job["held"] = np.where(gpus_of_job > 0, gpus_of_job, state.job["held"])
    state.body["nodes"][job] = np.bincount(job, minlength=len(state.job))[job]
    state.body["type"][job] = node_type[node]
    state.nodes["free"] -= np.rint(np.bincount(node, node_rows[:, 2], len(state.nodes)) * SLOTS).astype(np.int32)
    for entry, node_row in enumerate(
        np.lexsort((-node, job))
    ):  # the last node first: each entry points to the one before
        state.entry["next"][entry] = state.body["head"][job[node_row]]
        state.entry["node"][entry] = node[node_row]
        state.entry["slots"][entry] = np.rint(node_rows[node_row, 2] * SLOTS)
        state.body["head"][job[node_row]] = entry
