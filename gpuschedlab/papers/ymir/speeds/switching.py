"""How long a switch between two fine-tuning jobs is seen (Ymir, section 6.2): overlapped stages, and a loader made ahead."""

import numpy as np

from gpuschedlab.errors import SpeedError


def pipeline_switch(stages: int, backward: float, store: float, load: float, forward: float, reverse: bool = True):
    """Return an array of instants (s) at which the next job's stages end their first forward pass.

    They are counted from the begin of the last job's backward pass.

    The last job's backward pass frees machine p first. In reverse direction, stage j of the next job is on the machine freed
    j-th: F_j = max(F_{j-1}, j b + s + l) + f. In the same direction it is on that freed (p + 1 - j)-th.

    Both have p stages. Seconds per stage: b and f of computing, s and l of storing one job's and loading the other's parameters.
    `reverse`: the next job runs from machine p to machine 1. The paper draws the overlap and gives no formula; the recursion is
    derived from its figure 9.

    Examples
    --------
    >>> pipeline_switch(4, 1.0, 1.0, 1.0, 1.0).tolist(), pipeline_switch(4, 1.0, 1.0, 1.0, 1.0, reverse=False).tolist()
    ([4.0, 5.0, 6.0, 7.0], [7.0, 8.0, 9.0, 10.0])
    """
    if stages < 1 or min(backward, store, load, forward) < 0:
        raise SpeedError(
            f"pipeline_switch: found {stages} stages and {(backward, store, load, forward)} s; expected 1 or more, and "
            "seconds of 0 or more."
        )
    turn = np.arange(1, stages + 1)
    ready = (turn if reverse else turn[::-1]) * backward + store + load
    ends = np.empty(stages)
    last_end = -np.inf
    for j in range(stages):
        ends[j] = last_end = max(last_end, ready[j]) + forward
    return ends


def loader_switch(load: float, prepare: float, notice: float = 30.0) -> float:
    """Seconds of a data-parallel switch that are seen, when the data loader is prepared `notice` seconds ahead."""
    return load + max(0.0, prepare - notice)
