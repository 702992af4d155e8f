"""Traces: jobs submitted per hour, their durations and their GPUs requested."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import TraceError
from gpuschedlab.plots.distributions import ecdf
from gpuschedlab.plots.style import (
    HOUR,
    SIZE_LABELS,
    Drawing,
    axis,
    bar,
    line,
    log_time_axis,
    readable,
    size_axis,
    size_bucket,
)


class Arrivals(NamedTuple):
    """Jobs submitted in each bin of time since a trace's first job.

    names of the P traces; edges : (B + 1,) borders of the bins, s; count : (P, B) jobs; fano : (P,) variance of the
    counts over their mean.
    """

    names: tuple[str, ...]
    edges: np.ndarray
    count: np.ndarray
    fano: np.ndarray


class Durations(NamedTuple):
    """Distribution of durations.

    names of the P traces; seconds, share : for each trace (q,) durations, s, and the share of jobs up to them.
    """

    names: tuple[str, ...]
    seconds: tuple[np.ndarray, ...]
    share: tuple[np.ndarray, ...]


class Demand(NamedTuple):
    """By GPUs requested: names of the P traces; jobs, gpu_time : (P, K) shares of each of `style.SIZE_LABELS`."""

    names: tuple[str, ...]
    jobs: np.ndarray
    gpu_time: np.ndarray


def _checked(traces: dict) -> dict:
    if not traces or not all(trace.height for trace in traces.values()):
        raise TraceError(f"plots: found no jobs in {', '.join(traces) or 'no traces'}; expected frames by name.")
    return traces


def arrivals(traces: dict, seconds: float = HOUR) -> Arrivals:
    """Jobs submitted in each bin of time since a trace's first job.

    Parameters
    ----------
    traces : dict of str to polars.DataFrame
        What to show.
    seconds : float
        Length of a bin, s.
    """
    submits = [(trace["submit"] - trace["submit"].min()).to_numpy() for trace in _checked(traces).values()]
    edges = np.arange(0, max(s.max() for s in submits) + seconds, seconds)
    count = np.array([np.histogram(s, edges)[0] for s in submits])
    return Arrivals(tuple(traces), edges, count, count.var(axis=1) / count.mean(axis=1))


def durations(traces: dict, points: int = 500) -> Durations:
    """Distribution of durations, at no more than `points` values per trace."""
    curves = [ecdf(trace["duration"].to_numpy(), points) for trace in _checked(traces).values()]
    return Durations(tuple(traces), tuple(c[0] for c in curves), tuple(c[1] for c in curves))


def demand(traces: dict) -> Demand:
    """Shares of jobs, and of GPU-time (GPUs x duration), by GPUs requested."""
    found = []
    for trace in _checked(traces).values():
        gpus, seconds = trace["gpus"].to_numpy(), trace["duration"].to_numpy()
        which, k = size_bucket(gpus), len(SIZE_LABELS)
        work = np.bincount(which, gpus * seconds, k)
        found.append((np.bincount(which, minlength=k) / len(gpus), work / work.sum()))
    return Demand(tuple(traces), np.array([f[0] for f in found]), np.array([f[1] for f in found]))


def draw_arrivals(numbers: Arrivals) -> Drawing:
    """Lay out `Arrivals`: one line per trace."""
    middle = ((numbers.edges[1:] + numbers.edges[:-1]) / 2 / HOUR).astype("f4")
    data, style = [], []
    for i, name in enumerate(numbers.names):
        about = f"{name}: variance over mean {numbers.fano[i]:.3g}"
        data.append({"x": middle, "y": numbers.count[i], "name": name, "meta": about})
        hover = "<b>%{y:,d} jobs</b> around %{x:.1f} h<br>%{meta}<extra></extra>"
        look = line(i)
        style.append({"type": "scatter", "hovertemplate": hover} | look | {"line": look["line"] | {"width": 1.5}})
    layout = {
        "title": {"text": "Jobs submitted"},
        "xaxis": axis("time since the trace's start (h)"),
        "yaxis": axis("jobs per hour", rangemode="tozero"),
    }
    return Drawing(data, style, {}, layout)


def draw_durations(numbers: Durations) -> Drawing:
    """Lay out `Durations`: one step line per trace over a logarithmic time axis."""
    data, style = [], []
    for i, name in enumerate(numbers.names):
        value, unit = readable(numbers.seconds[i])
        hours = (numbers.seconds[i] / HOUR).astype("f4")
        share = numbers.share[i].astype("f4")
        data.append({"x": hours, "y": share, "name": name, "customdata": value.astype("f4"), "text": unit})
        look = line(i)
        look["line"]["shape"] = "hv"
        hover = "<b>%{y:.1%} of jobs</b> run at most <b>%{customdata:.3~r} %{text}</b>"
        style.append({"type": "scatter", "hovertemplate": hover} | look)
    layout = {
        "title": {"text": "Job durations"},
        "xaxis": log_time_axis("duration (logarithmic)"),
        "yaxis": axis("share of jobs", tickformat=".0%", range=[0, 1.02]),
    }
    return Drawing(data, style, {}, layout)


def draw_demand(numbers: Demand) -> Drawing:
    """Lay out `Demand`: shares of jobs on the left, shares of GPU-time on the right."""
    data, style = [], []
    for i, name in enumerate(numbers.names):
        for side, values, unit in (("", numbers.jobs, "jobs"), ("2", numbers.gpu_time, "GPU-time")):
            data.append({"x": list(SIZE_LABELS), "y": values[i], "name": name})
            look = {"type": "bar", "marker": bar(i), "legendgroup": str(i), "showlegend": not side}
            hover = f"<b>%{{y:.1%}} of {unit}</b> by jobs of %{{x}} GPUs"
            style.append(look | {"xaxis": f"x{side}", "yaxis": f"y{side}", "hovertemplate": hover})
    layout = {
        "title": {"text": "GPUs requested"},
        "barmode": "group",
        "xaxis": size_axis(domain=[0, 0.41]),
        "xaxis2": size_axis(domain=[0.59, 1], anchor="y2"),
        "yaxis": axis("share of jobs", tickformat=".0%", rangemode="tozero"),
        "yaxis2": axis("share of GPU-time", anchor="x2", tickformat=".0%", rangemode="tozero"),
    }
    return Drawing(data, style, {}, layout)
