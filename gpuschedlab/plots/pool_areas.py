"""Warm pools over time, per model: busy, idle and warming GPUs, with a tick for each job that ended late."""

import numpy as np
import polars as pl

from gpuschedlab.metrics.pools import pool_levels
from gpuschedlab.plots.kinds.style import COLOURS, STOP, Drawing, marks, middles, stroke
from gpuschedlab.plots.load import bin_means
from gpuschedlab.plots.plotter import plotter

STATES = {"busy": "", "idle": ".", "warming": "/"}
"""Patterns of a model's areas."""


def pools(run, title: str = "GPUs by model", points: int = 300, end: float | None = None) -> Drawing:
    """Means of a run's pools over some bins until `end` (s), by default the last change: colour by model, pattern by state.

    Jobs that ended late are ticks below the axis.
    """
    frame = pool_levels(run)
    last = float(frame["time"].max() or 1.0) if end is None else end
    edges = np.linspace(0.0, max(last, 1e-9), points + 1)
    traces = []
    for m, model in enumerate(frame["llm"].unique().sort()):
        own, colour = frame.filter(llm=model), COLOURS[m % len(COLOURS)]
        time = np.concatenate([[0.0], own["time"].to_numpy(), [max(last, own["time"].max())]])
        for state, shape in STATES.items():
            value = np.concatenate([[0.0], own[state].to_numpy(), [0.0]])
            level = np.nan_to_num(bin_means(time, value, edges)).astype("f4")
            look = stroke("%{y:.1f} GPUs at %{x:.1f} min", color=colour, width=0.6) | {"stackgroup": "all"}
            pattern = {"shape": shape, "fgcolor": colour, "size": 5, "solidity": 0.35}
            look |= {"fillpattern": pattern} if shape else {"fillcolor": colour}
            traces.append(({"x": middles(edges, 60), "y": level, "name": f"{model}, {state}"}, look))
    jobs = run.jobs if "deadline" in run.jobs.columns else run.jobs.clear().with_columns(deadline=0.0)
    late = jobs.filter(pl.col("end") > pl.col("submit") + pl.col("deadline") + 1e-6)["end"].to_numpy()
    red = STOP["color"]
    tick = {"symbol": "line-ns-open", "color": red, "size": 9, "line": {"color": red, "width": 1.5}}
    ticks = {"x": (late / 60).astype("f4"), "y": np.full(len(late), -0.8, "f4"), "name": "ended late"}
    traces.append((ticks, marks(tick, "late at %{x:.1f} min")))
    return Drawing.of(traces, title, showlegend=True, x="time since the trace's start (min)", y="GPUs")


plot_pools = plotter(pools)
