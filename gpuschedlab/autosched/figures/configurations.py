"""What a tuner tried at an instant and decided: configurations in the knobs' own units, gains on other futures."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.plots.kinds.style import COLOURS, INK, RED_TO_BLUE, Drawing, axis, bar, marks, stroke

BELOW = {"orientation": "h", "y": -0.14, "x": 0}
FADED = "#9AA5B1"
NOTHING = np.array([np.nan])
"""Where a line is that stands in the legend alone."""


class Parallel(NamedTuple):
    """Configurations of a search: coordinates in parallel, in the knobs' own units.

    axes, units : names and units of K; ticks : per axis pairs of a coordinate and its value as text; places : (t, K) coordinates;
    rewards : (t,) times the default's, as predicted where rejected; fates, texts : (t,); marked : coordinates (K,) by name, such
    as what is in force.
    """

    axes: tuple[str, ...]
    units: tuple[str, ...]
    ticks: tuple
    places: np.ndarray
    rewards: np.ndarray
    fates: tuple[str, ...]
    texts: tuple[str, ...]
    marked: dict

    def draw(self) -> Drawing:
        """A line per configuration over all axes, coloured by its reward; rejected ones are dashed."""
        x, traces, rewards = np.arange(len(self.axes)), [], np.asarray(self.rewards, float)
        reach = max(0.02, float(np.nanmax(np.abs(rewards - 1), initial=0.0)))
        reach = min(reach, 0.5)
        for i in np.argsort(np.nan_to_num(rewards, nan=-1.0), kind="stable"):  # the best on top
            rejected, known = self.fates[i] == "rejected", rewards[i] == rewards[i]
            colour = between((rewards[i] - 1 + reach) / (2 * reach)) if known else FADED
            look = stroke(
                f"{self.texts[i]}<extra></extra>",
                color=colour,
                width=1.2 if rejected else 2,
                dash="dash" if rejected else "solid",
            )
            data = {"x": x, "y": self.places[i]}
            traces.append((data, look | {"showlegend": False}))
        for (name, place), dash, symbol in zip(self.marked.items(), ("solid", "dot"), ("circle", "square-open")):
            look = {"type": "scatter", "mode": "lines+markers", "line": {"color": INK, "width": 2, "dash": dash}}
            look |= {"marker": {"color": INK, "symbol": symbol, "size": 8}, "hoverinfo": "skip"}
            traces.append(({"x": x, "y": place, "name": name}, look))
        ends = (RED_TO_BLUE[0], RED_TO_BLUE[-1])
        words = (f"{1 - reach:.2f} times the default", f"{1 + reach:.2f} times")
        for colour, word in zip(ends, words):
            traces.append(({"x": NOTHING, "y": NOTHING, "name": word}, stroke(color=colour, width=3)))
        traces.append(
            ({"x": NOTHING, "y": NOTHING, "name": "rejected, predicted"}, stroke(color=FADED, width=1.2, dash="dash"))
        )
        return Drawing.of(
            traces, {"annotations": self._notes(), "shapes": self._bars()},
            title="Configurations tried: a line each, over the knobs in their own units", legend=BELOW, showlegend=True,
            x={"visible": False, "range": [-0.4, len(self.axes) - 0.3]}, y={"visible": False, "range": [-0.06, 1.2]},
            margin={"l": 8, "r": 8, "b": 40},
        )  # fmt: skip

    def _notes(self) -> list[dict]:
        """Names above the axes, values beside them."""
        look = {"showarrow": False, "font": {"size": 11}, "bgcolor": "#FFFFFF", "borderpad": 0}
        heads = zip(self.axes, self.units, strict=True)
        notes = [{"x": i, "y": 1.12, "text": f"<b>{name}</b><br>{unit}"} | look for i, (name, unit) in enumerate(heads)]
        for i, ticks in enumerate(self.ticks):
            notes += [
                {"x": i, "y": at, "text": text, "xanchor": "left", "xshift": 3, "yshift": 7 if at < 0.5 else -7} | look
                | {"font": {"size": 10}}
                for at, text in ticks
            ]  # fmt: skip
        return notes

    def _bars(self) -> list[dict]:
        line = {"color": FADED, "width": 1}
        return [
            {"type": "line", "layer": "below", "x0": i, "x1": i, "y0": 0, "y1": 1, "line": line}
            for i in range(len(self.axes))
        ]


class Again(NamedTuple):
    """Finalists measured again: names of F; gains : per finalist its gain on each of the futures `ranks`; threshold; chosen : the best."""

    names: tuple[str, ...]
    gains: tuple
    ranks: tuple[int, ...]
    threshold: float
    chosen: int = -1

    def draw(self) -> Drawing:
        """A dot per future and finalist, the mean as a diamond, the threshold as a line."""
        rows = len(self.names)
        dots = {"color": COLOURS[6], "size": 9, "line": {"width": 1, "color": INK}}
        x, y, text, means = [], [], [], []
        for row, gains in enumerate(self.gains):
            x += list(gains)
            y += [row] * len(gains)
            text += [f"future {rank + 1}" for rank in self.ranks[: len(gains)]]
            means.append(float(np.exp(np.mean(np.log(gains)))) if len(gains) else np.nan)
        traces = [
            (
                {"x": x, "y": y, "text": text, "name": "on one future"},
                marks(dots, "<b>%{x:.3f}x</b> on %{text}<extra></extra>"),
            )
        ]
        diamond = {
            "color": [COLOURS[1] if i == self.chosen else INK for i in range(rows)],
            "symbol": "diamond",
            "size": 13,
        }
        traces.append(({"x": means, "y": list(range(rows)), "marker": diamond, "name": "mean"},
                       {"type": "scatter", "mode": "markers", "hovertemplate": "<b>%{x:.3f}x</b> on average<extra></extra>"}))  # fmt: skip
        for at, name, dash in (
            (1.0, "as what is in force", "dot"),
            (self.threshold, f"threshold {self.threshold:g}x", "dash"),
        ):
            ends = {"x": [at, at], "y": [-0.6, max(rows, 1) - 0.4], "name": name}
            traces.append((ends, stroke(color=INK, width=1.5, dash=dash)))
        side = {"tickvals": list(range(rows)), "ticktext": list(self.names), "range": [max(rows, 1) - 0.4, -0.6]}
        title = "Measured again: gain over what is in force, on each of the other futures"
        if not rows:
            title = "Measured again: nothing, since no gain was above the threshold"
        return Drawing.of(traces, title, x=axis("gain (times)"), y=side, legend=BELOW | {"y": -0.2}, showlegend=True)


class Change(NamedTuple):
    """Knobs before and after a decision: names of K; before, after : (K,) coordinates; texts : pairs of values as text."""

    names: tuple[str, ...]
    before: np.ndarray
    after: np.ndarray
    texts: tuple

    def draw(self) -> Drawing:
        """A row per knob over its range, from where it was to where it is; values in its own unit."""
        rows, before, after = list(range(len(self.names))), np.asarray(self.before), np.asarray(self.after)
        moved = np.abs(after - before) > 1e-9
        traces = []
        for row in np.flatnonzero(moved).tolist():
            data = {"x": [before[row], after[row]], "y": [row, row]}
            traces.append((data, stroke(color=COLOURS[1], width=4) | {"showlegend": False}))
        hollow = {"symbol": "circle-open", "size": 12, "color": INK, "line": {"width": 2}}
        traces.append(({"x": before, "y": rows, "name": "before"}, marks(hollow)))
        colours = [COLOURS[1] if m else INK for m in moved]
        full = {"x": after, "y": rows, "marker": {"color": colours, "size": 8}, "name": "after"}
        traces.append((full, {"type": "scatter", "mode": "markers", "hoverinfo": "skip"}))
        notes = [
            {"x": 1.06, "y": row, "text": f"{old} \N{RIGHTWARDS ARROW} <b>{new}</b>" if m else new, "xanchor": "left",
             "showarrow": False, "font": {"size": 11}}
            for row, (old, new), m in zip(rows, self.texts, moved)
        ]  # fmt: skip
        side = {"tickvals": rows, "ticktext": list(self.names), "range": [len(rows) - 0.4, -0.6]}
        x = {
            "range": [-0.04, 1.9],
            "tickvals": [0, 1],
            "ticktext": ["least", "most"],
            "title": {"text": "place in its range"},
        }
        return Drawing.of(
            traces, {"annotations": notes}, title="Knobs before and after", x=x, y=side, legend=BELOW | {"y": -0.2}
        )


class Weighed(NamedTuple):
    """Gain of the best over what is in force: on the future searched on, again on the others (None: not measured), and the threshold."""

    searched: float
    again: float | None
    threshold: float

    def draw(self) -> Drawing:
        """A bar for each gain, from 1, and the threshold as a line."""
        rows = {"on the future searched on": self.searched} | (
            {} if self.again is None else {"on the others, mean": self.again}
        )
        names, gains = list(rows), list(rows.values())
        texts = [f" {gain:.3f}x" for gain in gains]
        look = {"type": "bar", "orientation": "h", "marker": bar(0), "textposition": "outside", "hoverinfo": "skip"}
        data = {
            "y": names,
            "x": [gain - 1 for gain in gains],
            "base": [1.0] * len(gains),
            "text": texts,
            "name": "gain",
        }
        traces = [(data, look)]
        line = {"x": [self.threshold] * 2, "y": [-0.5, len(names) - 0.5], "name": f"threshold {self.threshold:g}x"}
        traces.append((line, stroke(color=COLOURS[1], width=2, dash="dash")))
        reach = 1.35 * max(0.03, *(abs(x - 1) for x in (*gains, self.threshold)))
        x = axis("", range=[1 - (reach if min(gains) < 1 else 0.15 * reach), 1 + reach])
        side = {"tickvals": [0, 1][: len(names)], "ticktext": names, "range": [len(names) - 0.4, -0.6]}
        return Drawing.of(traces, title="Gain and threshold", x=x, y=side, showlegend=True)


def between(part: float) -> str:
    """Colour at a part of the way from red (0) by grey to blue (1).

    Examples
    --------
    >>> between(0.0), between(1.0), between(0.5)
    ('#B2182B', '#2166AC', '#A0A0A0')
    """
    stops = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in (RED_TO_BLUE[0], "#A0A0A0", RED_TO_BLUE[-1])])
    part = float(np.clip(part, 0, 1))
    found = [round(float(np.interp(part, [0, 0.5, 1], stops[:, k]))) for k in range(3)]
    return "#" + "".join(f"{x:02X}" for x in found)
