"""Time: scenarios, the engine, its two drivers, what policies see, and what a run leaves behind."""

from gpuschedlab.sim.allocation import Allocation
from gpuschedlab.sim.policy import Ordered, Policy, Round, Wrapped
from gpuschedlab.sim.run import Run
from gpuschedlab.sim.scenario import Scenario, simulate
from gpuschedlab.sim.simulation import Simulation
from gpuschedlab.sim.snapshot import Snapshot
from gpuschedlab.sim.view import View
from gpuschedlab.speeds import Delays

__all__ = [
    "Allocation",
    "Delays",
    "Ordered",
    "Policy",
    "Round",
    "Run",
    "Scenario",
    "Simulation",
    "Snapshot",
    "View",
    "Wrapped",
    "simulate",
]
