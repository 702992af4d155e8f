"""Pairs of tasks: how much faster one is with another, really and as expected."""

from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.plots.kinds.style import RED_TO_BLUE, Drawing, axis, heat, marks, stroke, texts
from gpuschedlab.plots.plotter import plotter


class PairMap(NamedTuple):
    """Factors on the speed of tasks with or after another.

    mode : merged or transfer; tasks : (M,) names; true, expected : (M, M) factors of the row's task with the column's,
    nan where unknown.
    """

    mode: str
    tasks: tuple[str, ...]
    true: np.ndarray
    expected: np.ndarray

    def draw(self) -> Drawing:
        """Rows are the tasks that gain, blue, or lose, red; the text says what is expected."""
        cells = {"z": np.log2(np.clip(self.true, 0.125, 8)), "x": self.tasks, "y": self.tasks}
        cells |= {"text": texts(self.expected), "customdata": self.true}
        hover = "<b>%{y}</b> with %{x}: %{customdata:.2f} times as fast, %{text} expected<extra></extra>"
        look = heat(hover, RED_TO_BLUE, zmin=-3, zmax=3, showscale=False)
        live = {"title_text": f"Speed of the row's task, {WORDS[self.mode]}: colour true, number expected"}
        return Drawing.of([(cells, look)], live, x=axis("with, or after"), y=axis("", autorange="reversed"))


class Believed(NamedTuple):
    """True and expected factors of pairs: mode, pair : (n,) names; true, expected : (n,); least : gain of a merge."""

    mode: tuple[str, ...]
    pair: tuple[str, ...]
    true: np.ndarray
    expected: np.ndarray
    least: float

    def draw(self) -> Drawing:
        """A point for each pair, and the line on which expectations would be right."""
        traces, mode = [], np.array(self.mode)
        for name, symbol in zip(WORDS, ("circle", "diamond")):
            mine = np.flatnonzero(mode == name)
            points = {"x": self.expected[mine], "y": self.true[mine], "text": [self.pair[k] for k in mine]}
            hover = "<b>%{text}</b>: %{y:.2f} times as fast, %{x:.2f} expected<extra></extra>"
            traces.append((points, marks({"size": 8, "symbol": symbol}, hover, name=WORDS[name])))
        top = max(2.0, *(float(np.nanmax(values, initial=1.0)) for values in (self.true, self.expected)))
        traces.append(({"x": [0, top], "y": [0, top]}, stroke(name="as expected")))
        gains = self.true >= 1
        right, good = (float(np.mean(s)) if len(mode) else np.nan for s in (gains == (self.expected >= 1), gains))
        said = f"{right:.0%} of the signs are right; saying the same of all: {max(good, 1 - good):.0%}"
        sides = {"x": "expected factor", "y": "true factor"}
        return Drawing.of(traces, f"Gains of pairs: {said}", showlegend=True, zero=True, **sides)


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


plot_pair_map = plotter(pair_map)
plot_believed = plotter(believed)
