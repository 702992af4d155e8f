"""Pairs of tasks: how much faster one is with another, really and as expected."""

import numpy as np
import polars as pl

from gpuschedlab.plots.kinds.charts import Landscape
from gpuschedlab.plots.kinds.style import RED_TO_BLUE, Drawing, axis, marks, stroke, texts
from gpuschedlab.plots.plotter import plotter

WORDS = {"merged": "trained jointly", "transfer": "one after the other"}


def pair_map(gains: pl.DataFrame, mode: str) -> Drawing:
    """Return a `Drawing` of the factors of one mode: a map of the row's task with the column's, colour true, number expected.

    Parameters
    ----------
    gains : polars.DataFrame
        `mode, other, task, true, expected`.
    mode : {"merged", "transfer"}

    Examples
    --------
    >>> row = {"mode": "merged", "other": "a", "task": "b", "true": 2.0, "expected": 1.5}
    >>> pair_map(pl.DataFrame([row]), "merged").data[0]["customdata"].tolist()
    [[nan, nan], [2.0, nan]]
    """
    task_names = pl.concat([gains["task"], gains["other"]])
    tasks = tuple(task_names.unique().sort().to_list())
    mode_gains = gains.filter(mode=mode)
    true, expected = (np.full((len(tasks), len(tasks)), np.nan) for _ in range(2))
    for other_task, task, a, b in mode_gains.select("other", "task", "true", "expected").iter_rows():
        pair_cell = (tasks.index(task), tasks.index(other_task))
        true[pair_cell] = a
        expected[pair_cell] = b
    hover = "<b>%{y}</b> with %{x}: %{customdata:.2f} times as fast, %{text} expected<extra></extra>"
    cells = {"text": texts(expected), "hover": hover, "colours": RED_TO_BLUE, "look": {"zmin": -3, "zmax": 3}}
    title = f"Speed of the row's task, {WORDS[mode]}: colour true, number expected"
    factors = np.log2(np.clip(true, 0.125, 8))
    down = axis("", autorange="reversed")
    drawing = Landscape(title, "with, or after", down, "", tasks, tasks, factors, **cells).draw()
    return drawing._replace(data=[drawing.data[0] | {"customdata": true}])


def believed(gains: pl.DataFrame) -> Drawing:
    """Return a `Drawing` of true over expected factors: a point for each pair, and the line on which expectations would be right."""
    traces = []
    true, expected = (gains[side].to_numpy() for side in ("true", "expected"))
    for (mode, mode_words), symbol in zip(WORDS.items(), ("circle", "diamond")):
        mine = gains.filter(mode=mode)
        pairs = [f"{task} with {other_task}" for task, other_task in mine.select("task", "other").iter_rows()]
        points = {"x": mine["expected"].to_numpy(), "y": mine["true"].to_numpy(), "text": pairs}
        hover = "<b>%{text}</b>: %{y:.2f} times as fast, %{x:.2f} expected<extra></extra>"
        traces.append((points, marks({"size": 8, "symbol": symbol}, hover, name=mode_words)))
    top = max(2.0, *(float(np.nanmax(pair_factors, initial=1.0)) for pair_factors in (true, expected)))
    traces.append(({"x": [0, top], "y": [0, top]}, stroke(name="as expected")))
    right, good = (float(np.mean(s)) if len(s) else np.nan for s in ((true >= 1) == (expected >= 1), true >= 1))
    sign_words = f"{right:.0%} of the signs of all pairs are right; saying the same of all: {max(good, 1 - good):.0%}"
    sides = {"x": "expected factor", "y": "true factor"}
    return Drawing.of(traces, f"Gains of pairs: {sign_words}", showlegend=True, zero=True, **sides)


plot_pair_map = plotter(pair_map)
plot_believed = plotter(believed)
