"""Lines, bars, points, lanes and maps: the shortest ways from numbers to a figure."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.plots.kinds.style import HOUR, Drawing, axis, bar, bars, line, looks, marks, time_axis


class Chart(NamedTuple):
    """Fields that lines, bars and points share: those of `Lines`."""

    title: str
    x_title: str | dict
    y_title: str | dict
    x: np.ndarray | None
    values: dict[str, np.ndarray | dict]
    hover: str | None = None
    look: dict | None = None
    layout: dict | None = None

    def draw(self) -> Drawing:
        """Return the `Drawing` with a trace for each name."""
        layout = {"showlegend": True} if self.layout is None else self.layout
        return Drawing.of(self.traces(), self.title, x=self.x_title, y=self.y_title, **layout)

    def traces(self) -> list[tuple[dict, dict]]:
        """Return a list of pairs of a changing and a fixed part, one a trace, which a `Drawing` of several kinds is made of."""
        chart_traces = []
        for i, (trace_look, (trace_name, trace_values)) in enumerate(zip(looks(self.values), self.values.items())):
            trace_data = trace_values if isinstance(trace_values, dict) else {"x": self.x, "y": trace_values}
            hover = self.hover and self.hover.replace("NAME", trace_name)
            chart_traces.append((trace_data | {"name": trace_name}, self._styled(trace_look, i, hover)))
        return chart_traces


class Lines(Chart):
    """Lines over a common axis: title, x_title, y_title : words, with units; x : (n,); values : (n,) by name of the line.

    A line that has an x of its own is a dict of plotly's `x`, `y` and whatever else its `hover` shows; NAME in it is the line's own.
    An axis may be a dict, too; `look` is of the lines (`width`, `shape`), `layout` as in `Drawing.of`.

    Examples
    --------
    >>> from gpuschedlab import plots
    >>> mine = plots.Lines("Squares", "x", "x squared", np.arange(3), {"squares": np.arange(3) ** 2})
    >>> plots.figure(mine).layout.title.text
    'Squares'
    """

    __slots__ = ()

    def _styled(self, line_look: int, i: int, hover: str | None) -> dict:
        return line(line_look, hover, i, **self.look or {})


class Bars(Chart):
    """Bars side by side over names x, a kind for each name of values (n,); fields as in `Lines`."""

    __slots__ = ()

    def _styled(self, bar_look: int, i: int, hover: str | None) -> dict:
        hover_look = {"hovertemplate": hover} if hover else {}
        return {"type": "bar", "marker": bar(i)} | hover_look | (self.look or {})


class Points(Chart):
    """Points, a colour and a symbol for each name of values; fields as in `Lines`, `look` is of the markers."""

    __slots__ = ()

    def _styled(self, point_look: int, i: int, hover: str | None) -> dict:
        marker = {marker_field: line(i)["marker"][marker_field] for marker_field in ("color", "symbol")}
        return marks(marker | (self.look or {}), hover)


class Lanes(NamedTuple):
    """Stretches of jobs by group, one row per job.

    title : words; jobs : (J,) names in order of submission; groups : names of the groups; row, group : (k,) job and group of each
    stretch; gpus : (k,) GPUs; begin, end : (k,) s; hover : the text of a stretch, NAME its group; colours : of some groups
    by name; over : traces over the lanes, as in `Drawing.of`; side : more of the time axis.
    """

    title: str
    jobs: tuple[str, ...]
    groups: tuple[str, ...]
    row: np.ndarray
    group: np.ndarray
    gpus: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    hover: str
    colours: dict[str, str] | None = None
    over: tuple = ()
    side: dict | None = None

    def draw(self) -> Drawing:
        """Return the `Drawing`, a colour per group."""
        traces = []
        for i, group_name in enumerate(self.groups):
            lane_look = bars(
                bar(i, (self.colours or {}).get(group_name)), self.hover.replace("NAME", group_name), name=group_name
            )
            traces.append((self.stretches(self.group == i), lane_look))
        y = axis("job", autorange="reversed", showticklabels=False, type="category", categoryorder="array")
        live = {"title_text": self.title, "yaxis_categoryarray": list(self.jobs)}
        x = time_axis(**self.side or {})
        return Drawing.of([*traces, *self.over], live, barmode="overlay", x=x, y=y)

    def stretches(self, mine) -> dict:
        """Return the bars of some stretches as a dict."""
        bar_spans = {"base": self.begin[mine] / HOUR, "x": (self.end - self.begin)[mine] / HOUR}
        return {"y": [self.jobs[job_row] for job_row in self.row[mine]]} | bar_spans | {"customdata": self.gpus[mine]}


SHADES = ("#FFFFFF", "#D6E4F0", "#8FB3D3", "#456F99")
"""From the least value to the greatest."""


class Landscape(NamedTuple):
    """title, x_title, y_title, z_title : words; x : (n,); y : (m,); z : (m, n) values; paths : (k, 2) points by name of the path.

    A table has a text in each cell, and says with `hover`, `colours` and `look` how it looks.

    Examples
    --------
    >>> from gpuschedlab import plots
    >>> x = np.linspace(-1, 1, 5)
    >>> bowl = plots.Landscape("Bowl", "x", "y", "height", x, x, x**2 + x[:, None] ** 2, {"down": np.array([[1, 1], [0, 0]])})
    >>> [trace.type for trace in plots.figure(bowl).data]
    ['heatmap', 'scatter']
    """

    title: str
    x_title: str | dict
    y_title: str | dict
    z_title: str
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    paths: dict[str, np.ndarray] | None = None
    text: list | None = None
    hover: str = "%{x:.3f}, %{y:.3f}: %{z:.2f}<extra></extra>"
    colours: tuple[str, ...] = SHADES
    look: dict | None = None

    def draw(self, *over) -> Drawing:
        """Return the `Drawing`: the map, and over it a line for each path, with a marker where it turns, or other traces."""
        bar = {"colorbar": {"title": {"text": self.z_title}, "thickness": 12}} if self.z_title else {"showscale": False}
        # Colours and places, not the name of a scale: plotly.js has RdBu and others the other way round than plotly's Python.
        scale = [[i / (len(self.colours) - 1), colour] for i, colour in enumerate(self.colours)]
        map_look = {"type": "heatmap", "texttemplate": "%{text}", "hovertemplate": self.hover, "colorscale": scale}
        map_look |= bar | (self.look or {})
        map_cells = {"x": self.x, "y": self.y, "z": self.z}
        map_cells, map_look = (
            (map_cells | {"text": self.text}, map_look) if self.text else (map_cells, map_look | {"texttemplate": ""})
        )
        traces = [(map_cells, map_look), *over]
        live = {"title_text": self.title}
        for i, (path_name, path) in enumerate((self.paths or {}).items()):
            traces.append(({"x": path[:, 0], "y": path[:, 1], "name": path_name}, line(2 * i + 1, place=i)))
        if self.paths:
            live |= {
                f"{side}axis_range": [float(map_ends[0]), float(map_ends[-1])]
                for side, map_ends in (("x", self.x), ("y", self.y))
            }
        legend = {"showlegend": True} if self.paths else {}
        return Drawing.of(traces, live, x=self.x_title, y=self.y_title, **legend)
