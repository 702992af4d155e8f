"""What a tuner does: forecast arrivals, configurations tried, tuners compared."""

import numpy as np

from gpuschedlab.knobs import knob_word
from gpuschedlab.plots.kinds.charts import Lines
from gpuschedlab.plots.kinds.style import COLOURS, HOUR, INK, Drawing, line, marks, middles, stroke, time_axis
from gpuschedlab.plots.plotter import plotter

LOOKS = {
    "measured": {"color": COLOURS[0], "symbol": "circle", "size": 9},
    "rejected": {"color": COLOURS[1], "symbol": "x-thin-open", "size": 8, "line": {"width": 2}},
    "known": {"color": COLOURS[8], "symbol": "diamond-open", "size": 8},
}
BELOW = {"orientation": "h", "y": -0.25, "x": 0}
"""A legend below the figure."""


def forecast(submit, coming, now: float, before: float = 6 * HOUR, after: float = 6 * HOUR, seconds=1800.0) -> Drawing:
    """Count actual arrivals, before now and after it, and those that were forecast: a line, and bars after now.

    Parameters
    ----------
    submit, coming : (n,) and (m,) arrays
        Submission times (s) of the trace, and of the forecast's arrivals.
    now, before, after, seconds : float
        Instant, how far to look back and ahead, and length of a bin (s).
    """
    start = max(0.0, now - before)
    back = np.arange(now, start - 1, -seconds)[::-1]
    on = np.arange(now + seconds, now + after + 1, seconds)
    edges = np.concatenate([back, on])
    came = np.histogram(submit, edges)[0].astype(float)
    ahead = np.where(edges[:-1] >= now, np.histogram(coming, edges)[0], 0.0)
    peak = max(1.0, came.max(initial=0.0), ahead.max(initial=0.0))
    step = float(np.diff(edges).mean()) / 60
    hover = "<b>%{y:,d} jobs</b> around %{x:.1f} h"
    hatched = {"color": COLOURS[5], "pattern": {"shape": "/"}, "line": {"color": INK, "width": 0.5}}
    upright = {"x": [now / HOUR] * 2, "y": [0, 1.05 * peak], "name": "now"}
    traces = [
        (
            {"x": middles(edges), "y": ahead, "name": "forecast"},
            {"type": "bar", "marker": hatched, "hovertemplate": hover},
        ),
        ({"x": middles(edges), "y": came, "name": "actual"}, line(0, hover)),
        (upright, stroke(color=INK, dash="dot", width=2)),
    ]
    title = "Arrivals: actual and forecast"
    y = f"jobs in {step:.0f} min"
    return Drawing.of(traces, title=title, legend=BELOW, x=time_axis(), y=y, zero=True)


def tried(tuning, current) -> Drawing:
    """Trials of a `gpuschedlab.autosched.Tuning`, a point each, by fate; lines at the best so far and at `current`, in force before."""
    trials = tuning.trials
    names = tuning.space.names
    traces = []
    for fate, marker in LOOKS.items():
        own = [t for t in trials if t.fate == fate]
        texts = ["<br>".join(f"{n} = {knob_word(t.policy.knobs[n], 3)}" for n in names) for t in own]
        rewards = np.array([t.predicted if fate == "rejected" else t.reward for t in own], float)
        points = {"x": np.array([max(t.round, 0) for t in own], int), "y": rewards, "text": texts, "name": fate}
        label = "predicted" if fate == "rejected" else fate
        traces.append((points, marks(marker, f"<b>%{{y:.3f}} times the default ({label})</b><br>%{{text}}")))
    rounds = np.array([max(t.round, 0) for t in trials], int)
    now = next((t.reward for t in trials if t.policy == current), 1.0)
    best = {"x": rounds, "y": np.array([t.best for t in trials]), "name": "best so far"}
    in_force = {"x": [rounds.min(initial=0), rounds.max(initial=1)], "y": [now] * 2, "name": "in force"}
    traces += [
        (best, stroke("", color=INK, width=1.5, shape="hv")),
        (in_force, stroke("", color=COLOURS[2], width=1.5, dash="dash")),
    ]
    sides = {"x": "round of the search (0: measured before it)", "y": "reward (times the default's)"}
    return Drawing.of(traces, title="Configurations tried in this search", legend=BELOW, **sides)


def race(time, values: dict) -> Lines:
    """Average JCT (s) so far (n,) by name of each tuner at instants (n,), s."""
    hours = {name: np.asarray(value, float) / HOUR for name, value in values.items()}
    title = "Average JCT of the jobs that ended so far"
    x = np.asarray(time, float) / HOUR
    hover = "<b>%{y:.3g} h</b> by %{x:.1f} h"
    return Lines(title, time_axis(), "average JCT (h)", x, hours, hover, layout={"zero": True})


Forecast = Drawing
Tried = Drawing
Race = Lines
plot_forecast = plotter(forecast)
plot_tried = plotter(tried)
plot_race = plotter(race)
