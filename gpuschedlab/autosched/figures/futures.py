"""What a tuner sees and foresees at an instant: load and queue, the last hour, and the fan of its likely futures."""

import numpy as np

from gpuschedlab.plots.kinds.charts import Bars
from gpuschedlab.plots.kinds.style import COLOURS, HOUR, INK, Drawing, axis, stroke, time_axis

BELOW = {"orientation": "h", "y": -0.22, "x": 0}
"""A legend below the figure."""
SHADE = "rgba(86, 180, 233, 0.35)"
FADED = "#9AA5B1"


def observed(now: float, time: np.ndarray, used: np.ndarray, demanded: np.ndarray, waiting, gpus: float) -> Drawing:
    """Return a `Drawing` of a cluster up to now (s): GPUs in use and requested, and jobs that wait on an axis of their own."""
    x = time / HOUR
    queue = {"yaxis": "y2", "fill": "tozeroy", "fillcolor": "rgba(0, 158, 115, 0.18)"}
    gpu = "<b>%{y:,.0f} GPUs</b>"
    job = "<b>%{y:,d} jobs</b>"
    capacity_line = {"x": [x[0], x[-1]], "y": [gpus] * 2, "name": "all GPUs"}
    requested = stroke(f"{gpu} requested at %{{x:.1f}} h", color=COLOURS[1], width=2, dash="dash")
    traces = [
        ({"x": x, "y": demanded, "name": "requested"}, requested),
        ({"x": x, "y": used, "name": "in use"}, stroke(f"{gpu} in use at %{{x:.1f}} h", color=COLOURS[0], width=2.5)),
        (capacity_line, stroke(color=INK, width=1, dash="dot")),
        (
            {"x": x, "y": waiting, "name": "waiting jobs (right)"},
            stroke(f"{job} wait at %{{x:.1f}} h", color=COLOURS[2], width=1.5) | queue,
        ),
    ]
    right = {"overlaying": "y", "side": "right", "rangemode": "tozero", "showgrid": False}
    right = axis("jobs that wait", tickmode="auto", nticks=5, **right)
    sides = {"x": time_axis(), "y": "GPUs", "zero": True, "yaxis2": right}
    return Drawing.of(traces, title="Load and queue of the last day", legend=BELOW, margin={"r": 60}, **sides)


def alike(ends: tuple[float, ...], counts: np.ndarray) -> Bars:
    """Return `Bars` of the last hour, beside a past one if there is one.

    ends : (1 or 2,) s; counts : (1 or 2, n) jobs submitted in each part of them.
    """
    bin_count = np.shape(counts)[1]
    present_hour = ends[0] / HOUR
    hour_names = [f"up to now ({present_hour:.0f} h)"]
    hour_names += [f"up to {present_hour - past_hour / HOUR:.1f} h ago" for past_hour in ends[1:]]
    hour_counts = {hour_name: list(row) for hour_name, row in zip(hour_names, counts, strict=True)}
    sides = (
        axis("minute of the hour", dtick=10),
        f"jobs in {60 / bin_count:.0f} min",
        (np.arange(bin_count) + 0.5) * 60 / bin_count,
    )
    layout = {"legend": BELOW, "barmode": "group", "zero": True}
    title = "The last hour"
    if len(ends) > 1:
        title = "The last hour, and the one most like it"
    return Bars(title, *sides, hour_counts, "<b>%{y:,d} jobs</b>", layout=layout)


def fan(now: float, step: float, what: str, futures: np.ndarray, past, then, earlier: tuple = ()) -> Drawing:
    """Return a `Drawing` of likely futures of an instant in bins: a band from 10 % to 90 % point, their median, and what came."""
    low, median_future, high = np.quantile(futures, [0.1, 0.5, 0.9], axis=0)
    top = 1.05 * max(1.0, *(np.max(drawn_bins, initial=0.0) for drawn_bins in (high, past, then)))
    hover = "<b>%{y:,.0f}</b> at %{x:.1f} h"
    silent = {"showlegend": False}
    edge = stroke(color="rgba(0, 0, 0, 0)", width=0)

    def drawn(future_name: str, first_instant: float, bin_values, forecast_look: dict) -> tuple[dict, dict]:
        """Return the trace of bins' values from an instant (s), at their middles, and its look, as a pair of dicts."""
        x = (first_instant + (np.arange(len(bin_values)) + 0.5) * step) / HOUR
        return {"x": x, "y": bin_values, "name": future_name}, forecast_look

    traces = [
        drawn("90 %", now, high, edge | silent),
        drawn("10 to 90 %", now, low, edge | {"fill": "tonexty", "fillcolor": SHADE}),
    ]
    for i, (instant, median) in enumerate(earlier):
        forecast_look = stroke(color=FADED, width=1) | {"showlegend": i == 0}
        traces.append(drawn("earlier forecasts", instant, median, forecast_look))
    upright = {"x": [now / HOUR] * 2, "y": [0, top], "name": "now"}
    traces += [
        drawn("median", now, median_future, stroke(hover, color=COLOURS[0], width=2.5)),
        drawn("came", now - len(past) * step, past, stroke(hover, color=INK, width=2)),
        drawn("then came", now, then, stroke(hover, color=COLOURS[1], width=2, dash="dot")),
        (upright, stroke(color=INK, width=1.5, dash="dash") | silent),
    ]
    return Drawing.of(traces, title=f"Forecast: {what}", legend=BELOW, x=time_axis(), y=axis(what, range=[0, top]))


Observed = observed
Alike = alike
Fan = fan
