"""Figures as plain data: numbers as bytes, everything else as JSON has it."""

import json
from base64 import b64encode

import numpy as np

from gpuschedlab.plots.kinds.style import Drawing

WHOLE = ("error_x", "error_y")
"""Names of plotly's own that have an underscore, and are no path."""


def short(value):
    """Return a copy of nested data as JSON and inf as None, numbers with 4 digits: more are not seen, and would double a file."""
    figure_json = json.dumps(value, default=lambda array: array.tolist())
    return json.loads(figure_json, parse_float=lambda x: float(f"{float(x):.4g}"), parse_constant=lambda _: None)


def nested(flat: dict) -> dict:
    """Return the nested dict of a layout or trace: names with underscores (`xaxis_range`) are written out."""
    tree: dict = {}
    for layout_name, value in flat.items():
        name_parts = [layout_name]
        if layout_name not in WHOLE:
            name_parts = layout_name.split("_")
        last_part = name_parts.pop()
        branch = tree
        for name_part in name_parts:
            branch[name_part] = dict(branch.get(name_part) or {})
            branch = branch[name_part]
        if isinstance(value, dict) and isinstance(branch.get(last_part), dict):
            branch[last_part] = branch[last_part] | value
        else:
            branch[last_part] = value
    return tree


def plain(figure, still: bool = False) -> dict:
    """Return a dict of plain data and numpy arrays: `data` and `layout` of a `Drawing` or plotly figure, and its record.

    The record is left out if `still`.
    """
    if isinstance(figure, Drawing):
        if figure.record is not None and not still:
            if not figure.record:
                return {}
            return {"record": figure.record}
        figure_traces = [
            nested(style | figure_traces) for style, figure_traces in zip(figure.style, figure.data, strict=True)
        ]
        return {"data": figure_traces, "layout": nested(figure.layout | figure.live)}
    description = figure.to_plotly_json()
    layout = {layout_name: value for layout_name, value in description["layout"].items() if layout_name != "template"}
    return {"data": description["data"], "layout": layout}


def encoded(value, pack=lambda raw: b64encode(raw).decode()):
    """Return a copy of nested data: an array is a dict of its bytes (by `pack`), type and shape; other nan and inf are None."""
    if isinstance(value, dict):
        return {layout_name: encoded(layout_part, pack) for layout_name, layout_part in value.items()}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        return _encoded_array(value, pack)
    if isinstance(value, list | tuple):
        return [encoded(layout_part, pack) for layout_part in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def _encoded_array(array: np.ndarray, pack) -> dict | list:
    """Return a dict of bytes, type and shape of an array of numbers; a list if it is empty, without numbers, or of three axes."""
    if array.dtype.kind not in "fiub" or array.ndim not in (1, 2) or not array.size:
        return encoded(array.tolist(), pack)
    dtype = "i4"
    if array.dtype.kind == "f":
        dtype = "f4"
    raw = np.ascontiguousarray(array, f"<{dtype}").tobytes()
    return {"dtype": dtype, "shape": list(array.shape), "bdata": pack(raw)}
