"""Common part of policies of leases: time left of jobs, and nodes for the chosen ones, consolidated if that is possible."""

from dataclasses import replace

import numpy as np

from gpuschedlab.cluster.free_gpus import FreeGpus
from gpuschedlab.cluster.node_index import SLOTS, count_sizes
from gpuschedlab.optim import relative_gap
from gpuschedlab.papers.deadlines.packing import CHOSEN, MUST, Requests, pack
from gpuschedlab.sim.rounds.allocation import Allocation
from gpuschedlab.sim.rounds.view import View
from gpuschedlab.speeds.elapsed import seconds_to

__all__ = ["CHOSEN", "MUST", "chosen_by_count", "placed", "proved", "time_left"]

LITTLE = 1e-9


def time_left(view: View) -> np.ndarray:
    """Return an array (n,): seconds that each job still needs on the GPUs that it requests, by its estimate; at least 1."""
    progress_left = view.estimate - view.progress
    elastic = np.flatnonzero(view.elastic)
    if len(elastic):
        gpus = np.ceil(view.gpus[elastic]).astype(np.int64)
        types = np.maximum(view.gpu_type[elastic], 0)
        nodes = view.cluster.fewest_nodes(types, gpus)
        kinds = view.speeds.type_codes(view.cluster.gpu_types)[types]
        done = seconds_to(view.speeds, view.model[elastic], view.progress[elastic], kinds, nodes, gpus)
        progress_left[elastic] = view.estimate[elastic] - np.where(np.isnan(done), view.executed[elastic], done)
    return np.maximum(progress_left, 1.0)


def chosen_by_count(order: np.ndarray, gpus: np.ndarray, capacity: float) -> np.ndarray:
    """Return a mask (n,): whether each job is chosen.

    Chosen are those in `order`, one after the other, for which there is still room.
    """
    chosen = np.zeros(len(gpus), bool)
    room = capacity
    for i in order:
        if gpus[i] <= room + LITTLE:
            chosen[i] = True
            room -= gpus[i]
        elif room < LITTLE:
            break
    return chosen


def placed(
    view: View,
    order: np.ndarray,
    level: np.ndarray,
    *,
    gpus: np.ndarray | None = None,
    room: np.ndarray | None = None,
    split: np.ndarray | None = None,
    **answer,
) -> Allocation:
    """Return an `Allocation` that gives jobs nodes by level and order: jobs that run stay if they can, larger ones displace smaller.

    A job has GPUs of a type on which it has a speed, on the fewest nodes, the fullest ones that have room. One that is counted
    in and finds none displaces jobs of a lower level, then smaller ones of its own, which are placed again after it.

    `order` (m,) are the jobs that may have GPUs, `level` (n,) is FILLER, CHOSEN or MUST. Each gets `gpus` (n,; default: what it
    requests) on nodes of which `room` (n, T; default: as many) must be free; those of `split` (n,) may have more nodes than needed
    where consolidated ones are not to be had. `answer` are further fields of the answer.
    """
    gpus = view.gpus if gpus is None else gpus
    room = np.tile(gpus[:, None], len(view.capacity)) if room is None else room
    split = np.zeros(len(gpus), bool) if split is None else split
    held_cells = view.nodes
    owner, node = held_cells[:, :2].T.astype(np.int64)
    exact = room[np.arange(len(gpus)), view.gpu_type] == gpus  # whatever that is for jobs that hold none
    stays = (np.abs(view.running_gpus - gpus) < 0.01 + LITTLE) & (view.partner < 0) & exact
    stays[owner[~view.up[node]]] = False
    other_type = np.arange(len(view.capacity)) != view.gpu_type[:, None]
    kinds = np.argsort(other_type, axis=1, kind="stable")  # the type that is held first, then the others in order
    kinds[~np.take_along_axis(view.usable(gpus), kinds, axis=1)] = -1
    free = FreeGpus(view.cluster, up=view.up)
    count_sizes(free.nodes, free.index.sizes, True)
    slots, room, held_slots = (np.ceil(a * SLOTS - 1e-6).astype(np.int64) for a in (gpus, room, held_cells[:, 2]))
    held_cells = np.column_stack([owner, node, held_slots])[stays[owner]]
    requests = Requests(np.asarray(level, np.int64), slots, room, stays, split, kinds)
    packed_cells = pack(free.index, np.asarray(order, np.int64), requests, held_cells)
    job, node, taken_slots = packed_cells.T
    placed_gpus = np.bincount(job, taken_slots, len(gpus)) / SLOTS
    kind = np.zeros(len(gpus), np.int64)
    kind[job] = view.cluster.node_type[node]
    return Allocation(kind, placed_gpus, nodes=np.column_stack([job, node, taken_slots / SLOTS]), **answer)


def proved(answer: Allocation, objective: float, bound: float, status: str, gap: float) -> Allocation:
    """Return the `Allocation` with its proof as it stands: "heuristic" if it was changed since, to less than the gap allows.

    The objective is that of the answer in force; bound and status are the program's own, the gap the one that was asked for.

    Examples
    --------
    >>> proved(Allocation(np.zeros(1, int), np.ones(1)), 90.0, 100.0, "optimal", 0.01).status
    'heuristic'
    """
    changed = status == "optimal" and relative_gap(objective, bound) > gap
    return replace(answer, objective=objective, bound=bound, status="heuristic" if changed else status)
