"""Traces: jobs submitted per hour, their durations and their GPUs requested."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import TraceError
from gpuschedlab.plots import sizes
from gpuschedlab.plots.distributions import ecdfs, log_time_axis, time_steps
from gpuschedlab.plots.kinds import style
from gpuschedlab.plots.kinds.style import Drawing, bar, line, named_lines, share_axis
from gpuschedlab.plots.plotter import plotter


class Arrivals(NamedTuple):
    """Jobs submitted in each bin of time since a trace's first job.

    names of the P traces; edges : (B + 1,) borders of the bins, s; count : (P, B) jobs; fano : (P,) variance of the
    counts over their mean.
    """

    names: tuple[str, ...]
    edges: np.ndarray
    count: np.ndarray
    fano: np.ndarray

    def draw(self) -> Drawing:
        """One line per trace."""
        hover = "<b>%{y:,d} jobs</b> around %{x:.1f} h<br>%{meta}<extra></extra>"
        traces = named_lines(style.middles(self.edges), dict(zip(self.names, self.count)), hover, width=1.5)
        for (points, _), fano in zip(traces, self.fano):
            points["meta"] = f"{points['name']}: variance over mean {fano:.3g}"
        return Drawing.of(traces, title="Jobs submitted", x=style.time_axis(), y="jobs per hour", zero=True)


class Durations(NamedTuple):
    """Distribution of durations.

    names of the P traces; seconds, share : for each trace (q,) durations, s, and the share of jobs up to them.
    """

    names: tuple[str, ...]
    seconds: tuple[np.ndarray, ...]
    share: tuple[np.ndarray, ...]

    def draw(self) -> Drawing:
        """One step line per trace over a logarithmic time axis."""
        hover = "<b>%{y:.1%} of jobs</b> run at most <b>%{customdata:.3~r} %{text}</b>"
        traces = [
            (time_steps(seconds, share) | {"name": name}, line(i, hover, shape="hv"))
            for i, (name, seconds, share) in enumerate(zip(*self))
        ]
        return Drawing.of(traces, title="Job durations", x=log_time_axis("duration (logarithmic)"), y=share_axis())


class Demand(NamedTuple):
    """By GPUs requested: names of the P traces; jobs, gpu_time : (P, K) shares of each of `sizes.SIZE_LABELS`."""

    names: tuple[str, ...]
    jobs: np.ndarray
    gpu_time: np.ndarray

    def draw(self) -> Drawing:
        """Shares of jobs on the left, shares of GPU-time on the right."""
        traces = []
        for i, name in enumerate(self.names):
            for side, values, unit in (("", self.jobs, "jobs"), ("2", self.gpu_time, "GPU-time")):
                look = {"type": "bar", "marker": bar(i), "legendgroup": str(i), "showlegend": not side}
                hover = f"<b>%{{y:.1%}} of {unit}</b> by jobs of %{{x}} GPUs"
                look |= {"xaxis": f"x{side}", "yaxis": f"y{side}", "hovertemplate": hover}
                traces.append(({"x": list(sizes.SIZE_LABELS), "y": values[i], "name": name}, look))
        shares = (share_axis(f"share of {what}", rangemode="tozero") for what in ("jobs", "GPU-time"))
        return Drawing.of(traces, title="GPUs requested", barmode="group", **sizes.size_axes(*shares))


def _checked(traces: dict) -> dict:
    if not traces or not all(trace.height for trace in traces.values()):
        raise TraceError(f"plots: found no jobs in {', '.join(traces) or 'no traces'}; expected frames by name.")
    return traces


def arrivals(traces: dict, seconds: float = style.HOUR) -> Arrivals:
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
    seconds = [trace["duration"].to_numpy() for trace in _checked(traces).values()]
    return Durations(tuple(traces), *ecdfs(seconds, points))


def demand(traces: dict) -> Demand:
    """Shares of jobs, and of GPU-time (GPUs x duration), by GPUs requested."""
    shares = []
    for trace in _checked(traces).values():
        gpus, seconds = trace["gpus"].to_numpy(), trace["duration"].to_numpy()
        which, k = sizes.size_bucket(gpus), len(sizes.SIZE_LABELS)
        work = np.bincount(which, gpus * seconds, k)
        shares.append((np.bincount(which, minlength=k) / len(gpus), work / work.sum()))
    return Demand(tuple(traces), *np.array(shares).swapaxes(0, 1))


plot_arrivals = plotter(arrivals)
plot_durations = plotter(durations)
plot_demand = plotter(demand)
