"""Distributions over jobs: completion time and finish-time fairness, as the share of jobs up to a value."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.metrics import Spread, finish_time_fairness, jct, spread, unfair_fraction
from gpuschedlab.plots.style import HOUR, Drawing, as_runs, axis, line, log_time_axis, readable, spoken


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
        kept = np.unique(np.concatenate([np.linspace(0, n - 21, points - 20).astype(int), tail]))
    else:
        kept = np.arange(n)
    return x[kept], (kept + 1.0) / max(n, 1)


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
    curves = [ecdf(t, points) for t in times]
    left_out = tuple(run.jobs.height - len(t) for run, t in zip(runs.values(), times, strict=True))
    return JctCdf(
        tuple(runs), tuple(c[0] for c in curves), tuple(c[1] for c in curves), tuple(map(spread, times)), left_out
    )


def fairness_cdf(runs, points: int = 500, censored: bool = False) -> FairnessCdf:
    """Distribution of finish-time fairness rho (`metrics.finish_time_fairness`); parameters as in `jct_cdf`."""
    runs = as_runs(runs)
    rhos = [rho[~np.isnan(rho)] for rho in (finish_time_fairness(run, censored) for run in runs.values())]
    curves = [ecdf(r, points) for r in rhos]
    worst = tuple(float(r.max()) if len(r) else float("nan") for r in rhos)
    return FairnessCdf(
        tuple(runs), tuple(c[0] for c in curves), tuple(c[1] for c in curves), tuple(map(unfair_fraction, rhos)), worst
    )


def _steps(i: int, hover: str) -> dict:
    look = line(i)
    look["line"]["shape"] = "hv"
    return {"type": "scatter", "hovertemplate": hover} | look


def draw_jct_cdf(numbers: JctCdf) -> Drawing:
    """Lay out `JctCdf`: one step line per run over a logarithmic time axis."""
    data, style = [], []
    for i, name in enumerate(numbers.names):
        value, unit = readable(numbers.seconds[i])
        tails = numbers.spreads[i]
        missing = f"<br>{numbers.left_out[i]:,} jobs left out: no known end" if numbers.left_out[i] else ""
        summary = (
            f"{name}: median {spoken(tails.median)}, p90 {spoken(tails.p90)}, p99 {spoken(tails.p99)}, "
            f"average {spoken(tails.mean)}{missing}"
        )
        data.append(
            {
                "x": (numbers.seconds[i] / HOUR).astype("f4"),
                "y": numbers.share[i].astype("f4"),
                "name": name,
                "text": unit,
                "customdata": value.astype("f4"),
                "meta": summary,
            }
        )
        style.append(
            _steps(i, "<b>%{y:.1%} of jobs</b> within <b>%{customdata:.3~r} %{text}</b><br>%{meta}<extra></extra>")
        )
    layout = {
        "title": {"text": "Job completion time"},
        "xaxis": log_time_axis("job completion time (logarithmic)"),
        "yaxis": axis("share of jobs", tickformat=".0%", range=[0, 1.02]),
    }
    return Drawing(data, style, {}, layout)


def draw_fairness_cdf(numbers: FairnessCdf) -> Drawing:
    """Lay out `FairnessCdf`: one step line per run, and the border of fairness at rho = 1."""
    data, style = [], []
    for i, name in enumerate(numbers.names):
        summary = f"{name}: {numbers.unfair[i]:.1%} of jobs unfair, worst rho {numbers.worst[i]:.3g}"
        data.append(
            {"x": numbers.rho[i].astype("f4"), "y": numbers.share[i].astype("f4"), "name": name, "meta": summary}
        )
        style.append(_steps(i, "<b>%{y:.1%} of jobs</b> have rho up to <b>%{x:.3~r}</b><br>%{meta}<extra></extra>"))
    layout = {
        "title": {"text": "Finish-time fairness"},
        "xaxis": axis("finish-time fairness rho = time shared / time alone (logarithmic)", type="log"),
        "yaxis": axis("share of jobs", tickformat=".0%", range=[0, 1.02]),
        "shapes": [
            {"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1, "line": {"width": 1, "dash": "dot"}}
        ],
        "annotations": [
            {"x": 0, "y": 0, "text": "unfair beyond 1 \u2192", "showarrow": False}
            | {"yref": "paper", "xanchor": "left", "xshift": 4, "yanchor": "bottom"}
        ],
    }
    return Drawing(data, style, {}, layout)
