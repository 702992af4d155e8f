"""Compiled: GPUs for pairs of jobs and GPU types, one pair after the other, as long as they fit."""

import numpy as np

from gpuschedlab._compiled import njit


@njit
def serve(order, able, gpus, capacity):
    """Give pairs their GPUs in order, as long as they fit; return two arrays (n,): types and GPUs."""
    # Pairs (m,) are job x T + type, in the order in which they are served; `able` (n, T) says where each job can run.
    n, T = able.shape
    gpu_type = np.zeros(n, np.int64)
    gpus_given = np.zeros(n)
    room = capacity.copy()
    for pair in order:
        i = pair // T
        pair_type = pair % T
        if able[i, pair_type] and gpus_given[i] == 0 and gpus[i] <= room[pair_type] + 1e-9:
            gpu_type[i] = pair_type
            gpus_given[i] = gpus[i]
            room[pair_type] -= gpus[i]
    return gpu_type, gpus_given
