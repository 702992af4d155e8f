"""The placer and the lists of the Titan artifact: what is not consolidated is refused; equal submissions go by when they joined a list."""

import numpy as np

from gpuschedlab.sim import View
from gpuschedlab.sim.rounds.allocation import GPUS, NODE, POSITION
from reproduce.papers.ymir.titan import GPUS_PER_NODE


def consolidated(free: np.ndarray, gpus: int) -> list[tuple[int, int]]:
    """Nodes, and GPUs on each, for a job; none where they would be more nodes than the fewest.

    A job of at most one node goes where it leaves least; a larger one takes the nodes with most free GPUs.

    Parameters
    ----------
    free : (N,) array
        Free GPUs of each node.
    gpus : int

    Examples
    --------
    >>> consolidated(np.array([4, 2, 3]), 2), consolidated(np.array([3, 2, 3]), 5), consolidated(np.array([2, 2, 3]), 4)
    ([(1, 2)], [(0, 3), (2, 2)], [])
    """
    if gpus <= GPUS_PER_NODE:
        room = np.where(free >= gpus, free, np.inf)
        best = int(room.argmin())
        return [(best, gpus)] if np.isfinite(room[best]) else []
    found = []
    left = gpus
    for node in np.argsort(-free, kind="stable"):
        took = min(int(free[node]), left)
        if took > 0:
            found.append((int(node), took))
            left -= took
    return found if left == 0 and len(found) == -(-gpus // GPUS_PER_NODE) else []


def place(view: View, gpus: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """GPUs (n,) after refusals, and rows (job, node, GPUs): who keeps its number stays, the others come by GPUs, most first.

    Parameters
    ----------
    view : View
    gpus : (n,) array
        What each job is to have.
    order : (n,) int array
        Positions of all jobs; of equal numbers of GPUs the first is placed first.
    """
    gpus = gpus.copy()
    stays = (gpus > 0) & (gpus == view.running_gpus)
    kept = view.nodes[stays[view.nodes[:, POSITION].astype(int)]]
    free = view.cluster.node_gpus.astype(float)
    np.subtract.at(free, kept[:, NODE].astype(int), kept[:, GPUS])
    rows = [tuple(row) for row in kept]
    for i in order[np.argsort(-gpus[order], kind="stable")]:
        if gpus[i] == 0 or stays[i]:
            continue
        found = consolidated(free, int(gpus[i]))
        gpus[i] = sum(took for _, took in found)
        for node, took in found:
            free[node] -= took
            rows.append((i, node, took))
    return gpus, np.array(rows, float).reshape(-1, 3)


class Lists:
    """When each job joined the list that it is in: one of running and one of waiting jobs."""

    def __init__(self):
        self._joined: dict[int, int] = {}
        self._count = 0

    def _join(self, row) -> None:
        self._joined[int(row)] = self._count
        self._count += 1

    def joined(self, view: View) -> np.ndarray:
        """When each job (n,) joined its list; those that are new do now."""
        for row in view.index:
            if int(row) not in self._joined:
                self._join(row)
        return np.array([self._joined[int(row)] for row in view.index])

    def order(self, view: View) -> np.ndarray:
        """Positions (n,) by submission; of equal ones first those that run, and then by when they joined their list."""
        return np.lexsort((self.joined(view), ~view.running, view.submit))

    def move(self, view: View, gpus: np.ndarray, order: np.ndarray) -> None:
        """Put jobs that start, restart or stop at the end of their list, in this order."""
        for i in order[gpus[order] != view.running_gpus[order]]:
            self._join(view.index[i])
