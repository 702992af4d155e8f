"""Pictures of figures, for where no script runs: files that nobody has trusted yet, and pages of other sites.

plotly draws in a browser only, so matplotlib draws plotly's traces and layout: the same numbers in the same colours,
without the texts under a mouse. Same figure, same bytes.
"""

import io
import re
import textwrap
from base64 import b64decode
from collections.abc import Iterable
from importlib.resources import files
from itertools import chain
from math import ceil
from typing import NamedTuple

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
    """Return a tuple: the bytes of the picture of a `Drawing` or plotly figure, in pixels, and its title with traces it lacks.

    It is for a `dark` page or a light one.
    """
    content = _read(plain(figure, still=True))
    settings = dict(need("matplotlib", "pictures").rc_params_from_file(LOOK, use_default_template=False))
    colours = COLOURS
    if dark:
        content = shaded(content)
        settings = shaded(settings)
        colours = shaded(COLOURS)
    with mpl("style").context(["default", settings]):  # whatever the reader's own matplotlib looks like
        canvas_figure = mpl("figure").Figure((width / PIXELS, height / PIXELS), PIXELS)
        canvas = mpl("backends.backend_agg").FigureCanvasAgg(canvas_figure)
        missing_traces = _fill(canvas_figure, content["data"], content["layout"], colours)
        canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3]  # as they are: a palette would lose the rare ones
    file = io.BytesIO()
    need("PIL.Image", "pictures").fromarray(pixels).save(file, kind, lossless=True, method=1)  # for WebP
    title = words(content["layout"].get("title"))
    return file.getvalue(), " ".join([*title.split(), *missing_traces])


def shaded(value):
    """Return a copy of plain data (dict, list, text) in the colours for a dark page; but for the texts on a bar."""
    if isinstance(value, dict):
        on_bars = {
            trace_field: trace_part
            for trace_field, trace_part in value.items()
            if trace_field in ("insidetextfont", "pattern")
        }
        return {trace_field: shaded(trace_part) for trace_field, trace_part in value.items()} | on_bars
    if isinstance(value, list | tuple):
        return [shaded(trace_part) for trace_part in value]
    if isinstance(value, str):
        return DARK.get(value, value)
    return value


def _read(value):
    """Return a copy of plain data, in which arrays as plotly writes them are numpy's, and all colours known to matplotlib."""
    if isinstance(value, dict) and "bdata" in value:
        array_numbers = np.frombuffer(b64decode(value["bdata"]), f"<{value['dtype']}")
        lengths = re.findall(r"\d+", str(value.get("shape", array_numbers.shape)))
        return array_numbers.reshape([int(length) for length in lengths])
    if isinstance(value, dict):
        return {
            layout_name: _read(layout_part) for layout_name, layout_part in value.items() if layout_part is not None
        }
    if isinstance(value, str) and re.match(r"rgba?\(", value):
        colour_numbers = [float(layout_part) for layout_part in re.findall(r"[\d.]+", value)]
        channels = [layout_part / 255 for layout_part in colour_numbers[:3]]
        return mpl("colors").to_hex((*channels, *colour_numbers[3:]), keep_alpha=True)
    if isinstance(value, list):
        return [_read(layout_part) for layout_part in value]
    return value


def _fill(figure, figure_traces: list, layout: dict, colours) -> list[str]:
    """Draw all of a figure; return a list with a sentence if it lacks traces, which are those that it cannot draw."""
    figure_traces = [trace for trace in figure_traces if trace.get("visible", True) is True]
    panels = _panels(figure, figure_traces, layout)
    keys = []
    missing_kinds = {}
    for trace_number, trace in enumerate(figure_traces):
        kind = trace.get("type", "scatter")
        colour = colours[trace_number % len(colours)]
        try:
            key = DRAW[kind](panels[_pair(trace)], trace, colour)
        except Exception:  # a figure is anybody's, and more than its picture shows: what cannot be drawn is named in it
            key = None
            missing_kinds[kind] = ""
        if key and trace.get("name") and trace.get("showlegend", True):
            keys.append((tuple(key), words(trace["name"])))
    for (x, y), panel in panels.items():
        alone = len(panels) == 1
        panel.x.dress(panel.ax, alone or panel.x.about.get("anchor", "y") == y)
        panel.y.dress(panel.ax, alone or panel.y.about.get("anchor", "x") == x)
    _around(figure, panels, layout)
    height = figure.bbox.height
    top = _head(figure, layout, keys)
    bottom = 0
    sentences = []
    if missing_kinds:
        sentences = [f"(Not as on a page with scripts: {', '.join(missing_kinds)}.)"]
        bottom = 16 / height
        figure.text(0.005, 3 / height, sentences[0], fontsize=10 * POINT, color=STOP["color"])
    figure.tight_layout(pad=0.6)
    room = figure.subplotpars
    figure.subplots_adjust(top=room.top - top / height, bottom=room.bottom + bottom, hspace=0, wspace=0)
    for panel in panels.values():
        traces.write_later(panel)
    return sentences


def _pair(trace: dict) -> tuple[str, str]:
    """Return both names of a trace's axes as a tuple."""
    return trace.get("xaxis", "x"), trace.get("yaxis", "y")


def _panels(figure, figure_traces: list, layout: dict) -> dict[tuple[str, str], Panel]:
    """Return a dict of a `Panel` for each pair of plotly's axes that has traces; those with a common axis share it."""
    axis_pairs = dict.fromkeys(map(_pair, figure_traces)) or {("x", "y"): None}
    panels = {}
    sides = {}
    for axis_name in chain.from_iterable(axis_pairs):
        axis_values = [
            trace[axis_name[0]] for trace in figure_traces if axis_name in _pair(trace) and axis_name[0] in trace
        ]
        sides[axis_name] = Side(axis_name, layout, axis_values)
    # borders of columns from the left and of rows from the top, with what is between panels
    column_borders = _borders(sides[x] for x, _ in axis_pairs)
    row_borders = _borders(sides[y] for _, y in axis_pairs)
    ratios = {"width_ratios": np.diff(column_borders), "height_ratios": np.diff(row_borders)[::-1]}
    last_row = len(row_borders) - 1
    grid = figure.add_gridspec(last_row, len(column_borders) - 1, **ratios)
    for axis_pair in axis_pairs:
        x_name, y_name = axis_pair
        x = sides[x_name]
        y = sides[y_name]
        left_border, right_border = x.domain
        bottom, top = y.domain
        grid_column = slice(column_borders.index(left_border), column_borders.index(right_border))
        row = slice(last_row - row_borders.index(top), last_row - row_borders.index(bottom))
        shared = {f"share{axis_name[0]}": _axes_with(panels, axis_name) for axis_name in axis_pair}
        ax = figure.add_subplot(grid[row, grid_column], label=" ".join(axis_pair), **shared)
        for side in (x, y):
            if side.log:
                getattr(ax, f"set_{side.way}scale")("log")
            if side.dates:
                getattr(ax, f"{side.way}axis_date")()
        bars = [trace for trace in figure_traces if trace.get("type") == "bar" and _pair(trace) == axis_pair]
        panels[axis_pair] = Panel(ax, x, y, layout.get("barmode", "group"), bars)
    return panels


def _borders(sides: Iterable[Side]) -> list[float]:
    """Return a list of the ends of axes as shares of the figure, ascending, with those of the figure."""
    ends = {0, 1}
    for side in sides:
        ends.update(side.domain)
    return sorted(ends)


def _axes_with(panels: dict, axis_name: str):
    """Return matplotlib's `Axes` of the first panel that has an axis of plotly's; None if no panel has it."""
    for axis_pair, panel in panels.items():
        if axis_name in axis_pair:
            return panel.ax
    return None


def _around(figure, panels: dict, layout: dict):
    """Lines, rectangles and notes of the layout, on axes or on all of the figure ("paper")."""
    marks = [*layout.get("shapes", ()), *layout.get("annotations", ())]
    host = next(iter(panels.values()))
    paper = host.ax
    if marks and len(panels) > 1:
        paper = figure.add_subplot(paper.get_gridspec()[:, :], frameon=False, xticks=[], yticks=[], label="paper")
    for mark in marks:
        x = _span(mark, "x", panels, paper)
        y = _span(mark, "y", panels, paper)
        if "text" in mark:
            _write_note(paper, mark, x, y)
        else:
            _draw_shape(mark, x, y)


class Span(NamedTuple):
    """How far a mark reaches along one direction, and in which coordinates."""

    ends: list  # one position of a note, two of a shape
    transform: object  # matplotlib's, from these positions to pixels
    ax: object  # axes of the panel that the mark refers to; of the first panel, if it refers to the figure


def _span(mark: dict, direction: str, panels: dict, paper) -> Span:
    """Return the `Span` of a shape or a note along "x" or "y": on an axis, or as shares of it or of the figure."""
    is_note = "text" in mark
    axis_name, _, domain = mark.get(f"{direction}ref", direction).partition(" ")
    host = next(iter(panels.values()))
    panel = next((panel for axis_pair, panel in panels.items() if axis_name in axis_pair), host)
    if is_note:
        ends = [mark.get(direction, 0.5)]
    else:
        ends = [mark.get(f"{direction}{i}", i) for i in (0, 1)]
    if axis_name == "paper":
        return Span(ends, paper.transAxes, panel.ax)
    if domain:
        return Span(ends, panel.ax.transAxes, panel.ax)
    side = getattr(panel, direction)
    return Span([side.place(mark_end, is_note) for mark_end in ends], panel.ax.transData, panel.ax)


def _write_note(paper, note: dict, x: Span, y: Span):
    """Write a note at its point."""
    anchors = {"ha": note.get("xanchor", "center"), "va": note.get("yanchor", "center")}
    for anchor_name, anchor in anchors.items():
        if anchor in ("auto", "middle"):
            anchors[anchor_name] = "center"
    colour = note.get("font", {}).get("color", style("text.color"))
    point = [x.ends[0], y.ends[0]]
    shift = [note.get("xshift", 0) * POINT, note.get("yshift", 0) * POINT]
    transforms = (x.transform, y.transform)
    paper.annotate(
        words(note), point, shift, transforms, "offset points", color=colour, annotation_clip=False, **anchors
    )


def _draw_shape(shape: dict, x: Span, y: Span):
    """Draw a line or a rectangle between its ends."""
    left_side, right_side = x.ends
    bottom, top = y.ends
    corners = [(left_side, bottom), (left_side, top), (right_side, top), (right_side, bottom)]
    is_line = shape.get("type") == "line"
    if is_line:
        corners = [(left_side, bottom), (right_side, top)]
    line = shape.get("line", {})
    depth = 2.5
    if shape.get("layer") == "below":
        depth = 0.5
    polygon = mpl("patches").Polygon(
        corners,
        closed=not is_line,
        transform=mpl("transforms").blended_transform_factory(x.transform, y.transform),
        edgecolor=line.get("color", style("text.color")),
        linewidth=line.get("width", 2) * POINT,
        linestyle=traces.STROKES.get(line.get("dash"), "-"),
        alpha=shape.get("opacity"),
        facecolor=shape.get("fillcolor", "none"),
        zorder=depth,
    )
    on_paper = "paper" in (shape.get("xref"), shape.get("yref"))
    y.ax.add_artist(polygon).set(in_layout=False, clip_on=not on_paper)


def _head(figure, layout: dict, keys: list) -> float:
    """Write the title and the legend over the whole width; returns how much they take, in pixels."""
    title, _, subtitle = words(layout.get("title")).partition("\n")
    width, height = figure.bbox.size
    used = 4.0
    for head_text, font_size, weight in ((title, 14, "bold"), (subtitle, 12, "normal")):
        for line in textwrap.wrap(head_text, int(width / (0.58 * font_size))):
            figure.text(8 / width, 1 - used / height, line, va="top", fontsize=font_size * POINT, weight=weight)
            used += 1.35 * font_size
    if layout.get("showlegend", len(keys) > 1) and keys:
        lengths = [52 + 6.4 * len(legend_name) for _, legend_name in keys]
        legend_columns = len(keys)
        if sum(lengths) >= width:
            legend_columns = max(1, int(width // max(lengths)))
        # matplotlib fills columns, plotly rows
        keys = [key for legend_column in range(legend_columns) for key in keys[legend_column::legend_columns]]
        one_dot = mpl("legend_handler").HandlerPathCollection([0.5], sizes=[28])
        handlers = {mpl("collections").PathCollection: one_dot}
        corner = {"loc": "upper left", "bbox_to_anchor": (6 / width, 1 - used / height)}
        figure.legend(*zip(*keys), ncols=legend_columns, handler_map=handlers, **corner)
        used += 17.5 * ceil(len(keys) / legend_columns) + 4
    return used
