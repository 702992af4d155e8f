"""Bars: interruptions of jobs, and any metric of several runs."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import RunError
from gpuschedlab.metrics import METRICS, Metric, summary
from gpuschedlab.plots.kinds.style import HOUR, Drawing, as_runs, axis, bar, bars
from gpuschedlab.plots.plotter import plotter


class Interruptions(NamedTuple):
    """Interruptions per job: names of the P runs; preemptions, restarts, failures : (P,) means over the jobs."""

    names: tuple[str, ...]
    preemptions: np.ndarray
    restarts: np.ndarray
    failures: np.ndarray

    def draw(self) -> Drawing:
        """Three bars per run."""
        traces = []
        for i, kind in enumerate(self._fields[1:]):
            hover = f"<b>%{{y:.3~r}} {kind} per job</b><extra>%{{x}}</extra>"
            look = {"type": "bar", "name": kind, "marker": bar(i), "hovertemplate": hover}
            traces.append(({"x": list(self.names), "y": self[i + 1]}, look))
        return Drawing.of(traces, title="Interruptions", barmode="group", x="policy", y="mean number per job", zero=1)


class MetricBars(NamedTuple):
    """One metric of several runs.

    metric, what : its name and `Metric`; names : of the P runs; values : (P,) in the metric's unit, nan for none.
    """

    metric: str
    what: Metric
    names: tuple[str, ...]
    values: np.ndarray

    def draw(self) -> Drawing:
        """A horizontal bar per run, labelled with its value; times in hours."""
        divisor, title = metric_axis(self.metric)
        look = bars(bar(0), "<b>%{x:,.3~r}</b><extra>%{y}</extra>", texttemplate="%{x:,.3~r}")
        look |= {"textposition": "outside", "cliponaxis": False}
        live = {"title_text": self.what.label[:1].upper() + self.what.label[1:], "xaxis_title_text": title}
        points = {"x": self.values / divisor, "y": list(self.names)}
        x, y = axis(title, rangemode="tozero"), axis("", autorange="reversed")
        return Drawing.of([(points, look)], live, showlegend=False, margin_r=70, x=x, y=y)


def interruptions(runs) -> Interruptions:
    """Mean preemptions, restarts and failures per job of each run (all its jobs)."""
    runs = as_runs(runs)
    kinds = Interruptions._fields[1:]
    means = (np.array([float(r.jobs[kind].clip(0).mean() or 0.0) for r in runs.values()]) for kind in kinds)
    return Interruptions(tuple(runs), *means)


def metric_bars(runs, metric: str = "jct_mean", **options) -> MetricBars:
    """One metric of each run.

    Parameters
    ----------
    runs : Run or dict of str to Run
        What to show.
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
    values = [summary(run, **options)[metric] for run in runs.values()]
    values = np.array([np.nan if v is None else v for v in values], float)
    return MetricBars(metric, METRICS[metric], tuple(runs), values)


def metric_axis(metric: str) -> tuple[float, str]:
    """Divisor of a metric, and its axis title: times in hours, but for those that the computer takes.

    Examples
    --------
    >>> metric_axis("jct_mean"), metric_axis("preemptions")
    ((3600.0, 'average JCT (h, lower is better)'), (1.0, 'preemptions (lower is better)'))
    """
    what = METRICS[metric]
    timed = what.unit in ("s", "GPU-s") and metric != "seconds"
    notes = (f"{what.unit[:-1]}h" if timed else what.unit, f"{what.better} is better" if what.better else "")
    note = ", ".join(filter(None, notes))
    return (HOUR if timed else 1.0), f"{what.label} ({note})" if note else what.label


plot_interruptions = plotter(interruptions)
plot_metric_bars = plotter(metric_bars)
