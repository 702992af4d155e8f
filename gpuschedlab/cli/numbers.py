"""Numbers as words of a command, with what was expected of them; nothing else is loaded for it."""

import argparse


def seconds(text: str) -> float:
    """Read a number of seconds, at least 0."""
    return _number(text, 0.0, float, "a number of seconds, 0 or more")


def positive(text: str) -> float:
    """Read a number above 0."""
    return _number(text, 1e-9, float, "a number above 0")


def whole(text: str) -> int:
    """Read a whole number, at least 1."""
    return _number(text.replace(",", "").replace("_", ""), 1, int, "a whole number, at least 1")


def _number(text, low, kind, expected):
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not low <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"found {text!r}; expected {expected}")
    return value
