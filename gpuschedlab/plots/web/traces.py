"""Traces of a picture: plotly's scatter, bar and heatmap, drawn by matplotlib."""

import re
from typing import NamedTuple

import numpy as np

from gpuschedlab.plots.style import COLOURS, INK
from gpuschedlab.plots.web.sides import Side, mpl, spelled, words

POINT = 0.75
"""Points in a pixel of the picture."""
STROKES = {"solid": "-", "dash": (0, (4, 2)), "dot": (0, (1, 1.5)), "dashdot": "-."}
STROKES |= {"longdash": (0, (8, 3)), "longdashdot": (0, (8, 2, 1.5, 2))}
STEPS = {"hv": "steps-post", "vh": "steps-pre", "hvh": "steps-mid", "vhv": "steps-mid"}
SYMBOLS = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "triangle-down": "v",
    "x": "X",
    "star": "*",
}
SYMBOLS |= {"triangle-left": "<", "triangle-right": ">", "cross": "P", "pentagon": "p", "hexagon": "h", "x-thin": "x"}
SYMBOLS |= {"line-ns": "|", "line-ew": "_", "cross-thin": "+"}
HATCHES = {"/": "///", "\\": "\\\\\\", "x": "xxx", "-": "---", "|": "|||", "+": "++", ".": "..."}
MOST = 400
"""Texts in a trace, beyond which none is written."""
LARGEST = 40
"""Bars of a trace that have a pattern."""


class Panel(NamedTuple):
    """Where a trace is drawn: matplotlib's axes, plotly's two, and what is written once these have their place."""

    ax: object
    x: Side
    y: Side
    later: list


def paint(colour, other="none"):
    """Colour, or colours (n,), as matplotlib knows them; `other` where there is none."""
    if isinstance(colour, list | tuple | np.ndarray):
        return [paint(each) for each in colour]
    if colour is None:
        return other
    if parts := re.findall(r"[\d.]+", colour) if str(colour).startswith("rgb") else ():
        return (*(float(p) / 255 for p in parts[:3]), *(float(p) for p in parts[3:4]))
    return mpl("colors").to_rgba(colour)


def ramp(scale):
    """Colour map of a name or a list of colours, with their places or without."""
    if scale is None or isinstance(scale, str):
        return scale or "viridis"
    stops = [(s[0], paint(s[1])) if isinstance(s, list | tuple) else paint(s) for s in scale]
    return mpl("colors").LinearSegmentedColormap.from_list("", stops)


def scatter(panel: Panel, trace: dict, number: int, stacks: dict):
    """Lines, areas, points, whiskers and texts; returns what stands in the legend."""
    ax, line, marker = panel.ax, trace.get("line", {}), trace.get("marker", {})
    y = panel.y.at(trace["y"])
    x = panel.x.at(trace["x"]) if trace.get("x") is not None else np.arange(len(y), dtype=float)
    house = COLOURS[number % len(COLOURS)]
    own = marker.get("color")
    colour = paint(line.get("color") or (own if isinstance(own, str) else house))
    mode = trace.get("mode") or ("lines+markers" if len(x) < 20 else "lines")
    y, area = _filled(ax, trace, (x, y), colour, stacks)
    key = mpl("lines").Line2D([], [], color=colour, linestyle="none")
    if "lines" in mode and line.get("width", 2):
        stroke = {"color": colour, "linewidth": line.get("width", 2) * POINT}
        stroke["linestyle"] = STROKES.get(line.get("dash", "solid"), STROKES["dash"])
        ax.plot(x, y, drawstyle=STEPS.get(line.get("shape"), "default"), **stroke)
        key.set(**stroke)
    for way in ("x", "y"):
        if (bar := trace.get(f"error_{way}")) and bar.get("array") is not None:
            ends = np.abs([bar.get("arrayminus", bar["array"]), bar["array"]])
            look = {"fmt": "none", "ecolor": paint(bar.get("color"), colour), "elinewidth": 0.9, "capsize": 2}
            ax.errorbar(x, y, **{f"{way}err": ends}, **look)
    if "markers" in mode:
        _points(panel, (x, y), marker, colour, key)
    if "text" in mode and len(x) <= MOST:
        _named(ax, (x, y), trace)
    return mpl("patches").Patch(**area) if area else key


def _filled(ax, trace, at, colour, stacks):
    """Fill below a line, or between it and the line before; returns its height, on what it is stacked, and the area's look."""
    (x, y), fill, look = at, trace.get("fill"), {}
    if trace.get("stackgroup"):
        group = (ax, trace["stackgroup"])
        floor = stacks.get(group, 0)
        y = stacks[group] = floor + np.nan_to_num(y)
    elif fill in ("tozeroy", "tonexty"):
        before = stacks.get(ax) if fill == "tonexty" else None
        floor = 0 if before is None else np.interp(x, *before)
    stacks[ax] = (x, y)
    if trace.get("stackgroup") or fill in ("tozeroy", "tonexty", "toself"):
        pattern = trace.get("fillpattern", {})
        pale = (*mpl("colors").to_rgba(colour)[:3], 0.35)
        look = {"facecolor": paint(trace.get("fillcolor"), "none" if pattern else pale), "linewidth": 0}
        look |= {"hatch": HATCHES[pattern["shape"]], "edgecolor": colour} if pattern.get("shape") else {}
        if fill == "toself":
            ax.fill(x, y, **look)
        else:
            step = (trace.get("line", {}).get("shape") == "hv" and "post") or None
            ax.fill_between(x, floor, y, step=step, **look)
    return y, look


def _points(panel: Panel, at, marker: dict, colour, key):
    """Markers of one or several kinds; the key shows the first."""
    n, free = len(at[0]), all(side.about.get("range") is None for side in (panel.x, panel.y))
    most = marker.get("maxdisplayed", 0)
    shown = np.linspace(0, n - 1, most).astype(int) if 0 < most < n else np.arange(n)
    own, edge, size = marker.get("color"), marker.get("line", {}), np.broadcast_to(marker.get("size", 6), n)
    valued = own is not None and not isinstance(own, str) and np.asarray(own).dtype.kind in "fiub"
    fill = colour if valued else paint(own, colour)
    symbols = np.broadcast_to(np.asarray(marker.get("symbol", "circle"), object), max(n, 1)).astype(str)
    for i, symbol in enumerate(dict.fromkeys(symbols[shown] if n else symbols)):
        mine = shown[symbols[shown] == symbol]
        shape, hollow = SYMBOLS.get(symbol.split("-open")[0], "o"), "-open" in symbol
        thin = shape in "x|_+"
        look = {"marker": shape, "linewidth": edge.get("width", 1.5 if hollow or thin else 0) * POINT}
        if valued:
            look |= {"c": np.asarray(own, float)[mine], "cmap": ramp(marker.get("colorscale"))}
        else:
            ink = [fill[k] for k in mine] if isinstance(fill, list) else fill
            rim = edge.get("color") if isinstance(edge.get("color"), str) else None
            look |= {"color": ink} if thin else {"facecolor": "none" if hollow else ink}
            look |= {} if thin else {"edgecolor": ink if hollow else paint(rim, ink)}
        panel.ax.scatter(at[0][mine], at[1][mine], s=(size[mine] * POINT) ** 2, zorder=3, clip_on=not free, **look)
        if not i:
            first = colour if isinstance(fill, list) else fill
            inside = "none" if hollow else first
            key.set(marker=shape, markersize=7 * POINT, markeredgecolor=first, markerfacecolor=inside)


def _named(ax, at, trace: dict):
    """Texts beside the points."""
    n = len(at[0])
    places = np.broadcast_to(np.asarray(trace.get("textposition", "middle center"), object), n)
    for x, y, text, place in zip(*at, np.broadcast_to(trace.get("text", ""), n), places):
        down, side = place.split()
        beside, above = {"left": -8, "right": 8}.get(side, 0), {"top": 6, "bottom": -6}.get(down, 0)
        look = {
            "ha": {-8: "right", 8: "left"}.get(beside, "center"),
            "va": {6: "bottom", -6: "top"}.get(above, "center"),
        }
        ax.annotate(words(text), (x, y), (beside, above), textcoords="offset points", zorder=4, **look)


def bars(panel: Panel, trace: dict, number: int, among: tuple):
    """Bars, whose place is found `among` (mode, all traces of bars in the panel, heights so far); returns their key."""
    flat = trace.get("orientation") == "h"
    at, low, high, width = _extent(panel, trace, flat, among)
    sides = [at - width / 2, at + width / 2]
    corners = np.stack([np.stack([sides[0], sides[0], sides[1], sides[1]]), np.stack([low, high, high, low])], axis=-1)
    corners = corners.swapaxes(0, 1)[..., :: -1 if flat else 1]
    whole = np.isfinite(corners).all(axis=(1, 2))
    marker = trace.get("marker", {})
    fill, rim = paint(marker.get("color"), paint(COLOURS[number % len(COLOURS)])), marker.get("line", {})
    look = {"edgecolor": "none", "facecolor": [c for c, w in zip(fill, whole) if w] if isinstance(fill, list) else fill}
    if rim.get("width"):
        look |= {"edgecolor": paint(rim.get("color"), INK), "linewidth": rim["width"] * POINT}
    boxes, collection = corners[whole], mpl("collections").PolyCollection
    panel.ax.add_collection(collection(boxes, **look), autolim=True)
    shape = marker.get("pattern", {}).get("shape")
    if isinstance(shape, str) and shape in HATCHES:
        # the largest alone: in what is a few pixels wide no pattern shows, and each takes its time
        large = np.sort(np.argsort(-np.ptp(boxes, axis=1).prod(axis=1), kind="stable")[:LARGEST])
        look |= {"hatch": HATCHES[shape]}
        edge = (
            {"facecolor": "none"}
            if look["edgecolor"] != "none"
            else {"facecolor": "none", "edgecolor": INK, "linewidth": 0}
        )
        panel.ax.add_collection(collection(boxes[large], **look | edge), autolim=False)
    whisker = trace.get("error_x" if flat else "error_y") or {}
    if whisker.get("array") is not None:
        ends = np.abs([whisker.get("arrayminus", whisker["array"]), whisker["array"]])
        centre = {"x": high, "y": at, "xerr": ends} if flat else {"x": at, "y": high, "yerr": ends}
        panel.ax.errorbar(**centre, fmt="none", ecolor=INK, elinewidth=1, capsize=3)
    _labelled(panel, trace, corners, flat)
    return mpl("patches").Patch(**look | {"facecolor": fill[0] if isinstance(fill, list) and fill else fill or "none"})


def _extent(panel: Panel, trace: dict, flat: bool, among: tuple):
    """Middles, ends and widths of bars, each (n,)."""
    mode, traces, stacks = among
    place, side = (panel.y, panel.x) if flat else (panel.x, panel.y)
    across, along = (trace.get("y"), trace.get("x")) if flat else (trace.get("x"), trace.get("y"))
    size = np.asarray(along, float)
    at = np.arange(len(size), dtype=float) if across is None else place.at(across)
    width, base = trace.get("width"), trace.get("base")
    if width is None:
        # plotly's rule: traces that lie over each other are spaced each for itself
        near = [trace] if mode == "overlay" else traces
        placed = [place.at(t[place.name[0]]) for t in near if t.get(place.name[0]) is not None]
        gaps = np.diff(np.unique(np.concatenate([at, *placed])))
        width = 0.75 * (gaps[gaps > 0].min() if place.categories is None and (gaps > 0).any() else 1.0)
        if mode == "group":
            width /= len(traces)
            at = at + ([t is trace for t in traces].index(True) - (len(traces) - 1) / 2) * width
    if base is None and mode in ("stack", "relative"):
        base = np.zeros(len(size))
        for i, key in enumerate(zip(at, size < 0)):
            base[i] = stacks.get((panel.ax, *key), 0.0)
            stacks[panel.ax, *key] = base[i] + np.nan_to_num(size[i])
    low = np.broadcast_to(np.asarray(0.0 if base is None else base, float), len(size))
    high = low + size
    if side.log:
        low = np.where(low > 0, low, high.min(where=high > 0, initial=1.0) / 10)
    return at, low, high, np.broadcast_to(np.asarray(width, float), len(size))


def _labelled(panel: Panel, trace: dict, corners, flat: bool):
    """Texts of bars: beyond them, or in those that have room once all has its place."""
    form, given = trace.get("texttemplate"), trace.get("text")
    if form:
        texts = [_filled_in(form, trace, i) for i in range(len(corners))]
    elif given is None:
        return
    else:
        texts = [words(t) for t in np.broadcast_to(np.asarray(given, object), len(corners))]
    ink = trace.get("insidetextfont", {}).get("color", INK)
    named = [(text, box) for text, box in zip(texts, corners) if text and np.isfinite(box).all()][:MOST]
    ax = panel.ax
    if trace.get("textposition") == "outside":
        for text, box in named:
            tip = (box[1] + box[2]) / 2
            look = {"ha": "left", "va": "center"} if flat else {"ha": "center", "va": "bottom"}
            ax.annotate(text, tip, (3, 0) if flat else (0, 2), textcoords="offset points", **look)
        return

    def write():
        (left, right), (bottom, top) = sorted(ax.get_xlim()), sorted(ax.get_ylim())
        for text, box in named:
            seen = np.clip(box, (left, bottom), (right, top))
            width, height = np.ptp(ax.transData.transform(seen), axis=0) * 96 / ax.figure.dpi
            if width > 6 * len(text) + 3 and height > 8:
                ax.text(*seen.mean(axis=0), text, ha="center", va="center", fontsize=10 * POINT, color=paint(ink))

    panel.later.append(write)


def _filled_in(form: str, trace: dict, i: int) -> str:
    """Template of plotly's (`%{x:.2f}`) with what a trace has at a point."""

    def value(found):
        row = trace.get(found[1])
        return "" if row is None else spelled(row[i], found[2] or "")

    return words(re.sub(r"%\{(\w+)(?::([^}]*))?\}", value, form))


def heat(panel: Panel, trace: dict):
    """Map of values, with their texts, and what its colours mean."""
    z = np.ma.masked_invalid(np.asarray(trace["z"], float))
    edges = []
    for side, n in ((panel.x, z.shape[1]), (panel.y, z.shape[0])):
        at = trace.get(side.name[0])
        at = np.arange(n, dtype=float) if at is None else side.at(at)
        half = np.diff(at) / 2 if n > 1 else np.array([0.5])
        # n + 1 borders are given as they are, n middles get theirs
        edges.append(at if len(at) > n else np.r_[at[0] - half[0], at[:-1] + half[: n - 1], at[-1] + half[-1]])
    limits = {"vmin": trace.get("zmin"), "vmax": trace.get("zmax")}
    look = {"edgecolors": "white", "linewidth": trace["xgap"] * POINT} if trace.get("xgap") else {}
    drawn = panel.ax.pcolormesh(*edges, z, cmap=ramp(trace.get("colorscale")), **limits, **look)
    if trace.get("showscale", True):
        bar = panel.ax.figure.colorbar(drawn, cax=panel.ax.inset_axes([1.02, 0, 0.025, 1]))
        bar.set_label(words(trace.get("colorbar", {}).get("title")))
        bar.outline.set_visible(False)
    if trace.get("text") is None or not trace.get("texttemplate") or z.size > MOST:
        return
    middles = [(e[1:] + e[:-1]) / 2 for e in edges]
    for i, j in np.ndindex(z.shape):
        dark = not np.ma.is_masked(z[i, j]) and np.dot(drawn.cmap(drawn.norm(z[i, j]))[:3], (0.3, 0.6, 0.1)) < 0.5
        text = words(trace["text"][i][j])
        look = {"ha": "center", "va": "center", "color": "white" if dark else INK}
        panel.ax.text(middles[0][j], middles[1][i], text, **look).set_in_layout(False)
