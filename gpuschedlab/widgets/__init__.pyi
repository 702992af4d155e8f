"""Public names of `widgets`, by module; loaded at first use. Those of papers stand in the stubs of their folders."""

from .parts.explorer_base import BaseExplorer as BaseExplorer
from .parts.board import Board as Board
from .parts.cache import Cache as Cache
from .parts.step_player import StepPlayer as StepPlayer
from .parts.knob_explorer import KnobExplorer as KnobExplorer, RunExplorer as RunExplorer
from .explorers.explorer import Explorer as Explorer
from .parts.guess import Guess as Guess
from .notebook_errors import find_errors as find_errors
from .recipes import Generated as Generated, Shape as Shape, SmallCluster as SmallCluster, bend as bend
