"""Public names of `widgets`, by module; loaded at first use."""

from .lessons.autosched_explorer import AutoSchedExplorer as AutoSchedExplorer
from .lessons.cluster_explorer import ClusterExplorer as ClusterExplorer
from .lessons.copter_explorer import CopterExplorer as CopterExplorer, SimilarRounds as SimilarRounds
from .core.base import BaseExplorer as BaseExplorer
from .core.board import Board as Board
from .core.cache import Cache as Cache
from .core.step_player import StepPlayer as StepPlayer
from .core.knob_explorer import KnobExplorer as KnobExplorer, RunExplorer as RunExplorer
from .lessons.logbook_explorer import LogbookExplorer as LogbookExplorer
from .lessons.manual_tuning_explorer import ManualTuningExplorer as ManualTuningExplorer
from .main.explorer import Explorer as Explorer
from .notebook_errors import find_errors as find_errors
from .lessons.prompt_explorer import PromptExplorer as PromptExplorer
from .recording.recorder import record as record
from .recording.recording import Recording as Recording
from .recipes import Generated as Generated, Shape as Shape, SmallCluster as SmallCluster, bend as bend
from .lessons.recorded_explorer import RecordedExplorer as RecordedExplorer
from .lessons.scale_explorer import ScaleExplorer as ScaleExplorer
from .lessons.problems_explorer import LinkExplorer as LinkExplorer, ShardExplorer as ShardExplorer
from .lessons.site_explorer import SiteExplorer as SiteExplorer
from .lessons.step_players import MergerSteps as MergerSteps, PromptSteps as PromptSteps
from .lessons.trace_explorer import TraceExplorer as TraceExplorer
from .lessons.unisched_explorer import UniSchedExplorer as UniSchedExplorer
from .lessons.ymir_explorer import YmirExplorer as YmirExplorer
