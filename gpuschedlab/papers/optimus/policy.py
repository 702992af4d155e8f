"""Optimus (Peng et al., EuroSys'18), as the Pollux artifact has it: GPUs one at a time to where they save most time."""

import heapq
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.free_gpus import FreeGpus
from gpuschedlab.knobs import Knob
from gpuschedlab.policies.remaining import configurations, remaining_work
from gpuschedlab.sim.policy import Round
from gpuschedlab.sim.rounds.allocation import NODE, POSITION, Allocation
from gpuschedlab.sim.rounds.view import View


@dataclass(frozen=True)
class Optimus(Round):
    """Give each job its fewest GPUs, then one more at a time to the job with the largest drop in remaining time.

    In order of submission, each job gets the fewest GPUs that it can run on. The GPUs left go, one at a time, to the job
    with the largest r (t(n) - t(n + 1)) > 0, where t(n) is the time of an iteration on n GPUs of filled nodes and r the
    number of remaining iterations. A job that keeps its number of GPUs stays where it is; the others are placed in order of
    their GPUs, fewest first, on the nodes with the most free.

    Differs from the paper in
    -------------------------
    It follows the Pollux artifact (OSDI'21): GPUs instead of workers and parameter servers, all-reduce, and speeds from
    the speed table rather than fitted online. The artifact knows the remaining iterations; here they follow from the
    estimated duration: `Oracle` gives the artifact's. `whole_epochs` counts them as the artifact does, from the end of
    the present epoch, with one iteration left in the last. Beyond the artifact: if a speed table lacks n + 1 GPUs, the
    next number that it has is compared, by seconds saved per GPU; rigid jobs get the GPUs that they ask for; on several
    GPU types a job starts on the fastest with room, and stays there.

    References
    ----------
    Peng et al., Optimus, EuroSys'18, section 4.1; Qiao et al., Pollux, OSDI'21, section 5, and its artifact.

    Examples
    --------
    >>> Optimus(whole_epochs=True).interval
    60.0
    """

    whole_epochs: Annotated[bool, Knob(help="whether the present epoch counts as done")] = False
    interval: Annotated[float, Knob(1, 3600, log=True, unit="s", help="between rounds")] = 60.0

    def allocate(self, view: View) -> Allocation:
        """Estimate the remaining times, give out the GPUs, and return the `Allocation`."""
        n = len(view.index)
        if n == 0:
            return Allocation(np.empty(0, np.int64), np.empty(0))
        types, nodes, gpu_counts = configurations(view)
        rate = view.rates(types, nodes, gpu_counts)
        work = remaining_work(view, rate, types, nodes, gpu_counts, self.whole_epochs)
        seconds = work[:, None] / rate
        shape = (n, len(view.capacity), -1)
        gpus_given = gpu_counts.reshape(shape[1:])[0].astype(float)
        gpu_type, gpus = grow(seconds.reshape(shape), gpus_given, np.floor(view.capacity), view.gpu_type)
        gpus = np.where(view.elastic, gpus, np.minimum(gpus, view.gpus))  # a part of a GPU was counted as one
        return Allocation(gpu_type, gpus, nodes=_nodes(view, gpu_type, gpus))


def _nodes(view, gpu_type, gpus):
    """Return an array of rows (job, node, GPUs): where jobs are, if they hold as many, else on the nodes with most free GPUs."""
    job, node = view.nodes[:, [POSITION, NODE]].T.astype(int)
    stays = (gpus > 0) & (gpus == view.running_gpus) & (gpu_type == view.gpu_type)
    stays[job[~view.up[node]]] = False
    cell_rows = [view.nodes[stays[job]]]
    free = FreeGpus(view.cluster, "widest", up=view.up)
    free.hold(cell_rows[0][:, NODE:])
    for i in np.argsort(gpus, kind="stable"):
        if gpus[i] > 0 and not stays[i]:
            cells_of_job = free.take(gpus[i], np.arange(len(view.capacity)) == gpu_type[i])
            cell_rows.append(np.column_stack([np.full(len(cells_of_job), float(i)), cells_of_job]))
    return np.concatenate(cell_rows)


@njit
def _next(seconds, at):
    """Return the index of the first number of GPUs after `at` on which a job can run; -1: none."""
    for k in range(at + 1, seconds.shape[0]):
        if not np.isnan(seconds[k]):
            return k
    return -1


@njit
def _gain(seconds, counts, at):
    """Return the seconds (float) saved for each GPU more, from index `at` to the next; 0: there is none."""
    k = _next(seconds, at)
    return 0.0 if k < 0 else (seconds[at] - seconds[k]) / (counts[k] - counts[at])


@njit
def _first_type(seconds, counts, room, held):
    """Return the type (an index) on which a job gets its fewest GPUs: that held, or else the fastest with room; -1: none has."""
    best_type = -1
    least = np.inf
    for t in range(seconds.shape[0]):
        k = _next(seconds[t], -1)
        if k < 0 or counts[k] > room[t]:
            continue
        if t == held:
            return t
        if seconds[t, k] < least:
            best_type = t
            least = seconds[t, k]
    return best_type


@njit
def grow(seconds, counts, room, held):
    """Return two arrays (n,), types and GPUs: the fewest of each job, in order, then one step more if each GPU saves most."""
    n = seconds.shape[0]
    gpu_type = np.zeros(n, np.int64)
    level_of_job = np.full(n, -1)
    gpus = np.zeros(n)
    free_gpus = room.copy()
    queue = [(0.0, 0) for _ in range(0)]
    for i in range(n):
        t = _first_type(seconds[i], counts, free_gpus, held[i])
        if t < 0:
            continue
        gpu_type[i] = t
        level_of_job[i] = _next(seconds[i, t], -1)
        gpus[i] = counts[level_of_job[i]]
        free_gpus[t] -= gpus[i]
        queue.append((-_gain(seconds[i, t], counts, level_of_job[i]), i))
    heapq.heapify(queue)
    while len(queue) > 0 and queue[0][0] < 0:
        _, i = heapq.heappop(queue)
        t = gpu_type[i]
        k = _next(seconds[i, t], level_of_job[i])
        more = counts[k] - gpus[i]
        if more > free_gpus[t]:
            continue  # capacity only shrinks within a round, so what does not fit now can be skipped
        level_of_job[i] = k
        gpus[i] += more
        free_gpus[t] -= more
        heapq.heappush(queue, (-_gain(seconds[i, t], counts, k), i))
    return gpu_type, gpus
