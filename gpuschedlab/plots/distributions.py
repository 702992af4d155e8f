"""Distributions over jobs: completion time and finish-time fairness, as the share of jobs up to a value."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.metrics import Spread, finish_time_fairness, jct, spread, unfair_fraction
from gpuschedlab.plots.kinds.style import HOUR, Drawing, as_runs, axis, line, looks, readable, share_axis, spoken
from gpuschedlab.plots.plotter import plotter

TICK_HOURS = tuple(s / HOUR for s in (1, 10, 60, 600, 3600, 21_600, 86_400, 604_800, 2_592_000))
TICK_NAMES = ("1 s", "10 s", "1 min", "10 min", "1 h", "6 h", "1 d", "7 d", "30 d")
"""Ticks of a logarithmic time axis from seconds to months, about as far from each other."""


def log_time_axis(title: str, **more) -> dict:
    """Logarithmic axis over hours with ticks in seconds, minutes, hours and days."""
    return axis(title, type="log", tickvals=list(TICK_HOURS), ticktext=list(TICK_NAMES)) | more


class JctCdf(NamedTuple):
    """Empirical distribution of completion times of each run.

    names : names of the runs; seconds, share : for each run (q,) completion times, ascending, and the share of
    jobs up to them; spreads : mean and tails (s); left_out : jobs without a known completion time.
    """

    names: tuple[str, ...]
    seconds: tuple[np.ndarray, ...]
    share: tuple[np.ndarray, ...]
    spreads: tuple[Spread, ...]
    left_out: tuple[int, ...]

    def draw(self) -> Drawing:
        """One step line per run over a logarithmic time axis."""
        hover = "<b>%{y:.1%} of jobs</b> within <b>%{customdata:.3~r} %{text}</b><br>%{meta}<extra></extra>"
        traces = []
        for i, (which, (name, seconds, share, tails, left_out)) in enumerate(zip(looks(self.names), zip(*self))):
            missing = f"<br>{left_out:,} jobs left out: no known end" if left_out else ""
            summary = (
                f"{name}: median {spoken(tails.median)}, p90 {spoken(tails.p90)}, p99 {spoken(tails.p99)}, "
                f"average {spoken(tails.mean)}{missing}"
            )
            points = time_steps(seconds, share) | {"name": name, "meta": summary}
            traces.append((points, line(which, hover, i, shape="hv")))
        x = log_time_axis("job completion time (logarithmic)")
        return Drawing.of(traces, title="Job completion time", x=x, y=share_axis())


class FairnessCdf(NamedTuple):
    """Empirical distribution of finish-time fairness of each run.

    names : names of the runs; rho, share : for each run (q,) ratios, ascending, and the share of jobs up to
    them; unfair : share of jobs with rho > 1; worst : greatest rho.
    """

    names: tuple[str, ...]
    rho: tuple[np.ndarray, ...]
    share: tuple[np.ndarray, ...]
    unfair: tuple[float, ...]
    worst: tuple[float, ...]

    def draw(self) -> Drawing:
        """One step line per run, and the border of fairness at rho = 1."""
        hover = "<b>%{y:.1%} of jobs</b> have rho up to <b>%{x:.3~r}</b><br>%{meta}<extra></extra>"
        traces = []
        for i, (which, (name, rho, share, unfair, worst)) in enumerate(zip(looks(self.names), zip(*self))):
            summary = f"{name}: {unfair:.1%} of jobs unfair, worst rho {worst:.3g}"
            points = {"x": rho.astype("f4"), "y": share.astype("f4"), "name": name, "meta": summary}
            traces.append((points, line(which, hover, i, shape="hv")))
        ends = {"x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1}
        border = {"type": "line", "line": {"width": 1, "dash": "dot"}} | ends
        note = {"x": 0, "y": 0, "text": "unfair beyond 1 \u2192", "showarrow": False}
        note |= {"yref": "paper", "xanchor": "left", "xshift": 4, "yanchor": "bottom"}
        x = axis("finish-time fairness rho = time shared / time alone (logarithmic)", type="log")
        title, around = "Finish-time fairness", {"shapes": [border], "annotations": [note]}
        return Drawing.of(traces, title=title, x=x, y=share_axis(), **around)


def ecdf(values: np.ndarray, points: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Empirical distribution function at no more than `points` of the values, the least and 20 greatest among them.

    Each point is exact: share k / n at the k-th smallest of n values.

    Examples
    --------
    >>> x, share = ecdf(np.array([3.0, 1.0, 2.0, 4.0]))
    >>> x.tolist(), share.tolist()
    ([1.0, 2.0, 3.0, 4.0], [0.25, 0.5, 0.75, 1.0])
    """
    x = np.sort(values)
    n = len(x)
    if n > points:
        tail = np.arange(n - 20, n)
        ranks = np.unique(np.concatenate([np.linspace(0, n - 21, points - 20).astype(int), tail]))
    else:
        ranks = np.arange(n)
    return x[ranks], (ranks + 1.0) / max(n, 1)


def ecdfs(values: list, points: int) -> tuple[tuple, tuple]:
    """Values and shares of the distribution (`ecdf`) of each of some arrays."""
    curves = [ecdf(v, points) for v in values]
    return tuple(x for x, _ in curves), tuple(share for _, share in curves)


def time_steps(seconds: np.ndarray, share: np.ndarray) -> dict:
    """Points of a distribution of durations (q,), s: hours on the axis, a readable value and its unit for the hover text."""
    value, unit = readable(seconds)
    hours = {"x": (seconds / HOUR).astype("f4"), "y": share.astype("f4")}
    return hours | {"customdata": value.astype("f4"), "text": unit}


def jct_cdf(runs, points: int = 500, censored: bool = False) -> JctCdf:
    """Distribution of completion times.

    Parameters
    ----------
    runs : Run or dict of str to Run
        What to show.
    points : int
        Most points per curve.
    censored : bool
        As in `metrics.measured`.
    """
    runs = as_runs(runs)
    times = [jct(run, censored) for run in runs.values()]
    left_out = tuple(run.jobs.height - len(t) for run, t in zip(runs.values(), times, strict=True))
    return JctCdf(tuple(runs), *ecdfs(times, points), tuple(map(spread, times)), left_out)


def fairness_cdf(runs, points: int = 500, censored: bool = False) -> FairnessCdf:
    """Distribution of finish-time fairness rho (`metrics.finish_time_fairness`); parameters as in `jct_cdf`."""
    runs = as_runs(runs)
    rhos = [rho[~np.isnan(rho)] for rho in (finish_time_fairness(run, censored) for run in runs.values())]
    worst = tuple(float(r.max()) if len(r) else float("nan") for r in rhos)
    return FairnessCdf(tuple(runs), *ecdfs(rhos, points), tuple(map(unfair_fraction, rhos)), worst)


plot_jct_cdf = plotter(jct_cdf)
plot_fairness_cdf = plotter(fairness_cdf)
