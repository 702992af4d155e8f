"""POP (Narayanan et al., SOSP'21): split a large problem into parts of jobs and GPUs, and solve each separately."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from gpuschedlab.knobs import Knob
from gpuschedlab.sim.allocation import Allocation
from gpuschedlab.sim.policy import Round, Wrapped

if TYPE_CHECKING:
    from gpuschedlab.sim.view import View


@dataclass(frozen=True)
class Pop(Wrapped):
    """Deal jobs and nodes out to parts, and let a round policy decide for each part as if it were the whole.

    Job i of the trace is in part i mod k, and so is, of the nodes of each type that are up, every k-th. There are `parts`
    parts, or fewer where the largest job would not fit into one.

    Differs from the paper in
    -------------------------
    Clients are dealt out in turn, not at random, so that a part's jobs stay together from round to round. Clients with
    very large demands are not split (4.2): jobs are not divisible.

    References
    ----------
    Narayanan et al., POP, SOSP'21, sections 3 and 4.

    Examples
    --------
    >>> from gpuschedlab.policies import Gavel
    >>> Pop(Gavel(), parts=4).name
    'Pop(Gavel)'
    """

    policy: Round
    parts: Annotated[int, Knob(1, 64, help="into which jobs and GPUs are split")] = 8

    def begin(self) -> object:
        """What the policy carries for each part."""
        return [self.policy.begin() for _ in range(self.parts)]

    def allocate(self, view: "View") -> Allocation:
        """Decide part by part."""
        largest = view.gpus.max(initial=1)
        node, parts = next(
            (n, k) for k in range(self.parts, 0, -1) for n in [_dealt(view, k, largest)] if n is not None
        )
        answers = []
        for k in range(parts):
            rows = np.flatnonzero(view.index % parts == k)
            part = view.take(rows, nodes=node == k, memory=view.memory[k])
            answers.append((rows, self.policy.allocate(part)))
        return Allocation.combined(len(view), answers)


def _dealt(view, parts: int, largest: float) -> np.ndarray | None:
    """Part of each node (N,); None where some part could not hold a job of `largest` GPUs on nodes of one type."""
    node = np.zeros(len(view.up), np.int64)
    room = np.zeros((parts, len(view.cluster.gpu_types)))
    for kind in range(room.shape[1]):
        mine = np.flatnonzero((view.cluster.node_type == kind) & view.up)
        node[mine] = np.arange(len(mine)) % parts
        room[:, kind] = np.bincount(node[mine], view.cluster.node_gpus[mine], parts)
    return node if parts == 1 or room.max(axis=1).min() >= largest else None
