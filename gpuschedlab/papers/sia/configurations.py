"""Sia's configurations: which numbers of GPUs of each type a job may have, on how many nodes (thesis 3.3.3)."""

from functools import lru_cache

import numpy as np


def sia_configurations(node_type: np.ndarray, node_gpus: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a tuple of three arrays, configurations of a cluster: on one node powers of two and all of it, beyond whole nodes (3.3.3).

    Parameters
    ----------
    node_type : (N,) int array
        GPU type of each node.
    node_gpus : (N,) int array
        GPUs of each node.

    Returns
    -------
    types, nodes, gpus : (C,) int arrays
        By type, then GPUs; not to be written to. If a type has nodes of several sizes, those of one size go together,
        or the largest nodes of all.

    Examples
    --------
    >>> types, nodes, gpus = sia_configurations([0, 0, 1], [4, 4, 6])
    >>> list(zip(types.tolist(), nodes.tolist(), gpus.tolist()))
    [(0, 1, 1), (0, 1, 2), (0, 1, 4), (0, 2, 8), (1, 1, 1), (1, 1, 2), (1, 1, 4), (1, 1, 6)]
    """
    types_of_nodes = tuple(np.asarray(node_type).tolist())
    gpus_of_nodes = tuple(np.asarray(node_gpus).tolist())
    return _configurations(types_of_nodes, gpus_of_nodes)


@lru_cache(maxsize=8)  # a run asks for those of its cluster in each round
def _configurations(node_type: tuple[int, ...], node_gpus: tuple[int, ...]):
    kinds = np.array(node_type, np.int64)
    sizes = np.array(node_gpus, np.int64)
    type_configurations = [
        (t, nodes, gpus) for t in np.unique(kinds).tolist() for gpus, nodes in _of_type(sizes[kinds == t])
    ]
    configuration_rows = np.array(type_configurations, np.int64).reshape(-1, 3)
    configuration_columns = configuration_rows.T.copy()
    configuration_columns.setflags(write=False)
    return tuple(configuration_columns)


def _of_type(sizes: np.ndarray) -> list[tuple[int, int]]:
    """Return a list of tuples (GPUs, nodes): the configurations of one type, whose nodes have these sizes."""
    largest = int(sizes.max())
    type_configurations = {(2**k, 1) for k in range(largest.bit_length())}
    for node_size, nodes_of_size in zip(*np.unique(sizes, return_counts=True), strict=True):
        type_configurations |= {(k * int(node_size), k) for k in range(1, int(nodes_of_size) + 1)}
    descending = np.cumsum(np.sort(sizes)[::-1])
    type_configurations |= {(int(gpus), k + 1) for k, gpus in enumerate(descending)}
    return sorted(type_configurations)


def sia_rigid(
    asked: np.ndarray, node_type: np.ndarray, node_gpus: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the configurations of jobs that run on the GPUs that they ask for only: any number, on the fewest nodes of a type.

    They are a tuple of arrays.

    Parameters
    ----------
    asked : (k,) int array
        Numbers of GPUs.
    node_type, node_gpus : (N,) int arrays
        As in `sia_configurations`.

    Returns
    -------
    types, nodes, gpus : (C,) int arrays
        Those that the type has the GPUs for, by type, then GPUs.

    Examples
    --------
    >>> types, nodes, gpus = sia_rigid([6, 10], [0, 0, 1], [4, 4, 16])
    >>> list(zip(types.tolist(), nodes.tolist(), gpus.tolist()))
    [(0, 2, 6), (1, 1, 6), (1, 1, 10)]
    """
    kinds = np.asarray(node_type)
    sizes = np.asarray(node_gpus)
    rigid_configurations = []
    for t in np.unique(kinds).tolist():
        room = np.cumsum(np.sort(sizes[kinds == t])[::-1])
        for gpus in np.unique(np.asarray(asked, np.int64)).tolist():
            nodes = int(np.searchsorted(room, gpus)) + 1
            if nodes <= len(room):
                rigid_configurations.append((t, nodes, gpus))
    rigid_rows = np.array(rigid_configurations, np.int64).reshape(-1, 3)
    return tuple(rigid_rows.T.copy())
