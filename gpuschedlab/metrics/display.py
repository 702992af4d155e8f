"""Metrics as a person reads them: a label for each, and one unit a column, chosen so that its numbers are easy to read."""

import math
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

import polars as pl

from gpuschedlab.metrics.table import METRICS

SCALES = ((1.0, "s"), (60.0, "min"), (3600.0, "h"), (86_400.0, "d"))
SHARES = ("late", "utilisation", "fragmentation", "unfair_fraction", "slo_attainment", "slo_violation")
EXACT = ("seconds",)  # times of this machine, not of the simulation: always in s
APART = 30.0
"""Ratio from which two values of a table are no longer readable in one unit."""


class Column(NamedTuple):
    """A metric of several runs: its `label`, the `unit` of its cells ("" for a plain number), and the `cells` as text."""

    label: str
    unit: str
    cells: list[str]


def column(name: str, values: list) -> Column:
    """Values of a metric in the unit that suits them all: s, min, h or d for times, GPU-h for GPU-time, % for shares; - for None.

    Examples
    --------
    >>> column("jct_mean", [8274.035, 18_726.0])
    Column(label='average JCT', unit='h', cells=['2.30', '5.20'])
    >>> column("utilisation", [0.5, None])
    Column(label='utilisation', unit='%', cells=['50.0', '-'])
    """
    metric = METRICS[name]
    if name in SHARES:
        return Column(metric.label, "%", [_formatted(v, 100.0, 1) for v in values])
    if metric.unit == "GPU-s":
        return Column(metric.label, "GPU-h", [_formatted(v, 1 / 3600, 2) for v in values])
    if metric.unit != "s":
        whole = all(v is None or isinstance(v, int) for v in values)
        return Column(metric.label, metric.unit, [_formatted(v, 1.0, 0 if whole else 3) for v in values])
    known = sorted(v for v in values if v is not None)
    middle = known[len(known) // 2] if known else 0.0
    # A unit up once there are two of it and more: 90 min, 1.9 h and 40 h, but 3.2 d.
    scale, unit = SCALES[0] if name in EXACT else next((s for s in reversed(SCALES) if middle >= 2 * s[0]), SCALES[0])
    least = min((v for v in known if v > 0), default=1.0) / scale
    digits = max(0, min(3, 2 - math.floor(math.log10(least))))
    return Column(metric.label, unit, [_formatted(v, 1 / scale, digits) for v in values])


def _with_units(name: str, values: list) -> list[str]:
    """Cells with their units: one for the column, or each its own where the largest is `APART` times the least and more."""
    known = [abs(v) for v in values if v]
    apart = bool(known) and max(known) >= APART * min(known)
    columns = [column(name, [v]) for v in values] if apart else [column(name, values)]
    return [cell if cell == "-" else f"{cell} {c.unit}".rstrip() for c in columns for cell in c.cells]


def _formatted(value, factor: float, digits: int) -> str:
    return "-" if value is None else f"{value * factor:,.{digits}f}"


@dataclass(frozen=True)
class MetricTable:
    """A frame of metrics, shown with labels and units: "average JCT" and "2.30 h" in place of `jct_mean` and 8274.035.

    Parameters
    ----------
    frame : polars.DataFrame
        `policy` and metrics by name, as `gpuschedlab.metrics.compare` returns.

    Examples
    --------
    >>> shown = MetricTable(pl.DataFrame({"policy": ["fifo"], "jct_mean": [8274.035], "preemptions": [12]}))
    >>> print(shown)
    policy  average JCT  preemptions
    fifo         2.30 h           12

    Raises
    ------
    KeyError
        A column that is not in `METRICS`.
    """

    frame: pl.DataFrame

    def _columns(self) -> list[tuple[str, list[str]]]:
        names = self.frame.columns[1:]
        return [(METRICS[name].label, _with_units(name, self.frame[name].to_list())) for name in names]

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
