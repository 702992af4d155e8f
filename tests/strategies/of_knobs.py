"""Strategies that follow from declarations: a knob says its kind and range, a field the class that it holds."""

import inspect
import math
import typing
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass

from hypothesis import strategies as st

from gpuschedlab.knobs import Data, Knobbed, KnobInfo, knobs_of

SEEDS = st.integers(0, 2**32)
WORDS = st.sampled_from(["a", "b2", "main", "long-name", "x_y"])
"""Names, without the signs that separate knobs in a word (`,`, `=`, `:`, `@`)."""


def values_of(info: KnobInfo) -> st.SearchStrategy:
    """Values that a knob allows: both ends of its range, its default, all between; infinity and None if it allows them."""
    knob = info.knob
    if info.kind in ("bool", "choice"):
        values = st.sampled_from(tuple(knob.choices))
    elif info.kind == "int":
        values = st.integers(math.ceil(knob.low), math.floor(knob.high))
    else:
        values = _floats(info)
    if info.kind == "floats":
        values = st.lists(values, max_size=knob.many).map(tuple)
    if knob.unlimited:
        values |= st.just((math.inf,) if info.kind == "floats" else math.inf)
    if info.optional:
        values |= st.none()
    return values


def _floats(info: KnobInfo) -> st.SearchStrategy:
    """Numbers within a range, evenly on its own scale, and the ends of the range."""
    low, high = float(info.knob.low), float(info.knob.high)
    ends = st.sampled_from([low, high])
    if not info.knob.log:
        return ends | st.floats(low, high)
    exponents = st.floats(math.log(low), math.log(high))
    return ends | exponents.map(lambda exponent: min(max(math.exp(exponent), low), high))


def allowed(cls: type[Knobbed], values: dict) -> dict:
    """Values of knobs with those changed that break a constraint."""
    for constraint in cls.constraints:
        if not constraint.holds(values):
            values = values | constraint.project(values)
    return values


def own_knobs(cls: type[Knobbed]) -> dict[str, KnobInfo]:
    """Knobs that are fields of the class itself, not of something that it holds."""
    return {name: info for name, info in knobs_of(cls).items() if not info.holder}


def other_fields(cls: type[Knobbed]) -> dict[str, object]:
    """Types of the fields that are no knobs, by name."""
    hints = typing.get_type_hints(cls)
    return {f.name: hints[f.name] for f in fields(cls) if f.init and f.name not in own_knobs(cls)}


def learnt_length(cls: type[Knobbed], name: str) -> int | None:
    """Greatest length of a tuple that is learnt (`Data`); None for another field."""
    hint = typing.get_type_hints(cls, include_extras=True)[name]
    lengths = [mark.many for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Data)]
    return lengths[0] if lengths else None


def defaults_of(cls: type) -> dict[str, object]:
    """Defaults of the fields of a dataclass that have one."""
    found = {}
    for field in fields(cls):
        if field.default is not MISSING:
            found[field.name] = field.default
        elif field.default_factory is not MISSING:
            found[field.name] = field.default_factory()
    return found


def has_knobs(cls: object) -> bool:
    """Whether something is a class with knobs of which there can be instances."""
    if not (isinstance(cls, type) and issubclass(cls, Knobbed) and is_dataclass(cls)):
        return False
    return "__dataclass_params__" in vars(cls)


def constructor_defaults(make: Callable) -> dict[str, object]:
    """Defaults of a constructor's parameters by name; `inspect.Parameter.empty` of one without."""
    return {name: parameter.default for name, parameter in inspect.signature(make).parameters.items()}
