"""Axes of a picture: plotly's description of one, and matplotlib's counterpart."""

import re
from html import unescape

import numpy as np

from gpuschedlab._extras import need
from gpuschedlab.plots.style import GRID

SLATE = "#9AA5B1"


def mpl(part: str):
    """Module of matplotlib, which is loaded when a picture is drawn."""
    return need(f"matplotlib.{part}", "pictures")


def words(text) -> str:
    """Text without markup; an axis title or a tick's label.

    Examples
    --------
    >>> words({"text": "<b>a</b><br>b &amp; c"}).splitlines()
    ['a', 'b & c']
    """
    text = (text.get("text") if isinstance(text, dict) else text) or ""
    return unescape(re.sub(r"<[^>]*>", "", re.sub(r"<br ?/?>", "\n", str(text))))


def spelled(value, form: str = "") -> str:
    """Number in the format of d3, nearly; whatever else as it is.

    Examples
    --------
    >>> spelled(1234.5678, ",.3~r"), spelled(0.25, ".0%"), spelled(1.50, ".2~f"), spelled("a", ".2f")
    ('1,230', '25%', '1.5', 'a')
    """
    if not isinstance(value, int | float | np.number) or (form and form[-1] not in "rsgdfe%~"):
        return str(value)
    if not form or form[-1] in "rsg~":
        digits = re.search(r"\.(\d+)", form)
        value = float(f"{value:.{digits[1] if digits else 6}g}")
        return f"{value:,.10g}" if "," in form or not form else f"{value:.10g}"
    text = format(int(value) if form[-1] == "d" else value, form.replace("~", ""))
    return re.sub(r"\.?0+$", "", text) if "~" in form and "." in text else text


class Side:
    """One axis of a figure: `x`, `y2`; its values are positions once all traces on it are known.

    Parameters
    ----------
    name : str
        As a trace names it.
    layout : dict
        Of the figure.
    values : list of array
        What the traces have on it.
    """

    def __init__(self, name: str, layout: dict, values: list):
        self.name = name
        self.about = layout.get(f"{name[0]}axis{name[1:]}", {})
        self.anchor = self.about.get("anchor", "y" if name[0] == "x" else "x")
        below = layout.get(f"{name[0]}axis{str(self.about.get('overlaying', ''))[1:]}", {})
        self.domain = self.about.get("domain") or below.get("domain") or [0, 1]
        self.log = self.about.get("type") == "log"
        named = any(np.asarray(v).dtype.kind in "UO" for v in values if len(v))
        self.categories = None
        if self.about.get("type") == "category" or (named and self.about.get("type") is None):
            known = [*self.about.get("categoryarray", ()), *(each for v in values for each in v)]
            self.categories = {name: i for i, name in enumerate(dict.fromkeys(map(str, known)))}

    def at(self, values) -> np.ndarray:
        """Positions of values (n,); nan where there is none."""
        if self.categories is not None:
            return np.array([self.categories.get(str(v), np.nan) for v in values], float)
        values = np.asarray(values)
        return values if values.dtype.kind == "M" else values.astype(float)

    def dress(self, ax, shown: bool, zero: bool, pixels: float):
        """Give matplotlib's axis the scale, range, ticks and title of this one.

        Parameters
        ----------
        ax : matplotlib.axes.Axes
            Whose axis it is.
        shown : bool
            Whether ticks and title stand here, not at another panel with the same axis.
        zero : bool
            Whether 0 is in its range.
        pixels : float
            Its length.
        """
        way, about = self.name[0], self.about
        axis, pole = getattr(ax, f"{way}axis"), "bottom" if way == "x" else "left"
        if self.log:
            getattr(ax, f"set_{way}scale")("log")
        self._limit(getattr(ax, f"get_{way}lim"), getattr(ax, f"set_{way}lim"), zero)
        if about.get("visible") is False:
            axis.set_visible(False)
            ax.spines[pole].set_visible(False)
            return
        if about.get("showgrid", True) and self.categories is None and not about.get("overlaying"):
            ax.grid(True, axis=way, color=GRID, linewidth=0.75)
        self._mark(axis, pixels)
        labels = shown and about.get("showticklabels", True)
        if about.get("side") in ("right", "top"):
            getattr(axis, f"tick_{about['side']}")()
            axis.set_label_position(about["side"])
            pole = about["side"]
            ax.spines[pole].set_visible(True)
        ticks = labels and about.get("ticks", "outside") != ""
        axis.set_tick_params(length=4 if ticks else 0, **{f"label{pole}": bool(labels)})
        if shown:
            axis.set_label_text(words(about.get("title")))

    def _limit(self, get, limit, zero: bool):
        low, high = get()
        if self.categories is not None:
            low, high = -0.5, max(len(self.categories), 1) - 0.5
        if zero and not self.log:
            low, high = (0 if low > 0 or zero == "from" else low), max(high, 0)
        given = self.about.get("range")
        if given is not None and None not in list(given):
            low, high = (10.0 ** np.asarray(given, float)) if self.log else self._ends(given)
        limit(high, low) if self.about.get("autorange") == "reversed" else limit(low, high)

    def _ends(self, given):
        """Range (2,), of dates where it has dates."""
        return np.asarray(given, "M8[us]") if isinstance(given[0], str) else given

    def _mark(self, axis, pixels: float):
        """Ticks and their texts."""
        about, ticker = self.about, mpl("ticker")
        if about.get("tickvals") is not None:
            places, names = list(about["tickvals"]), about.get("ticktext")
            names = [spelled(v) for v in places] if names is None else [words(t) for t in names]
            if self.categories is not None:
                places = self.at(places)
        elif self.categories is not None:
            step = 1 + int(len(self.categories) * 13 // max(pixels, 13))
            names = [words(name) for name in self.categories][::step]
            places = np.arange(len(self.categories))[::step]
        else:
            self._scale(axis, pixels)
            return
        axis.set_major_locator(ticker.FixedLocator(places))
        axis.set_major_formatter(ticker.FixedFormatter(names))
        axis.set_minor_locator(ticker.NullLocator())
        if self.name[0] == "x" and 6.5 * max(map(len, names), default=0) * len(names) > pixels:
            axis.set_tick_params(labelrotation=30)
            for label in axis.get_majorticklabels():
                label.set(ha="right", rotation_mode="anchor")

    def _scale(self, axis, pixels: float):
        """Ticks at round numbers; those of dates are matplotlib's own."""
        ticker = mpl("ticker")
        form, step = self.about.get("tickformat", ""), self.about.get("dtick")
        low, high = sorted(axis.get_view_interval())
        if self.log:
            near = low > 0 and high / low < 100
            axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if near else (1,), numticks=12))
        elif axis.have_units():
            return
        elif isinstance(step, int | float) and step > 0 and (high - low) / step < 60:
            axis.set_major_locator(ticker.MultipleLocator(step, offset=self.about.get("tick0", 0)))
        else:
            axis.set_major_locator(
                ticker.MaxNLocator(max(2, int(pixels / (75 if self.name[0] == "x" else 45))), steps=[1, 2, 5, 10])
            )
        axis.set_minor_locator(ticker.NullLocator())
        axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: spelled(value, form)))
