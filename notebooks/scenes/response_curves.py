"""What a causal model predicts of each knob: a small curve each, over the knob's own range."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.autosched.figures.knob_lanes import NOTE, short, titled
from gpuschedlab.knobs import knob_word
from gpuschedlab.plots.kinds.style import COLOURS, INK, Drawing, marks, stroke

COLUMNS = 4
"""Panels beside each other: at 640 pixels each still has room for its ticks."""
GAP = 0.28
"""Part of the height between two rows of panels."""


class Panel(NamedTuple):
    """One knob: name with its unit; x : (n,) values; mean, low, high : (n,) times the default's reward; at, reward : (m,) measured."""

    name: str
    log: bool
    x: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    at: np.ndarray
    reward: np.ndarray
    marks: dict
    levels: tuple[str, ...]
    note: str


LOOKS = {
    "default": {"color": "#6E6E6E", "dash": "dot", "width": 2},
    "in force": {"color": COLOURS[2], "dash": "solid", "width": 2},
    "sliders": {"color": COLOURS[1], "dash": "dash", "width": 2},
}
"""Of the vertical lines."""


def drawn(title: str, panels: list[Panel]) -> Drawing:
    """A small panel per knob, all over the same range of rewards; entries of the legend stand for all panels."""
    every = np.concatenate([[1.0], *(part for p in panels for part in (p.low, p.high, p.reward))])
    low, high = float(every.min()), float(every.max())
    pad = 0.05 * max(high - low, 0.1)
    ends, rows = (low - pad, high + pad), -(-len(panels) // COLUMNS)
    wide, tall = 1 / COLUMNS, (1 - (rows - 1) * GAP) / rows
    traces, sides, notes, shapes = [], {}, [], []
    for i, panel in enumerate(panels):
        n, (row, column) = "" if i == 0 else i + 1, divmod(i, COLUMNS)
        top, on = 1 - row * (tall + GAP), {"xaxis": f"x{n}", "yaxis": f"y{n}", "showlegend": i == 0}
        x, y = [column * wide + 0.01, (column + 1) * wide - 0.025], [max(0.0, top - tall), top]
        sides[f"xaxis{n}"] = panel_axis(panel) | {"domain": x, "anchor": f"y{n}"}
        shown = {"range": list(ends), "showticklabels": column == 0, "nticks": 4}
        sides[f"yaxis{n}"] = shown | {"domain": y, "anchor": f"x{n}"}
        traces += [(data, look | on) for data, look in panel_traces(panel, ends)]
        at = NOTE | {"xref": f"x{n} domain", "yref": f"y{n} domain", "yanchor": "bottom"}
        notes.append(at | {"x": 0, "y": 1, "xanchor": "left", "text": f"<b>{panel.name}</b>"})
        if panel.note:
            look = {"bgcolor": "#FFFFFF", "font": {"size": 9, "color": INK}}
            notes.append(at | look | {"x": 0.5, "y": 0.02, "text": wrapped(panel.note)})
        level = {"type": "line", "layer": "below", "y0": 1.0, "y1": 1.0, "x0": 0, "x1": 1, "xref": f"x{n} domain"}
        shapes.append(level | {"yref": f"y{n}", "line": {"color": "#9AA5B1", "width": 1}})
    return Drawing.of(traces, {"title_text": title, "annotations": notes, "shapes": shapes} | sides, showlegend=True)


def panel_axis(panel: Panel) -> dict:
    """Horizontal axis in the knob's unit: its ends, or the values of a category."""
    first, last = float(panel.x[0]), float(panel.x[-1])
    look = {"tickangle": 0, "tickfont": {"size": 9}, "ticklen": 2}
    if panel.levels:
        return look | {"tickvals": list(panel.x), "ticktext": list(panel.levels), "range": [first - 0.4, last + 0.4]}
    middle = float(np.sqrt(first * last)) if panel.log else (first + last) / 2
    ends = np.log10([first, last]).tolist() if panel.log else [first, last]
    ticks = {"tickvals": [first, middle, last], "ticktext": [short(v) for v in (first, middle, last)]}
    return look | ticks | {"type": "log" if panel.log else "linear", "range": ends}


def panel_traces(panel: Panel, ends: tuple[float, float]) -> list[tuple[dict, dict]]:
    """Band, mean, measured points and vertical lines of one panel."""
    hover = "<b>%{y:.3f} times the default's reward</b> at %{x:.4g}"
    band = {"x": np.concatenate([panel.x, panel.x[::-1]]), "y": np.concatenate([panel.high, panel.low[::-1]])}
    fill = stroke(width=0, color=COLOURS[0]) | {"fill": "toself", "fillcolor": "rgba(0,114,178,0.18)"}
    dots = marks({"color": COLOURS[8], "symbol": "circle-open", "size": 6}, hover)
    found = [
        (band | {"name": "predicted, 8 of 10"}, fill),
        ({"x": panel.x, "y": panel.mean, "name": "predicted mean"}, stroke(hover, color=COLOURS[0], width=2)),
        ({"x": panel.at, "y": panel.reward, "name": "measured in this hour"}, dots),
    ]
    for name, value in panel.marks.items():
        upright = {"x": np.array([value, value], float), "y": np.array(ends), "name": name}
        found.append((upright, stroke(f"{name}: %{{x:.4g}}", **LOOKS[name])))
    return found


def wrapped(text: str, wide: int = 20) -> str:
    """Text in lines of so many letters at most, where words allow."""
    lines = [""]
    for each in text.split():
        if len(lines[-1]) + len(each) >= wide:
            lines.append("")
        lines[-1] += f" {each}" * bool(lines[-1]) or each
    return "<br>".join(lines)


def plateau(values: np.ndarray, mean: np.ndarray, value: float, here: float) -> tuple[float, float]:
    """Lowest and highest of values (n,) around one at which the same is predicted, `here`, as at it; mean (n,) is what is predicted."""
    other = values[mean != here]
    within = (values > other[other < value].max(initial=-1.0)) & (values < other[other > value].min(initial=2.0))
    return float(values[within].min(initial=value)), float(values[within].max(initial=value))


def flat_note(axis, graph, mean, u: float) -> str:
    """Why a knob changes nothing that is predicted, "" where it does: there is no path, or half of its range or more is as at u."""
    if not graph.paths(axis.name, graph.layers.objectives[0]):
        return "no path: the model says that it does not matter"
    values, mean = np.linspace(0.0, 1.0, len(mean)), np.asarray(mean)
    nearest = int(np.abs(values - u).argmin())
    low, high = plateau(values, mean, float(values[nearest]), mean[nearest])
    ends = (short(axis.value(end)) for end in (low, high))
    return "the model predicts the same from {} to {}".format(*ends) if high - low >= 0.5 else ""


def response_curves(
    title: str, space, curves: dict, trials=(), lines: dict | None = None, notes: dict | None = None
) -> Drawing:
    """Response of a reward to each knob: what a model predicts as it moves and the others stay.

    Parameters
    ----------
    title : str
        Of which hour, and around what.
    space : gpuschedlab.autosched.Space
        Its axes are the panels.
    curves : dict of str to (mean, low, high)
        By axis: reward predicted (n,), times the default's, with its 10 % and 90 % points; at coordinates evenly from 0 to 1.
    trials : iterable of (u, reward)
        Configurations measured: coordinates (k,), and rewards.
    lines : dict of str to (k,) array
        Vertical lines, by a name of "default", "in force", "sliders": coordinates.
    notes : dict of str to str
        By axis, why nothing changes.
    """
    return drawn(title, panels_of(space, curves, trials, lines or {}, notes or {}))


def panels_of(space, curves: dict, trials, lines: dict, notes: dict) -> list[Panel]:
    """Panels of `response_curves`, in the units of the knobs."""
    measured = np.array([u for u, _ in trials], float).reshape(-1, len(space.axes))
    reward, panels = np.array([found for _, found in trials], float), []
    for k, axis in enumerate(space.axes):
        place = (lambda u, n=axis.levels: float(round(u * (n - 1)))) if axis.levels else axis.value
        predicted = [np.asarray(part, float) for part in curves[axis.name]]
        levels = tuple(knob_word(choice, 3) for choice in axis.info.knob.choices) if axis.levels else ()
        x, at = (np.array([place(u) for u in us]) for us in (np.linspace(0.0, 1.0, len(predicted[0])), measured[:, k]))
        given = {name: place(u[k]) for name, u in lines.items()}
        log = bool(axis.info.knob.log) and not levels
        rest = (*predicted, at, reward, given, levels, notes.get(axis.name, ""))
        panels.append(Panel(titled(axis), log, x, *rest))
    return panels
