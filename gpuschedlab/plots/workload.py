"""Traces: jobs submitted per hour, their durations and their GPUs requested."""

import numpy as np

from gpuschedlab.errors import TraceError
from gpuschedlab.plots.distributions import SIZE_LABELS, ecdf, log_time_axis, size_axes, size_bucket, steps, time_steps
from gpuschedlab.plots.kinds.charts import Lines
from gpuschedlab.plots.kinds.style import HOUR, Drawing, bar, middles, share_axis, time_axis
from gpuschedlab.plots.plotter import plotter


def _checked(traces: dict) -> dict:
    if not traces or not all(trace.height for trace in traces.values()):
        raise TraceError(f"plots: found no jobs in {', '.join(traces) or 'no traces'}; expected frames by name.")
    return traces


def arrivals(traces: dict, seconds: float = HOUR) -> Lines:
    """Return `Lines` of the jobs submitted in each bin of time since a trace's first job.

    Parameters
    ----------
    traces : dict of str to polars.DataFrame
        Traces to show.
    seconds : float
        Length of a bin, s.
    """
    submits = [(trace["submit"] - trace["submit"].min()).to_numpy() for trace in _checked(traces).values()]
    edges = np.arange(0, max(submit_times.max() for submit_times in submits) + seconds, seconds)
    jobs_per_bin = np.array([np.histogram(submit_times, edges)[0] for submit_times in submits])
    fano = jobs_per_bin.var(axis=1) / jobs_per_bin.mean(axis=1)
    middle = middles(edges)
    arrival_lines = {
        trace_name: {"x": middle, "y": jobs, "meta": f"{trace_name}: variance over mean {over:.3g}"}
        for trace_name, jobs, over in zip(traces, jobs_per_bin, fano)
    }
    hover = "<b>%{y:,d} jobs</b> around %{x:.1f} h<br>%{meta}<extra></extra>"
    return Lines(
        "Jobs submitted", time_axis(), "jobs per hour", middle, arrival_lines, hover, {"width": 1.5}, {"zero": True}
    )


def durations(traces: dict, points: int = 500) -> Lines:
    """Return `Lines` of the distribution of durations, at no more than `points` values per trace."""
    duration_lines = {
        trace_name: time_steps(*ecdf(trace["duration"].to_numpy(), points))
        for trace_name, trace in _checked(traces).items()
    }
    hover = "<b>%{y:.1%} of jobs</b> run at most <b>%{customdata:.3~r} %{text}</b>"
    return steps("Job durations", log_time_axis("duration (logarithmic)"), duration_lines, hover)


def demand(traces: dict) -> Drawing:
    """Return a `Drawing` by GPUs requested: shares of jobs on the left, of GPU-time (GPUs x duration) on the right."""
    drawn = []
    k = 1 + max(int(size_bucket(trace["gpus"].max())) for trace in _checked(traces).values())
    for i, (trace_name, trace) in enumerate(traces.items()):
        gpus = trace["gpus"].to_numpy()
        seconds = trace["duration"].to_numpy()
        size_of_job = size_bucket(gpus)
        work = np.bincount(size_of_job, gpus * seconds, k)
        shares = {"jobs": np.bincount(size_of_job, minlength=k) / len(gpus), "GPU-time": work / work.sum()}
        for side, (unit, share) in zip(("", "2"), shares.items()):
            size_bar_look = {"type": "bar", "marker": bar(i), "legendgroup": str(i), "showlegend": not side}
            hover = f"<b>%{{y:.1%}} of {unit}</b> by jobs of %{{x}} GPUs"
            size_bar_look |= {"xaxis": f"x{side}", "yaxis": f"y{side}", "hovertemplate": hover}
            drawn.append(({"x": list(SIZE_LABELS[:k]), "y": share, "name": trace_name}, size_bar_look))
    sides = (share_axis(f"share of {share_noun}", rangemode="tozero") for share_noun in ("jobs", "GPU-time"))
    return Drawing.of(drawn, title="GPUs requested", barmode="group", **size_axes(*sides))


plot_arrivals = plotter(arrivals)
plot_durations = plotter(durations)
plot_demand = plotter(demand)
