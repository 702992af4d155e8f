"""Public names of `widgets`, by module; loaded at first use. Those of papers stand in the stubs of their folders."""

from .lessons.cluster_explorer import ClusterExplorer as ClusterExplorer
from .core.base import BaseExplorer as BaseExplorer
from .core.board import Board as Board
from .core.cache import Cache as Cache
from .core.step_player import StepPlayer as StepPlayer
from .core.knob_explorer import KnobExplorer as KnobExplorer, RunExplorer as RunExplorer
from .main.explorer import Explorer as Explorer
from .notebook_errors import find_errors as find_errors
from .recipes import Generated as Generated, Shape as Shape, SmallCluster as SmallCluster, bend as bend
from .lessons.trace_explorer import TraceExplorer as TraceExplorer
