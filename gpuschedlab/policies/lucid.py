"""Lucid (Hu et al., ASPLOS'23): profile briefly, pack jobs that go well together, shortest and smallest first."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from gpuschedlab.knobs import Knob
from gpuschedlab.policies.simple import Placement
from gpuschedlab.sim.ordered import Ordered


@dataclass(frozen=True)
class Lucid(Ordered):
    """Serve jobs by estimated GPU-time, never suspending one, and let two share GPUs if none are free.

    New jobs that fit run first on the profiler's nodes, for at most `profile_time`; many end there. The others queue
    by GPUs times estimated duration. A job that finds no free GPUs joins a running one of the same demand if their
    relative speeds, shared, add up to `share_limit` or more.

    Differs from the paper in
    -------------------------
    Measured speeds of pairs (the speed table's `sharing`) replace the sharing score that a decision tree
    predicts; the update engine is the caller's: fit the estimator again and `Simulation.switch`. A profiled job
    starts over, as nothing is saved non-intrusively.

    References
    ----------
    Hu et al., Lucid, ASPLOS'23, sections 3.2 to 3.5; knobs as in the AutoSched thesis, 6.6.5.

    Examples
    --------
    >>> Lucid(pack=False).sharing
    False
    """

    profiler_nodes: Annotated[int, Knob(0, 16, unit="nodes", help="capacity of the profiler; 0: none")] = 2
    profile_time: Annotated[float, Knob(10, 3600, True, unit="s", help="longest profiling", words="profiles for")] = (
        200.0
    )
    pack: Annotated[bool, Knob(help="whether two jobs may share GPUs")] = True
    share_limit: Annotated[float, Knob(1, 2, help="least sum of relative speeds of two jobs that share")] = 1.5
    placement: Placement = "consolidate"
    moving = "none"
    watched: ClassVar = ("queueing", "utilisation", "interference", "slowdown", "backlog")

    @property
    def sharing(self) -> bool:
        """Whether jobs may share GPUs."""
        return self.pack

    @staticmethod
    def key(now: float, job: np.void, knobs: np.void) -> float:
        """Order of submission in the profiler; estimated GPU-seconds after it.

        Return it, a float.
        """
        return job.submit if job.stage == 1 else job.estimate * job.gpus
