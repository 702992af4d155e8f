"""Figures of AutoSched, which are public names of `plots`; loaded at first use."""

from .causal_graph import Causes as Causes, causes as causes, plot_causes as plot_causes
from .configurations import Again as Again, Change as Change, Parallel as Parallel, Weighed as Weighed
from .effects import Answers as Answers, answers as answers, plot_answers as plot_answers
from .futures import Alike as Alike, Fan as Fan, Observed as Observed
from .knob_lanes import KnobLanes as KnobLanes, knob_lanes as knob_lanes, plot_knob_lanes as plot_knob_lanes
from .mechanisms import Mechanisms as Mechanisms, mechanisms as mechanisms, plot_mechanisms as plot_mechanisms
from .tuning import Tried as Tried, plot_tried as plot_tried, tried as tried
