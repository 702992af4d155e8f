"""Sia's placer (thesis 3.3.1): which nodes give the GPUs of jobs of one type; who must make room restarts elsewhere."""

import numpy as np


def orderly(size: np.ndarray, gpus: np.ndarray) -> np.ndarray:
    """Whether jobs of these GPUs fit on nodes of these sizes, largest first, whenever the sum of all such jobs does.

    So it is where nodes are alike and each job has a power of two below a node that is one itself, or whole nodes.

    Parameters
    ----------
    size : (n,) array
        GPUs of each node of a job's type; 0 where they are not alike, or no power of two.
    gpus : (n,) array
        GPUs of each job.

    Examples
    --------
    >>> orderly(np.array([4, 4, 4, 0]), np.array([1, 8, 6, 4])).tolist()
    [True, True, False, False]
    """
    size, whole = size.astype(np.int64), np.ceil(gpus).astype(np.int64)
    over = np.where(whole < size, whole & (whole - 1), whole % np.maximum(size, 1))
    return (size > 0) & (over == 0)


def node_sizes(cluster, up: np.ndarray) -> np.ndarray:
    """(T,) GPUs of each node of a type that are up; 0 where they are not alike, or no power of two."""
    found = np.zeros(len(cluster.gpu_types), np.int64)
    for t in range(len(found)):
        own = np.unique(cluster.node_gpus[(cluster.node_type == t) & up])
        if len(own) == 1 and not own[0] & (own[0] - 1):
            found[t] = own[0]
    return found


class Placer:
    """The nodes of one GPU type, and what of them is free.

    Rules: (a) what fits into a node is not split; (b) beyond, the largest empty nodes, and the rest on one node; (c) where that leaves
    a job without a place, others are evicted: all are placed anew, largest first, each where it was if that is still free.

    Parameters
    ----------
    node : (k,) int array
        Nodes that are up.
    size : (k,) int array
        GPUs of each.

    Examples
    --------
    >>> placer = Placer(np.array([7, 8]), np.array([4, 4]))
    >>> jobs = {0: (2, 1), 1: (4, 1), 2: (2, 1)}
    >>> placed, left = placer.place(jobs, held={0: [(7, 2)], 2: [(8, 2)]})
    >>> placed, left
    ({1: [(7, 4)], 0: [(8, 2)], 2: [(8, 2)]}, [])
    """

    def __init__(self, node: np.ndarray, size: np.ndarray):
        self.node, self.size = node, np.asarray(size, float)
        self.at = {int(n): i for i, n in enumerate(node)}
        self.free = self.size.copy()

    def place(self, jobs: dict, held: dict, pinned=(), first=()) -> tuple[dict, list]:
        """Find nodes for jobs.

        Parameters
        ----------
        jobs : dict of int to (float, int)
            GPUs and nodes of each job.
        held : dict of int to list of (node, GPUs)
            What jobs hold that keep their GPUs.
        pinned, first : collection of int
            Jobs that stay where they are; jobs that are placed before all others.

        Returns
        -------
        placed : dict of int to list of (node, GPUs)
        left : list of int
            Jobs without a place.
        """
        stay = {j: held[j] for j in jobs if j in held}
        new = sorted((j for j in jobs if j not in held), key=lambda j: (j not in first, -jobs[j][0], j))
        placed, left = self._try(stay, new, jobs, {})
        if not left:
            return placed, left
        stay = {j: held[j] for j in jobs if j in held and j in pinned}
        rest = sorted((j for j in jobs if j not in stay), key=lambda j: (j not in first, -jobs[j][0], j not in held, j))
        return self._try(stay, rest, jobs, held)

    def _try(self, stay, order, jobs, held) -> tuple[dict, list]:
        """Place jobs in order beside those that stay, each where it was if that is free."""
        self.free = self.size.copy()
        placed, left = {}, []
        for job, cells in stay.items():
            self._take(cells)
            placed[job] = cells
        for job in order:
            cells = held.get(job)
            if cells is None or any(self.free[self.at[n]] < g for n, g in cells):
                cells = self._find(*jobs[job])
            if cells is None:
                left.append(job)
            else:
                self._take(cells)
                placed[job] = cells
        return placed, left

    def _take(self, cells):
        for node, gpus in cells:
            self.free[self.at[node]] -= gpus

    def _best_fit(self, gpus, free) -> int:
        """Place in the arrays of the node with the least room that suffices, -1 for none."""
        room = np.where(free >= gpus, free, np.inf)
        best = int(room.argmin()) if len(room) else -1
        return best if best >= 0 and np.isfinite(room[best]) else -1

    def _find(self, gpus, nodes):
        """Cells of a job on so many nodes, or None."""
        if nodes == 1:
            best = self._best_fit(gpus, self.free)
            return None if best < 0 else [(int(self.node[best]), gpus)]
        empty = np.flatnonzero(self.free == self.size)
        alike = empty[self.size[empty] * nodes == gpus][:nodes]
        if len(alike) == nodes:
            return [(int(self.node[i]), float(self.size[i])) for i in np.sort(alike)]
        cells, remainder, free = [], gpus, self.free.copy()
        for i in empty[np.argsort(-self.size[empty], kind="stable")][: nodes - 1]:
            if self._best_fit(remainder, free) >= 0:
                break
            cells.append((int(self.node[i]), float(self.size[i])))
            remainder -= self.size[i]
            free[i] = 0
        best = self._best_fit(remainder, free)
        cells += [(int(self.node[best]), remainder)] if best >= 0 else []
        return sorted(cells) if best >= 0 and len(cells) == nodes else None


def place_types(view, sizes, gpu_type, gpus, nodes, pinned, first) -> tuple[np.ndarray, np.ndarray]:
    """Name the nodes of the jobs on types where the order of sizes alone does not make sure that all fit.

    Parameters
    ----------
    view : View
    sizes : (T,) int array
        From `node_sizes`.
    gpu_type, gpus, nodes : (n,) arrays
        What each job gets: type, GPUs (0: nothing), number of nodes.
    pinned, first : (n,) bool arrays
        Jobs that stay on their nodes; jobs that are placed before others.

    Returns
    -------
    rows : (m, 3) array
        As `Allocation.nodes`.
    left : (n,) bool array
        Jobs without a place.
    """
    cluster, rows, left = view.cluster, [], np.zeros(len(gpus), bool)
    doubtful = (gpus > 0) & (pinned | ~orderly(sizes[gpu_type], gpus))
    cells = _held(view) if doubtful.any() else {}
    for t in np.unique(gpu_type[doubtful]):
        jobs = np.flatnonzero((gpus > 0) & (gpu_type == t))
        up = np.flatnonzero((cluster.node_type == t) & view.up)
        same = (view.gpu_type == gpu_type) & (view.running_gpus == gpus)
        wanted = {int(i): (float(gpus[i]), int(nodes[i])) for i in jobs}
        held = {i: cells[i] for i in wanted if same[i] and i in cells}
        chosen = [set(np.flatnonzero(flag).tolist()) for flag in (pinned, first)]
        placed, lost = Placer(up, cluster.node_gpus[up]).place(wanted, held, *chosen)
        rows += [(job, node, g) for job, own in placed.items() for node, g in own]
        left[lost] = True
    return np.array(rows, float).reshape(-1, 3), left


def _held(view) -> dict:
    """Cells of each running job."""
    found = {}
    for job, node, gpus in view.nodes.tolist():
        found.setdefault(int(job), []).append((int(node), gpus))
    return found
