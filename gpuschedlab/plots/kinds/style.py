"""The style of all figures: one template, and lines and bars that differ without colour, too.

A pure function turns runs into numbers (a NamedTuple); their `draw()` makes a `Drawing` of them, which is rendered or sent to a board.
"""

import itertools
import json
import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import RunError
from gpuschedlab.metrics.display import duration

HOUR = 3600.0

COLOURS = (
    *("#0067A5", "#7A3E9D", "#009E73", "#CC79A7", "#000000"),
    *("#6B6B00", "#56B4E9", "#8C4A1F", "#56616D", "#1F6F78"),
)
"""Colours of names: Okabe and Ito's, which common colour vision distinguishes, without their yellow, which vanishes on white, and their
oranges, which are kept for what pays; and others in their place."""
REFERENCE = 8
"""Number of the grey: the colour of FIFO, with which others are compared, as of the reference in sentences."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "triangle-down", "star", "cross", "pentagon")
PATTERNS = ("", "/", "\\", "x", "-", "|", "+", ".")
RAMP = ("#FFF7BC", "#C7E9B4", "#7FCDBB", "#41B6C4", "#2C7FB8", "#253494")
"""Light to dark, for ordered groups: it keeps its order in greyscale."""

RED_TO_BLUE = ("#B2182B", "#F4A582", "#F7F7F7", "#92C5DE", "#2166AC")
WHITE_TO_BLUE = ("#F7FBFF", "#9ECAE1", "#4292C6", "#08306B")
"""Scales of ColorBrewer, for losses and gains, and for amounts."""

STOP = {"color": "#B91C1C", "line": {"color": "#FFFFFF", "width": 1}}
"""Marker of what a reader must not miss: a job that stopped early or just started."""
INSIDE = {"textposition": "inside", "insidetextanchor": "middle", "textangle": 0}
"""Texts in bars."""

INK = "#1F2933"
SLATE = "#9AA5B1"
GRID = "#E1E5EA"
IDLE = "#EEF1F4"
DARK = dict(zip(COLOURS, ("#4FA8E8", "#C08BE0", "#2CC29B", "#E59AC4", "#FFFFFF")))
DARK |= dict(zip(COLOURS[5:], ("#C9C95A", "#8FD0F7", "#C9A68C", "#B3BDC8", "#63B7C1")))

DARK |= {INK: "#E3E8EE", GRID: "#39424D", IDLE: "#2B323A", "#FFFFFF": "#14181C", "#B91C1C": "#FF6B6B"}
"""What stands for each colour of the house style on a dark page."""


class Drawing(NamedTuple):
    """A figure before plotly: traces and layout, each split into a changing and a fixed part.

    `data` (changing) and `style` (fixed) hold one dict per trace; `live` (changing) and `layout` (fixed) are flat
    dicts of layout properties, nested ones written with underscores (`xaxis_range`). With a `record` a page with scripts draws what
    that says instead, and an empty one is drawn from another's.
    """

    data: list[dict]
    style: list[dict]
    live: dict
    layout: dict
    record: dict | None = None

    @classmethod
    def of(cls, traces, live: dict | str = "", *, title: str = "", x=None, y=None, zero=False, **layout) -> "Drawing":
        """Return the `Drawing` of pairs (changing part, fixed part), one a trace.

        `title` is a fixed one, `live` the changes of the layout, or the title that changes; x and y are the axes or their
        titles, and `zero` says whether y begins at 0.
        """
        trace_data, trace_style = (list(layout_value) for layout_value in zip(*traces)) if traces else ([], [])
        x, y = (axis(side) if isinstance(side, str) else side for side in (x, y))
        fixed = {"title": {"text": title} if title else None, "xaxis": x, "yaxis": y}
        fixed = {layout_field: layout_value for layout_field, layout_value in fixed.items() if layout_value is not None}
        if zero:
            fixed["yaxis"] = fixed["yaxis"] | {"rangemode": "tozero"}
        return cls(
            trace_data,
            trace_style,
            {"title_text": live} if live and isinstance(live, str) else live or {},
            fixed | layout,
        )

    def draw(self) -> "Drawing":
        """Return this `Drawing`: a drawing stands for numbers wherever these are drawn."""
        return self


HIDDEN = Drawing([], [], {}, {"meta": {"hidden": True}})
"""A drawing whose place in a grid is left out."""


def line(i: int, hover: str | None = None, place: int | None = None, most: int = 9, **stroke) -> dict:
    """Return a line's look as a dict: its number gives colour and marker, its place the dash.

    `hover` is the `hovertemplate`; `most` markers are drawn, all if it is 0.
    """
    colour = COLOURS[i % len(COLOURS)]
    dash = DASHES[(i if place is None else place) % len(DASHES)]
    marker = {"color": colour, "symbol": SYMBOLS[i % len(SYMBOLS)], "size": 8, "maxdisplayed": most}
    line_look = {"mode": "lines+markers", "line": {"color": colour, "dash": dash, "width": 2} | stroke}
    return {"type": "scatter", "marker": marker} | line_look | ({"hovertemplate": hover} if hover else {})


def marks(marker: dict, hover: str | None = None, **more) -> dict:
    """Return the look of points as a dict; `hover` as in `line`, "" for plotly's own; None shows no text under the mouse."""
    return {"type": "scatter", "mode": "markers", "marker": marker} | _shown(hover) | more


def bars(marker: dict, hover: str | None = None, **more) -> dict:
    """Return the look of bars from left to right as a dict; `hover` as in `marks`."""
    return {"type": "bar", "orientation": "h", "marker": marker} | _shown(hover) | more


def stroke(hover: str | None = None, *, name: str | None = None, **look) -> dict:
    """Return a dict, the look of a line without markers: `color`, `dash`, `width`, `shape`; `hover` as in `marks`."""
    return {"type": "scatter", "mode": "lines", "line": look} | _shown(hover) | ({"name": name} if name else {})


def texts(values: np.ndarray, form: str = ".2f") -> list[list[str]]:
    """Return values (n, m) as text, a list of lists; "" for nan."""
    return [["" if cell_value != cell_value else format(cell_value, form) for cell_value in row] for row in values]


def _shown(hover: str | None) -> dict:
    return {"hoverinfo": "skip"} if hover is None else {"hovertemplate": hover} if hover else {}


def looks(names) -> list[int]:
    """Return a list of int: the number, for `line`, of the look of each line, by its name.

    A policy has the same in all figures, unless two of one figure would share a colour.
    """
    policy_numbers = _policy_numbers()
    number_of: dict[object, int] = {}
    for line_name in names:
        policy = re.split("[ :,]", str(line_name))[0].casefold()
        policy_number = policy_numbers.get(policy)
        if policy_number is not None and policy_number not in number_of.values():
            number_of[line_name] = policy_number
    free_numbers = (i for i in itertools.count() if i not in number_of.values())
    for line_name in names:
        if line_name not in number_of:
            number_of[line_name] = next(free_numbers)
    return [number_of[line_name] for line_name in names]


@cache
def _policy_numbers() -> dict[str, int]:
    """Dict of each policy's colour number: FIFO and its kind are grey, SRTF is blue, those that follow have the next."""
    from gpuschedlab.policies import ALL

    policies = list(ALL)
    index_of_srtf = policies.index("srtf")
    colour_numbers = {policy: (index - index_of_srtf) % len(COLOURS) for index, policy in enumerate(policies)}
    return colour_numbers | {"easy": REFERENCE}


def colours_of(names) -> dict[str, str]:
    """Return a dict of each name's colour, the same in all figures of a page with the same names, and in its sentences."""
    colour_numbers = looks(names)
    return {
        line_name: COLOURS[colour_number % len(COLOURS)]
        for line_name, colour_number in zip(names, colour_numbers, strict=True)
    }


def bar(i: int, colour: str | None = None) -> dict:
    """Return the look of the i-th kind of bar as a dict: colour, and a pattern in it."""
    fill = colour or COLOURS[i % len(COLOURS)]
    ink = "#FFFFFF" if luminance(fill) < 0.35 else INK
    pattern = {"shape": PATTERNS[i % len(PATTERNS)], "size": 7, "solidity": 0.12}
    pattern |= {"bgcolor": fill, "fgcolor": ink, "fgopacity": 0.6}
    return {"color": fill, "line": {"color": INK, "width": 0.6}, "pattern": pattern}


def luminance(colour: str) -> float:
    """Relative luminance of a colour ``#RRGGBB``, 0 (black) to 1 (white), as WCAG 2.1 defines it."""
    colour_channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear_channels = np.where(
        colour_channels <= 0.04045, colour_channels / 12.92, ((colour_channels + 0.055) / 1.055) ** 2.4
    )
    return round(float(linear_channels @ [0.2126, 0.7152, 0.0722]), 6)


def as_runs(runs) -> dict:
    """Return a dict of runs by name: a dict as it is, a list or one run by policy's name; `RunError` without one, or jobs."""
    named = dict(runs) if isinstance(runs, dict) else {}
    if not isinstance(runs, dict):
        for run in runs if isinstance(runs, list | tuple) and not hasattr(runs, "jobs") else [runs]:
            run_name = str(getattr(run, "info", {}).get("policy", "run"))
            named[run_name if run_name not in named else f"{run_name} {len(named) + 1}"] = run
    if not named or not all(hasattr(run, "jobs") for run in named.values()):
        raise RunError(
            f"plots: found {type(runs).__name__} without runs; expected a Run, or runs by name. Pass {{'Fifo': run}}."
        )
    if empty := [run_name for run_name, run in named.items() if run.jobs.is_empty()]:
        raise RunError(
            f"plots: found no job in the run of {', '.join(empty)}; expected at least one. Run a trace with jobs."
        )
    return named


def readable(seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split durations (n,) in s into a tuple of arrays (n,): values in readable units, and those units."""
    unit = np.searchsorted([60.0, 3600.0, 86_400.0], seconds, side="right")
    return np.asarray(seconds) / np.array([1.0, 60.0, 3600.0, 86_400.0])[unit], np.array(["s", "min", "h", "d"])[unit]


def spoken(seconds: float | None) -> str:
    """Return a duration in s as text in a readable unit (`metrics.display.duration`), or "none"."""
    return "none" if seconds is None or seconds != seconds else duration(seconds)


def axis(title: str, **more) -> dict:
    """Return an axis with a title, which includes the unit, as a dict."""
    return {"title": {"text": title}} | more


def time_axis(**more) -> dict:
    """Return a dict: the axis of hours since the trace's start."""
    return axis("time since the trace's start (h)", **more)


def share_axis(title: str = "share of jobs", **more) -> dict:
    """Return a dict: the axis of shares, 0 to 100 %."""
    return axis(title, tickformat=".0%", **more or {"range": [0, 1.02]})


def middles(edges: np.ndarray, unit: float = HOUR) -> np.ndarray:
    """Return an array (B,) of the middles of bins with borders (B + 1,), s, in hours or another unit (s).

    Their values are drawn there.
    """
    return ((edges[1:] + edges[:-1]) / 2 / unit).astype("f4")


def node_axis(nodes: tuple[str, ...]) -> dict:
    """Return a dict of the changing part of a y axis with a row per node, the first on top."""
    node_rows = np.arange(len(nodes)) + 0.5
    return {"yaxis_range": [len(nodes), 0], "yaxis_tickvals": node_rows, "yaxis_ticktext": list(nodes)}


def template() -> dict:
    """Return the template of all figures as a dict of plain data."""
    return json.loads(files("gpuschedlab.plots.kinds").joinpath("template.json").read_text(encoding="utf-8"))
