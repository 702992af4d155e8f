"""Which GPUs of its nodes each stretch of an allocation holds, replayed in order of time; compiled."""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.placement import cell, free_block


@njit
def seat(order, node, gpus, width, buddy):
    """Seat stretches on the GPUs of their nodes."""
    held = np.zeros(len(width), np.uint64)
    taken = np.zeros(len(node), np.uint64)
    for event in order:
        if event < 0:
            i = -1 - event
            held[node[i]] &= ~taken[i]
            continue
        i = event
        left = gpus[event]
        mask = held[node[i]]
        bits = np.uint64(0)
        if buddy:
            at = free_block(mask, gpus[i], width[node[i]])[0]
            if at >= 0:
                bits = cell(at, gpus[i])
                left = 0
        for g in range(width[node[i]]):
            one = np.uint64(1) << np.uint64(g)
            if left > 0 and not mask & one:
                bits |= one
                left -= 1
        if left == 0:
            taken[i] = bits
            held[node[i]] |= bits
    return taken
