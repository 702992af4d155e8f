"""Distributions over jobs: completion time and finish-time fairness, as the share of jobs up to a value; slowdown by job size."""

import numpy as np

from gpuschedlab.metrics import finish_time_fairness, jct, measured, slowdown, spread, unfair_fraction
from gpuschedlab.plots.kinds.charts import Lines
from gpuschedlab.plots.kinds.style import HOUR, Drawing, as_runs, axis, line, looks, readable, share_axis, spoken
from gpuschedlab.plots.plotter import plotter

TICK_HOURS = tuple(s / HOUR for s in (1, 10, 60, 600, 3600, 21_600, 86_400, 604_800, 2_592_000))
TICK_NAMES = ("1 s", "10 s", "1 min", "10 min", "1 h", "6 h", "1 d", "7 d", "30 d")
"""Ticks of a logarithmic time axis from seconds to months, about as far from each other."""


def log_time_axis(title: str, **more) -> dict:
    """Return a logarithmic axis over hours as a dict, with ticks in seconds, minutes, hours and days."""
    return axis(title, type="log", tickvals=list(TICK_HOURS), ticktext=list(TICK_NAMES)) | more


def ecdf(values: np.ndarray, points: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Return exact points of the empirical distribution function at no more than `points` values, as a tuple of two arrays.

    The least and the 20 greatest values are among them.
    """
    x = np.sort(values)
    n = len(x)
    ranks = np.arange(len(x))
    if n > points:
        ranks = np.union1d(np.linspace(0, n - 21, points - 20).astype(int), ranks[-20:])
    return x[ranks], (ranks + 1.0) / max(n, 1)


def time_steps(seconds: np.ndarray, share: np.ndarray) -> dict:
    """Return a dict of the points of a distribution of durations (q,), s: hours on the axis, and the hover's value and unit."""
    value, unit = readable(seconds)
    hours = {"x": (seconds / HOUR).astype("f4"), "y": share.astype("f4")}
    return hours | {"customdata": value.astype("f4"), "text": unit}


def jct_cdf(runs, points: int = 500, censored: bool = False) -> Lines:
    """Return `Lines` of the distribution of completion times, a step line per run over a logarithmic time axis.

    Parameters
    ----------
    runs : Run or dict of str to Run
        Runs to show.
    points : int
        Most points per curve.
    censored : bool
        As in `metrics.measured`.
    """
    cdf_lines = {}
    for run_name, run in as_runs(runs).items():
        times = jct(run, censored)
        tails = spread(times)
        left_out = int((run.jobs["submit"] >= 0).sum()) - len(times)
        sentence = (
            f"{run_name}: median {spoken(tails.median)}, p90 {spoken(tails.p90)}, p99 {spoken(tails.p99)}, "
            f"average {spoken(tails.mean)}"
        )
        if left_out:
            sentence += f"<br>{left_out:,} jobs left out: no known end"
        cdf_lines[run_name] = time_steps(*ecdf(times, points)) | {"meta": sentence}
    hover = "<b>%{y:.1%} of jobs</b> within <b>%{customdata:.3~r} %{text}</b><br>%{meta}<extra></extra>"
    return steps("Job completion time", log_time_axis("job completion time (logarithmic)"), cdf_lines, hover)


def fairness_cdf(runs, points: int = 500, censored: bool = False) -> Lines:
    """Return `Lines` of the distribution of finish-time fairness rho, with its border at 1; parameters as in `jct_cdf`.

    Rho is that of `metrics.finish_time_fairness`.
    """
    cdf_lines = {}
    for run_name, run in as_runs(runs).items():
        rho = finish_time_fairness(run, censored)
        rho = rho[~np.isnan(rho)]
        x, share = ecdf(rho, points)
        worst = float("nan")
        if len(rho):
            worst = float(rho.max())
        sentence = f"{run_name}: {unfair_fraction(rho):.1%} of jobs unfair, worst rho {worst:.3g}"
        cdf_lines[run_name] = {"x": x.astype("f4"), "y": share.astype("f4"), "meta": sentence}
    border = {"type": "line", "line": {"width": 1, "dash": "dot"}, "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1}
    note = {"x": 0, "y": 0, "text": "unfair beyond 1 \u2192", "showarrow": False}
    note |= {"yref": "paper", "xanchor": "left", "xshift": 4, "yanchor": "bottom"}
    x = axis("finish-time fairness rho = time shared / time alone (logarithmic)", type="log")
    hover = "<b>%{y:.1%} of jobs</b> have rho up to <b>%{x:.3~r}</b><br>%{meta}<extra></extra>"
    return steps("Finish-time fairness", x, cdf_lines, hover, shapes=[border], annotations=[note])


def steps(title: str, x: dict, values: dict, hover: str, **layout) -> Lines:
    """Return `Lines` of shares of jobs up to a value, as steps."""
    return Lines(title, x, share_axis(), None, values, hover, {"shape": "hv"}, layout)


plot_jct_cdf = plotter(jct_cdf)
plot_fairness_cdf = plotter(fairness_cdf)


SIZES = (1.0, 2.0, 4.0, 8.0, 16.0)
SIZE_LABELS = ("≤ 1", "2", "3–4", "5–8", "9–16", "> 16")
"""Job sizes in GPUs: upper ends of the buckets, and their names (one more: the last has no end)."""

LEVELS = (25, 50, 75, 90, 99)
"""Percentiles that are kept of each bucket."""
PERCENTILES = (
    "p25 %{customdata[1]:.3~r}, median %{customdata[2]:.3~r}, p75 %{customdata[3]:.3~r},<br>"
    "p90 %{customdata[4]:.3~r}, p99 %{customdata[5]:.3~r}"
)


def size_bucket(gpus: np.ndarray) -> np.ndarray:
    """Return an array (n,) of the index into `SIZE_LABELS` of each demand (n,), in GPUs."""
    return np.searchsorted(SIZES, gpus)


def size_axes(left: dict, right: dict) -> dict:
    """Return a dict of two panels side by side over job sizes, with these y axes; traces on the right are on x2 and y2."""
    size_axis = axis("GPUs requested", type="category")
    sides = {"xaxis": size_axis | {"domain": [0, 0.41]}, "xaxis2": size_axis | {"domain": [0.59, 1], "anchor": "y2"}}
    return sides | {"yaxis": left, "yaxis2": right | {"anchor": "x2"}}


def slowdown_by_size(runs, censored: bool = False) -> Drawing:
    """Return a `Drawing` of slowdown, JCT / duration, by GPUs requested: the median job of each size, and the worst per cent.

    The median is on the left, the worst per cent on the right.

    Parameters as in `jct_cdf`.
    """
    runs = as_runs(runs)
    buckets = len(SIZE_LABELS)
    tables = []
    traces = []
    for run in runs.values():
        jobs = measured(run, censored)
        size_of_job = size_bucket(jobs["gpus"].to_numpy())
        job_slowdowns = slowdown(jobs, True)
        level = np.full((buckets, len(LEVELS)), np.nan)
        for k in np.unique(size_of_job):
            level[k] = np.percentile(job_slowdowns[size_of_job == k], LEVELS)
        tables.append((np.bincount(size_of_job, minlength=buckets), level))
    # Empty buckets are not drawn; the numbers are sent as JSON, which has no nan.
    used = sum(size_counts for size_counts, _ in tables) > 0
    used |= not used.any()
    labels = [label for label, size_used in zip(SIZE_LABELS, used) if size_used]
    for i, (run_name, run_look, (size_counts, level)) in enumerate(zip(runs, looks(runs), tables)):
        details = np.nan_to_num(np.column_stack([size_counts, level]))[used]
        for side, rank, percentile_name in (("", 1, "median"), ("2", 4, "p99")):
            hover = f"<b>{percentile_name} slowdown %{{y:.3~r}}</b><br>%{{x}} GPUs: %{{customdata[0]:,d}} jobs<br>{PERCENTILES}"
            points = {"x": labels, "y": level[used, rank], "name": run_name, "customdata": details}
            panel_axes = {"legendgroup": str(i), "showlegend": not side, "xaxis": f"x{side}", "yaxis": f"y{side}"}
            traces.append((points, line(run_look, hover, i) | panel_axes))
    panels = (axis(f"{percentile_name} JCT / duration", type="log") for percentile_name in ("median", "p99"))
    return Drawing.of(traces, title="Slowdown by job size", **size_axes(*panels))


plot_slowdown_by_size = plotter(slowdown_by_size)
