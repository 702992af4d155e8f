"""Which GPUs of its nodes each stretch of an allocation holds, replayed in order of time; compiled."""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.placement import cell, free_block


@njit
def seat(order, node, gpus, width, buddy):
    """Seat stretches on the GPUs of their nodes.

    Examples
    --------
    >>> both = seat(np.array([0, 1, -1, 2]), np.zeros(3, int), np.array([1, 2, 1]), np.array([4]), True)
    >>> [f"{int(bits):04b}" for bits in both]  # the second job takes an aligned pair; the third, the first's place
    ['0001', '1100', '0001']
    """
    held = np.zeros(len(width), np.uint64)
    taken = np.zeros(len(node), np.uint64)
    for event in order:
        if event < 0:
            i = -1 - event
            held[node[i]] &= ~taken[i]
            continue
        i, left = event, gpus[event]
        mask, bits = held[node[i]], np.uint64(0)
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
