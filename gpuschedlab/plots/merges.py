"""Pairs of tasks: how much faster one is with another, really and as expected."""

from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.plots.style import Drawing, axis


class PairMap(NamedTuple):
    """Factors on the speed of tasks with or after another.

    mode : merged or transfer; tasks : (M,) names; true, expected : (M, M) factors of the row's task with the column's,
    nan where unknown.
    """

    mode: str
    tasks: tuple[str, ...]
    true: np.ndarray
    expected: np.ndarray


class Believed(NamedTuple):
    """True and expected factors of pairs: mode, pair : (n,) names; true, expected : (n,); least : gain of a merge."""

    mode: tuple[str, ...]
    pair: tuple[str, ...]
    true: np.ndarray
    expected: np.ndarray
    least: float


WORDS = {"merged": "trained jointly", "transfer": "one after the other"}


def pair_map(gains: pl.DataFrame, mode: str) -> PairMap:
    """Arrange the factors of one mode as a map.

    Parameters
    ----------
    gains : polars.DataFrame
        `mode, other, task, true, expected`.
    mode : {"merged", "transfer"}

    Examples
    --------
    >>> row = {"mode": "merged", "other": "a", "task": "b", "true": 2.0, "expected": 1.5}
    >>> pair_map(pl.DataFrame([row]), "merged").true.tolist()
    [[nan, nan], [2.0, nan]]
    """
    tasks = tuple(pl.concat([gains["task"], gains["other"]]).unique().sort().to_list())
    rows = gains.filter(mode=mode)
    true, expected = (np.full((len(tasks), len(tasks)), np.nan) for _ in range(2))
    for other, task, a, b in rows.select("other", "task", "true", "expected").iter_rows():
        at = (tasks.index(task), tasks.index(other))
        true[at], expected[at] = a, b
    return PairMap(mode, tasks, true, expected)


def believed(gains: pl.DataFrame, least: float = 1.0) -> Believed:
    """Pairs as points; `least`: factor from which a merge is worth it."""
    pair = tuple(f"{task} with {other}" for task, other in gains.select("task", "other").iter_rows())
    return Believed(tuple(gains["mode"]), pair, gains["true"].to_numpy(), gains["expected"].to_numpy(), least)


def draw_pair_map(numbers: PairMap) -> Drawing:
    """Lay out `PairMap`: rows are the tasks that gain, blue, or lose, red; the text says what is expected."""
    texts = [["" if np.isnan(v) else f"{v:.2f}" for v in row] for row in numbers.expected]
    shade = np.log2(np.clip(numbers.true, 0.125, 8))
    data = [{"z": shade, "x": numbers.tasks, "y": numbers.tasks, "text": texts, "customdata": numbers.true}]
    hover = "<b>%{y}</b> with %{x}: %{customdata:.2f} times as fast, %{text} expected<extra></extra>"
    fixed = {"colorscale": "RdBu", "zmin": -3, "zmax": 3, "showscale": False, "texttemplate": "%{text}"}
    live = {"title_text": f"Speed of the row's task, {WORDS[numbers.mode]}: colour true, number expected"}
    layout = {"xaxis": axis("with, or after"), "yaxis": axis("", autorange="reversed")}
    return Drawing(data, [{"type": "heatmap", "hovertemplate": hover} | fixed], live, layout)


def draw_believed(numbers: Believed) -> Drawing:
    """Lay out `Believed`: a point for each pair, and the line on which expectations would be right."""
    data, style = [], []
    mode = np.array(numbers.mode)
    top = max(2.0, float(np.nanmax(numbers.true, initial=1.0)), float(np.nanmax(numbers.expected, initial=1.0)))
    for i, name in enumerate(WORDS):
        mine = np.flatnonzero(mode == name)
        data.append({"x": numbers.expected[mine], "y": numbers.true[mine], "text": [numbers.pair[k] for k in mine]})
        hover = "<b>%{text}</b>: %{y:.2f} times as fast, %{x:.2f} expected<extra></extra>"
        symbol = {"size": 8, "symbol": ("circle", "diamond")[i]}
        style.append(
            {"type": "scatter", "mode": "markers", "name": WORDS[name], "hovertemplate": hover, "marker": symbol}
        )
    data.append({"x": [0, top], "y": [0, top]})
    style.append({"type": "scatter", "mode": "lines", "name": "as expected", "hoverinfo": "skip"})
    right = float(((numbers.true >= 1) == (numbers.expected >= 1)).mean()) if len(mode) else float("nan")
    good = float((numbers.true >= 1).mean()) if len(mode) else float("nan")
    said = f"{right:.0%} of the signs are right; saying the same of all: {max(good, 1 - good):.0%}"
    layout = {"xaxis": axis("expected factor"), "yaxis": axis("true factor", rangemode="tozero"), "showlegend": True}
    return Drawing(data, style, {"title_text": f"Gains of pairs: {said}"}, layout)
