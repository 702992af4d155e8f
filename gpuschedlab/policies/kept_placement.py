"""Nodes for the jobs of an answer: each stays where it was, unless another one would find no place."""

from collections.abc import Callable

import numpy as np

from gpuschedlab.cluster.free_gpus import FreeGpus
from gpuschedlab.sim.rounds.allocation import NODE, POSITION


def repacked(
    view,
    todo: list[int],
    same: np.ndarray,
    pinned: np.ndarray,
    fresh: Callable[[], FreeGpus],
    find: Callable[[FreeGpus, int], np.ndarray],
) -> tuple[np.ndarray, list]:
    """Return a tuple: an array of the cells of jobs that are placed, and a list of those that found no place.

    Jobs are given by position in their order. First come those that stay, then the others; if one finds no place, all anew.
    """
    # Anew, only who is `pinned` (n,) is sure to stay; another one goes where it was if it is its turn and that is still free. Who may
    # stay is in `same` (n,). `fresh` makes what is free before any is placed, and `find` takes nodes of it for a job, as
    # `FreeGpus.take`. Returned are rows as of `Allocation.nodes`, and the jobs without a place.
    holder = view.nodes[:, POSITION].astype(np.int64)
    may_stay = np.zeros(len(view), bool)
    may_stay[holder[np.isin(holder, todo)]] = True
    may_stay &= same
    for stays in (may_stay, may_stay & pinned):
        free = fresh()
        cells_kept = view.nodes[stays[holder]]
        free.hold(cells_kept[:, NODE:])
        follow = [job for job in todo if not stays[job]]
        cells_of_jobs = []
        for job in follow:
            present_cells = view.nodes[holder == job, NODE:] if may_stay[job] else cells_kept[:0, NODE:]
            cells_of_jobs.append(present_cells if len(present_cells) and free.hold(present_cells) else find(free, job))
        cell_counts = [len(present_cells) for present_cells in cells_of_jobs]
        if all(cell_counts):
            break
    jobs_without_place = [job for job, present_cells in zip(follow, cell_counts, strict=True) if not present_cells]
    placed_cells = np.concatenate([cells_kept[:0, NODE:], *cells_of_jobs])
    placed = np.column_stack([np.repeat(follow, cell_counts), placed_cells])
    return np.concatenate([cells_kept, placed]), jobs_without_place
