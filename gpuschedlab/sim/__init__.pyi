"""Public names of `sim`, by module; loaded at first use."""

from .allocation import Allocation as Allocation
from .entry import simulate as simulate
from .policy import Ordered as Ordered, Plan as Plan, Policy as Policy, Round as Round, Wrapped as Wrapped
from .recipe import Recipe as Recipe
from .run import Run as Run, Snapshot as Snapshot
from .scenario import Delays as Delays, Scenario as Scenario
from .simulation import Simulation as Simulation
from .view import View as View
