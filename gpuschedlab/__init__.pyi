"""Public names, by the part that holds them: `__init__.py` loads each at its first use, editors complete them."""

__version__: str

from .check import check_estimator as check_estimator, check_policy as check_policy
from .cluster import Cluster as Cluster, Nodes as Nodes, Outage as Outage, Window as Window
from .comparison import Comparison as Comparison, compare as compare
from .estimators import History as History, Noisy as Noisy, Oracle as Oracle, Runtime as Runtime
from .gym import Agent as Agent, SchedulingEnv as SchedulingEnv
from .knobs import Constraint as Constraint, Holds as Holds, Knob as Knob, knobs_of as knobs_of
from .policies import *  # noqa: F403
from .papers import *  # noqa: F403
from .scenarios import recipe_of as recipe_of
from .sim import (
    Allocation as Allocation,
    Ordered as Ordered,
    Plan as Plan,
    Recipe as Recipe,
    Round as Round,
    Run as Run,
    Scenario as Scenario,
    Simulation as Simulation,
    View as View,
    simulate as simulate,
)
from .table_display import Table as Table
from .speeds import Delays as Delays, Speeds as Speeds
from .traces.intake.door import intake as intake
from .traces import calibrate as calibrate, generate as generate, read as read, validate as validate
