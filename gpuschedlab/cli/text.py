"""Frames as plain text: each time in its own unit, so that its numbers are easy to read."""

import json
import math


def metrics_table(frame) -> str:
    """Return a frame of `gpuschedlab.metrics.compare` laid out as text: labels, units, one row per policy."""
    from gpuschedlab.metrics.display import column

    metric_columns = [("policy", "", frame["policy"].to_list())]
    metric_columns += [column(metric_name, frame[metric_name].to_list()) for metric_name in frame.columns[1:]]
    # Labels are on two lines, so that columns are as narrow as their numbers.
    return grid([[*label.rpartition(" ")[::2], unit, *cells] for label, unit, cells in metric_columns])


def grid(columns: list[list[str]]) -> str:
    """Align columns of words: the first to the left, the others to the right."""
    aligned = []
    for column in columns:
        wide = max(map(len, column))
        if aligned:
            aligned.append([table_cell.rjust(wide) for table_cell in column])
        else:
            aligned.append([table_cell.ljust(wide) for table_cell in column])
    return "\n".join("  ".join(row).rstrip() for row in zip(*aligned))


def pairs(values: dict) -> str:
    """One `name  value` a line, aligned."""
    wide = max(map(len, values), default=0)
    return "\n".join(f"{k:{wide}}  {cell(v)}" for k, v in values.items())


def cell(value) -> str:
    """One value as a string of a few characters: four figures, or a whole number."""
    if value is None:
        return "-"
    if value is True:
        return "yes"
    if value is False:
        return "NO"
    if not isinstance(value, int | float):
        return str(value)
    if abs(value) < 10_000:
        return f"{value:,.4g}"
    return f"{value:,.0f}"


def intake_of(about: dict) -> dict:
    """Return a dict of a log's intake report, under its name; empty for a trace that is no log."""
    if "intake" not in about:
        return {}
    return {"intake": about["intake"]}


def intake_line(about: dict) -> str:
    """Return text of a line on the intake of a log, under a table; "" if the trace was no log."""
    report = about.get("intake")
    if report is None:
        return ""
    return f"\n{report.line()}"


def as_json(value) -> str:
    """JSON that any reader takes: a value that is not a number or not finite becomes null or text."""
    return json.dumps(_finite(value), indent=1, default=str)


def _finite(value):
    """Copy of nested data in which numbers that are not finite are None, and an object that has a summary is its summary."""
    if hasattr(value, "summary"):
        value = value.summary()
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
