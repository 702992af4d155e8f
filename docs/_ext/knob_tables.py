"""Knobs of a class as rows of a table, read from their declarations."""

import dataclasses

from gpuschedlab.knobs import Knobbed, knob_word, knobs_of

HEAD = ("knob", "default", "range", "unit", "what it is")


def knob_rows(thing) -> list[tuple[str, ...]]:
    """Head and rows of the table of knobs; empty where a thing has none."""
    if not isinstance(thing, type) or not issubclass(thing, Knobbed) or not dataclasses.is_dataclass(thing):
        return []
    if "__dataclass_params__" not in vars(thing):
        return []
    rows = [_row(info) for info in knobs_of(thing).values()]
    return [HEAD, *rows] if rows else []


def _row(info) -> tuple[str, ...]:
    k = info.knob
    allowed = ", ".join(map(knob_word, k.choices)) if k.choices else f"{k.low:g} to {k.high:g}"
    more = (", log" if k.log else "") + (", or none" if info.optional else "")
    more += f", up to {k.many} values" if info.kind == "floats" else ""
    default = knob_word(info.default).replace("*", "\\*") or "none"
    return f"``{info.name}``", default, f"{allowed}{more}".replace("*", "\\*"), k.unit or "\\", k.help or "\\"
