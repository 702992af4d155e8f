"""Metrics as a person reads them: a label for each, and each time in its own unit, by one rule for tables, reports and explorers."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

import polars as pl

from gpuschedlab.metrics.summaries import METRICS

SCALES = ((1.0, "s"), (60.0, "min"), (3600.0, "h"), (86_400.0, "d"))
SHARES = ("late", "utilisation", "fragmentation", "unfair_fraction", "slo_attainment", "slo_violation")
EXACT = ("seconds",)  # times of this machine, not of the simulation: always in s


def duration(seconds: float) -> str:
    """Format a time in the largest unit of which there is one, in three figures: the rule of all tables, reports and explorers."""
    scale, unit = next((each for each in reversed(SCALES) if seconds >= each[0]), SCALES[0])
    return f"{seconds / scale:.3g} {unit}"


class Column(NamedTuple):
    """A metric of several runs: its `label`, the `unit` of its cells ("" for a plain number or where each has its own), the `cells`."""

    label: str
    unit: str
    cells: list[str]


def column(name: str, values: list) -> Column:
    """Values of a metric: times each in its own unit (`duration`), GPU-time in GPU-h, shares in %; - for None."""
    metric = METRICS[name]
    if name in SHARES:
        return Column(metric.label, "%", [_formatted(v, 100.0, 1) for v in values])
    if metric.unit == "GPU-s":
        return Column(metric.label, "GPU-h", [_formatted(v, 1 / 3600, 2) for v in values])
    if metric.unit != "s":
        whole = all(v is None or isinstance(v, int) for v in values)
        return Column(metric.label, metric.unit, [_formatted(v, 1.0, 0 if whole else 3) for v in values])
    if name in EXACT:
        return Column(metric.label, "s", [_formatted(v, 1.0, 3) for v in values])
    return Column(metric.label, "", ["-" if v is None else duration(v) for v in values])


def _formatted(value, factor: float, digits: int) -> str:
    return "-" if value is None else f"{value * factor:,.{digits}f}"


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

    def __str__(self) -> str:
        first, *others = [[self.frame.columns[0], *self.frame.to_series(0)], *([k, *v] for k, v in self._columns())]
        aligned = [[f"{cell:<{max(map(len, first))}}" for cell in first]]
        aligned += [[f"{cell:>{max(map(len, cells))}}" for cell in cells] for cells in others]
        return "\n".join("  ".join(row).rstrip() for row in zip(*aligned))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        first, *names = self.frame.columns
        head = f'<th scope="col">{escape(first)}</th>'
        head += "".join(f'<th scope="col" title="{escape(METRICS[n].doc)}">{METRICS[n].label}</th>' for n in names)
        body = ""
        for name, *cells in zip(self.frame.to_series(0), *(cells for _, cells in self._columns())):
            body += f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
