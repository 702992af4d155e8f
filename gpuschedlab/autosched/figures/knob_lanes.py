"""Knobs of a tuned scheduler over time: a small lane each, beside their values in their own units."""

import numpy as np

from gpuschedlab.knobs import knob_word
from gpuschedlab.plots.kinds.style import COLOURS, HOUR, INK, Drawing, line, looks, time_axis
from gpuschedlab.plots.plotter import plotter

NOTE = {"showarrow": False, "font": {"size": 10, "color": INK}}
LANES = 0.58
"""Share of the width that lanes take; the rest is for values."""
BORDER = {"type": "line", "layer": "below", "xref": "paper", "x0": 0, "x1": 1}


def mark_at(now: float) -> dict:
    """Return the shape, a dict, of a vertical line at an instant (s), over the height of a figure over hours."""
    dotted = {"color": INK, "dash": "dot", "width": 1.5}
    return {"type": "line", "x0": now / HOUR, "x1": now / HOUR, "yref": "paper", "y0": 0, "y1": 1, "line": dotted}


def knob_lanes(space, lines: dict, now: float, end: float, known: tuple[str, ...] = ()) -> Drawing:
    """Return a `Drawing` of policies in force by line: a lane per knob, a step line per tuner through all, and values now.

    Parameters
    ----------
    space : gpuschedlab.autosched.Space
        Its axes are the lanes.
    lines : dict of str to list of (float, Policy)
        By name the instants (s) from which policies are in force, the first at 0. The first line is what others are compared with.
    now, end : float
        Instant that is marked, and end of the lines (s).
    known : tuple of str
        Names of all lines of the figures beside it; default: those of `lines`.
    """
    known = tuple(known) or tuple(lines)
    lane_names = [axis.words for axis in space.axes]
    look_of_line = dict(zip(known, looks(known)))
    floor = np.arange(len(lane_names))[::-1]
    traces = []
    value_notes = []
    for i, (line_name, switches) in enumerate(lines.items()):
        time = np.array([time for time, _ in switches])
        knob_texts = [[spoken_knob(axis, policy) for axis in space.axes] for _, policy in switches]
        steps = _through(
            floor,
            np.append(time, [end, np.nan]) / HOUR,
            np.stack([space.encode(switch_policy) for _, switch_policy in switches]),
            knob_texts,
        )
        knob_line_look = line(
            look_of_line[line_name], f"<b>%{{text}}</b> from %{{x:.0f}} h ({line_name})", shape="hv", width=1.5
        )
        traces.append((steps | {"name": line_name}, knob_line_look | {"mode": "lines"}))
        if i:  # the first is what the others are compared with
            row = knob_texts[int(np.searchsorted(time, now, side="right")) - 1]
            column_place = (i - 1) / (len(lines) - 1)
            value_notes += _values(
                floor,
                row,
                f'<span style="color:{COLOURS[look_of_line[line_name] % len(COLOURS)]}">■</span> <b>{line_name}</b>',
                column_place,
            )
    shapes = [
        BORDER | {"line": {"color": "#9AA5B1", "width": 0.5}, "y0": int(lane_floor), "y1": int(lane_floor)}
        for lane_floor in floor
    ]
    title = f"Knobs in force<br>values at {now / HOUR:.0f} h"
    live = {"title_text": title, "shapes": [*shapes, mark_at(now)], "annotations": value_notes}
    lanes = {"tickvals": floor + 0.5, "ticktext": lane_names, "range": [0, len(lane_names) + 0.9]}
    lanes |= {"tickfont": {"size": 11}, "ticks": "", "showgrid": False}
    side = time_axis(range=[0, end / HOUR], domain=[0, LANES])
    return Drawing.of(traces, live, x=side, y=lanes, showlegend=True)


def _through(floor: np.ndarray, x: np.ndarray, knob_place: np.ndarray, switch_texts: list) -> dict:
    """Return one trace through all lanes as a dict, broken between them: one entry in the legend."""
    heights = floor + 0.15 + 0.7 * np.vstack([knob_place, knob_place[-1:], np.full(knob_place.shape[1], np.nan)])
    knob_texts = [*switch_texts, switch_texts[-1], [""] * len(floor)]
    return {
        "x": np.tile(x, len(floor)),
        "y": heights.T.ravel(),
        "text": [step_texts[k] for k in range(len(floor)) for step_texts in knob_texts],
    }


def _values(floor: np.ndarray, knob_texts: list, head: str, column_share: float) -> list[dict]:
    """Return a list of annotations: values of a line now, below its name, which has a mark in its colour.

    Words in a light colour are hard to read.
    """
    column_place = {"xref": "paper", "x": LANES + 0.01 + column_share * (1 - LANES), "xanchor": "left", "yref": "y"}
    value_note = NOTE | column_place | {"font": {"size": 9, "color": INK}}
    knob_values = [knob_text.partition(" = ")[2].partition(" ")[0] for knob_text in knob_texts]
    return [
        value_note | {"y": float(lane_floor + 0.5), "text": knob_text}
        for lane_floor, knob_text in zip([*floor, len(floor)], [*knob_values, head])
    ]


def spoken_knob(axis, policy) -> str:
    """Write a policy's coordinate as text, in its knob's unit: "next queue after #3 = none GPU-s" for a place not used."""
    value = getattr(policy, axis.info.name)
    if axis.place is not None:
        value = value[axis.place] if axis.place < len(value) else "none"
    return f"{axis.words} = {short(value)} {axis.info.knob.unit}".strip()


def short(value) -> str:
    """Return a knob's value as text of a few characters, large numbers with k, M or G."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) >= 1e4:
        power = min(3, int(np.log10(abs(value)) // 3))
        return f"{value / 1000**power:.3g}{' kMG'[power]}"
    return knob_word(value, 3)


KnobLanes = Drawing
plot_knob_lanes = plotter(knob_lanes)
