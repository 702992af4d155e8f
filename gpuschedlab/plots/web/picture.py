"""Pictures of figures, for where no script runs: files that nobody has trusted yet, and pages of other sites.

plotly draws in a browser only, so matplotlib draws what plotly's traces and layout say: the same numbers in the same colours,
without what a mouse would show. Same figure, same bytes.
"""

import io
import textwrap
from base64 import b64decode

import numpy as np

from gpuschedlab._extras import need
from gpuschedlab.plots.style import INK, STOP
from gpuschedlab.plots.web import traces
from gpuschedlab.plots.web.encode import plain
from gpuschedlab.plots.web.sides import SLATE, Side, mpl, words
from gpuschedlab.plots.web.traces import POINT, Panel, paint

PIXELS = 96
"""Pixels in an inch."""
LOOK = {
    **{
        "font.size": 12 * POINT,
        "axes.labelsize": 12 * POINT,
        "xtick.labelsize": 11 * POINT,
        "ytick.labelsize": 11 * POINT,
    },
    **{
        "text.parse_math": False,
        "text.color": INK,
        "axes.labelcolor": INK,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
    },
    **{
        "xtick.color": SLATE,
        "ytick.color": SLATE,
        "axes.edgecolor": SLATE,
        "axes.axisbelow": True,
        "axes.xmargin": 0.03,
    },
    **{"axes.spines.top": False, "axes.spines.right": False, "hatch.linewidth": 0.4, "lines.solid_capstyle": "butt"},
}


def png(figure, width: int, height: int) -> tuple[bytes, str]:
    """Draw a figure.

    Parameters
    ----------
    figure : Drawing or plotly.graph_objects.Figure
        Traces of other types than scatter, bar and heatmap are left out where they have no x and y, and drawn as points
        where they have; a line in the picture says so.
    width, height : int
        Pixels.

    Returns
    -------
    tuple of bytes and str
        The PNG, and what it shows in words: the figure's title, and the types of traces that it lacks or draws as points.

    Examples
    --------
    >>> from gpuschedlab.plots.style import Drawing
    >>> line = Drawing([{"x": [0, 1], "y": [0, 1]}], [{"type": "scatter"}], {}, {"title": {"text": "A line"}})
    >>> content, title = png(line, 620, 300)
    >>> content[1:4], title, png(line, 620, 300)[0] == content
    (b'PNG', 'A line', True)
    """
    content = _arrays(plain(figure))
    with mpl("style").context(["default", LOOK]):  # whatever the reader's own matplotlib looks like
        drawn, missing = _drawn(content["data"], content["layout"], width, height)
        canvas = mpl("backends.backend_agg").FigureCanvasAgg(drawn)
        canvas.draw()
    colours = np.asarray(canvas.buffer_rgba())[..., :3]  # as they are: a palette would lose the rare ones
    out = io.BytesIO()
    need("PIL.Image", "pictures").fromarray(colours).save(out, "PNG")
    return out.getvalue(), " ".join([*words(content["layout"].get("title")).split(), *missing])


def _arrays(value):
    """Copy of plain data in which arrays as plotly writes them are numpy's."""
    if isinstance(value, dict) and "bdata" in value:
        flat = np.frombuffer(b64decode(value["bdata"]), f"<{value['dtype']}")
        shape = value.get("shape", flat.shape)
        return flat.reshape([int(n) for n in shape.split(",")] if isinstance(shape, str) else shape)
    if isinstance(value, dict):
        return {name: _arrays(part) for name, part in value.items()}
    return [_arrays(part) for part in value] if isinstance(value, list) else value


def _drawn(data: list, layout: dict, width: int, height: int) -> tuple:
    """Figure of matplotlib, and the types of traces that it lacks."""
    figure = mpl("figure").Figure((width / PIXELS, height / PIXELS), PIXELS)
    data = [trace for trace in data if trace.get("visible", True) is True]
    panels = _panels(figure, data, layout)
    keys, missing = _traces(panels, data, layout)
    for (x, y), panel in panels.items():
        zero = _from_zero(data, (x, y), panel)
        box = (np.diff(panel.x.domain)[0] * (width - 80), np.diff(panel.y.domain)[0] * (height - 110))
        panel.x.dress(panel.ax, panel.x.anchor == y or len(panels) == 1, zero["x"], box[0])
        panel.y.dress(panel.ax, panel.y.anchor == x or len(panels) == 1, zero["y"], box[1])
    _around(figure, panels, layout)
    top = _head(figure, layout, keys, width)
    if missing:
        missing = [f"(Not as on a page with scripts: {', '.join(missing)}.)"]
        figure.text(4 / width, 3 / height, missing[0], fontsize=10 * POINT, color=STOP["color"])
    _arrange(figure, panels, top, 22 if missing else 6)
    for panel in panels.values():
        for write in panel.later:
            write()
    return figure, missing


def _panels(figure, data: list, layout: dict) -> dict[tuple[str, str], Panel]:
    """Axes for each pair of plotly's that has traces; those with a common axis share it."""
    pairs = dict.fromkeys((t.get("xaxis", "x"), t.get("yaxis", "y")) for t in data) or {("x", "y"): None}
    sides, panels = {}, {}
    for way, name in dict.fromkeys((way, pair[way]) for pair in pairs for way in (0, 1)):
        mine = [t.get("xy"[way]) for t in data if t.get(("xaxis", "yaxis")[way], "xy"[way]) == name]
        sides[name] = Side(name, layout, [values for values in mine if values is not None])
    for x, y in pairs:
        like = {f"share{name[0]}": next((p.ax for pair, p in panels.items() if name in pair), None) for name in (x, y)}
        ax = figure.add_axes((0.1, 0.1, 0.8, 0.8), label=f"{x} {y}", **like)
        ax.patch.set_visible(False)
        panels[x, y] = Panel(ax, sides[x], sides[y], [])
    return panels


def _traces(panels: dict, data: list, layout: dict) -> tuple[list, list[str]]:
    """Draw all traces; returns what stands in the legend, and the types of those that are missing."""
    keys, missing, stacks = [], [], {}
    mode, beside = layout.get("barmode", "group"), {}
    for trace in data:
        if trace.get("type") == "bar":
            beside.setdefault((trace.get("xaxis", "x"), trace.get("yaxis", "y")), []).append(trace)
    for number, trace in enumerate(data):
        pair, kind = (trace.get("xaxis", "x"), trace.get("yaxis", "y")), trace.get("type", "scatter")
        panel, key = panels[pair], None
        try:
            if kind == "heatmap":
                traces.heat(panel, trace)
            elif kind == "bar":
                key = traces.bars(panel, trace, number, (mode, beside[pair], stacks))
            else:
                known = kind in ("scatter", "scattergl")
                if not known:
                    missing.append(kind)
                key = traces.scatter(panel, trace if known else trace | {"mode": "markers"}, number, stacks)
        except Exception:  # a figure is anybody's, and more than its picture shows: what cannot be drawn is named in it
            missing.append(kind)
        if key is not None and trace.get("name") and trace.get("showlegend", True):
            keys.append((key, words(trace["name"])))
    return keys, list(dict.fromkeys(missing))


def _from_zero(data: list, pair: tuple, panel: Panel) -> dict:
    """Whether each axis holds 0, and "from" where it begins there: with bars, or as the layout asks."""
    found = {side.name[0]: side.about.get("rangemode") in ("tozero", "nonnegative") for side in panel[1:3]}
    for trace in data:
        if trace.get("type") == "bar" and (trace.get("xaxis", "x"), trace.get("yaxis", "y")) == pair:
            along = "x" if trace.get("orientation") == "h" else "y"
            found[along] |= trace.get("base") is None
    panel.ax.autoscale_view()
    for way, zero in found.items():
        least = getattr(panel.ax.dataLim, f"{way}0")
        found[way] = "from" if zero and least >= 0 else zero
    return found


def _around(figure, panels: dict, layout: dict):
    """Lines, rectangles and notes of the layout, on axes or on all of the figure ("paper")."""
    if not layout.get("shapes") and not layout.get("annotations"):
        return
    paper = figure.add_axes((0.1, 0.1, 0.8, 0.8), frameon=False, xticks=[], yticks=[], label="paper")
    for shape in layout.get("shapes", ()):
        at, sides = _whereabouts(shape, panels, paper)
        x, y = ([_placed(side, shape.get(f"{way}{i}", i)) for i in (0, 1)] for side, way in zip(sides, "xy"))
        line = shape.get("line", {})
        dash = traces.STROKES.get(line.get("dash", "solid"), "--")
        look = {
            "edgecolor": paint(line.get("color"), INK),
            "linewidth": line.get("width", 2) * POINT,
            "linestyle": dash,
        }
        look |= {"facecolor": paint(shape.get("fillcolor")), "alpha": shape.get("opacity", 1)}
        flat = shape.get("type") == "line"
        corners = list(zip(x, y)) if flat else [(x[0], y[0]), (x[0], y[1]), (x[1], y[1]), (x[1], y[0])]
        depth = 0.5 if shape.get("layer") == "below" else 2.5
        host = next(iter(panels.values())).ax
        drawn = mpl("patches").Polygon(corners, closed=not flat, fill=not flat, transform=at, zorder=depth, **look)
        host.add_artist(drawn).set_clip_on("paper" not in (shape.get("xref"), shape.get("yref")))
    for note in layout.get("annotations", ()):
        at, sides = _whereabouts(note, panels, paper)
        values = [note.get("x", 0.5), note.get("y", 0.5)]
        spot = [10.0**v if s is not None and s.log else _placed(s, v) for s, v in zip(sides, values)]
        anchors = {"ha": note.get("xanchor", "center"), "va": note.get("yanchor", "center")}
        look = {name: "center" if way in ("auto", "middle") else way for name, way in anchors.items()}
        look |= {"color": paint(note.get("font", {}).get("color"), INK), "annotation_clip": False}
        shift = [note.get(f"{way}shift", 0) * POINT for way in "xy"]
        paper.annotate(words(note.get("text")), spot, shift, at, "offset points", **look)


def _whereabouts(thing: dict, panels: dict, paper):
    """What a shape or a note is placed by: a transform, and its axes (None: the figure or a panel as a whole)."""
    ways, sides = [], []
    for way in (0, 1):
        name, _, domain = str(thing.get(("xref", "yref")[way], "xy"[way])).partition(" ")
        panel = next((p for pair, p in panels.items() if pair[way] == name), next(iter(panels.values())))
        whole = name == "paper" or domain
        ways.append((paper if name == "paper" else panel.ax).transAxes if whole else panel.ax.transData)
        sides.append(None if whole else panel[1 + way])
    return mpl("transforms").blended_transform_factory(*ways), sides


def _placed(side: Side | None, value):
    return side.at([value])[0] if side is not None and side.categories is not None and isinstance(value, str) else value


def _head(figure, layout: dict, keys: list, width: int) -> float:
    """Write the title and the legend over the whole width; returns how much they take, in pixels."""
    first, _, rest = words(layout.get("title")).partition("\n")
    height, used = figure.bbox.height, 4.0
    for text, size, weight in ((first, 14, "bold"), (rest, 12, "normal")):
        for line in textwrap.wrap(text, int(width / (0.58 * size))):
            figure.text(8 / width, 1 - used / height, line, va="top", fontsize=size * POINT, weight=weight)
            used += 1.35 * size
    if layout.get("showlegend", len(keys) > 1) and keys:
        lengths = [52 + 6.4 * len(name) for _, name in keys]
        columns = len(keys) if sum(lengths) < width else max(1, int(width // max(lengths)))
        # matplotlib fills columns, plotly rows
        keys = [key for column in range(columns) for key in keys[column::columns]]
        look = {"frameon": False, "borderaxespad": 0, "borderpad": 0.2, "handlelength": 2.2, "labelspacing": 0.35}
        look |= {
            "ncols": columns,
            "fontsize": 11 * POINT,
            "loc": "upper left",
            "bbox_to_anchor": (6 / width, 1 - used / height),
        }
        figure.legend(*zip(*keys), **look)
        used += 17.5 * -(-len(keys) // columns) + 4
    return used


def _arrange(figure, panels: dict, top: float, bottom: float):
    """Give axes their places, by what their ticks and titles need around them."""
    renderer = mpl("backends.backend_agg").FigureCanvasAgg(figure).get_renderer()
    width, height = figure.bbox.size
    around = np.array([8.0, bottom, 14.0, 4.0])  # left, bottom, right, top
    for panel in panels.values():
        room, box = panel.ax.get_tightbbox(renderer, for_layout_only=True), panel.ax.bbox
        over = [box.x0 - room.x0, box.y0 - room.y0, room.x1 - box.x1, room.y1 - box.y1]
        ends = [panel.x.domain[0], panel.y.domain[0], 1 - panel.x.domain[1], 1 - panel.y.domain[1]]
        around = np.maximum(
            around, [more + least if end < 0.02 else 0 for more, least, end in zip(over, (8, bottom, 8, 4), ends)]
        )
    left, low, right, high = around
    inner = np.array([max(width - left - right, 40), max(height - low - high - top, 40)])
    for ax in figure.axes:
        panel = next((p for p in panels.values() if p.ax is ax), None)
        x, y = ([0, 1], [0, 1]) if panel is None else (panel.x.domain, panel.y.domain)
        at = np.array([left, low]) + inner * [x[0], y[0]]
        ax.set_position([*at / (width, height), *inner * [x[1] - x[0], y[1] - y[0]] / (width, height)])
