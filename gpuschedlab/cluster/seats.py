"""Which GPUs of its nodes each stretch of an allocation holds, replayed in order of time; compiled."""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.placement import cell, free_block


@njit
def seat(order, node, gpus, width, buddy):
    """Seat stretches on the GPUs of their nodes, and return an array of masks: the GPUs of each stretch, 0 if it has no seat."""
    held_masks = np.zeros(len(width), np.uint64)
    seat_masks = np.zeros(len(node), np.uint64)
    for event in order:
        if event < 0:
            stretch = -1 - event
            held_masks[node[stretch]] &= ~seat_masks[stretch]
            continue
        stretch = event
        gpus_left = gpus[event]
        mask = held_masks[node[stretch]]
        bits = np.uint64(0)
        if buddy:
            block_start = free_block(mask, gpus[stretch], width[node[stretch]])[0]
            if block_start >= 0:
                bits = cell(block_start, gpus[stretch])
                gpus_left = 0
        for gpu in range(width[node[stretch]]):
            gpu_bit = np.uint64(1) << np.uint64(gpu)
            if gpus_left > 0 and not mask & gpu_bit:
                bits |= gpu_bit
                gpus_left -= 1
        if gpus_left == 0:
            seat_masks[stretch] = bits
            held_masks[node[stretch]] |= bits
    return seat_masks
