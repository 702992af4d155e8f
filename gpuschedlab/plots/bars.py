"""Bars: interruptions of jobs, and any metric of several runs."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import RunError
from gpuschedlab.metrics import METRICS, Metric, summary
from gpuschedlab.plots.style import HOUR, Drawing, as_runs, axis, bar


class Interruptions(NamedTuple):
    """Interruptions per job: names of the P runs; preemptions, restarts, failures : (P,) means over the jobs."""

    names: tuple[str, ...]
    preemptions: np.ndarray
    restarts: np.ndarray
    failures: np.ndarray


class MetricBars(NamedTuple):
    """One metric of several runs.

    metric, what : its name and `Metric`; names : of the P runs; values : (P,) in the metric's unit, nan for none.
    """

    metric: str
    what: Metric
    names: tuple[str, ...]
    values: np.ndarray


def interruptions(runs) -> Interruptions:
    """Mean preemptions, restarts and failures per job of each run (all its jobs)."""
    runs = as_runs(runs)
    kinds = ("preemptions", "restarts", "failures")
    return Interruptions(
        tuple(runs), *(np.array([float(r.jobs[k].clip(0).mean() or 0.0) for r in runs.values()]) for k in kinds)
    )


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
    return MetricBars(
        metric, METRICS[metric], tuple(runs), np.array([np.nan if v is None else v for v in values], float)
    )


def draw_interruptions(numbers: Interruptions) -> Drawing:
    """Lay out `Interruptions`: three bars per run."""
    data, style = [], []
    for i, kind in enumerate(("preemptions", "restarts", "failures")):
        data.append({"x": list(numbers.names), "y": getattr(numbers, kind)})
        hover = f"<b>%{{y:.3~r}} {kind} per job</b><extra>%{{x}}</extra>"
        style.append({"type": "bar", "name": kind, "marker": bar(i), "hovertemplate": hover})
    layout = {
        "title": {"text": "Interruptions"},
        "barmode": "group",
        "xaxis": axis("policy"),
        "yaxis": axis("mean number per job", rangemode="tozero"),
    }
    return Drawing(data, style, {}, layout)


def _scaled(numbers: MetricBars) -> tuple[np.ndarray, str, str]:
    """Values as the axis shows them, their number format, and the axis title with unit."""
    what, hint = (
        numbers.what,
        {"lower": ", lower is better", "higher": ", higher is better"}.get(numbers.what.better, ""),
    )
    if what.unit in ("s", "GPU-s") and numbers.metric != "seconds":
        return numbers.values / HOUR, ",.3~r", f"{what.label} ({what.unit[:-1]}h{hint})"
    unit = f" ({(what.unit + hint).removeprefix(', ')})" if what.unit or hint else ""
    return numbers.values, ",.3~r", f"{what.label}{unit}"


def draw_metric_bars(numbers: MetricBars) -> Drawing:
    """Lay out `MetricBars`: a horizontal bar per run, labelled with its value; times in hours."""
    values, form, title = _scaled(numbers)
    data = [{"x": values, "y": list(numbers.names)}]
    style = [
        {
            "type": "bar",
            "orientation": "h",
            "marker": bar(0),
            "texttemplate": f"%{{x:{form}}}",
            "textposition": "outside",
            "cliponaxis": False,
            "hovertemplate": f"<b>%{{x:{form}}}</b><extra>%{{y}}</extra>",
        }
    ]
    layout = {"yaxis": axis("", autorange="reversed"), "showlegend": False, "margin_r": 70}
    live = {"title_text": numbers.what.label[:1].upper() + numbers.what.label[1:], "xaxis_title_text": title}
    return Drawing(data, style, live, layout | {"xaxis": axis(title, rangemode="tozero")})
