"""Metrics as a person reads them: a label for each, and each time in its own unit, by one rule for tables, reports and explorers."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from gpuschedlab.metrics.summaries import METRICS
from gpuschedlab.table_display import SCALES as SCALES
from gpuschedlab.table_display import Table, aligned, duration, number, page

SHARES = ("late", "utilisation", "fragmentation", "unfair_fraction", "slo_attainment", "slo_violation")
EXACT = ("seconds",)  # times of this machine, not of the simulation: always in s
APART = 1.03
"""Ratio of two times from which on they are written differently."""
SECONDS = {name: seconds for seconds, name in SCALES}
"""Seconds of units by their names."""


def in_words(frame: pl.DataFrame) -> Table:
    """Return a `Table` in which columns that are metrics have their labels and units; others stay as they are."""
    metric_labels = {metric_name: METRICS[metric_name].label for metric_name in frame.columns if metric_name in METRICS}
    units = {metric_name: METRICS[metric_name].unit for metric_name in metric_labels}
    units |= {metric_name: "%" for metric_name in metric_labels if metric_name in SHARES}
    return Table(frame, metric_labels, {metric_name: unit for metric_name, unit in units.items() if unit})


class Column(NamedTuple):
    """A metric of several runs: its `label`, the `unit` of its cells ("" for a plain number or where each has its own), the `cells`."""

    label: str
    unit: str
    cells: list[str]


def column(name: str, values: list) -> Column:
    """Write values of a metric as a `Column`: times each in its own unit (`duration`), GPU-h, shares in %; - for None."""
    metric = METRICS[name]
    if name in SHARES:
        return Column(metric.label, "%", [_percent(metric_value) for metric_value in values])
    if metric.unit == "GPU-s":
        return Column(metric.label, "GPU-h", [_formatted(metric_value, 1 / 3600) for metric_value in values])
    if metric.unit != "s":
        return Column(metric.label, metric.unit, [_formatted(metric_value) for metric_value in values])
    if name in EXACT:
        return Column(metric.label, "s", [_seconds(metric_value) for metric_value in values])
    return Column(metric.label, "", [_duration(metric_value) for metric_value in values])


def _seconds(seconds: float | None) -> str:
    """Format a time in s; "-" for None."""
    if seconds is None:
        return "-"
    return f"{seconds:,.3f}"


def _duration(seconds: float | None) -> str:
    """Format a time in its own unit; "-" for None."""
    if seconds is None:
        return "-"
    return duration(seconds)


def _percent(share: float | None) -> str:
    """Format a share in percent, with one decimal below 100 so that a column is aligned; "-" for None."""
    if share is None:
        return "-"
    hundredths = 100.0 * share
    if hundredths >= 99.95:
        return f"{hundredths:,.0f}"
    return f"{hundredths:,.1f}"


def _formatted(metric_value, factor: float = 1.0) -> str:
    """Format a value: a count in full, any other number in three figures; "-" for None."""
    if metric_value is None:
        return "-"
    if isinstance(metric_value, int) and factor == 1.0:
        return f"{metric_value:,}"
    return number(metric_value * factor)


def _with_unit(cell: str, unit: str) -> str:
    """Write a cell with its unit, if it has a value, as text."""
    if cell == "-" or not unit:
        return cell
    return f"{cell} {unit}"


@dataclass(frozen=True)
class MetricTable:
    """A frame of metrics, shown with labels and units: "average JCT" and "2.3 h" in place of `jct_mean` and 8274.035.

    Parameters
    ----------
    frame : polars.DataFrame
        `policy` and metrics by name, as `gpuschedlab.metrics.compare` returns.

    Examples
    --------
    >>> shown = MetricTable(pl.DataFrame({"policy": ["fifo"], "jct_mean": [8274.035], "preemptions": [12]}))
    >>> print(shown)
    policy  average JCT  preemptions
    fifo          2.3 h           12

    Raises
    ------
    KeyError
        A column that is not in `METRICS`.
    """

    frame: pl.DataFrame

    def _columns(self) -> Iterator[tuple[str, list[str]]]:
        for metric_name in self.frame.columns[1:]:
            metric_label, unit, metric_cells = column(metric_name, self.frame[metric_name].to_list())
            yield metric_label, [_with_unit(cell, unit) for cell in metric_cells]

    def _shown(self) -> tuple[list[str], list[list[str]]]:
        """Return a tuple: the list of heads, and a list of the cells of each column."""
        shown_columns = [list(map(str, self.frame.to_series(0)))]
        column_heads = [self.frame.columns[0]]
        for metric_label, metric_cells in self._columns():
            column_heads.append(metric_label)
            shown_columns.append(metric_cells)
        return column_heads, shown_columns

    def __str__(self) -> str:
        return aligned(*self._shown())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        hints = {METRICS[metric_name].label: METRICS[metric_name].doc for metric_name in self.frame.columns[1:]}
        return page(*self._shown(), hints)


def span(seconds: float, unit: str = "", figures: int = 2) -> str:
    """Write a time as text in two or more figures, in `unit` or in one of which there is one; days from four of them on."""
    if seconds != seconds:
        return "none"
    if unit:
        scale = SECONDS[unit]
    else:
        scale, unit = _unit(seconds)
    time_in_unit = seconds / scale
    if unit == "s" and time_in_unit < 9.95:
        return f"{float(f'{time_in_unit:.{figures}g}'):g} s"
    if time_in_unit >= 100 or unit == "s":
        shown_digits = 0
    elif time_in_unit >= 9.95:
        shown_digits = figures - 2
    else:
        shown_digits = figures - 1
    return f"{time_in_unit:,.{shown_digits}f} {unit}"


def round_span(seconds: float) -> float:
    """Return the longest time (s) that is 1, 2 or 5 times a power of ten in its unit, and not above the given one; 0 for 0.

    Examples
    --------
    >>> round_span(86.0), round_span(0.34), round_words(600.0), round_words(0.2)
    (60.0, 0.2, '10 min', '0.2 s')
    """
    if not seconds > 0:
        return 0.0
    scale, _ = _largest_unit(seconds)
    time_in_unit = seconds / scale
    power = math.floor(math.log10(time_in_unit))
    steps = [float(f"{digit}e{power}") for digit in (1, 2, 5)]
    shorter = [step for step in steps if step <= time_in_unit]
    return scale * max(shorter, default=steps[0])


def round_words(seconds: float) -> str:
    """Write a time of `round_span` as text."""
    scale, unit = _largest_unit(seconds)
    return f"{seconds / scale:g} {unit}"


def _largest_unit(seconds: float) -> tuple[float, str]:
    """Return the seconds and name, a tuple, of the largest unit of which a time has one or more; seconds if it has none."""
    return next((unit for unit in SCALES[::-1] if seconds >= unit[0]), SCALES[0])


def _unit(seconds: float) -> tuple[float, str]:
    """Return the seconds and name, a tuple, of the unit in which a time is written."""
    scale, unit_name = _largest_unit(seconds)
    if unit_name == "d" and seconds < 4 * scale:
        return SCALES[-2]
    return scale, unit_name


def two_spans(one: float, other: float) -> tuple[str, ...]:
    """Return two times as texts, a tuple, in one unit unless that leaves less than 0.95 of it.

    Each has three figures if two do not tell them apart by 3 %.
    """
    longer_time = max(one, other)
    shorter_time = min(one, other)
    scale, unit = _unit(longer_time)
    if shorter_time / scale < 0.95:
        unit = ""
    span_texts = (span(one, unit), span(other, unit))
    if span_texts[0] == span_texts[1] and longer_time >= APART * shorter_time:
        return span(one, unit, 3), span(other, unit, 3)
    return span_texts


def percent(share: float) -> str:
    """Write a share in percent as text: two figures, one below 1 %."""
    if 0 < share < 0.001:
        return "under 0.1 %"
    if 0 < share < 0.0995:
        return f"{100 * share:.1f} %"
    return f"{100 * share:.0f} %"


def times_of(ratio: float) -> str:
    """Write how much sooner a ratio of times is, as text: whole times, halves below 2.75, and percent below 1.95."""
    if ratio < 1.95:
        return f"{100 * (1 - 1 / ratio):.0f} %"
    if ratio < 2.75:
        return f"{round(2 * ratio) / 2:g} times"
    return f"{ratio:,.0f} times"


def count(number: int) -> str:
    """Write a number of jobs as text."""
    if number == 1:
        return "1 job"
    return f"{number:,} jobs"
