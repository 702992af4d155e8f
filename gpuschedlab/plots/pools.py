"""Warm pools over time, per model: busy, idle and warming GPUs, with a tick for each job that ended late."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.metrics.pools import pool_levels
from gpuschedlab.plots.load import bin_means
from gpuschedlab.plots.style import COLOURS, Drawing, axis

STATES = ("busy", "idle", "warming")
PATTERN = {"busy": "", "idle": ".", "warming": "/"}
LATE = "#B91C1C"


class Pools(NamedTuple):
    """Means over bins: edges (B + 1,) s; levels (M, 3, B) GPUs busy, idle, warming of M models; late (k,) ends of late jobs, s."""

    title: str
    models: tuple[str, ...]
    edges: np.ndarray
    levels: np.ndarray
    late: np.ndarray


def pools(run, title: str = "GPUs by model", points: int = 300, end: float | None = None) -> Pools:
    """Reduce the pools of a run to means over bins.

    Parameters
    ----------
    run : Run
    title : str
    points : int
        Bins.
    end : float, optional
        Until when (s); default: the last change.
    """
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


def draw_pools(numbers: Pools) -> Drawing:
    """Lay out `Pools`: areas on top of each other, colour by model, pattern by state; late jobs as ticks below the axis."""
    middle = (numbers.edges[1:] + numbers.edges[:-1]) / 2 / 60
    data, style = [], []
    for m, model in enumerate(numbers.models):
        colour = COLOURS[m % len(COLOURS)]
        for s, state in enumerate(STATES):
            data.append({"x": middle.astype("f4"), "y": numbers.levels[m, s].astype("f4"), "name": f"{model}, {state}"})
            pattern = {"shape": PATTERN[state], "fgcolor": colour, "size": 5, "solidity": 0.35}
            look = {"type": "scatter", "mode": "lines", "stackgroup": "all", "line": {"color": colour, "width": 0.6}}
            look |= {"fillpattern": pattern} if PATTERN[state] else {"fillcolor": colour}
            style.append(look | {"hovertemplate": "%{y:.1f} GPUs at %{x:.1f} min"})
    data.append(
        {"x": (numbers.late / 60).astype("f4"), "y": np.full(len(numbers.late), -0.8, "f4"), "name": "ended late"}
    )
    marker = {"symbol": "line-ns-open", "color": LATE, "size": 9, "line": {"color": LATE, "width": 1.5}}
    style.append({"type": "scatter", "mode": "markers", "marker": marker, "hovertemplate": "late at %{x:.1f} min"})
    sides = {"xaxis": axis("time since the trace's start (min)"), "yaxis": axis("GPUs")}
    return Drawing(data, style, {"title_text": numbers.title}, sides | {"showlegend": True})
