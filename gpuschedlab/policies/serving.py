"""Compiled: GPUs for pairs of jobs and GPU types, one pair after the other, as long as they fit."""

import numpy as np

from gpuschedlab._compiled import njit


@njit
def serve(order, able, gpus, capacity):
    """Give pairs their GPUs in order, as long as they fit; return two arrays (n,): types and GPUs."""
    # Pairs (m,) are job x T + type, in the order in which they are served; `able` (n, T) says where each job can run.
    job_count, T = able.shape
    gpu_type = np.zeros(job_count, np.int64)
    gpus_given = np.zeros(job_count)
    room = capacity.copy()
    for pair in order:
        job = pair // T
        pair_type = pair % T
        if able[job, pair_type] and gpus_given[job] == 0 and gpus[job] <= room[pair_type] + 1e-9:
            gpu_type[job] = pair_type
            gpus_given[job] = gpus[job]
            room[pair_type] -= gpus[job]
    return gpu_type, gpus_given
