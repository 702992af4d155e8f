"""Figures of runs: pure functions from runs to numbers, and from numbers to plotly figures.

For each plot: `x(runs)` computes the numbers (a NamedTuple), `draw(numbers)` lays them out, and `plot_x(runs or numbers)`
makes a figure. `Figures` are several on one page; all figures of a page share one plotly.
"""

import importlib

from gpuschedlab.errors import RunError
from gpuschedlab.metrics import METRICS
from gpuschedlab.plots.arrivals import (
    Arrivals,
    Demand,
    Durations,
    arrivals,
    demand,
    draw_arrivals,
    draw_demand,
    draw_durations,
    durations,
)
from gpuschedlab.plots.bars import (
    Interruptions,
    MetricBars,
    draw_interruptions,
    draw_metric_bars,
    interruptions,
    metric_bars,
)
from gpuschedlab.plots.cells import Cells, cells, draw_cells, seats
from gpuschedlab.plots.distributions import (
    FairnessCdf,
    JctCdf,
    draw_fairness_cdf,
    draw_jct_cdf,
    fairness_cdf,
    jct_cdf,
)
from gpuschedlab.plots.gantt import Gantt, draw_gantt, gantt
from gpuschedlab.plots.goodput import (
    Bootstrap,
    JobLanes,
    Worth,
    bootstrap,
    draw_bootstrap,
    draw_job_lanes,
    draw_worth,
    job_lanes,
    worth,
)
from gpuschedlab.plots.leases import (
    LeaseBoard,
    TradeOff,
    arrival,
    draw_lease_board,
    draw_trade_off,
    lease_board,
    planned_leases,
    trade_off,
)
from gpuschedlab.plots.lines import Lines, draw_lines
from gpuschedlab.plots.load import LoadOverTime, busy_window, draw_load_over_time, load_over_time
from gpuschedlab.plots.merges import Believed, PairMap, believed, draw_believed, draw_pair_map, pair_map
from gpuschedlab.plots.pools import Pools, draw_pools, pools
from gpuschedlab.plots.problems import LinkMap, ServerBlocks, draw_link_map, draw_server_blocks
from gpuschedlab.plots.sizes import SlowdownBySize, draw_slowdown_by_size, slowdown_by_size
from gpuschedlab.plots.space import FreeSpace, draw_free_space, free_space
from gpuschedlab.plots.style import Drawing, render
from gpuschedlab.plots.sweep import (
    SweepFront,
    SweepLines,
    SweepMap,
    draw_sweep_front,
    draw_sweep_lines,
    draw_sweep_map,
    sweep_front,
    sweep_lines,
    sweep_map,
)
from gpuschedlab.plots.tuning import (
    Causes,
    Forecast,
    Moves,
    Race,
    Tried,
    causes,
    draw_causes,
    draw_forecast,
    draw_moves,
    draw_race,
    draw_tried,
    forecast,
    moves,
    race,
    tried,
)
from gpuschedlab.plots.web import Place

_DRAW = {
    JctCdf: draw_jct_cdf,
    FairnessCdf: draw_fairness_cdf,
    LoadOverTime: draw_load_over_time,
    SlowdownBySize: draw_slowdown_by_size,
    Gantt: draw_gantt,
    Interruptions: draw_interruptions,
    MetricBars: draw_metric_bars,
    Arrivals: draw_arrivals,
    Durations: draw_durations,
    Demand: draw_demand,
    Cells: draw_cells,
    FreeSpace: draw_free_space,
    SweepLines: draw_sweep_lines,
    SweepMap: draw_sweep_map,
    SweepFront: draw_sweep_front,
    Forecast: draw_forecast,
    Tried: draw_tried,
    Causes: draw_causes,
    Moves: draw_moves,
    Race: draw_race,
    Lines: draw_lines,
    JobLanes: draw_job_lanes,
    Worth: draw_worth,
    Bootstrap: draw_bootstrap,
    LeaseBoard: draw_lease_board,
    TradeOff: draw_trade_off,
    Pools: draw_pools,
    PairMap: draw_pair_map,
    Believed: draw_believed,
    ServerBlocks: draw_server_blocks,
    LinkMap: draw_link_map,
}


def __getattr__(name: str):
    """`Figure`, `Figures` and `write_page` need plotly, and are loaded when they are first used."""
    if name in ("Figure", "Figures", "write_page"):
        return getattr(importlib.import_module("gpuschedlab.plots.web.figure"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def draw(numbers) -> Drawing:
    """Lay out the numbers of any plot, without plotly; a `Drawing` stays as it is."""
    return numbers if isinstance(numbers, Drawing) else _DRAW[type(numbers)](numbers)


def figure(numbers):
    """Make a figure of the numbers of any plot.

    Parameters
    ----------
    numbers : NamedTuple
        Return value of `jct_cdf`, `load_over_time` or another function of this package.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    MissingExtra
        plotly is not installed.
    """
    return render(draw(numbers))


def _plot(kind: type, compute, given, options: dict):
    return figure(given if isinstance(given, kind) else compute(given, **options))


def plot_jct_cdf(runs, **options):
    """Figure of the distribution of completion times; options as in `jct_cdf`."""
    return _plot(JctCdf, jct_cdf, runs, options)


def plot_fairness_cdf(runs, **options):
    """Figure of the distribution of finish-time fairness; options as in `fairness_cdf`."""
    return _plot(FairnessCdf, fairness_cdf, runs, options)


def plot_load_over_time(runs, **options):
    """Figure of jobs waiting and GPUs in use over time; options as in `load_over_time`."""
    return _plot(LoadOverTime, load_over_time, runs, options)


def plot_slowdown_by_size(runs, **options):
    """Figure of slowdown by GPUs requested; options as in `slowdown_by_size`."""
    return _plot(SlowdownBySize, slowdown_by_size, runs, options)


def plot_gantt(run, **options):
    """Figure of the jobs on each node in a window; options as in `gantt`."""
    return _plot(Gantt, gantt, run, options)


def plot_interruptions(runs, **options):
    """Figure of preemptions, restarts and failures per job."""
    return _plot(Interruptions, interruptions, runs, options)


def plot_metric(runs, metric: str = "jct_mean", **options):
    """Figure of one metric of several runs; options as in `metric_bars`."""
    return _plot(MetricBars, metric_bars, runs, {"metric": metric} | options)


def plot_sweep(sweep, x: str | None = None, y: str | None = None, metric="jct_mean"):
    """Figure of a sweep: lines over one knob, a map over two, or a front of two metrics.

    Parameters
    ----------
    sweep : Sweep, polars.DataFrame, or numbers
        A sweep, (part of) its frame, or what `sweep_lines`, `sweep_map` or `sweep_front` returned.
    x, y : str, optional
        Knobs, or other columns that name rows: x alone makes lines, x and y a map. Two metrics make a front.
    metric : str or pair of str
        A name from `metrics.METRICS`; a pair, without x and y, makes a front.

    Raises
    ------
    RunError
        No such column or metric, or neither a knob nor a pair of metrics.
    """
    if isinstance(sweep, SweepLines | SweepMap | SweepFront):
        return figure(sweep)
    if x in METRICS and y in METRICS:
        return figure(sweep_front(sweep, x, y))
    if x is None and y is None and not isinstance(metric, str):
        return figure(sweep_front(sweep, metric))
    if x is None or not isinstance(metric, str):
        raise RunError(
            f"plot_sweep: found x={x!r}, y={y!r}, metric={metric!r}; expected x (lines), x and y (map), each with one "
            "metric, or two metrics as x and y (front)."
        )
    return figure(sweep_lines(sweep, x, metric) if y is None else sweep_map(sweep, x, y, metric))


__all__ = [
    "Arrivals",
    "Believed",
    "Bootstrap",
    "Causes",
    "Cells",
    "Demand",
    "Drawing",
    "Durations",
    "FairnessCdf",
    "Figure",
    "Figures",
    "Forecast",
    "FreeSpace",
    "Gantt",
    "Interruptions",
    "JctCdf",
    "JobLanes",
    "LeaseBoard",
    "Lines",
    "LinkMap",
    "LoadOverTime",
    "MetricBars",
    "Moves",
    "PairMap",
    "Place",
    "Pools",
    "Race",
    "ServerBlocks",
    "SlowdownBySize",
    "SweepFront",
    "SweepLines",
    "SweepMap",
    "TradeOff",
    "Tried",
    "Worth",
    "arrival",
    "arrivals",
    "believed",
    "bootstrap",
    "busy_window",
    "causes",
    "cells",
    "demand",
    "draw",
    "durations",
    "fairness_cdf",
    "figure",
    "forecast",
    "free_space",
    "gantt",
    "interruptions",
    "jct_cdf",
    "job_lanes",
    "lease_board",
    "load_over_time",
    "metric_bars",
    "moves",
    "pair_map",
    "planned_leases",
    "plot_fairness_cdf",
    "plot_gantt",
    "plot_interruptions",
    "plot_jct_cdf",
    "plot_load_over_time",
    "plot_metric",
    "plot_slowdown_by_size",
    "plot_sweep",
    "pools",
    "race",
    "render",
    "seats",
    "slowdown_by_size",
    "sweep_front",
    "sweep_lines",
    "sweep_map",
    "trade_off",
    "tried",
    "worth",
    "write_page",
]
