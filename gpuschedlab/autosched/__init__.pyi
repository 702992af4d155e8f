"""Public names of `autosched`, by module; loaded at first use."""

from .attribution import Why as Why, shapley as shapley, why as why
from .causal.adjustment import identify as identify
from .causal.graph import (
    CausalGraph as CausalGraph,
    Layers as Layers,
    confidence as confidence,
    full_graph as full_graph,
    learn_graph as learn_graph,
)
from .causal.model import CausalModel as CausalModel, Effect as Effect
from .contest import Contest as Contest
from .controller import Controller as Controller
from .decision import Decision as Decision
from .forecast.aggregate import Aggregator as Aggregator
from .forecast.arrivals import GlobalGenerator as GlobalGenerator
from .forecast.generation import (
    Forecast as Forecast,
    GenerationEngine as GenerationEngine,
    past_forecast as past_forecast,
    true_forecast as true_forecast,
)
from .forecast.ranges import RANGES as RANGES, RangePredictor as RangePredictor
from .forecast.repository import observe as observe
from .journal import Journal as Journal
from .live.days import LiveDays as LiveDays
from .live.like import LikeRaces as LikeRaces, play_like as play_like
from .live.race import Race as Race
from .live.settings import LiveTuning as LiveTuning
from .lab.backends import modelled as modelled
from .lab.curve import Curve as Curve, Span as Span
from .lab.edges import lab_graph as lab_graph
from .lab.interval_log import IntervalLog as IntervalLog
from .lab.paths import PathModel as PathModel
from .lab.sentences import Answers as Answers
from .lab.truth import Truth as Truth
from .lab.verdict import judged as judged
from .lab.world import IntervalWorld as IntervalWorld
from .logbook.inference import Estimate as Estimate
from .logbook.log import Log as Log, operate as operate, read_log as read_log
from .logbook.play import Rule as Rule
from .methods import METHODS as METHODS, attach as attach, best_fixed as best_fixed, score as score
from .tuner.measure import OBJECTIVES as OBJECTIVES, WATCHED as WATCHED, Measurement as Measurement, Probe as Probe
from .tuner.offline import gather as gather, layers_of as layers_of, train as train
from .tuner.samplers import (
    SAMPLERS as SAMPLERS,
    BlueFin as BlueFin,
    LatinHypercube as LatinHypercube,
    Random as Random,
    Sampler as Sampler,
)
from .tuner.search import Tuner as Tuner
from .tuner.space import Axis as Axis, Space as Space
from .tuner.trials import Trial as Trial, Tuning as Tuning
from .mechanisms.canaries import Canaries as Canaries
from .mechanisms.twin import Mechanism as Mechanism, Twin as Twin, twin as twin
from .explorers.causal_lab import CausalLab as CausalLab
from .explorers.tuner_lab import TunerLab as TunerLab
from .explorers.logbook import LogbookExplorer as LogbookExplorer
