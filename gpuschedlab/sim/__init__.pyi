"""Public names of `sim`, by module; loaded at first use."""

from .entry import simulate as simulate
from .ordered import Ordered as Ordered, Plan as Plan
from .policy import Policy as Policy, Round as Round, Wrapped as Wrapped
from .recipe_base import Recipe as Recipe
from .rounds.allocation import Allocation as Allocation
from .rounds.view import View as View
from .run import Run as Run
from .scenario import Delays as Delays, Scenario as Scenario
from .simulation import Simulation as Simulation
from .snapshot import Snapshot as Snapshot
