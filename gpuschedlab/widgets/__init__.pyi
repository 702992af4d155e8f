"""Public names of `widgets`, by module; loaded at first use."""

from .autosched_explorer import AutoSchedExplorer as AutoSchedExplorer
from .cluster_explorer import ClusterExplorer as ClusterExplorer
from .copter_explorer import CopterExplorer as CopterExplorer, SimilarRounds as SimilarRounds
from .core.base import BaseExplorer as BaseExplorer
from .core.board import Board as Board
from .core.cache import Cache as Cache
from .core.knob_explorer import KnobExplorer as KnobExplorer
from .explorer import Explorer as Explorer
from .notebook_errors import find_errors as find_errors
from .prompt_explorer import PromptExplorer as PromptExplorer
from .scale_explorer import ScaleExplorer as ScaleExplorer
from .problems_explorer import LinkExplorer as LinkExplorer, ShardExplorer as ShardExplorer
from .small_cluster import SmallCluster as SmallCluster
from .sources import Generated as Generated
from .trace_explorer import TraceExplorer as TraceExplorer
from .trace_shape import Shape as Shape, bend as bend
from .unisched_explorer import UniSchedExplorer as UniSchedExplorer
from .ymir_explorer import YmirExplorer as YmirExplorer
