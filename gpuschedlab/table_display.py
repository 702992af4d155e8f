"""A frame as a person reads it, by one rule for notebooks, results and comparisons."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from math import isnan

import polars as pl

SCALES = ((1.0, "s"), (60.0, "min"), (3600.0, "h"), (86_400.0, "d"))
NOTHING = "–"
"""Stands where there is no value."""
YES_OR_NO = ("no", "yes")
LONG = 32
"""Characters of a cell, above which its column is one of sentences and may take several lines."""
STYLE = """.gpuschedlab-framed { overflow-x: auto; margin: 4px 0 10px; }
.gpuschedlab-framed table.gpuschedlab-table { border-collapse: collapse; margin: 0; font: 13.5px/18px system-ui, -apple-system, "Segoe UI",
 "DejaVu Sans", Helvetica, Arial, sans-serif; font-variant-numeric: tabular-nums;
 color: var(--jp-ui-font-color1, var(--pst-color-text-base, #1f2933)); }
.gpuschedlab-framed table.gpuschedlab-table tr:nth-child(n) { background: none; border: 0; border-top: 1px solid rgba(128, 128, 128, 0.3); }
.gpuschedlab-framed table.gpuschedlab-table thead tr:nth-child(n) { border-top: 0; }
.gpuschedlab-framed table.gpuschedlab-table :is(th, td) { padding: 2px 16px 2px 0; border: 0; background: none; text-align: left;
 vertical-align: baseline; white-space: nowrap; max-width: none; font-weight: 400; }
.gpuschedlab-framed table.gpuschedlab-table thead th { max-width: 130px; white-space: normal; vertical-align: bottom; font-size: 12.5px;
 line-height: 16px; opacity: 0.85; }
.gpuschedlab-framed table.gpuschedlab-table .gpuschedlab-long { min-width: 340px; max-width: 560px; white-space: normal; }
.gpuschedlab-explorer .gpuschedlab-framed { margin: 0; }
.gpuschedlab-explorer .gpuschedlab-framed table.gpuschedlab-table { font-size: 11.5px; line-height: 15px; }
.gpuschedlab-explorer .gpuschedlab-framed table.gpuschedlab-table tr:nth-child(n) :is(th, td) { padding: 0 5px 0 0; }
.gpuschedlab-explorer .gpuschedlab-framed table.gpuschedlab-table thead th { max-width: 76px; font-size: 11.5px; line-height: 15px; }"""
"""Look of the tables; within an explorer, whose first screen holds little, they are as compact as its own."""


def duration(seconds: float) -> str:
    """Format a time in the largest unit of which there is one, in three figures: the rule of all tables, reports and explorers."""
    scale, unit = next((time_scale for time_scale in reversed(SCALES) if seconds >= time_scale[0]), SCALES[0])
    return f"{seconds / scale:.3g} {unit}"


def number(value: float) -> str:
    """Format a number in three figures, with an exponent only below a thousandth and from a million millions on."""
    if abs(value) == float("inf"):
        return f"{value}".replace("inf", "∞")
    if value == 0 or 1e-3 <= abs(value) < 999.5:
        return f"{value:.3g}"
    if not 1e-3 <= abs(value) < 1e12:
        return f"{value:.2e}".replace("e-0", "e-")
    return f"{float(f'{value:.3g}'):,.0f}"


def cell(value, unit: str = "") -> str:
    """Format a value: a whole number in full, any other in three figures; - if there is none.

    Of the units, "s" gives each time its own unit and "%" makes a percentage of a share; others are no part of the cell.
    """
    if value is None or (isinstance(value, float) and isnan(value)):
        return NOTHING
    if isinstance(value, bool):
        return YES_OR_NO[value]
    if isinstance(value, str):
        return value or NOTHING
    if isinstance(value, list | tuple | pl.Series):
        return ", ".join(cell(member, unit) for member in value) or NOTHING
    if unit == "s" and isinstance(value, int | float):
        if value < 0:
            return f"-{duration(-value)}"
        return duration(value)
    if unit == "%":
        return f"{number(100 * value)} %"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return number(value)
    return str(value)


def aligned(heads: list[str], columns: list[list[str]]) -> str:
    """Return a table as text: the first column to the left, the others to the right."""
    widths = [
        max(map(len, [column_head, *column_cells])) for column_head, column_cells in zip(heads, columns, strict=True)
    ]
    table_lines = []
    for first_cell, *other_cells in [heads, *zip(*columns, strict=True)]:
        padded_cells = [first_cell.ljust(widths[0])]
        padded_cells += [cell_text.rjust(width) for cell_text, width in zip(other_cells, widths[1:], strict=True)]
        table_lines.append("  ".join(padded_cells).rstrip())
    return "\n".join(table_lines)


def page(heads: list[str], columns: list[list[str]], hints: Mapping[str, str] | None = None, caption: str = "") -> str:
    """Return a table as HTML, with its style; `hints` explain heads."""
    hints = hints or {}
    head_html = ""
    for head_text in heads:
        hint = ""
        if head_text in hints:
            hint = f' title="{escape(hints[head_text])}"'
        head_html += f'<th scope="col"{hint}>{escape(head_text)}</th>'
    looks = []
    for column_cells in columns:
        cell_look = ""
        if any(len(cell_text) > LONG for cell_text in column_cells):
            cell_look = ' class="gpuschedlab-long"'
        looks.append(cell_look)
    body_html = ""
    for first_cell, *other_cells in zip(*columns, strict=True):
        body_html += f'<tr><th scope="row"{looks[0]}>{escape(first_cell)}</th>'
        for cell_text, cell_look in zip(other_cells, looks[1:], strict=True):
            body_html += f"<td{cell_look}>{escape(cell_text)}</td>"
        body_html += "</tr>"
    sentence = ""
    if caption:
        sentence = f"<p>{escape(caption)}</p>"
    table_html = (
        f'<table class="gpuschedlab-table"><thead><tr>{head_html}</tr></thead><tbody>{body_html}</tbody></table>'
    )
    return f'<div class="gpuschedlab-framed"><style>{STYLE.replace(chr(10), "")}</style>{sentence}{table_html}</div>'


@dataclass(frozen=True, repr=False)
class Table:
    """A frame, shown in words and at most three figures, in the look of the explorers' tables.

    Heads are the names of columns, with spaces. Whole numbers are written in full, other numbers in three figures, true and false
    as yes and no, and a missing value as a dash.

    Parameters
    ----------
    frame : polars.DataFrame
        Frame to show. The first column names the rows.
    names : dict of str to str, optional
        Heads of columns, in words.
    units : dict of str to str, optional
        Units of columns: with "s" each time has its own unit ("2.3 h"), with "%" a share is a percentage ("12.5 %"), and any
        other stands in the head.
    caption : str, optional
        A sentence above the table.
    rows : int
        Rows that are shown at most: of a longer frame the first and the last, with dots between them.

    Examples
    --------
    >>> frame = pl.DataFrame({"policy": ["fifo", "srtf"], "mean_wait": [8274.035, None], "late": [0.125, 0.0]})
    >>> Table(frame, units={"mean_wait": "s", "late": "%"})
    policy  mean wait    late
    fifo        2.3 h  12.5 %
    srtf            –     0 %
    """

    frame: pl.DataFrame
    names: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    caption: str = ""
    rows: int = 20

    def heads(self) -> list[str]:
        """Return a list of the heads of the columns, in words."""
        heads = []
        for column_name in self.frame.columns:
            column_head = self.names.get(column_name, column_name.replace("_", " "))
            unit = self.units.get(column_name, "")
            if unit not in ("", "s", "%"):
                column_head = f"{column_head} ({unit})"
            heads.append(column_head)
        return heads

    def columns(self) -> list[list[str]]:
        """Return a list with the cells of each column that are shown, a list of texts each."""
        columns = []
        for series in self.frame:
            unit = self.units.get(series.name, "")
            column_cells = [cell(frame_value, unit) for frame_value in series]
            if len(column_cells) > self.rows:
                half = self.rows // 2
                column_cells = [*column_cells[:half], "…", *column_cells[-half:]]
            columns.append(column_cells)
        return columns

    def __repr__(self) -> str:
        aligned_text = aligned(self.heads(), self.columns())
        if self.caption:
            return f"{self.caption}\n{aligned_text}"
        return aligned_text

    def _repr_html_(self) -> str:
        return page(self.heads(), self.columns(), caption=self.caption)


__all__ = ["Table"]
