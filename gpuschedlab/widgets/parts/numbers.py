"""Numbers of figures as a page holds them: few digits, plain data."""

import numpy as np

DIGITS = 4
"""Digits that a number of a figure keeps: more are not seen, and would double the file."""


def short(value):
    """Copy of nested data as JSON has it, numbers with few digits; nan and inf are None.

    Examples
    --------
    >>> short({"x": np.array([1.0, 2 / 3, np.nan]), "name": "a", "on": True})
    {'x': [1.0, 0.6667, None], 'name': 'a', 'on': True}
    """
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return {name: short(part) for name, part in value.items()}
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = 10.0 ** (DIGITS - 1 - np.floor(np.log10(np.abs(value))))
            few = np.where(np.isfinite(scale), np.round(value * scale) / scale, value).tolist()
        return few if np.isfinite(value).all() else [x if np.isfinite(x) else None for x in few]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [short(part) for part in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None
    return value
