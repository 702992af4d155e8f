"""Nodes for the jobs of an answer: each stays where it was, unless another one would find no place."""

from collections.abc import Callable, Iterable

import numpy as np

from gpuschedlab.cluster.free_gpus import FreeGpus
from gpuschedlab.sim.allocation import NODE, POSITION


def held_nodes(view, stays: np.ndarray) -> dict[int, np.ndarray]:
    """Rows (node, GPUs) that running jobs hold, by their positions, of those that may stay (n,)."""
    ends = np.searchsorted(view.nodes[:, POSITION], np.arange(len(view) + 1))  # rows are in order of job
    return {i: view.nodes[ends[i] : ends[i + 1], NODE:] for i in np.flatnonzero(stays) if ends[i] < ends[i + 1]}


def repacked(
    orders: Iterable[list], held: dict, fresh: Callable[[], FreeGpus], find: Callable[[FreeGpus, int], np.ndarray]
) -> tuple[np.ndarray, list]:
    """Place jobs one after the other, in the first order in which all find a place, otherwise in the last.

    A job (by its position) goes where it was, as of `held_nodes`, if that is still free; otherwise `find` takes nodes for it, as
    `FreeGpus.take`. `fresh` makes what is free before any is placed. Returned are rows as of `Allocation.nodes`, and the jobs
    without a place.
    """
    for order in orders:
        free, rows = fresh(), []
        for i in order:
            rows.append(held[i] if i in held and free.hold(held[i]) else find(free, i))
        count = [len(own) for own in rows]
        if all(count):
            break
    left = [i for i, own in zip(order, count, strict=True) if not own]
    return np.column_stack([np.repeat(order, count), np.concatenate([np.zeros((0, 2)), *rows])]), left
