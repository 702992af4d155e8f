"""Axes of a picture: plotly's description of one, and matplotlib's counterpart."""

import re
from html import unescape

import numpy as np

from gpuschedlab._extras import need


def mpl(part: str):
    """Module of matplotlib, which is loaded when a picture is drawn."""
    return need(f"matplotlib.{part}", "pictures")


def style(name: str) -> str:
    """A colour of the picture that is being drawn: `text.color`, `figure.facecolor`."""
    return need("matplotlib", "pictures").rcParams[name]


def words(text) -> str:
    """Text without markup; an axis title or a tick's label."""
    text = (text.get("text") if isinstance(text, dict) else text) or ""
    return unescape(re.sub(r"<[^>]*>", "", re.sub(r"<br ?/?>", "\n", str(text))))


def spelled(value, form: str = "") -> str:
    """Number in the format of d3, nearly; whatever else as it is."""
    if not isinstance(value, int | float | np.number):
        return str(value)
    if form.endswith(("d", "e", "f", "%")):
        text = format(value, form.replace("~", "").replace("d", ".0f"))
        return re.sub(r"\.?0+$", "", text) if "~" in form and "." in text else text
    digits = re.search(r"\.(\d+)", form)  # significant ones
    return format(float(f"{value:.{digits[1] if digits else 6}g}"), ",.10g" if "," in form or not form else ".10g")


class Side:
    """One axis of a figure (`x`, `y2`), with the figure's `layout`, and a list of the `values` that traces have on it."""

    def __init__(self, name: str, layout: dict, values: list):
        self.way, self.about = name[0], layout.get(f"{name[0]}axis{name[1:]}", {})
        below = layout.get(f"{name[0]}axis{self.about.get('overlaying', '')[1:]}", {})
        self.domain = tuple(self.about.get("domain", below.get("domain", (0, 1))))
        kind = self.about.get("type")
        kinds = {np.asarray(v).dtype.kind for v in values if len(v)}
        self.log = kind == "log"
        self.dates = kind in ("date", None) and "M" in kinds
        self.categories = None
        if kind == "category" or (kind is None and kinds & {"U", "O"}):
            known = [*self.about.get("categoryarray", ()), *(each for v in values for each in v)]
            self.categories = {name: float(i) for i, name in enumerate(dict.fromkeys(map(str, known)))}

    def at(self, values) -> np.ndarray:
        """Positions of values (n,); nan where there is none."""
        if self.categories is not None:
            return np.array([self.categories.get(str(v), np.nan) for v in values], float)
        return mpl("dates").date2num(np.asarray(values, "M8[us]")) if self.dates else np.asarray(values, float)

    def place(self, value, power: bool = False):
        """Position of a value of the layout, which are positions if they are numbers, or their powers of ten."""
        if isinstance(value, str):
            return self.at([value])[0]
        return 10.0**value if power and self.log and value is not None else value

    def zero(self, ax):
        """Let the axis hold 0, and begin there where nothing is less."""
        if not self.log:
            line = (ax.axvline if self.way == "x" else ax.axhline)(0, linewidth=0)
            getattr(line.sticky_edges, self.way).append(0)

    def dress(self, ax, shown: bool):
        """Give matplotlib's axis the range, ticks and title of this one; texts stand there only if `shown`."""
        way = self.way
        about = self.about
        axis = getattr(ax, f"{way}axis")
        pole = about.get("side", "bottom" if way == "x" else "left")
        if about.get("rangemode") in ("tozero", "nonnegative"):
            self.zero(ax)
        ends = None if self.categories is None else (-0.5, max(len(self.categories), 1) - 0.5)
        if (ends := about.get("range", ends)) is not None:
            getattr(ax, f"set_{way}lim")(*(self.place(end, True) for end in ends))
        axis.set_inverted(axis.get_inverted() or about.get("autorange") == "reversed")
        axis.set_ticks_position(pole)
        axis.set_label_position(pole)
        for part in (axis, ax.spines[pole]):
            part.set_visible(about.get("visible", True))
        if about.get("showgrid", True) and self.categories is None and "overlaying" not in about:
            ax.grid(True, axis=way)
        labels = bool(shown and about.get("showticklabels", True))
        axis.set_tick_params(length=4 if labels and about.get("ticks") != "" else 0, **{f"label{pole}": labels})
        axis.set_label_text(words(about.get("title")) if shown else "")
        if not self.dates:  # those of dates are matplotlib's own
            self._mark(ax, axis)

    def _mark(self, ax, axis):
        """Set ticks and their texts."""
        about, ticker, names, low_high = self.about, mpl("ticker"), {}, sorted(axis.get_view_interval())
        if "tickvals" in about:
            places = self.at(about["tickvals"]).tolist()
            names = dict(zip(places, map(words, about.get("ticktext", ()))))
            locator = ticker.FixedLocator(places)
        elif self.categories is not None:
            names = {at: words(name) for name, at in self.categories.items()}
            locator = ticker.FixedLocator(list(names), 2 * axis.get_tick_space())
        elif self.log:
            locator = ticker.LogLocator(subs=(1, 2, 5) if low_high[1] < 100 * low_high[0] else (1,))
        elif isinstance(step := about.get("dtick"), int | float) and np.ptp(low_high) < 60 * step:
            locator = ticker.MultipleLocator(step, about.get("tick0", 0))
        else:
            locator = ticker.MaxNLocator(max(axis.get_tick_space() // 2, 2), steps=[1, 2, 5, 10])
        axis.set_major_locator(locator)
        axis.set_minor_locator(ticker.NullLocator())
        form = about.get("tickformat", "")
        axis.set_major_formatter(ticker.FuncFormatter(lambda v, _: names[v] if v in names else spelled(v, form)))
        if self.way == "x" and 6.5 * max(map(len, names.values()), default=0) * len(names) > ax.bbox.width:
            for label in axis.get_majorticklabels():
                label.set(ha="right", rotation=30, rotation_mode="anchor")
