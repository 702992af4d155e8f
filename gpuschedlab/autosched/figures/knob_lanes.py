"""Knobs of a tuned scheduler over time: a small lane each, beside their values in their own units."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.knobs import knob_word
from gpuschedlab.plots.kinds.style import COLOURS, HOUR, INK, Drawing, line, looks, time_axis
from gpuschedlab.plots.plotter import plotter

NOTE = {"showarrow": False, "font": {"size": 10, "color": INK}}
LANES = 0.58
"""Share of the width that lanes take; the rest is for values."""
BORDER = {
    "type": "line",
    "layer": "below",
    "xref": "paper",
    "x0": 0,
    "x1": 1,
    "line": {"color": "#9AA5B1", "width": 0.5},
}


class KnobLanes(NamedTuple):
    """Knobs over time: names of K axes; now, end s; lines: by name instants (n,) s, coordinates (n, K), and values (n, K) as text.

    `known` are the names of all lines of the figures beside it: a line looks alike in all of them.
    """

    names: tuple[str, ...]
    now: float
    end: float
    lines: dict
    known: tuple[str, ...]

    def draw(self) -> Drawing:
        """A lane per knob, the first on top; a step line per tuner through all of them; and to the right the values now."""
        floor, which = np.arange(len(self.names))[::-1], dict(zip(self.known, looks(self.known)))
        traces = [
            (self._through(floor, *parts) | {"name": name}, self._look(which[name], name))
            for name, parts in self.lines.items()
        ]
        shown = list(self.lines)[1:]  # the first is what the others are compared with
        notes = [
            note for i, name in enumerate(shown) for note in self._values(floor, which[name], name, i / len(shown))
        ]
        shapes = [BORDER | {"y0": int(f), "y1": int(f)} for f in floor]
        live = {
            "title_text": f"Knobs in force<br>values at {self.now / HOUR:.0f} h",
            "shapes": [*shapes, mark_at(self.now)],
            "annotations": notes,
        }
        lanes = {"tickvals": floor + 0.5, "ticktext": list(self.names), "range": [0, len(self.names) + 0.9]}
        lanes |= {"tickfont": {"size": 9}, "ticks": "", "showgrid": False}
        side = time_axis(range=[0, self.end / HOUR], domain=[0, LANES])
        return Drawing.of(traces, live, x=side, y=lanes, showlegend=True)

    def _through(self, floor, time, place, texts) -> dict:
        """One trace through all lanes, broken between them: one entry in the legend."""
        x = np.append(time, [self.end, np.nan]) / HOUR
        rows = [
            np.append(f + 0.15 + 0.7 * place[:, k], [f + 0.15 + 0.7 * place[-1, k], np.nan])
            for k, f in enumerate(floor)
        ]
        words = [text for k in range(len(floor)) for text in (*(row[k] for row in texts), texts[-1][k], "")]
        return {"x": np.tile(x, len(floor)), "y": np.concatenate(rows), "text": words}

    def _look(self, i: int, name: str) -> dict:
        return line(i, f"<b>%{{text}}</b> from %{{x:.0f}} h ({name})", shape="hv", width=1.5) | {"mode": "lines"}

    def _values(self, floor, i: int, name: str, left: float) -> list[dict]:
        """Column of the values of a line now, with a mark in its colour and its name above: words in a light colour are hard to read."""
        time, _, texts = self.lines[name]
        row = texts[int(np.searchsorted(time, self.now, side="right")) - 1]
        at = {"xref": "paper", "x": LANES + 0.01 + left * (1 - LANES), "xanchor": "left", "yref": "y"}
        look, mark = (
            NOTE | at | {"font": {"size": 9, "color": INK}},
            f'<span style="color:{COLOURS[i % len(COLOURS)]}">■</span>',
        )
        values = [text.partition(" = ")[2].partition(" ")[0] for text in row]
        return [
            look | {"y": float(f + 0.5), "text": text}
            for f, text in zip([*floor, len(floor)], [*values, f"{mark} <b>{name}</b>"])
        ]


def mark_at(now: float) -> dict:
    """Shape of a vertical line at an instant (s), over the height of a figure over hours."""
    dotted = {"color": INK, "dash": "dot", "width": 1.5}
    return {"type": "line", "x0": now / HOUR, "x1": now / HOUR, "yref": "paper", "y0": 0, "y1": 1, "line": dotted}


def knob_lanes(space, lines: dict, now: float, end: float, known: tuple[str, ...] = ()) -> KnobLanes:
    """Policies in force, by line.

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
    found = {}
    for name, switches in lines.items():
        texts = tuple(tuple(spoken_knob(axis, policy) for axis in space.axes) for _, policy in switches)
        found[name] = (
            np.array([time for time, _ in switches]),
            np.stack([space.encode(p) for _, p in switches]),
            texts,
        )
    return KnobLanes(tuple(axis.name for axis in space.axes), now, end, found, tuple(known) or tuple(lines))


def spoken_knob(axis, policy) -> str:
    """A coordinate of a policy in its knob's unit: "thresholds_3 = none GPU-s" where it does not use that place."""
    value = getattr(policy, axis.info.name)
    if axis.place is not None:
        value = value[axis.place] if axis.place < len(value) else "none"
    return f"{axis.name} = {short(value)} {axis.info.knob.unit}".strip()


def short(value) -> str:
    """Knob's value in a few characters, large numbers with k, M or G.

    Examples
    --------
    >>> short(57_600.0), short(1e8), short(0.25), short("gittins")
    ('57.6k', '100M', '0.25', 'gittins')
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) >= 1e4:
        power = min(3, int(np.log10(abs(value)) // 3))
        return f"{value / 1000**power:.3g}{' kMG'[power]}"
    return knob_word(value, 3)


def titled(axis) -> str:
    """Name of a coordinate with its unit."""
    return axis.name + f" ({axis.info.knob.unit})" * bool(axis.info.knob.unit)


plot_knob_lanes = plotter(knob_lanes)
