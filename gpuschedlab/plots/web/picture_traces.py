"""Traces of a picture: plotly's scatter, bar and heatmap, drawn by matplotlib.

Each function takes a panel, a trace and its colour, and returns what stands for it in the legend.
"""

import re
from dataclasses import dataclass, field

import numpy as np

from gpuschedlab.plots.kinds.style import INK
from gpuschedlab.plots.web.sides import Side, mpl, spelled, style, words

POINT = 0.75
"""Points in a pixel of the picture."""
STROKES = {"dash": (0, (4, 2)), "dot": (0, (1, 1.5)), "dashdot": "-."}
STROKES |= {"longdash": (0, (8, 3)), "longdashdot": (0, (8, 2, 1.5, 2))}
STEPS = {"hv": "steps-post", "vh": "steps-pre", "hvh": "steps-mid", "vhv": "steps-mid"}
SYMBOLS = {"circle": "o", "square": "s", "diamond": "D", "x": "X", "star": "*", "cross": "P", "pentagon": "p"}
SYMBOLS |= {"triangle-up": "^", "triangle-down": "v", "triangle-left": "<", "triangle-right": ">", "hexagon": "h"}
SYMBOLS |= {"x-thin": "x", "line-ns": "|", "line-ew": "_", "cross-thin": "+"}
HATCHES = {"/": "///", "\\": "\\\\\\", "x": "xxx", "-": "---", "|": "|||", "+": "++", ".": "..."}
OPPOSITE = {"left": "right", "right": "left", "top": "bottom", "bottom": "top"}
MOST = 400
"""Texts in a trace, beyond which none is written."""
LARGEST = 40
"""Bars of a trace that have a pattern."""


@dataclass
class Panel:
    """Where traces are drawn: matplotlib's axes, plotly's two, how bars stand, all of them, heights so far, texts for the end."""

    ax: object
    x: Side
    y: Side
    mode: str
    bars: list = field(default_factory=list)
    tops: dict = field(default_factory=dict)
    later: list = field(default_factory=list)

    def at(self, trace: dict) -> tuple:
        """Positions of a trace's points, two arrays (n,)."""
        n = len(trace.get("x", trace.get("y")))
        return tuple(side.at(trace.get(way, range(n))) for way, side in (("x", self.x), ("y", self.y)))


def texts(trace: dict, count: int) -> list[str]:
    """Texts of a trace's points: as they are given, or in a template of plotly's (`%{x:.2f}`); none if they are too many."""
    if count > MOST or not {"text", "texttemplate"} & trace.keys():
        return []
    rows, form = trace | {"text": np.broadcast_to(trace.get("text", ""), count)}, trace.get("texttemplate", "%{text}")

    def text(i):
        return words(re.sub(r"%\{(\w+):?([^}]*)\}", lambda found: spelled(rows[found[1]][i], found[2]), form))

    return [text(i) for i in range(count)]


def scatter(panel: Panel, trace: dict, colour: str) -> list:
    """Lines, areas, points, whiskers and texts."""
    line = trace.get("line", {})
    marker = trace.get("marker", {})
    colour = line.get("color") or (own if isinstance(own := marker.get("color"), str) else colour)
    at, keys = _filled(panel, trace, colour)
    mode = trace.get("mode") or ("lines+markers" if len(at[0]) < 20 else "lines")
    if "lines" in mode:
        stroke = {"linewidth": line.get("width", 2) * POINT, "linestyle": STROKES.get(line.get("dash"), "-")}
        drawn = panel.ax.plot(*at, color=colour, drawstyle=STEPS.get(line.get("shape"), "default"), **stroke)
        keys = keys or drawn
    _whiskers(panel, trace, at, colour)
    if "markers" in mode:
        keys.append(_points(panel, at, marker, colour))
    if "text" in mode:
        places = np.broadcast_to(trace.get("textposition", "middle center"), len(at[0]))
        for x, y, text, place in zip(*at, texts(trace, len(at[0])), places):
            down, side = place.split()
            shift = {"left": -8, "right": 8}.get(side, 0), {"top": 6, "bottom": -6}.get(down, 0)
            # plotly says on which side the text is, matplotlib which of its edges is at the point
            anchors = {"ha": OPPOSITE.get(side, side), "va": OPPOSITE.get(down, "center")}
            panel.ax.annotate(text, (x, y), shift, textcoords="offset points", zorder=4, **anchors)
    return keys


def _filled(panel: Panel, trace: dict, colour: str) -> tuple[tuple, list]:
    """Fill below a line, or between it and the line before; returns where the line is, and the area."""
    x, y = panel.at(trace)
    fill = trace.get("fill")
    group = trace.get("stackgroup")
    floor = panel.tops.get(group, 0)
    before = panel.tops.get("line")
    if group:
        y = panel.tops[group] = floor + np.nan_to_num(y)
    elif fill == "tonexty" and before is not None:
        floor = np.interp(x, *before)
    panel.tops["line"] = x, y
    if not group and fill not in ("tozeroy", "tonexty", "toself"):
        return (x, y), []
    hatch = HATCHES.get(trace.get("fillpattern", {}).get("shape"))
    pale = "none" if hatch else mpl("colors").to_rgba(colour, 0.35)
    look = {"facecolor": trace.get("fillcolor", pale), "edgecolor": colour, "linewidth": 0, "hatch": hatch}
    if fill == "toself":
        return (x, y), panel.ax.fill(x, y, **look)
    step = "post" if trace.get("line", {}).get("shape") == "hv" else None
    return (x, y), [panel.ax.fill_between(x, floor, y, step=step, **look)]


def _points(panel: Panel, at: tuple, marker: dict, colour: str):
    """Markers; not cut at the border where the axes are as long as their data."""
    n = len(at[0])
    most = marker.get("maxdisplayed", 0)
    edge = marker.get("line", {})
    shown = np.linspace(0, n - 1, most).astype(int) if 0 < most < n else np.arange(n)
    given = marker.get("color", colour), marker.get("size", 6), marker.get("symbol", "circle")
    fill, size, kinds = (np.asarray(each)[shown] if np.ndim(each) else each for each in given)
    kinds = np.atleast_1d(kinds).astype(str)
    hollow = "-open" in kinds[0]
    thin = kinds[0].startswith(("x-thin", "line", "cross-thin"))
    look = {"linewidths": edge.get("width", 1.5 if hollow or thin else 0) * POINT, "zorder": 3}
    look |= {"clip_on": any("range" in side.about for side in (panel.x, panel.y))}
    rim = "face" if thin else edge.get("color", "face")
    points = panel.ax.scatter(*(way[shown] for way in at), np.square(size * POINT), fill, edgecolors=rim, **look)
    if hollow:
        points.set(edgecolor=fill, facecolor="none")
    shapes = [mpl("markers").MarkerStyle(SYMBOLS.get(kind.removesuffix("-open"), "o")) for kind in kinds]
    points.set_paths([shape.get_path().transformed(shape.get_transform()) for shape in shapes])
    return points


def _whiskers(panel: Panel, trace: dict, at: tuple, colour: str):
    for way in "xy":
        bar = trace.get(f"error_{way}", {})
        if "array" in bar:
            ends = np.abs([bar.get("arrayminus", bar["array"]), bar["array"]])
            look = {"ecolor": bar.get("color", colour), "elinewidth": 0.9, "capsize": 2}
            panel.ax.errorbar(*at, fmt="none", **{f"{way}err": ends}, **look)


def bars(panel: Panel, trace: dict, colour: str) -> list:
    """Bars with whiskers and texts; those in bars are written once these have their place."""
    flat = trace.get("orientation") == "h"
    marker = trace.get("marker", {})
    at, low, high, half = _extent(panel, trace, flat)
    corners = np.array([[at - half, low], [at - half, high], [at + half, high], [at + half, low]])
    corners = np.moveaxis(corners, -1, 0)[..., :: -1 if flat else 1]
    rim = marker.get("line", {})
    look = {"edgecolor": rim.get("color", INK), "linewidth": rim.get("width", 0) * POINT}
    drawn = [(corners, {"facecolor": marker.get("color", colour)})]
    if hatch := HATCHES.get(marker.get("pattern", {}).get("shape")):
        # the largest alone: in what is a few pixels wide no pattern shows, and each takes its time
        largest = np.sort(np.argsort(-np.nan_to_num(half * np.abs(high - low)), kind="stable")[:LARGEST])
        drawn.append((corners[largest], {"facecolor": "none", "hatch": hatch}))
    drawn = [panel.ax.add_collection(mpl("collections").PolyCollection(at, **look, **own)) for at, own in drawn]
    if "base" not in trace:
        (panel.x if flat else panel.y).zero(panel.ax)
    _whiskers(panel, trace, (high, at) if flat else (at, high), style("text.color"))
    inks = _inks(np.resize(mpl("colors").to_rgba_array(marker.get("color", colour)), (len(corners), 4)))
    for text, box, ink in zip(texts(trace, len(corners)), corners, inks):
        if trace.get("textposition") == "outside":
            shift, anchors = ((3, 0), ("left", "center")) if flat else ((0, 2), ("center", "bottom"))
            look = dict(zip(("ha", "va"), anchors))
            panel.ax.annotate(text, (box[1] + box[2]) / 2, shift, textcoords="offset points", **look)
        else:
            panel.later.append((text, box, trace.get("insidetextfont", {}).get("color", ink)))
    return drawn


def _inks(fills: np.ndarray) -> np.ndarray:
    """Colour of the text on each bar, from its colour (n, 4), through which the page may shine: white on dark ones."""
    page = mpl("colors").to_rgb(style("figure.facecolor"))
    solid = fills[:, 3:]
    return np.where((fills[:, :3] * solid + np.array(page) * (1 - solid)) @ BRIGHTNESS > 0.5, INK, "#FFFFFF")


BRIGHTNESS = np.array([0.299, 0.587, 0.114])
"""Weights of red, green and blue in how bright a colour is."""


def _extent(panel: Panel, trace: dict, flat: bool) -> tuple:
    """Middles, ends and half widths of bars, each (n,)."""
    at, size = panel.at(trace)[:: -1 if flat else 1]
    side = (panel.x, panel.y)[flat]
    width = trace.get("width")
    base = trace.get("base", 0.0)
    if width is None:
        # plotly's rule: traces that lie over each other are spaced each for itself
        near = [trace] if panel.mode == "overlay" else panel.bars
        gaps = np.diff(np.unique(np.concatenate([panel.at(t)[flat] for t in near])))
        width = 0.75 * (gaps[gaps > 0].min() if side.categories is None and (gaps > 0).any() else 1.0)
        if panel.mode == "group":
            width /= len(near)
            at = at + ([t is trace for t in near].index(True) - (len(near) - 1) / 2) * width
    if "base" not in trace and panel.mode in ("stack", "relative"):
        keys = list(zip(at, size < 0))
        base = [panel.tops.get(key, 0.0) for key in keys]
        panel.tops.update(zip(keys, base + np.nan_to_num(size)))
    low, half = (np.broadcast_to(np.asarray(each, float), at.shape) for each in (base, width))
    return at, low, low + size, half / 2


def write_later(panel: Panel):
    """Write texts into those bars that have room."""
    left, right = sorted(panel.ax.get_xlim())
    bottom, top = sorted(panel.ax.get_ylim())
    for text, box, ink in panel.later:
        seen = np.clip(box, (left, bottom), (right, top))
        width, height = np.ptp(panel.ax.transData.transform(seen), axis=0)
        if width > 6 * len(text) + 3 and height > 8:
            panel.ax.text(*seen.mean(axis=0), text, ha="center", va="center", fontsize=10 * POINT, color=ink)


def heat(panel: Panel, trace: dict, colour: str) -> list:
    """Map of values, with their texts, and what its colours mean."""
    z = np.ma.masked_invalid(np.asarray(trace["z"], float))
    borders = []
    for at, n in zip(panel.at(dict(zip("yx", map(range, z.shape))) | trace), z.shape[::-1]):
        if len(at) == n:  # n middles get their borders, n + 1 borders are given as they are
            at = np.pad(at, 1, "reflect", reflect_type="odd") if n > 1 else at + np.array([-1, 0, 1])
            at = (at[1:] + at[:-1]) / 2
        borders.append(at)
    look = {"vmin": trace.get("zmin"), "vmax": trace.get("zmax"), "linewidth": trace.get("xgap", 0) * POINT}
    if scale := trace.get("colorscale"):
        look["cmap"] = mpl("colors").LinearSegmentedColormap.from_list("", list(map(tuple, scale)))
    drawn = panel.ax.pcolormesh(*borders, z, edgecolors=style("figure.facecolor"), **look)
    if trace.get("showscale", True):
        bar = panel.ax.figure.colorbar(drawn, cax=panel.ax.inset_axes([1.02, 0, 0.025, 1]))
        bar.set_label(words(trace.get("colorbar", {}).get("title")))
        bar.outline.set_visible(False)
    spots = np.meshgrid(*((at[1:] + at[:-1]) / 2 for at in borders))
    flat = {name: np.ravel(trace[name]) for name in ("text", "z") if name in trace}
    for x, y, text, ink in zip(*map(np.ravel, spots), texts(trace | flat, z.size), drawn.to_rgba(z).reshape(-1, 4)):
        look = {"ha": "center", "va": "center", "color": "white" if ink[:3] @ (0.3, 0.6, 0.1) < 0.5 else INK}
        panel.ax.text(x, y, text, **look).set_in_layout(False)
    return []
