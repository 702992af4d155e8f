"""Bars: interruptions of jobs, and any metric of several runs."""

import numpy as np

from gpuschedlab.errors import RunError
from gpuschedlab.metrics import METRICS, summary
from gpuschedlab.plots.kinds.charts import Bars
from gpuschedlab.plots.kinds.style import HOUR, INK, as_runs, axis, colours_of
from gpuschedlab.plots.plotter import plotter


def interruptions(runs) -> Bars:
    """Return `Bars` of the mean preemptions, restarts and failures per job of each run (all its jobs that count)."""
    runs = as_runs(runs)
    kinds = ("preemptions", "restarts", "failures")
    frames = [run.jobs.filter(run.jobs["submit"] >= 0) for run in runs.values()]
    means = {kind: np.array([float(jobs[kind].clip(0).mean() or 0.0) for jobs in frames]) for kind in kinds}
    hover = "<b>%{y:.3~r} NAME per job</b><extra>%{x}</extra>"
    return Bars("Interruptions", "policy", "mean number per job", list(runs), means, hover, layout={"zero": True})


def metric_bars(runs, metric: str = "jct_mean", **options) -> Bars:
    """Return `Bars` of one metric of each run, horizontal and labelled with its value; times in hours.

    Parameters
    ----------
    runs : Run or dict of str to Run
        Runs to show.
    metric : str
        A name from `metrics.METRICS`.
    **options
        Passed on to `metrics.summary`.

    Raises
    ------
    RunError
        The metric does not exist.
    """
    if metric not in METRICS:
        raise RunError(f"metric_bars: found metric {metric!r}; expected one of {', '.join(METRICS)}.")
    runs = as_runs(runs)
    metric_values = np.array([summary(run, **options)[metric] for run in runs.values()], float)  # None becomes nan
    divisor, title = metric_axis(metric)
    bar_look = {"orientation": "h", "texttemplate": "%{x:,.3~r}", "textposition": "outside", "cliponaxis": False}
    sides = axis(title, rangemode="tozero"), axis("", autorange="reversed")
    marker = {"color": list(colours_of(runs).values()), "line": {"color": INK, "width": 0.6}}
    points = {metric: {"x": metric_values / divisor, "y": list(runs), "marker": marker}}
    layout = {"showlegend": False, "margin_r": 70}
    hover = "<b>%{x:,.3~r}</b><extra>%{y}</extra>"
    return Bars(upper(METRICS[metric].label), *sides, list(runs), points, hover, bar_look, layout)


def metric_axis(metric: str) -> tuple[float, str]:
    """Return a tuple: divisor of a metric, and its axis title; times are in hours, but for those that the computer takes."""
    metric_facts = METRICS[metric]
    divisor = 1.0
    unit = metric_facts.unit
    if metric_facts.unit in ("s", "GPU-s") and metric != "seconds":
        divisor = HOUR
        unit = f"{metric_facts.unit[:-1]}h"
    notes = [unit]
    if metric_facts.better:
        notes.append(f"{metric_facts.better} is better")
    note = ", ".join(filter(None, notes))
    if not note:
        return divisor, metric_facts.label
    return divisor, f"{metric_facts.label} ({note})"


def upper(title: str) -> str:
    """Title that begins with a capital."""
    return title[:1].upper() + title[1:]


plot_interruptions = plotter(interruptions)
plot_metric_bars = plotter(metric_bars)
