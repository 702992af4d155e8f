"""Steps of a decision: plain data that policies record and a player shows."""

from typing import NamedTuple


class Step(NamedTuple):
    """One step: `line` of the listing that acts, values `read` and `decided`, `lit` rows of the case's table, `rows` of it now."""

    # `state` is what a figure is drawn of, or None.

    line: int
    read: str
    decided: str
    rows: list[tuple[str, ...]]
    lit: tuple[int, ...] = ()
    state: object = None


class Case(NamedTuple):
    """One decision: its `name`, the `head` of its table, and its `steps` in order."""

    name: str
    head: tuple[str, ...]
    steps: list[Step]


def spell(seconds: float) -> str:
    """Write seconds in words."""
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds / 3600:.3g} h"
