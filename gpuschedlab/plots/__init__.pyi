"""Names of `plots`, by module; loaded at first use."""

from typing import Any

from .bars import interruptions as interruptions
from .bars import metric_bars as metric_bars, plot_interruptions as plot_interruptions
from .bars import plot_metric_bars as plot_metric_bars
from .distributions import fairness_cdf as fairness_cdf
from .distributions import jct_cdf as jct_cdf, plot_fairness_cdf as plot_fairness_cdf, plot_jct_cdf as plot_jct_cdf
from .plotter import draw as draw, figure as figure
from .kinds.charts import Bars as Bars, Landscape as Landscape, Lanes as Lanes, Lines as Lines, Points as Points
from .load import busy_window as busy_window, load_over_time as load_over_time
from .load import free_space as free_space, plot_free_space as plot_free_space
from .load import plot_load_over_time as plot_load_over_time
from .nodes.gantt import Gantt as Gantt, gantt as gantt, plot_gantt as plot_gantt
from .nodes.gpu_cells import cells as cells, plot_cells as plot_cells, seats as seats
from .nodes.job_lanes import job_lanes as job_lanes, plot_job_lanes as plot_job_lanes
from .distributions import plot_slowdown_by_size as plot_slowdown_by_size
from .distributions import slowdown_by_size as slowdown_by_size
from .kinds.style import Drawing as Drawing
from .sweep_figures import plot_sweep as plot_sweep, plot_sweep_front as plot_sweep_front
from .sweep_figures import plot_sweep_lines as plot_sweep_lines, plot_sweep_map as plot_sweep_map
from .sweep_figures import sweep_front as sweep_front, sweep_lines as sweep_lines, sweep_map as sweep_map
from .workload import arrivals as arrivals
from .workload import demand as demand, durations as durations, plot_arrivals as plot_arrivals
from .workload import plot_demand as plot_demand, plot_durations as plot_durations
from .web import Place as Place
from .web.figure import Figure as Figure, Figures as Figures, write_page as write_page

def __getattr__(name: str) -> Any: ...
