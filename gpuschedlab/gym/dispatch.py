"""One instant at which jobs may start: the observation of an agent, and the effect of its picks."""

import numpy as np

from gpuschedlab.cluster.free_gpus import FreeGpus
from gpuschedlab.sim import Allocation, View

LONG = np.log1p(30 * 86_400.0)
"""Logarithm of the longest time (30 days) that observations tell apart."""

FEATURES = ("present", "gpus", "estimate", "waited", "executed", "deadline", "fits")
"""Columns of a job in an observation, 0 to 1: whether the row holds a job; GPUs requested, as a share of the cluster's; on a
logarithmic scale, estimated duration, time waited so far, time run so far, and time to the deadline (1: none); whether it
fits into the free GPUs now."""


def of_time(seconds: np.ndarray) -> np.ndarray:
    """Return an array of times on the scale of observations: log(1 + s) / log(1 + 30 days), at most 1."""
    return np.minimum(np.log1p(np.maximum(seconds, 0.0)) / LONG, 1.0)


class Dispatch:
    """Waiting jobs and free GPUs at one instant; picks take GPUs at once, and become the answer of a round.

    No job is preempted. A job runs on the GPUs that it requests, on the first GPU type that has room for it, on the nodes
    that the placement rule chooses. An idle cluster starts the first job that fits even if none is picked.

    Parameters
    ----------
    view : View
    rows : int
        Waiting jobs that are shown, in order of submission; those behind them are counted only.
    rule : str
        Placement rule of `gpuschedlab.cluster.RULES`.

    Attributes
    ----------
    waiting : (k,) int array
        Positions in the view of the jobs that are shown and still wait.
    behind : int
        Waiting jobs that are not shown.
    """

    def __init__(self, view: View, rows: int, rule: str):
        self.view = view
        self.rows = rows
        self.rule = rule
        self._queue, self._usable = np.flatnonzero(~view.running), view.usable()
        self.room = FreeGpus(view.cluster, rule, view.free, view.up, view.mask if rule == "buddy" else None)
        self.started: list[np.ndarray] = []
        self._show()

    def _show(self):
        self.waiting = self._queue[: self.rows]
        self.behind = max(0, len(self._queue) - self.rows)
        self._fits = self.room.fits(self.view.gpus[self.waiting], self._usable[self.waiting])

    @property
    def mask(self) -> np.ndarray:
        """Array (rows + 1,) of int8: 1 for each row whose job fits now, and for the last action, which starts nothing."""
        mask = np.zeros(self.rows + 1, np.int8)
        mask[: len(self.waiting)] = self._fits
        mask[-1] = 1
        return mask

    @property
    def hopeful(self) -> bool:
        """Whether any job that is shown fits."""
        return bool(self._fits.any())

    def start(self, row: int) -> bool:
        """Give the job of a row its GPUs, and return True; False: the row is empty, or its job does not fit."""
        if not 0 <= row < len(self.waiting) or not self._fits[row]:
            return False
        job = self.waiting[row]
        nodes = self.room.take(float(self.view.gpus[job]), self._usable[job])
        self.started.append(np.column_stack([np.full(len(nodes), float(job)), nodes]))
        self._queue = np.delete(self._queue, row)
        self._show()
        return True

    def start_in_order(self, priorities: np.ndarray):
        """Start all jobs shown that fit, the highest priority first (equal ones: in order of submission).

        Parameters
        ----------
        priorities : (rows,) array
        """
        priority_order = self.waiting[np.argsort(-np.asarray(priorities)[: len(self.waiting)], kind="stable")]
        for job in priority_order:
            self.start(int(np.searchsorted(self.waiting, job)))

    def answer(self) -> Allocation:
        """Return the round's `Allocation`: running jobs stay, and picked ones start on the nodes that were held for them.

        If none runs and none was picked, the first that fits starts: otherwise nothing might ever happen again.
        """
        view = self.view
        started = self.started
        if not started and self.hopeful and not view.running.any():
            self.start(int(self._fits.argmax()))
        types = np.maximum(view.gpu_type, 0)
        gpus = view.running_gpus.copy()
        if not started:
            return Allocation(types, gpus)
        for nodes in started:
            job = int(nodes[0, 0])
            types[job] = view.cluster.node_type[int(nodes[0, 1])]
            gpus[job] = view.gpus[job]
        return Allocation(types, gpus, nodes=np.concatenate(started))

    def observation(self) -> dict[str, np.ndarray]:
        """Return the observation of an agent, a dict of arrays.

        Returns
        -------
        dict
            `jobs`: (rows, 7) float32, the `FEATURES` of each job shown. `cluster`: (2 T + 2,) float32, for each GPU type
            the free share of its GPUs and the share that is up, then w / (1 + w) of the jobs that wait behind those
            shown, and r / (1 + r) of the running ones. `nodes`: (N,) float32, the free share of each node. `mask`: as the
            attribute.
        """
        view = self.view
        waiting_rows = self.waiting
        shown_jobs = len(self.waiting)
        jobs = np.zeros((self.rows, len(FEATURES)), np.float32)
        if shown_jobs:
            job_times = np.stack(
                [
                    view.estimate[waiting_rows],
                    view.queued[waiting_rows],
                    view.executed[waiting_rows],
                    view.deadline[waiting_rows] - view.now,
                ],
                axis=1,
            )
            jobs[:shown_jobs, 0] = 1.0
            jobs[:shown_jobs, 1] = view.gpus[waiting_rows] / view.cluster.total_gpus
            jobs[:shown_jobs, 2:6] = of_time(job_times)
            jobs[:shown_jobs, 6] = self._fits
        free = self.room.free
        types = len(view.cluster.gpu_types)
        gpus_of_types = np.bincount(view.cluster.node_type, view.cluster.node_gpus, types)
        running = len(view) - len(waiting_rows) - self.behind
        job_counts = np.array([self.behind, running], float)
        shares = [
            np.bincount(view.cluster.node_type, free, types) / gpus_of_types,
            view.capacity / gpus_of_types,
            job_counts / (1 + job_counts),
        ]
        return {
            "jobs": jobs,
            "cluster": np.concatenate(shares).astype(np.float32),
            "nodes": (free / view.cluster.node_gpus).astype(np.float32),
            "mask": self.mask,
        }
