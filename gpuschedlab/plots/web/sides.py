"""Axes of a picture: plotly's description of one, and matplotlib's counterpart."""

import re
from html import unescape
from itertools import chain

import numpy as np

from gpuschedlab._extras import need

POLES = {"x": "bottom", "y": "left"}
"""Side of a panel on which the ticks of an axis stand, unless the layout says otherwise."""


def mpl(part: str):
    """Return a module of matplotlib, which is loaded when a picture is drawn."""
    return need(f"matplotlib.{part}", "pictures")


def style(name: str) -> str:
    """A colour of the picture that is being drawn: `text.color`, `figure.facecolor`."""
    return need("matplotlib", "pictures").rcParams[name]


def words(text) -> str:
    """Text without markup; an axis title or a tick's label."""
    if isinstance(text, dict):
        text = text.get("text")
    plain_lines = re.sub(r"<br ?/?>", "\n", str(text or ""))
    return unescape(re.sub(r"<[^>]*>", "", plain_lines))


def spelled(value, form: str = "") -> str:
    """Return a number as text in the format of d3, nearly; whatever else as it is."""
    if not isinstance(value, int | float | np.number):
        return str(value)
    if form.endswith(("d", "e", "f", "%")):
        number_text = format(value, form.replace("~", "").replace("d", ".0f"))
        if "~" in form and "." in number_text:
            return re.sub(r"\.?0+$", "", number_text)
        return number_text
    significant = "6"
    if digits := re.search(r"\.(\d+)", form):
        significant = digits[1]
    rounded = float(f"{value:.{significant}g}")
    if "," in form or not form:
        return f"{rounded:,.10g}"
    return f"{rounded:.10g}"


class Side:
    """One axis of a figure (`x`, `y2`), with the figure's `layout`, and a list of the `values` that traces have on it."""

    def __init__(self, name: str, layout: dict, values: list):
        self.way = name[0]
        self.about = layout.get(f"{self.way}axis{name[1:]}", {})
        overlaid = self.about.get("overlaying", "")
        below = layout.get(f"{self.way}axis{overlaid[1:]}", {})
        self.domain = tuple(self.about.get("domain", below.get("domain", (0, 1))))
        kind = self.about.get("type")
        dtype_kinds = {np.asarray(axis_data).dtype.kind for axis_data in values if len(axis_data)}
        self.log = kind == "log"
        self.dates = kind in ("date", None) and "M" in dtype_kinds
        self.categories = None
        if kind == "category" or (kind is None and dtype_kinds & {"U", "O"}):
            labels = [str(label) for label in chain(self.about.get("categoryarray", ()), *values)]
            self.categories = {label: float(i) for i, label in enumerate(dict.fromkeys(labels))}

    def at(self, values) -> np.ndarray:
        """Return an array of the positions of values (n,); nan if there is none."""
        if self.categories is not None:
            return np.array([self.categories.get(str(axis_value), np.nan) for axis_value in values], float)
        if self.dates:
            return mpl("dates").date2num(np.asarray(values, "M8[us]"))
        return np.asarray(values, float)

    def place(self, value, power: bool = False):
        """Return the position (float) of a value of the layout: itself if it is a number, or its power of ten."""
        if isinstance(value, str):
            return self.at([value])[0]
        if power and self.log and value is not None:
            return 10.0**value
        return value

    def zero(self, ax):
        """Let the axis hold 0, and begin there if nothing is less."""
        if self.log:
            return
        if self.way == "x":
            line = ax.axvline(0, linewidth=0)
        else:
            line = ax.axhline(0, linewidth=0)
        getattr(line.sticky_edges, self.way).append(0)

    def dress(self, ax, shown: bool):
        """Give matplotlib's axis the range, ticks and title of this one; texts stand there only if `shown`."""
        axis_facts = self.about
        axis = getattr(ax, f"{self.way}axis")
        if axis_facts.get("rangemode") in ("tozero", "nonnegative"):
            self.zero(ax)
        ends = axis_facts.get("range", self._ends())
        if ends is not None:
            set_limits = getattr(ax, f"set_{self.way}lim")
            set_limits(*(self.place(axis_end, True) for axis_end in ends))
        axis.set_inverted(axis.get_inverted() or axis_facts.get("autorange") == "reversed")
        pole = axis_facts.get("side", POLES[self.way])
        axis.set_ticks_position(pole)
        axis.set_label_position(pole)
        for axis_part in (axis, ax.spines[pole]):
            axis_part.set_visible(axis_facts.get("visible", True))
        if axis_facts.get("showgrid", True) and self.categories is None and "overlaying" not in axis_facts:
            ax.grid(True, axis=self.way)
        has_labels = bool(shown and axis_facts.get("showticklabels", True))
        tick_length = 0
        if has_labels and axis_facts.get("ticks") != "":
            tick_length = 4
        axis.set_tick_params(length=tick_length, **{f"label{pole}": has_labels})
        title = ""
        if shown:
            title = words(axis_facts.get("title"))
        axis.set_label_text(title)
        if not self.dates:  # those of dates are matplotlib's own
            self._mark(ax, axis)

    def _ends(self) -> tuple[float, float] | None:
        """Both ends of an axis of categories as a tuple, half a category beyond the first and the last; None for numbers."""
        if self.categories is None:
            return None
        return -0.5, max(len(self.categories), 1) - 0.5

    def _mark(self, ax, axis):
        """Set ticks and their texts."""
        ticker = mpl("ticker")
        tick_names = self._tick_names()
        axis.set_major_locator(self._locator(axis, ticker))
        axis.set_minor_locator(ticker.NullLocator())
        form = self.about.get("tickformat", "")

        def tick_text(value: float, _: int) -> str:
            if value in tick_names:
                return tick_names[value]
            return spelled(value, form)

        axis.set_major_formatter(ticker.FuncFormatter(tick_text))
        longest = max(map(len, tick_names.values()), default=0)
        if self.way == "x" and 6.5 * longest * len(tick_names) > ax.bbox.width:
            for label in axis.get_majorticklabels():
                label.set(ha="right", rotation=30, rotation_mode="anchor")

    def _tick_names(self) -> dict[float, str]:
        """Return a dict of texts by position; empty if ticks are numbers."""
        if "tickvals" in self.about:
            positions = self.at(self.about["tickvals"]).tolist()
            return dict(zip(positions, map(words, self.about.get("ticktext", ()))))
        if self.categories is not None:
            return {position: words(category_name) for category_name, position in self.categories.items()}
        return {}

    def _locator(self, axis, ticker):
        """Return matplotlib's `Locator`, a rule for the positions of ticks."""
        if "tickvals" in self.about:
            return ticker.FixedLocator(self.at(self.about["tickvals"]).tolist())
        if self.categories is not None:
            return ticker.FixedLocator(list(self.categories.values()), 2 * axis.get_tick_space())
        low, high = sorted(axis.get_view_interval())
        if self.log:
            if high < 100 * low:
                return ticker.LogLocator(subs=(1, 2, 5))
            return ticker.LogLocator(subs=(1,))
        step = self.about.get("dtick")
        if isinstance(step, int | float) and high - low < 60 * step:
            return ticker.MultipleLocator(step, self.about.get("tick0", 0))
        return ticker.MaxNLocator(max(axis.get_tick_space() // 2, 2), steps=[1, 2, 5, 10])
