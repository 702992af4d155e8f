"""Metrics as a person reads them: a label for each, and each time in its own unit, by one rule for tables, reports and explorers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from gpuschedlab.metrics.summaries import METRICS
from gpuschedlab.table_display import SCALES as SCALES
from gpuschedlab.table_display import Table, aligned, duration, number, page

SHARES = ("late", "utilisation", "fragmentation", "unfair_fraction", "slo_attainment", "slo_violation")
EXACT = ("seconds",)  # times of this machine, not of the simulation: always in s


def in_words(frame: pl.DataFrame) -> Table:
    """Return a table in which columns that are metrics have their labels and units; others stay as they are."""
    known = [name for name in frame.columns if name in METRICS]
    names = {name: METRICS[name].label for name in known}
    units = {name: "%" if name in SHARES else METRICS[name].unit for name in known}
    return Table(frame, names, {name: unit for name, unit in units.items() if unit})


class Column(NamedTuple):
    """A metric of several runs: its `label`, the `unit` of its cells ("" for a plain number or where each has its own), the `cells`."""

    label: str
    unit: str
    cells: list[str]


def column(name: str, values: list) -> Column:
    """Values of a metric: times each in its own unit (`duration`), GPU-time in GPU-h, shares in %; - for None."""
    metric = METRICS[name]
    if name in SHARES:
        return Column(metric.label, "%", [_percent(v) for v in values])
    if metric.unit == "GPU-s":
        return Column(metric.label, "GPU-h", [_formatted(v, 1 / 3600) for v in values])
    if metric.unit != "s":
        return Column(metric.label, metric.unit, [_formatted(v) for v in values])
    if name in EXACT:
        return Column(metric.label, "s", ["-" if v is None else f"{v:,.3f}" for v in values])
    return Column(metric.label, "", ["-" if v is None else duration(v) for v in values])


def _percent(share: float | None) -> str:
    """Format a share in percent, with one decimal below 100 so that a column is aligned; "-" for None."""
    if share is None:
        return "-"
    percent = 100.0 * share
    return f"{percent:,.{0 if percent >= 99.95 else 1}f}"


def _formatted(value, factor: float = 1.0) -> str:
    """Format a value: a count in full, any other number in three figures; "-" for None."""
    if value is None:
        return "-"
    if isinstance(value, int) and factor == 1.0:
        return f"{value:,}"
    return number(value * factor)


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
        for name in self.frame.columns[1:]:
            label, unit, cells = column(name, self.frame[name].to_list())
            yield label, [cell if cell == "-" else f"{cell} {unit}".rstrip() for cell in cells]

    def _shown(self) -> tuple[list[str], list[list[str]]]:
        """Return heads, and the cells of each column."""
        columns = [list(map(str, self.frame.to_series(0)))]
        heads = [self.frame.columns[0]]
        for label, cells in self._columns():
            heads.append(label)
            columns.append(cells)
        return heads, columns

    def __str__(self) -> str:
        return aligned(*self._shown())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        hints = {METRICS[name].label: METRICS[name].doc for name in self.frame.columns[1:]}
        return page(*self._shown(), hints)
