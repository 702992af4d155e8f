"""An outcome over the values of a knob: rows of a log, and what three ways to answer say of setting the knob."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.plots.kinds.style import COLOURS, INK, SLATE, Drawing, axis, marks, stroke

BAND = "rgba(0,103,165,0.18)"
"""Colour of the model's band: its blue on light and dark pages."""
GREY = COLOURS[8]
TICKS = (1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
"""Steps of a scale of times within a power of ten."""
MOST_TICKS = 6


class DoCurves(NamedTuple):
    """Rows and curves, all outcomes as logarithms.

    knob, outcome : titles of the axes; log : whether the knob's axis is logarithmic; values : (v,) settings of the knob in its own
    unit; rows : (n, 2) settings and outcomes of the log; naive, model, truth : curves with `mean`, `low`, `high` (v,), nan if a
    curve has no interval, or None; setting : the value that is asked about; title : words.
    """

    knob: str
    outcome: str
    log: bool
    values: np.ndarray
    rows: np.ndarray
    naive: object
    model: object
    truth: object
    setting: float
    title: str

    def draw(self) -> Drawing:
        """Return the `Drawing`: dots below, then lines, whiskers on top, and a vertical line at the setting."""
        traces = [self._dots(), self._band(), self._naive(), self._line(), self._truth()]
        bottom, top = self._range()
        ticks = ticks_between(np.exp(bottom), np.exp(top))
        y = axis(self.outcome, type="log", tickmode="array")
        x = axis(self.knob, showgrid=False)
        live = {"yaxis_range": [bottom / np.log(10), top / np.log(10)], "yaxis_tickvals": ticks}
        live["yaxis_ticktext"] = [f"{tick:g}" for tick in ticks]
        if self.log:
            x |= {"type": "log", "tickmode": "array"}
            steps = ticks_between(self.values[0], self.values[-1])
            live |= {"xaxis_tickvals": steps, "xaxis_ticktext": [f"{step:,g}" for step in steps]}
        setting_line = {"x0": self.setting, "x1": self.setting, "y0": 0, "y1": 1, "yref": "y domain"}
        line = {"type": "line", "line": {"color": INK, "width": 1.5, "dash": "dot"}}
        live["shapes"] = [line | setting_line]
        live["title_text"] = self.title
        return Drawing.of(traces, live, x=x, y=y, showlegend=True)

    def _range(self) -> tuple[float, float]:
        """Return both ends of the outcome's axis as a tuple: nearly all rows, all curves, whiskers of the truth.

        A band may be cut.
        """
        outcomes = []
        if len(self.rows):
            outcomes.append(np.quantile(self.rows[:, 1], (0.01, 0.99)))
        for curve in (self.naive, self.model, self.truth):
            if curve is not None:
                outcomes.append(curve.mean)
        if self.truth is not None:
            outcomes += [self.truth.low, self.truth.high]
        finite = np.concatenate([np.zeros(0), *outcomes])
        finite = finite[np.isfinite(finite)]
        if not len(finite):
            return 0.0, 1.0
        axis_room = 0.04 * max(np.ptp(finite), 0.1)
        return float(finite.min() - axis_room), float(finite.max() + axis_room)

    def _dots(self) -> tuple[dict, dict]:
        interval_dots = marks({"color": SLATE, "size": 4, "opacity": 0.6}, "log: %{x:,.3~s}, %{y:.2f}<extra></extra>")
        return {"x": self.rows[:, 0], "y": np.exp(self.rows[:, 1]), "name": "intervals"}, interval_dots

    def _band(self) -> tuple[dict, dict]:
        """Return the trace of the model's band and its look as a pair of dicts; it is empty without a model."""
        x = np.zeros(0)
        y = np.zeros(0)
        if self.model is not None and np.isfinite(self.model.low).all():
            x = np.concatenate([self.values, self.values[::-1]])
            y = np.exp(np.concatenate([self.model.high, self.model.low[::-1]]))
        band_look = stroke(width=0, color=COLOURS[0]) | {"fill": "toself", "fillcolor": BAND, "showlegend": False}
        return {"x": x, "y": y, "name": "95 %"}, band_look

    def _naive(self) -> tuple[dict, dict]:
        log_curve_look = stroke("log: %{y:.2f}<extra></extra>", color=GREY, width=2.5)
        return self._curve(self.naive) | {"name": "the log"}, log_curve_look

    def _line(self) -> tuple[dict, dict]:
        model_curve_look = stroke("model: %{y:.2f}<extra></extra>", color=COLOURS[0], width=3)
        return self._curve(self.model) | {"name": "the model, 95 %"}, model_curve_look

    def _curve(self, curve) -> dict:
        """Return the points of a curve as a dict of arrays; empty ones without a curve."""
        if curve is None:
            return {"x": np.zeros(0), "y": np.zeros(0)}
        return {"x": self.values, "y": np.exp(curve.mean)}

    def _truth(self) -> tuple[dict, dict]:
        """Return the trace of the simulated outcomes and its look, a pair of dicts; whiskers from the second interval on."""
        hover = "truth: %{y:.2f}<extra></extra>"
        truth_look = marks({"color": COLOURS[4], "size": 8}, hover)
        truth_points = {"x": np.zeros(0), "y": np.zeros(0), "name": "truth, 95 %"}
        truth_points["error_y"] = {"type": "data", "symmetric": False, "array": np.zeros(0), "arrayminus": np.zeros(0)}
        if self.truth is None:
            return truth_points, truth_look
        true_outcome = np.exp(self.truth.mean)
        whiskers = {"type": "data", "symmetric": False, "color": COLOURS[4], "thickness": 1.5, "width": 3}
        whiskers |= {
            "array": np.exp(self.truth.high) - true_outcome,
            "arrayminus": true_outcome - np.exp(self.truth.low),
        }
        return truth_points | {"x": self.values, "y": true_outcome, "error_y": whiskers}, truth_look


def ticks_between(low: float, high: float) -> list[float]:
    """Return a list of round values of a logarithmic axis between two positive ends, about `MOST_TICKS` at most.

    Examples
    --------
    >>> ticks_between(1.0, 3.4)
    [1.0, 1.2, 1.5, 2.0, 3.0]
    >>> ticks_between(1_000.0, 56_000.0)
    [1000.0, 2000.0, 5000.0, 10000.0, 20000.0, 50000.0]
    """
    first_power = int(np.floor(np.log10(low)))
    last_power = int(np.ceil(np.log10(high)))
    for steps in (TICKS, (1.0, 1.5, 2.0, 3.0, 5.0), (1.0, 2.0, 5.0), (1.0,)):
        ticks = [round(step * 10.0**power, 6) for power in range(first_power, last_power + 1) for step in steps]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) <= MOST_TICKS:
            break
    return ticks
