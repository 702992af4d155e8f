"""What a tuner sees and foresees at an instant: load and queue, the last hour, and the fan of its likely futures."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.plots.kinds.style import COLOURS, HOUR, INK, Drawing, axis, bar, stroke, time_axis

BELOW = {"orientation": "h", "y": -0.22, "x": 0}
"""A legend below the figure."""
SHADE = "rgba(86, 180, 233, 0.35)"
FADED = "#9AA5B1"


class Observed(NamedTuple):
    """A cluster up to an instant: now s; time : (n,) s; used, demanded : (n,) GPUs; waiting : (n,) jobs; gpus : all there are."""

    now: float
    time: np.ndarray
    used: np.ndarray
    demanded: np.ndarray
    waiting: np.ndarray
    gpus: float

    def draw(self) -> Drawing:
        """GPUs that are in use and requested, and jobs that wait on an axis of their own."""
        x = self.time / HOUR
        ends = [x[0], x[-1]]
        traces = [
            (
                {"x": x, "y": self.demanded, "name": "requested"},
                stroke("<b>%{y:,.0f} GPUs</b> requested at %{x:.1f} h", color=COLOURS[1], width=2, dash="dash"),
            ),
            (
                {"x": x, "y": self.used, "name": "in use"},
                stroke("<b>%{y:,.0f} GPUs</b> in use at %{x:.1f} h", color=COLOURS[0], width=2.5),
            ),
            ({"x": ends, "y": [self.gpus] * 2, "name": "all GPUs"}, stroke(color=INK, width=1, dash="dot")),
            (
                {"x": x, "y": self.waiting, "name": "waiting jobs (right)"},
                stroke("<b>%{y:,d} jobs</b> wait at %{x:.1f} h", color=COLOURS[2], width=1.5)
                | {"yaxis": "y2", "fill": "tozeroy", "fillcolor": "rgba(0, 158, 115, 0.18)"},
            ),
        ]
        right = axis(
            "jobs that wait",
            overlaying="y",
            side="right",
            rangemode="tozero",
            showgrid=False,
            tickmode="auto",
            nticks=5,
        )
        sides = {"x": time_axis(), "y": axis("GPUs"), "zero": True, "yaxis2": right}
        return Drawing.of(traces, title="Load and queue of the last day", legend=BELOW, margin={"r": 60}, **sides)


class Alike(NamedTuple):
    """The last hour beside a past one: ends : (2,) s of both; counts : (2, n) jobs submitted in each part of them."""

    ends: tuple[float, float]
    counts: np.ndarray

    def draw(self) -> Drawing:
        """Bars of both, side by side."""
        parts = np.shape(self.counts)[1]
        x = (np.arange(parts) + 0.5) * 60 / parts
        now, then = (end / HOUR for end in self.ends)
        names = (f"up to now ({now:.0f} h)", f"up to {now - then:.1f} h ago")
        traces = [
            ({"x": x, "y": list(row), "name": name}, {"type": "bar", "marker": bar(i), "hovertemplate": "<b>%{y:,d} jobs</b>"})
            for i, (name, row) in enumerate(zip(names, self.counts, strict=True))
        ]  # fmt: skip
        sides = {"x": axis("minute of the hour", dtick=10), "y": f"jobs in {60 / parts:.0f} min", "zero": True}
        return Drawing.of(
            traces, title="The last hour, and the one most like it", legend=BELOW, barmode="group", **sides
        )


class Fan(NamedTuple):
    """Likely futures of an instant in half hours, and what came.

    now : s; step : s; what : what is counted, with its unit; futures : (f, n) from now on; past, then : (p,) and (q,) what came
    before and after; earlier : pairs of an earlier instant (s) and its median (n,).
    """

    now: float
    step: float
    what: str
    futures: np.ndarray
    past: np.ndarray
    then: np.ndarray
    earlier: tuple = ()

    def draw(self) -> Drawing:
        """A band from the 10 % to the 90 % point of the futures, their median, and what came."""
        low, middle, high = np.quantile(self.futures, [0.1, 0.5, 0.9], axis=0)
        ahead, now = self._at(self.now, len(middle)), self.now / HOUR
        back = self._at(self.now - len(self.past) * self.step, len(self.past))
        top = 1.05 * max(1.0, *(np.max(part, initial=0.0) for part in (high, self.past, self.then)))
        hover = "<b>%{y:,.0f}</b> at %{x:.1f} h"
        edge = {"color": "rgba(0, 0, 0, 0)", "width": 0}
        traces = [
            ({"x": ahead, "y": high, "name": "90 %"}, stroke(**edge) | {"showlegend": False}),
            (
                {"x": ahead, "y": low, "name": "10 to 90 %"},
                stroke(**edge) | {"fill": "tonexty", "fillcolor": SHADE, "mode": "lines"},
            ),
        ]
        for i, (instant, median) in enumerate(self.earlier):
            data = {"x": self._at(instant, len(median)), "y": median, "name": "earlier forecasts", "showlegend": i == 0}
            traces.append((data, stroke(color=FADED, width=1)))
        then = {"x": self._at(self.now, len(self.then)), "y": self.then, "name": "then came"}
        traces += [
            ({"x": ahead, "y": middle, "name": "median"}, stroke(hover, color=COLOURS[0], width=2.5)),
            ({"x": back, "y": self.past, "name": "came"}, stroke(hover, color=INK, width=2)),
            (then, stroke(hover, color=COLOURS[1], width=2, dash="dot")),
            ({"x": [now, now], "y": [0, top], "name": "now"}, stroke(color=INK, width=1.5, dash="dash") | {"showlegend": False}),
        ]  # fmt: skip
        sides = {"x": time_axis(), "y": axis(self.what, range=[0, top])}
        return Drawing.of(traces, title=f"Forecast: {self.what}", legend=BELOW, **sides)

    def _at(self, start: float, count: int) -> np.ndarray:
        """Middles (h) of so many bins from an instant (s)."""
        return (start + (np.arange(count) + 0.5) * self.step) / HOUR
