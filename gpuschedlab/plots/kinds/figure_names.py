"""Numbers of figures by the figure's name: each is one of the few kinds."""

from gpuschedlab.plots.kinds.charts import Bars, Lines
from gpuschedlab.plots.kinds.lanes import Lanes
from gpuschedlab.plots.kinds.maps import Landscape
from gpuschedlab.plots.kinds.style import Drawing

Arrivals = Durations = FairnessCdf = FreeSpace = JctCdf = SweepLines = Lines
Interruptions = MetricBars = Bars
JobLanes = Lanes
SweepMap = Landscape
Cells = Demand = LoadOverTime = Pools = SlowdownBySize = SweepFront = Drawing
