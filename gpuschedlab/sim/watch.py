"""Policies under which nothing happens any more."""

import numpy as np

from gpuschedlab.errors import PolicyError
from gpuschedlab.sim.engine.jobs.state import State

PATIENCE = 7 * 86_400.0
"""Simulated seconds without any progress after which nothing more is expected to happen."""


def counts_of(state: State) -> tuple[int, int]:
    """Return two numbers, a tuple: the jobs that have come, and those that have ended."""
    return int(state.scalar["arrived"][0]), int(state.scalar["done"][0])


def waiting_of(state: State) -> list[np.ndarray]:
    """Return a list of arrays, one per class: the rows of its jobs that wait."""
    classes = state.cls[state.cls["count"] > 0]
    bounds = zip(classes["first"].tolist(), classes["count"].tolist(), strict=True)
    return [state.heap[first_waiting : first_waiting + waiting_count] for first_waiting, waiting_count in bounds]


class Watch:
    """Sees, once in PATIENCE, whether anything has happened in a simulation since the last time, where something could have."""

    def __init__(self):
        self.still = False
        self.progress = None
        self.next_look = -np.inf

    def look(self, simulation, watch: bool):
        """Look again, if it is time."""
        # If nothing has happened, the policy is stuck, which is an error where `watch` says so; but where nodes are down and stay
        # so, jobs wait for these, and the run is over.
        state = simulation.state
        clock = simulation.now
        if clock <= self.next_look:
            return
        scalar = state.scalar[0]
        running = state.running[: scalar["running"]]
        active = np.sort(np.concatenate([running, *waiting_of(state)]))  # or sums would depend on their order
        running_bodies = state.body[running]
        # What changes as long as anything happens: arrivals, ends, and all work and time without work so far of the jobs that
        # are there. Those that have ended change no more, and a look at all jobs would cost the more the longer the log is.
        since = running_bodies["rate"] * np.maximum(
            clock - running_bodies["last"] - running_bodies["pause"], 0.0
        )  # not yet added up
        worked = float(state.job["progress"][active].sum() + state.body["idled"][active].sum() + since.sum())
        progress = (*counts_of(state), worked)
        jobs = int(scalar["running"] + scalar["waiting"])
        self.still = bool(progress == self.progress and jobs > 0 and scalar["outage"] == len(state.outage))
        self.progress = progress
        self.next_look = clock + PATIENCE
        if not self.still or not watch:
            return
        if state.nodes["down"].any():
            simulation.over = simulation.until is None
            return
        raise PolicyError(
            f"{simulation.policy.name} let none of {jobs} jobs progress for {PATIENCE:g} s up to t={clock:g} s. "
            "Give every job GPUs at last, for longer than its delays, or run with until=..."
        )
