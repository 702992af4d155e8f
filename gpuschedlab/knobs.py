"""Knobs: tunable fields of policies, estimators, tuners and others, declared once.

Widgets, the command line, sweeps and tuners read them.

A knob is a field of a frozen dataclass annotated with `Knob`; a `Constraint` ties several together.
"""

import inspect
import numbers
import re
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from functools import cache
from types import MappingProxyType, UnionType

from gpuschedlab._knob import Constraint, Data, Holds, Knob, KnobInfo, knob_word, parse_knob
from gpuschedlab.errors import LabError, PolicyError


@cache
def data_of(cls: type) -> Mapping[str, int]:
    """Return a mapping from the names of the learnt tuples (`Data`) of a policy class to their greatest lengths."""
    hints = typing.get_type_hints(cls, include_extras=True)
    annotations = ((f.name, getattr(hints[f.name], "__metadata__", ())) for f in fields(cls))
    return MappingProxyType(
        {
            field_name: m.many
            for field_name, annotation_marks in annotations
            for m in annotation_marks
            if isinstance(m, Data)
        }
    )


def _kind(cls: type, field_name: str, hint, knob: Knob) -> tuple[str, Knob]:
    """Return a tuple: the kind of a field from its type, and the `Knob`, completed from the type."""
    if hint is bool:
        return "bool", replace(knob, choices=(False, True))
    if knob.choices:
        return "choice", knob
    knob_kind = {int: "int", float: "float", tuple: "floats"}.get(typing.get_origin(hint) or hint)
    problem = ""
    if knob_kind is None:
        problem = f"a knob of type {hint} has no range; expected int, float, bool, tuple[float, ...], or choices=(...)."
    elif knob.low is None or knob.high is None or not knob.low <= knob.high:
        problem = f"found range {knob.low} to {knob.high}; expected Knob(low, high) with low <= high."
    elif knob.log and knob.low <= 0:
        problem = f"a log scale from {knob.low} is undefined; expected low > 0."
    if problem:
        raise getattr(cls, "raises", PolicyError)(f"{cls.__name__}.{field_name}: {problem}")
    return knob_kind, knob


def _check_spelling(cls: type, declared_field, hint):
    """Raise PolicyError for a field that means to be a knob, and is not written as one."""
    where = f"{cls.__name__}.{declared_field.name}"
    right = f"{declared_field.name}: Annotated[float, Knob(low, high)] = default"
    if Knob in getattr(hint, "__metadata__", ()):
        raise PolicyError(f"{where}: found Knob, which is the class; expected its range: {right}.")
    for knob_place, declared_knob in (("type", hint), ("default", declared_field.default)):
        if isinstance(declared_knob, Knob) or declared_knob is Knob:
            raise PolicyError(f"{where}: found a Knob as its {knob_place}; expected {right}.")


@cache
def _declared(cls: type) -> tuple[dict[str, KnobInfo], dict]:
    """Return a tuple of two dicts by name: the knobs of a class, and the types of other fields whose defaults keep to them."""
    hints = typing.get_type_hints(cls, include_extras=True)
    knob_infos = {}
    other_fields = {}
    attributes = (
        (field_name, field_default) for base in cls.__mro__ for field_name, field_default in vars(base).items()
    )
    if field_name := next(
        (
            field_name
            for field_name, field_default in attributes
            if isinstance(field_default, Knob) and field_name not in hints
        ),
        None,
    ):
        raise PolicyError(
            f"{cls.__name__}.{field_name}: found a Knob without a type; expected {field_name}: Annotated[float, "
            "Knob(low, high)] = default."
        )
    for f in fields(cls):
        hint = hints[f.name]
        _check_spelling(cls, f, hint)
        marks = getattr(hint, "__metadata__", ())
        if holds_mark := next((m for m in marks if isinstance(m, Holds)), None):
            knob_infos |= _held(cls, f, holds_mark, knob_infos)
        knob = next((m for m in marks if isinstance(m, Knob)), None)
        bare = typing.get_args(hint)[0] if marks else hint
        if knob is None:
            other_fields |= {f.name: bare} if f.default is MISSING or _fits(f.default, bare) else {}
            continue
        if optional := type(None) in typing.get_args(bare):
            bare = next(member_type for member_type in typing.get_args(bare) if member_type is not type(None))
        knob_kind, knob = _kind(cls, f.name, bare, knob)
        knob_info = KnobInfo(f.name, knob_kind, f.default, knob, optional, getattr(cls, "raises", PolicyError))
        if problem := knob_info.problem(f.default):
            raise knob_info.raises(
                f"{cls.__name__}.{f.name}: the default {f.default!r} is outside its knob; {problem}."
            )
        knob_infos[f.name] = knob_info
    return knob_infos, other_fields


def _held(cls: type, held_field, holds: Holds, other_knobs) -> dict[str, KnobInfo]:
    """Return a dict of each `KnobInfo` of the thing that a field holds, with the defaults that it has there."""
    held_default = held_field.default_factory() if held_field.default is MISSING else held_field.default
    inside = knobs_of(held_default)
    held_names = holds.names or tuple(inside)
    if wrong := [knob_name for knob_name in held_names if knob_name not in inside or knob_name in other_knobs]:
        raise getattr(cls, "raises", PolicyError)(
            f"{cls.__name__}.{held_field.name}: found the knob {wrong[0]!r}; expected one of {', '.join(inside)}, each name once."
        )
    held_knobs = {}
    for knob_name in held_names:
        knob_info = inside[knob_name]
        default = inside[knob_name].value_of(held_default)
        # Over the range that is worth a search, if the default lies in it.
        low, high = knob_info.knob.tuned or (None, None)
        narrow = low is not None and default is not None and low <= default <= high
        knob = replace(knob_info.knob, low=low, high=high) if narrow else knob_info.knob
        held_knobs[knob_name] = replace(knob_info, knob=knob, default=default, holder=held_field.name)
    return held_knobs


def _fits(value: object, hint) -> bool:
    """Whether a value is of a type, as far as classes and tuples of them say."""
    hinted_type = typing.get_origin(hint) or hint
    args = typing.get_args(hint)
    if hinted_type in (typing.Union, UnionType):
        return any(_fits(value, member_type) for member_type in args)
    if hinted_type is tuple and args and isinstance(value, tuple | list):
        args = args[:1] * len(value) if ... in args else args
        return len(args) == len(value) and all(
            type(member) is member_hint or _fits(member, member_hint)
            for member, member_hint in zip(value, args, strict=True)
        )
    try:
        return isinstance(
            value, {float: numbers.Real, int: numbers.Integral, tuple: tuple | list}.get(hinted_type, hinted_type)
        )
    except TypeError:  # not for `isinstance` to say: Any, Literal, a protocol
        return True


def check_fields(thing: object, raises: type[Exception], who: str):
    """Raise an error for a field of a dataclass whose value is not of its type, as far as classes and tuples of them say."""
    hints = typing.get_type_hints(type(thing))
    for field in fields(thing):
        field_value = getattr(thing, field.name)
        hint = hints[field.name]
        if not _fits(field_value, hint) or (isinstance(field_value, bool) and hint in (float, int)):
            raise raises(f"{who}{field.name}: found {field_value!r}; expected {_in_words(hint)}.")


def _in_words(hint) -> str:
    """Write a type as a message names it, without the modules."""
    return re.sub(r"\b\w[\w.]*\.(?=\w)", "", inspect.formatannotation(hint))


def knobs_of(thing: "Knobbed | type[Knobbed]") -> dict[str, KnobInfo]:
    """Return a dict by name of each `KnobInfo` of a policy, an estimator or another (class or instance), in order of declaration.

    Parameters
    ----------
    thing : Knobbed or type
        A frozen dataclass with annotated fields.

    Returns
    -------
    dict of str to KnobInfo

    Raises
    ------
    PolicyError, or the class that it `raises`
        A knob is declared wrongly: the message names the class, the field and the expectation.

    Examples
    --------
    >>> from gpuschedlab.policies import Srtf
    >>> sorted(knobs_of(Srtf))[:1]
    ['interval']
    """
    cls = thing if isinstance(thing, type) else type(thing)
    if not hasattr(cls, "__dataclass_fields__") or "__dataclass_params__" not in cls.__dict__:
        raise getattr(cls, "raises", PolicyError)(
            f"{cls.__name__} is not a dataclass; expected @dataclass(frozen=True) above the class."
        )
    return dict(_declared(cls)[0])


class Knobbed:
    """Base of a frozen dataclass with knobs: checks them when made, and changes them by copy.

    Attributes
    ----------
    constraints : tuple of Constraint
        Relations between knobs.
    raises : type of LabError
        Error of a wrong value.
    """

    raises: typing.ClassVar[type[LabError]] = PolicyError
    constraints: typing.ClassVar[tuple[Constraint, ...]] = ()

    def __post_init__(self):
        for field_name, hint in _declared(type(self))[1].items():
            if not _fits(field_value := getattr(self, field_name), hint):
                raise self.raises(
                    f"{type(self).__name__}.{field_name}: found {field_value!r}; expected {_in_words(hint)}."
                )
        for knob_name, knob_info in knobs_of(self).items():
            if knob_info.holder:  # checked where it is declared
                continue
            field_value = getattr(self, knob_name)
            if problem := knob_info.problem(field_value):
                raise self.raises(f"{type(self).__name__}.{knob_name}: found {field_value!r}; {problem}.")
            if field_value is not None and knob_info.kind in ("floats", "int"):
                knob_value = tuple(float(v) for v in field_value) if knob_info.kind == "floats" else int(field_value)
                object.__setattr__(self, knob_name, knob_value)
        for constraint in self.constraints:
            if not constraint.holds(self.knobs):
                raise self.raises(
                    f"{type(self).__name__}: found {self.knobs}; expected {constraint.text}. "
                    f"{type(self).__name__}.project(values) gives the nearest allowed values."
                )

    @property
    def knobs(self) -> dict:
        """Dict of the present values by name."""
        return {knob_name: knob_info.value_of(self) for knob_name, knob_info in knobs_of(self).items()}

    def with_knobs(self, **changes) -> typing.Self:
        """Return a copy with some knobs changed; a constraint that no longer holds is an error."""
        infos = knobs_of(self)
        if unknown := sorted(set(changes) - set(infos)):
            raise self.raises(f"{type(self).__name__} has no knob {unknown}; its knobs are {sorted(infos)}.")
        own_changes = {
            knob_name: knob_value for knob_name, knob_value in changes.items() if not infos[knob_name].holder
        }
        for holder in {infos[knob_name].holder for knob_name in changes} - {""}:
            inside = {
                knob_name: knob_value for knob_name, knob_value in changes.items() if infos[knob_name].holder == holder
            }
            own_changes[holder] = getattr(self, holder).with_knobs(**inside)
        return replace(self, **own_changes)

    @classmethod
    def project(cls, values: dict) -> dict:
        """Return a dict of the nearest allowed values: each into its range, then the constraints in order."""
        values = {
            knob_name: knob_info.clip(values.get(knob_name, knob_info.default))
            for knob_name, knob_info in knobs_of(cls).items()
        }
        for constraint in cls.constraints:
            if not constraint.holds(values):
                values = values | constraint.project(values)
        return values


def texts_of(thing: Knobbed) -> dict[str, str]:
    """Return a dict of the fields that are plain text, such as a file's name: no knobs, and yet part of the word."""
    return {f.name: getattr(thing, f.name) for f in fields(thing) if f.type in (str, "str")}


def word_of(thing: Knobbed) -> str:
    """Return the word that makes a policy, an estimator or a recipe again: its class and the knobs that are not at defaults.

    Examples
    --------
    >>> from gpuschedlab.policies import Tiresias
    >>> word_of(Tiresias(queues=1, thresholds=()))
    'tiresias:queues=1,thresholds='
    """
    changed = {
        knob_name: knob_value
        for knob_name, knob_info in knobs_of(thing).items()
        if (knob_value := knob_info.value_of(thing)) != knob_info.default
    }
    defaults = {f.name: f.default for f in fields(thing)}
    changed |= {
        knob_name: knob_value for knob_name, knob_value in texts_of(thing).items() if knob_value != defaults[knob_name]
    }
    options = ",".join(f"{knob_name}={knob_word(knob_value)}" for knob_name, knob_value in changed.items())
    return type(thing).__name__.lower() + (f":{options}" if options else "")


__all__ = [
    "Constraint",
    "Data",
    "Holds",
    "Knob",
    "KnobInfo",
    "Knobbed",
    "data_of",
    "knob_word",
    "knobs_of",
    "parse_knob",
    "texts_of",
    "word_of",
]
