"""Which GPUs of its nodes each stretch of an allocation holds, replayed in order of time; compiled."""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.placement import cell, free_block


@njit
def seat(order, node, gpus, width, buddy):
    """Seat stretches on the GPUs of their nodes."""
    held_masks = np.zeros(len(width), np.uint64)
    seat_masks = np.zeros(len(node), np.uint64)
    for event in order:
        if event < 0:
            i = -1 - event
            held_masks[node[i]] &= ~seat_masks[i]
            continue
        i = event
        gpus_left = gpus[event]
        mask = held_masks[node[i]]
        bits = np.uint64(0)
        if buddy:
            block_start = free_block(mask, gpus[i], width[node[i]])[0]
            if block_start >= 0:
                bits = cell(block_start, gpus[i])
                gpus_left = 0
        for g in range(width[node[i]]):
            gpu_bit = np.uint64(1) << np.uint64(g)
            if gpus_left > 0 and not mask & gpu_bit:
                bits |= gpu_bit
                gpus_left -= 1
        if gpus_left == 0:
            seat_masks[i] = bits
            held_masks[node[i]] |= bits
    return seat_masks
