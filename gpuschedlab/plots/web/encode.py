"""Figures as plain data: numbers as bytes, everything else as JSON has it."""

import json
from base64 import b64encode

import numpy as np

from gpuschedlab.plots.kinds.style import Drawing

WHOLE = ("error_x", "error_y")
"""Names of plotly's own that have an underscore, and are no path."""


def short(value):
    """Copy of nested data as JSON has it, nan and inf as None, numbers with 4 digits: more are not seen, and would double a file."""
    text = json.dumps(value, default=lambda array: array.tolist())
    return json.loads(text, parse_float=lambda x: float(f"{float(x):.4g}"), parse_constant=lambda _: None)


def nested(flat: dict) -> dict:
    """Layout or trace whose names with underscores (`xaxis_range`) are written out."""
    tree: dict = {}
    for name, value in flat.items():
        parts = [name]
        if name not in WHOLE:
            parts = name.split("_")
        last = parts.pop()
        place = tree
        for part in parts:
            place[part] = place = dict(place.get(part) or {})
        both = isinstance(value, dict) and isinstance(place.get(last), dict)
        place[last] = place[last] | value if both else value
    return tree


def plain(figure, still: bool = False) -> dict:
    """`data` and `layout` of a `Drawing` or of a plotly figure, as plain data with numpy arrays in it; its record, unless `still`."""
    if isinstance(figure, Drawing):
        if figure.record is not None and not still:
            return {"record": figure.record} if figure.record else {}
        data = [nested(style | data) for style, data in zip(figure.style, figure.data, strict=True)]
        return {"data": data, "layout": nested(figure.layout | figure.live)}
    made = figure.to_plotly_json()
    return {"data": made["data"], "layout": {k: v for k, v in made["layout"].items() if k != "template"}}


def encoded(value, pack=lambda raw: b64encode(raw).decode()):
    """Copy of nested data: an array of numbers is its bytes (written by `pack`), a type and a shape; other nan and inf are None."""
    if isinstance(value, dict):
        return {name: encoded(part, pack) for name, part in value.items()}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "fiub" or value.ndim not in (1, 2) or not value.size:
            return encoded(value.tolist(), pack)
        kind = "f4" if value.dtype.kind == "f" else "i4"
        raw = np.ascontiguousarray(value, f"<{kind}").tobytes()
        return {"dtype": kind, "shape": list(value.shape), "bdata": pack(raw)}
    if isinstance(value, list | tuple):
        return [encoded(part, pack) for part in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
