"""Pollux as the Titan artifact has it: a search that does not know what jobs hold."""

from dataclasses import dataclass

import numpy as np

from gpuschedlab.sim import Allocation, Round, View, Wrapped


@dataclass(frozen=True)
class Forgetful(Wrapped):
    """A policy to which no job holds GPUs, so that a job that keeps its GPUs counts as one that restarts.

    Parameters
    ----------
    policy : Round
    """

    policy: Round

    def allocate(self, view: View) -> Allocation:
        """What the policy answers without the nodes that jobs hold."""
        blind = view.take(np.arange(len(view)), memory=view.memory)
        blind.nodes = np.empty((0, 3))
        return self.policy.allocate(blind)
