"""Compiled looks at all jobs that wait or run: they are brought up to date, listed, and logged as far as they have come."""

import numpy as np
from numba import types

from gpuschedlab._compiled import njit
from gpuschedlab.sim.engine.accounting import log_stretch, refresh
from gpuschedlab.sim.engine.state import STATE

INDEX = types.Array(types.int64, 1, "C")


@njit
def put_waiting(S, out, n):
    """Write all waiting jobs, queue by queue, from a place on; the place after the last."""
    for c in range(S.cls.shape[0]):
        k = S.cls[c]
        for i in range(k.first, k.first + k.count):
            out[n] = S.heap[i]
            n += 1
    return n


@njit(INDEX(STATE))
def refresh_active(S):
    """Bring all active jobs up to date; their indices, in order of submission."""
    sc = S.scalar[0]
    out = np.empty(sc.running + sc.waiting, np.int64)
    for i in range(sc.running):
        out[i] = S.running[i]
    n = put_waiting(S, out, sc.running)
    out.sort()
    for i in range(n):
        refresh(S, out[i])
    return out


@njit(types.int64(STATE))
def log_open(S):
    """Log the stretches of running jobs as if they ended now; rows in the log."""
    for i in range(S.scalar[0].running):
        log_stretch(S, S.running[i])
    return S.scalar[0].stretches
