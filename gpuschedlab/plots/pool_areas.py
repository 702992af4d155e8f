"""Warm pools over time, per model: busy, idle and warming GPUs, with a tick for each job that ended late."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.metrics.pools import pool_levels
from gpuschedlab.plots.kinds.style import COLOURS, STOP, Drawing, marks, middles, stroke
from gpuschedlab.plots.load import bin_means
from gpuschedlab.plots.plotter import plotter

STATES = {"busy": "", "idle": ".", "warming": "/"}
"""Patterns of a model's areas."""


class Pools(NamedTuple):
    """Means over bins: edges (B + 1,) s; levels (M, 3, B) GPUs busy, idle, warming of M models; late (k,) ends of late jobs, s."""

    title: str
    models: tuple[str, ...]
    edges: np.ndarray
    levels: np.ndarray
    late: np.ndarray

    def draw(self) -> Drawing:
        """Areas on top of each other, colour by model, pattern by state; late jobs as ticks below the axis."""
        middle, traces = middles(self.edges, 60), []
        for m, model in enumerate(self.models):
            colour = COLOURS[m % len(COLOURS)]
            for s, (state, shape) in enumerate(STATES.items()):
                pattern = {"shape": shape, "fgcolor": colour, "size": 5, "solidity": 0.35}
                look = stroke("%{y:.1f} GPUs at %{x:.1f} min", color=colour, width=0.6) | {"stackgroup": "all"}
                look |= {"fillpattern": pattern} if shape else {"fillcolor": colour}
                points = {"x": middle, "y": self.levels[m, s].astype("f4"), "name": f"{model}, {state}"}
                traces.append((points, look))
        late = {"x": (self.late / 60).astype("f4"), "y": np.full(len(self.late), -0.8, "f4"), "name": "ended late"}
        red = STOP["color"]
        tick = {"symbol": "line-ns-open", "color": red, "size": 9, "line": {"color": red, "width": 1.5}}
        traces.append((late, marks(tick, "late at %{x:.1f} min")))
        return Drawing.of(traces, self.title, showlegend=True, x="time since the trace's start (min)", y="GPUs")


def pools(run, title: str = "GPUs by model", points: int = 300, end: float | None = None) -> Pools:
    """Reduce the pools of a run to means over some bins, until `end` (s), by default the last change."""
    frame = pool_levels(run)
    last = float(frame["time"].max() or 1.0) if end is None else end
    edges = np.linspace(0.0, max(last, 1e-9), points + 1)
    models = tuple(frame["llm"].unique().sort())
    levels = np.zeros((len(models), len(STATES), points))
    for m, model in enumerate(models):
        own = frame.filter(llm=model)
        time = np.concatenate([[0.0], own["time"].to_numpy(), [max(last, own["time"].max())]])
        for s, state in enumerate(STATES):
            value = np.concatenate([[0.0], own[state].to_numpy(), [0.0]])
            levels[m, s] = np.nan_to_num(bin_means(time, value, edges))
    jobs = run.jobs
    if "deadline" not in jobs.columns:
        return Pools(title, models, edges, levels, np.zeros(0))
    end_, due = jobs["end"].to_numpy(), (jobs["submit"] + jobs["deadline"]).to_numpy()
    return Pools(title, models, edges, levels, end_[end_ > due + 1e-6])


plot_pools = plotter(pools)
