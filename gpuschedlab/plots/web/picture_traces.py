"""Traces of a picture: plotly's scatter, bar and heatmap, drawn by matplotlib.

Each function takes a panel, a trace and its colour, and returns the mark that stands for it in the legend.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

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
ASIDE = {"left": -8, "right": 8}
UPWARDS = {"top": 6, "bottom": -6}
"""Points by which a text stands beside its point."""
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
        """Return the positions of a trace's points, a tuple of two arrays (n,)."""
        point_numbers = range(len(trace.get("x", trace.get("y"))))
        return self.x.at(trace.get("x", point_numbers)), self.y.at(trace.get("y", point_numbers))


def texts(trace: dict, count: int) -> list[str]:
    """Return a list of the texts of a trace's points: as given, or in a template of plotly's (`%{x:.2f}`); empty if too many."""
    if count > MOST or not {"text", "texttemplate"} & trace.keys():
        return []
    text_columns = trace | {"text": np.broadcast_to(trace.get("text", ""), count)}
    template = trace.get("texttemplate", "%{text}")

    def text(i: int) -> str:
        def filled_in(field: re.Match) -> str:
            text_column, form = field.groups()
            return spelled(text_columns[text_column][i], form)

        return words(re.sub(r"%\{(\w+):?([^}]*)\}", filled_in, template))

    return [text(i) for i in range(count)]


def scatter(panel: Panel, trace: dict, colour: str) -> list:
    """Draw lines, areas, points, whiskers and texts, and return the list of their artists."""
    line = trace.get("line", {})
    marker = trace.get("marker", {})
    if line.get("color"):
        colour = line["color"]
    elif isinstance(marker.get("color"), str):
        colour = marker["color"]
    x, y, artists = _filled(panel, trace, colour)
    usual_mode = "lines"
    if len(x) < 20:
        usual_mode = "lines+markers"
    mode = trace.get("mode") or usual_mode
    if "lines" in mode:
        drawn_lines = panel.ax.plot(
            x,
            y,
            color=colour,
            drawstyle=STEPS.get(line.get("shape"), "default"),
            linewidth=line.get("width", 2) * POINT,
            linestyle=STROKES.get(line.get("dash"), "-"),
        )
        artists = artists or drawn_lines
    _draw_whiskers(panel, trace, (x, y), colour)
    if "markers" in mode:
        artists.append(_draw_markers(panel, (x, y), marker, colour))
    if "text" in mode:
        _write_beside_points(panel, trace, x, y)
    return artists


def _write_beside_points(panel: Panel, trace: dict, x: np.ndarray, y: np.ndarray):
    """Write the texts of a trace beside its points."""
    positions = np.broadcast_to(trace.get("textposition", "middle center"), len(x))
    for point_x, point_y, point_text, position in zip(x, y, texts(trace, len(x)), positions):
        vertical, horizontal = position.split()
        shift = (ASIDE.get(horizontal, 0), UPWARDS.get(vertical, 0))
        # plotly says on which side the text is, matplotlib which of its edges is at the point
        anchors = {"ha": OPPOSITE.get(horizontal, horizontal), "va": OPPOSITE.get(vertical, "center")}
        panel.ax.annotate(point_text, (point_x, point_y), shift, textcoords="offset points", zorder=4, **anchors)


def _filled(panel: Panel, trace: dict, colour: str) -> tuple[np.ndarray, np.ndarray, list]:
    """Fill below a line, or between it and the line before, and return a tuple of x and y (n,) and of a list of artists.

    Return x and y of the line, which is on top of its stack, and the artists of the area; these are empty if nothing is filled.
    """
    x, y = panel.at(trace)
    fill = trace.get("fill")
    stack = trace.get("stackgroup")
    floor = panel.tops.get(stack, 0)
    line_before = panel.tops.get("line")
    if stack:
        y = floor + np.nan_to_num(y)
        panel.tops[stack] = y
    elif fill == "tonexty" and line_before is not None:
        floor = np.interp(x, *line_before)
    panel.tops["line"] = (x, y)
    if not stack and fill not in ("tozeroy", "tonexty", "toself"):
        return x, y, []
    hatch = HATCHES.get(trace.get("fillpattern", {}).get("shape"))
    pale = "none"
    if not hatch:
        pale = mpl("colors").to_rgba(colour, 0.35)
    area = {"facecolor": trace.get("fillcolor", pale), "edgecolor": colour, "linewidth": 0, "hatch": hatch}
    if fill == "toself":
        return x, y, panel.ax.fill(x, y, **area)
    if trace.get("line", {}).get("shape") == "hv":
        area["step"] = "post"
    return x, y, [panel.ax.fill_between(x, floor, y, **area)]


def _draw_markers(panel: Panel, points: tuple, marker: dict, colour: str):
    """Draw markers and return them, a `PathCollection`; they are not cut at the border if the axes are as long as their data."""
    x, y = points
    drawn_points = np.arange(len(x))
    most_markers = marker.get("maxdisplayed", 0)
    if 0 < most_markers < len(x):
        drawn_points = np.linspace(0, len(x) - 1, most_markers).astype(int)
    fill = _of_points(marker.get("color", colour), drawn_points)
    marker_size = _of_points(marker.get("size", 6), drawn_points)
    symbols = np.atleast_1d(_of_points(marker.get("symbol", "circle"), drawn_points)).astype(str)
    edge = marker.get("line", {})
    edge_colour = edge.get("color", "face")
    usual_width = 0
    hollow = "-open" in symbols[0]
    thin = symbols[0].startswith(("x-thin", "line", "cross-thin"))
    if thin:
        edge_colour = "face"
    if hollow or thin:
        usual_width = 1.5
    markers = panel.ax.scatter(
        x[drawn_points],
        y[drawn_points],
        np.square(marker_size * POINT),
        fill,
        edgecolors=edge_colour,
        linewidths=edge.get("width", usual_width) * POINT,
        zorder=3,
        clip_on="range" in panel.x.about or "range" in panel.y.about,
    )
    if hollow:
        markers.set(edgecolor=fill, facecolor="none")
    paths = []
    for symbol in symbols:
        shape = mpl("markers").MarkerStyle(SYMBOLS.get(symbol.removesuffix("-open"), "o"))
        paths.append(shape.get_path().transformed(shape.get_transform()))
    markers.set_paths(paths)
    return markers


def _of_points(value, points: np.ndarray):
    """Return an array of the values of some points; a single value, which all points have, is returned as it is."""
    if np.ndim(value):
        return np.asarray(value)[points]
    return value


def _draw_whiskers(panel: Panel, trace: dict, points: tuple, colour: str):
    """Draw the error bars of a trace."""
    for direction in ("x", "y"):
        bar = trace.get(f"error_{direction}", {})
        if "array" not in bar:
            continue
        below = bar.get("arrayminus", bar["array"])
        lengths = {f"{direction}err": np.abs([below, bar["array"]])}
        ink = bar.get("color", colour)
        panel.ax.errorbar(*points, fmt="none", ecolor=ink, elinewidth=0.9, capsize=2, **lengths)


def bars(panel: Panel, trace: dict, colour: str) -> list:
    """Draw bars with whiskers and texts, and return the list of their artists; texts in bars are written later."""
    horizontal = trace.get("orientation") == "h"
    marker = trace.get("marker", {})
    fill = marker.get("color", colour)
    edge = marker.get("line", {})
    extents = _extents(panel, trace, horizontal)
    corners = _corners(extents, horizontal)
    rim = {"edgecolor": edge.get("color", INK), "linewidth": edge.get("width", 0) * POINT}
    polygons = mpl("collections").PolyCollection
    artists = [panel.ax.add_collection(polygons(corners, **rim, facecolor=fill))]
    if hatch := HATCHES.get(marker.get("pattern", {}).get("shape")):
        # the largest alone: in what is a few pixels wide no pattern shows, and each takes its time
        area = np.nan_to_num(extents.half_width * np.abs(extents.high - extents.low))
        largest = np.sort(np.argsort(-area, kind="stable")[:LARGEST])
        hatched = polygons(corners[largest], **rim, facecolor="none", hatch=hatch)
        artists.append(panel.ax.add_collection(hatched))
    length_side = panel.y
    ends = (extents.middle, extents.high)
    if horizontal:
        length_side = panel.x
        ends = (extents.high, extents.middle)
    if "base" not in trace:
        length_side.zero(panel.ax)
    _draw_whiskers(panel, trace, ends, style("text.color"))
    colours = np.resize(mpl("colors").to_rgba_array(fill), (len(corners), 4))
    outside = trace.get("textposition") == "outside"
    for bar_text, box, ink in zip(texts(trace, len(corners)), corners, _inks(colours)):
        if outside:
            _write_at_end(panel, bar_text, (box[1] + box[2]) / 2, horizontal)
        else:
            panel.later.append((bar_text, box, trace.get("insidetextfont", {}).get("color", ink)))
    return artists


def _write_at_end(panel: Panel, bar_text: str, bar_end: np.ndarray, horizontal: bool):
    """Write a text beyond the end of a bar."""
    if horizontal:
        panel.ax.annotate(bar_text, bar_end, (3, 0), textcoords="offset points", ha="left", va="center")
    else:
        panel.ax.annotate(bar_text, bar_end, (0, 2), textcoords="offset points", ha="center", va="bottom")


def _inks(fills: np.ndarray) -> np.ndarray:
    """Array of the text's colour on each bar, from its colour (n, 4), through which the page may shine: white on dark ones."""
    page = np.array(mpl("colors").to_rgb(style("figure.facecolor")))
    opacity = fills[:, 3:]
    blended = fills[:, :3] * opacity + page * (1 - opacity)
    return np.where(blended @ BRIGHTNESS > 0.5, INK, "#FFFFFF")


BRIGHTNESS = np.array([0.299, 0.587, 0.114])
"""Weights of red, green and blue in how bright a colour is."""


class Extents(NamedTuple):
    """Where bars are, each (n,): along the axis on which they stand, and along the one that shows their length."""

    middle: np.ndarray  # on the axis on which they stand
    half_width: np.ndarray
    low: np.ndarray  # where they begin
    high: np.ndarray  # where they end; below `low` if the value is negative


def _corners(extents: Extents, horizontal: bool) -> np.ndarray:
    """Array (n, 4, 2) of the corners of bars, as x and y."""
    left_edge = extents.middle - extents.half_width
    right_edge = extents.middle + extents.half_width
    low = extents.low
    high = extents.high
    corners = np.array([[left_edge, low], [left_edge, high], [right_edge, high], [right_edge, low]])
    corners = np.moveaxis(corners, -1, 0)
    if horizontal:
        return corners[..., ::-1]
    return corners


def _extents(panel: Panel, trace: dict, horizontal: bool) -> Extents:
    """Return the `Extents` of bars: middles, half widths and ends."""
    middle, bar_size = panel.at(trace)
    if horizontal:
        middle, bar_size = bar_size, middle
    width = trace.get("width")
    base = trace.get("base", 0.0)
    if width is None:
        # plotly's rule: traces that lie over each other are spaced each for itself
        neighbours = panel.bars
        if panel.mode == "overlay":
            neighbours = [trace]
        width = _usual_width(panel, neighbours, horizontal)
        if panel.mode == "group":
            width /= len(neighbours)
            rank = next(i for i, neighbour in enumerate(neighbours) if neighbour is trace)
            middle = middle + (rank - (len(neighbours) - 1) / 2) * width
    if "base" not in trace and panel.mode in ("stack", "relative"):
        stacks = list(zip(middle, bar_size < 0))
        base = [panel.tops.get(stack, 0.0) for stack in stacks]
        panel.tops.update(zip(stacks, base + np.nan_to_num(bar_size)))
    low = np.broadcast_to(np.asarray(base, float), middle.shape)
    widths = np.broadcast_to(np.asarray(width, float), middle.shape)
    return Extents(middle, widths / 2, low, low + bar_size)


def _usual_width(panel: Panel, traces: list[dict], horizontal: bool) -> float:
    """Return a float: three quarters of the least distance of bars; 0.75 if they stand on categories, or all at one place."""
    side = panel.x
    axis = 0
    if horizontal:
        side = panel.y
        axis = 1
    positions = np.concatenate([panel.at(trace)[axis] for trace in traces])
    distances = np.diff(np.unique(positions))
    distances = distances[distances > 0]
    if side.categories is not None or len(distances) == 0:
        return 0.75
    return 0.75 * distances.min()


def write_later(panel: Panel):
    """Write texts into those bars that have room."""
    left_limit, right_limit = sorted(panel.ax.get_xlim())
    bottom, top = sorted(panel.ax.get_ylim())
    for bar_text, box, ink in panel.later:
        visible = np.clip(box, (left_limit, bottom), (right_limit, top))
        width, height = np.ptp(panel.ax.transData.transform(visible), axis=0)
        if width > 6 * len(bar_text) + 3 and height > 8:
            panel.ax.text(*visible.mean(axis=0), bar_text, ha="center", va="center", fontsize=10 * POINT, color=ink)


def heat(panel: Panel, trace: dict, colour: str) -> list:
    """Draw a map of values, with their texts, and the meaning of its colours; return an empty list of artists."""
    heat_values = np.ma.masked_invalid(np.asarray(trace["z"], float))
    row_count, column_count = heat_values.shape
    x, y = panel.at({"x": range(column_count), "y": range(row_count)} | trace)
    x_borders = _borders(x, column_count)
    y_borders = _borders(y, row_count)
    colouring = {"vmin": trace.get("zmin"), "vmax": trace.get("zmax"), "linewidth": trace.get("xgap", 0) * POINT}
    if scale := trace.get("colorscale"):
        stops = [tuple(stop) for stop in scale]
        colouring["cmap"] = mpl("colors").LinearSegmentedColormap.from_list("", stops)
    mesh = panel.ax.pcolormesh(x_borders, y_borders, heat_values, edgecolors=style("figure.facecolor"), **colouring)
    if trace.get("showscale", True):
        bar = panel.ax.figure.colorbar(mesh, cax=panel.ax.inset_axes([1.02, 0, 0.025, 1]))
        bar.set_label(words(trace.get("colorbar", {}).get("title")))
        bar.outline.set_visible(False)
    middle_x, middle_y = np.meshgrid(_middles(x_borders), _middles(y_borders))
    cell_columns = {cell_column: np.ravel(trace[cell_column]) for cell_column in ("text", "z") if cell_column in trace}
    cell_texts = texts(trace | cell_columns, heat_values.size)
    fills = mesh.to_rgba(heat_values).reshape(-1, 4)
    for cell_x, cell_y, cell_text, fill in zip(middle_x.ravel(), middle_y.ravel(), cell_texts, fills):
        ink = INK
        if fill[:3] @ (0.3, 0.6, 0.1) < 0.5:
            ink = "white"
        panel.ax.text(cell_x, cell_y, cell_text, ha="center", va="center", color=ink).set_in_layout(False)
    return []


def _borders(positions: np.ndarray, count: int) -> np.ndarray:
    """Return an array of the borders (n + 1,) of cells: n middles get theirs, n + 1 borders are returned as they are."""
    if len(positions) != count:
        return positions
    if count > 1:
        return _middles(np.pad(positions, 1, "reflect", reflect_type="odd"))
    return _middles(positions + np.array([-1, 0, 1]))


def _middles(borders: np.ndarray) -> np.ndarray:
    """Array (n,) of the middles between borders (n + 1,)."""
    return (borders[1:] + borders[:-1]) / 2
