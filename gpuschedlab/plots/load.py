"""The cluster over time: GPUs in use, free and requested, and jobs waiting."""

import numpy as np

from gpuschedlab.metrics.usage import timeline_of
from gpuschedlab.plots.kinds.charts import Lines
from gpuschedlab.plots.kinds.style import Drawing, as_runs, axis, line, looks, middles, share_axis, time_axis
from gpuschedlab.plots.plotter import plotter


def bin_means(time: np.ndarray, values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return an array (B,) of time-weighted means over bins with borders edges (B + 1,) of a step function; nan outside.

    Each value holds from its time on.
    """
    area = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(time))])
    bin_areas = np.diff(np.interp(edges, time, area))
    covered = np.diff(np.clip(edges, time[0], time[-1]))
    return np.divide(bin_areas, covered, out=np.full(len(bin_areas), np.nan), where=covered > 0)


def load_over_time(runs, points: int = 1000, start: float | None = None, end: float | None = None) -> Drawing:
    """Return a `Drawing` on one time axis: jobs waiting above, utilisation (GPUs held over GPUs up) below; means over bins.

    Parameters
    ----------
    runs : Run or dict of str to Run
        Runs to show.
    points : int
        Bins, 1 to 1,000.
    start, end : float, optional
        Window, s; by default the whole of the longest run.
    """
    runs = as_runs(runs)
    traces = []
    run_timelines = [timeline_of(run) for run in runs.values()]
    if start is None:
        start = min(line["time"].min() for line in run_timelines)
    if end is None:
        end = max(line["time"].max() for line in run_timelines)
    edges = np.linspace(start, max(end, start + 1e-9), min(max(points, 1), 1000) + 1)
    for i, (run_name, run_look, frame) in enumerate(zip(runs, looks(runs), run_timelines)):
        time = frame["time"].to_numpy()
        used = bin_means(time, frame["used"].to_numpy().astype(float), edges)
        up = bin_means(time, frame["capacity"].to_numpy().astype(float), edges)
        waiting = bin_means(time, frame["waiting"].to_numpy().astype(float), edges)
        share = np.divide(used, up, out=np.full(used.shape, np.nan), where=up > 0)
        common = {"legendgroup": str(i), "connectgaps": False}
        style = line(run_look, "<b>%{y:,.4~r} jobs waiting</b> at %{x:.1f} h", i, width=1.6) | common
        traces.append(({"x": middles(edges), "y": waiting.astype("f4"), "name": run_name}, style))
        below = {"yaxis": "y2", "showlegend": False, "hovertemplate": "<b>%{y:.1%} of GPUs in use</b> at %{x:.1f} h"}
        traces.append(({"x": middles(edges), "y": share.astype("f4"), "name": run_name}, style | below))
    sides = {"x": time_axis(anchor="y2"), "y": axis("jobs waiting", domain=[0.54, 1])}
    sides["yaxis2"] = share_axis("GPUs in use", domain=[0, 0.46], range=[0, 1.03])
    return Drawing.of(traces, title="Queue and utilisation", zero=True, **sides)


def busy_window(runs, length: float = 86_400.0) -> tuple[float, float]:
    """Find the window in which the most jobs wait, on average over the runs; if none ever waits, the most GPUs are in use.

    Returns
    -------
    tuple of float
        Its start and end, s, which are `length` apart if the runs are that long.
    """
    run_timelines = [timeline_of(run) for run in as_runs(runs).values()]
    first_time = min(timeline["time"].min() for timeline in run_timelines)
    last_time = max(timeline["time"].max() for timeline in run_timelines)
    if last_time - first_time <= length:
        return float(first_time), float(max(last_time, first_time + 1.0))
    edges = np.arange(first_time, last_time + length / 8, length / 8)
    for load_column in ("waiting", "used"):
        means = [
            bin_means(timeline["time"].to_numpy(), timeline[load_column].to_numpy().astype(float), edges)
            for timeline in run_timelines
        ]
        mean = np.nan_to_num(means).mean(axis=0)
        if mean.max() > 0:
            break
    total = np.convolve(mean, np.ones(8), "valid")
    busiest = first_time
    if len(total):
        busiest = edges[int(total.argmax())]
    window_start = float(min(busiest, last_time - length))
    return window_start, window_start + length


def free_space(run, points: int = 400) -> Lines:
    """Return `Lines` of free GPUs, in all and on the freest node, and of GPUs that waiting jobs request, in some bins."""
    ((_, run),) = as_runs(run).items()
    line = timeline_of(run)
    time = line["time"].to_numpy()
    edges = np.linspace(time[0], max(time[-1], time[0] + 1e-9), points + 1)
    used = line["used"].to_numpy().astype(float)
    up = line["capacity"].to_numpy().astype(float)
    wanted = line["demanded"].to_numpy().astype(float)
    line_names = ("free in all", "free on the freest node", "requested by waiting jobs")
    gpu_lines = (up - used, line["largest_free"].to_numpy().astype(float), np.maximum(wanted - used, 0.0))
    means = {
        line_name: bin_means(time, gpu_line, edges).astype("f4")
        for line_name, gpu_line in zip(line_names, gpu_lines, strict=True)
    }
    title = "Free GPUs, and GPUs that waiting jobs request"
    hover = "<b>%{y:.3~r} GPUs NAME</b> at %{x:.2f} h<extra></extra>"
    return Lines(title, time_axis(), "GPUs", middles(edges), means, hover, layout={"zero": True})


plot_load_over_time = plotter(load_over_time)
plot_free_space = plotter(free_space)
