"""Pictures of figures, for where no script runs: files that nobody has trusted yet, and pages of other sites.

plotly draws in a browser only, so matplotlib draws what plotly's traces and layout say: the same numbers in the same colours,
without what a mouse would show. Same figure, same bytes.
"""

import io
import re
import textwrap
from base64 import b64decode
from importlib.resources import files
from itertools import chain

import numpy as np

from gpuschedlab._extras import need
from gpuschedlab.plots.kinds.style import COLOURS, DARK, STOP
from gpuschedlab.plots.web import picture_traces as traces
from gpuschedlab.plots.web.encode import plain
from gpuschedlab.plots.web.picture_traces import POINT, Panel
from gpuschedlab.plots.web.sides import Side, mpl, style, words

LOOK = files("gpuschedlab.plots.web").joinpath("picture.mplstyle")
PIXELS = 96
"""Pixels in an inch."""
DRAW = {"scatter": traces.scatter, "scattergl": traces.scatter, "bar": traces.bars, "heatmap": traces.heat}
"""What draws a type of trace."""


def png(figure, width: int, height: int, dark: bool = False, kind: str = "PNG") -> tuple[bytes, str]:
    """Picture of a `Drawing` or a plotly figure, in pixels, for a `dark` page or a light one, and its title with the traces it lacks."""
    content = _read(plain(figure, still=True))
    look = dict(need("matplotlib", "pictures").rc_params_from_file(LOOK, use_default_template=False))
    if dark:
        content = shaded(content)
        look = shaded(look)
    with mpl("style").context(["default", look]):  # whatever the reader's own matplotlib looks like
        drawn = mpl("figure").Figure((width / PIXELS, height / PIXELS), PIXELS)
        canvas = mpl("backends.backend_agg").FigureCanvasAgg(drawn)
        missing = _fill(drawn, content["data"], content["layout"], shaded(COLOURS) if dark else COLOURS)
        canvas.draw()
    colours = np.asarray(canvas.buffer_rgba())[..., :3]  # as they are: a palette would lose the rare ones
    out = io.BytesIO()
    need("PIL.Image", "pictures").fromarray(colours).save(out, kind, lossless=True, method=1)  # for WebP
    return out.getvalue(), " ".join([*words(content["layout"].get("title")).split(), *missing])


def shaded(value):
    """Copy of plain data in the colours for a dark page; but for what stands on a bar."""
    if isinstance(value, dict):
        return {name: part if name in ("insidetextfont", "pattern") else shaded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [shaded(part) for part in value]
    return DARK.get(value, value) if isinstance(value, str) else value


def _read(value):
    """Copy of plain data, in which arrays as plotly writes them are numpy's, and all colours known to matplotlib."""
    if isinstance(value, dict) and "bdata" in value:
        flat = np.frombuffer(b64decode(value["bdata"]), f"<{value['dtype']}")
        return flat.reshape([int(n) for n in re.findall(r"\d+", str(value.get("shape", flat.shape)))])
    if isinstance(value, dict):
        return {name: _read(part) for name, part in value.items() if part is not None}
    if isinstance(value, str) and re.match(r"rgba?\(", value):
        red, green, blue, *alpha = map(float, re.findall(r"[\d.]+", value))
        return mpl("colors").to_hex((red / 255, green / 255, blue / 255, *alpha), keep_alpha=True)
    return [_read(part) for part in value] if isinstance(value, list) else value


def _fill(figure, data: list, layout: dict, colours) -> list[str]:
    """Draw all of a figure; returns a sentence if it lacks traces, which are those that it cannot draw."""
    data = [trace for trace in data if trace.get("visible", True) is True]
    panels = _panels(figure, data, layout)
    keys = []
    missing = {}
    for number, trace in enumerate(data):
        kind = trace.get("type", "scatter")
        try:
            key = DRAW[kind](panels[_pair(trace)], trace, colours[number % len(colours)])
        except Exception:  # a figure is anybody's, and more than its picture shows: what cannot be drawn is named in it
            key = None
            missing[kind] = ""
        if key and trace.get("name") and trace.get("showlegend", True):
            keys.append((tuple(key), words(trace["name"])))
    for (x, y), panel in panels.items():
        panel.x.dress(panel.ax, len(panels) == 1 or panel.x.about.get("anchor", "y") == y)
        panel.y.dress(panel.ax, len(panels) == 1 or panel.y.about.get("anchor", "x") == x)
    _around(figure, panels, layout)
    height = figure.bbox.height
    top = _head(figure, layout, keys)
    bottom = 0
    if missing:
        missing = [f"(Not as on a page with scripts: {', '.join(missing)}.)"]
        bottom = 16 / height
        figure.text(0.005, 3 / height, missing[0], fontsize=10 * POINT, color=STOP["color"])
    figure.tight_layout(pad=0.6)
    room = figure.subplotpars
    figure.subplots_adjust(top=room.top - top / height, bottom=room.bottom + bottom, hspace=0, wspace=0)
    for panel in panels.values():
        traces.write_later(panel)
    return missing


def _pair(trace: dict) -> tuple[str, str]:
    return trace.get("xaxis", "x"), trace.get("yaxis", "y")


def _panels(figure, data: list, layout: dict) -> dict[tuple[str, str], Panel]:
    """Axes for each pair of plotly's that has traces; those with a common axis share it."""
    pairs = dict.fromkeys(map(_pair, data)) or {("x", "y"): None}
    panels = {}
    sides = {}
    for name in chain.from_iterable(pairs):
        values = [trace[name[0]] for trace in data if name in _pair(trace) and name[0] in trace]
        sides[name] = Side(name, layout, values)
    # borders of columns from the left and of rows from the top, with what is between panels
    columns, rows = (sorted({0, 1, *(end for pair in pairs for end in sides[pair[way]].domain)}) for way in (0, 1))
    ratios = {"width_ratios": np.diff(columns), "height_ratios": np.diff(rows)[::-1]}
    grid = figure.add_gridspec(len(rows) - 1, len(columns) - 1, **ratios)
    for pair in pairs:
        x, y = both = [sides[name] for name in pair]
        column = slice(*map(columns.index, x.domain))
        row = slice(*(len(rows) - 1 - rows.index(end) for end in y.domain[::-1]))
        like = {f"share{name[0]}": next((p.ax for other, p in panels.items() if name in other), None) for name in pair}
        ax = figure.add_subplot(grid[row, column], label=" ".join(pair), **like)
        for side in both:
            if side.log:
                getattr(ax, f"set_{side.way}scale")("log")
            if side.dates:
                getattr(ax, f"{side.way}axis_date")()
        bars = [trace for trace in data if trace.get("type") == "bar" and _pair(trace) == pair]
        panels[pair] = Panel(ax, x, y, layout.get("barmode", "group"), bars)
    return panels


def _around(figure, panels: dict, layout: dict):
    """Lines, rectangles and notes of the layout, on axes or on all of the figure ("paper")."""
    things = [*layout.get("shapes", ()), *layout.get("annotations", ())]
    host = next(iter(panels.values()))
    paper = host.ax
    if things and len(panels) > 1:
        paper = figure.add_subplot(paper.get_gridspec()[:, :], frameon=False, xticks=[], yticks=[], label="paper")
    for thing in things:
        ways = []
        points = []
        is_note = "text" in thing
        for way in "xy":
            name, _, domain = thing.get(f"{way}ref", way).partition(" ")
            panel = next((p for pair, p in panels.items() if name in pair), host)
            side = getattr(panel, way)
            ax = paper if name == "paper" else panel.ax
            side = None if domain or name == "paper" else side
            ways.append(ax.transData if side else ax.transAxes)
            ends = [thing.get(way, 0.5)] if is_note else [thing.get(f"{way}{i}", i) for i in (0, 1)]
            points.append([side.place(end, is_note) if side else end for end in ends])
        if is_note:
            look = {f"{'hv'[i]}a": thing.get(f"{way}anchor", "center") for i, way in enumerate("xy")}
            look = {name: {"auto": "center", "middle": "center"}.get(at, at) for name, at in look.items()}
            look |= {"color": thing.get("font", {}).get("color", style("text.color")), "annotation_clip": False}
            shift = [thing.get(f"{way}shift", 0) * POINT for way in "xy"]
            paper.annotate(words(thing), [ends[0] for ends in points], shift, tuple(ways), "offset points", **look)
            continue
        (left, right), (bottom, top) = points
        line = thing.get("line", {})
        flat = thing.get("type") == "line"
        look = {"edgecolor": line.get("color", style("text.color")), "linewidth": line.get("width", 2) * POINT}
        look |= {"linestyle": traces.STROKES.get(line.get("dash"), "-"), "alpha": thing.get("opacity")}
        look |= {"facecolor": thing.get("fillcolor", "none"), "zorder": 0.5 if thing.get("layer") == "below" else 2.5}
        corners = [(left, bottom), *([] if flat else [(left, top)]), (right, top), (right, bottom)][: 2 if flat else 4]
        transform = mpl("transforms").blended_transform_factory(*ways)
        drawn = mpl("patches").Polygon(corners, closed=not flat, transform=transform, **look)
        panel.ax.add_artist(drawn).set(in_layout=False, clip_on="paper" not in (thing.get("xref"), thing.get("yref")))


def _head(figure, layout: dict, keys: list) -> float:
    """Write the title and the legend over the whole width; returns how much they take, in pixels."""
    first, _, rest = words(layout.get("title")).partition("\n")
    width, height = figure.bbox.size
    used = 4.0
    for text, size, weight in ((first, 14, "bold"), (rest, 12, "normal")):
        for line in textwrap.wrap(text, int(width / (0.58 * size))):
            figure.text(8 / width, 1 - used / height, line, va="top", fontsize=size * POINT, weight=weight)
            used += 1.35 * size
    if layout.get("showlegend", len(keys) > 1) and keys:
        lengths = [52 + 6.4 * len(name) for _, name in keys]
        columns = len(keys) if sum(lengths) < width else max(1, int(width // max(lengths)))
        # matplotlib fills columns, plotly rows
        keys = [key for column in range(columns) for key in keys[column::columns]]
        dot = {mpl("collections").PathCollection: mpl("legend_handler").HandlerPathCollection([0.5], sizes=[28])}
        corner = {"loc": "upper left", "bbox_to_anchor": (6 / width, 1 - used / height)}
        figure.legend(*zip(*keys), ncols=columns, handler_map=dot, **corner)
        used += 17.5 * -(-len(keys) // columns) + 4
    return used
