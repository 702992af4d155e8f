"""Names of `plots` for editors, by file; `plot_x` are made from `x` when the package is loaded."""

# ruff: noqa: F403
from typing import Any

from .arrivals import *
from .bars import *
from .distributions import *
from .drawing import *
from .lines import *
from .load import *
from .nodes.cells import *
from .nodes.gantt import *
from .nodes.space import *
from .sizes import *
from .style import *
from .sweep import *
from .systems.answers import *
from .systems.goodput import *
from .systems.knob_lanes import *
from .systems.landscape import *
from .systems.leases import *
from .systems.merges import *
from .systems.pools import *
from .systems.problems import *
from .systems.replays import *
from .systems.response_curves import *
from .systems.stages import *
from .systems.steps import *
from .systems.trials import *
from .systems.tuning import *
from .web import Place as Place
from .web.figure import Figure as Figure, Figures as Figures, write_page as write_page

def __getattr__(name: str) -> Any: ...
