"""Knobs: tunable fields of policies, estimators, tuners and others, declared once.

Widgets, the command line, sweeps and tuners read them.

A knob is a field of a frozen dataclass annotated with `Knob`; a `Constraint` ties several together.
"""

import math
import numbers
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from types import MappingProxyType

from gpuschedlab.errors import LabError, PolicyError


@dataclass(frozen=True)
class Knob:
    """What may be chosen for one field: a range (with unit and scale), or a set of choices.

    Parameters
    ----------
    low, high : float, optional
        Inclusive range of a number.
    log : bool
        Whether the range is explored on a logarithmic scale (needs `low` > 0).
    step : float, optional
        Grid of a number, counted from `low`.
    unit : str
        Unit, shown on sliders and in help ("s", "GPU-s").
    choices : collection, optional
        Allowed values of a categorical knob: a tuple, or the keys of a table that may grow.
    help : str
        One sentence on what it does.
    many : int
        Greatest length, for a field that is a tuple of numbers.
    tuned : (float, float), optional
        Part of the range that tuners search; default: all of it.
    """

    low: float | None = None
    high: float | None = None
    log: bool = False
    step: float | None = None
    unit: str = ""
    choices: Collection | None = None
    help: str = ""
    many: int = 1
    tuned: tuple[float, float] | None = None


@dataclass(frozen=True)
class Data:
    """Marks a tuple of numbers that is learnt, not chosen: compiled keys see it, tuners and sliders do not.

    Parameters
    ----------
    many : int
        Its greatest length.
    """

    many: int


@dataclass(frozen=True)
class Constraint:
    """A relation between knobs, and the nearest way back to it.

    Parameters
    ----------
    text : str
        The relation in words, as errors quote it.
    holds : callable
        Dict of knob values -> bool.
    project : callable
        Dict of knob values -> dict of the values to change so that `holds` becomes true.
    """

    text: str
    holds: Callable[[dict], bool]
    project: Callable[[dict], dict]


@dataclass(frozen=True)
class KnobInfo:
    """A knob as declared: its name, kind (float, int, bool, choice, floats), default and `Knob`.

    `optional`: whether it may be None, too; `raises`: the error of its owner.
    """

    name: str
    kind: str
    default: object
    knob: Knob
    optional: bool = False
    raises: type[LabError] = PolicyError

    @property
    def label(self) -> str:
        """Name and unit, as a slider shows them."""
        return f"{self.name} ({self.knob.unit})" if self.knob.unit else self.name

    def describe(self) -> str:
        """Range or choices, unit and default in one line, as help shows them."""
        k = self.knob
        allowed = f"one of {', '.join(map(knob_word, k.choices))}" if k.choices else f"{k.low:g} to {k.high:g}"
        scale = ", log scale" if k.log else ""
        count = f", up to {k.many} values" if self.kind == "floats" else ", or none" if self.optional else ""
        return f"{allowed}{' ' + k.unit if k.unit else ''}{scale}{count} (default {knob_word(self.default)})"

    def problem(self, value: object) -> str | None:
        """Say what is wrong with a value, or None when it is allowed."""
        k = self.knob
        if value is None and self.optional:
            return None
        if self.kind == "choice" or self.kind == "bool":
            return None if value in k.choices else f"expected one of {tuple(k.choices)}"
        values = value if self.kind == "floats" else (value,)
        if not isinstance(values, tuple | list) or not all(_is_number(v) for v in values):
            return f"expected {'a tuple of numbers' if self.kind == 'floats' else 'a number'}"
        if self.kind == "int" and int(value) != value:
            return "expected a whole number"
        if not all(k.low <= v <= k.high for v in values):
            return f"expected {k.low:g} to {k.high:g}{' ' + k.unit if k.unit else ''}"
        if len(values) > k.many:
            return f"expected at most {k.many} values"
        return None

    def clip(self, value):
        """Nearest allowed value (range, step and whole numbers; an unknown choice gives the default)."""
        k = self.knob
        if value is None and self.optional:
            return None
        if self.kind in ("choice", "bool"):
            return value if value in k.choices else self.default
        if self.kind == "floats":
            return tuple(min(max(float(v), k.low), k.high) for v in value)[: k.many]
        if k.step and not k.log:
            # To twelve digits: 3 steps of 0.1 are 0.3, as people write it.
            value = float(f"{k.low + round((value - k.low) / k.step) * k.step:.12g}")
        value = min(max(value, k.low), k.high)
        return round(value) if self.kind == "int" else float(value)


def _is_number(value) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and not math.isnan(value)


@cache
def data_of(cls: type) -> Mapping[str, int]:
    """Greatest lengths of the learnt tuples (`Data`) of a policy class, by name."""
    hints = typing.get_type_hints(cls, include_extras=True)
    annotations = ((f.name, getattr(hints[f.name], "__metadata__", ())) for f in fields(cls))
    return MappingProxyType({name: m.many for name, found in annotations for m in found if isinstance(m, Data)})


def _raises(cls: type) -> type[LabError]:
    """Error of a class with wrong knobs."""
    return cls.raises if issubclass(cls, Knobbed) else PolicyError


def _optional(hint) -> tuple[object, bool]:
    """Type without None, and whether None was in it."""
    kinds = typing.get_args(hint)
    if type(None) not in kinds:
        return hint, False
    return next(kind for kind in kinds if kind is not type(None)), True


def _kind(cls: type, name: str, hint, knob: Knob) -> tuple[str, Knob]:
    """Kind of a field from its type, with the knob completed by what the type implies."""
    if hint is bool:
        return "bool", replace(knob, choices=(False, True))
    if knob.choices:
        return "choice", knob
    kind = {int: "int", float: "float"}.get(hint)
    if kind is None and typing.get_origin(hint) is tuple:
        kind = "floats"
    where = f"{cls.__name__}.{name}"
    if kind is None:
        raise _raises(cls)(
            f"{where}: a knob of type {hint} has no range; "
            "expected int, float, bool, tuple[float, ...], or choices=(...)."
        )
    if knob.low is None or knob.high is None or not knob.low <= knob.high:
        raise _raises(cls)(
            f"{where}: found range {knob.low} to {knob.high}; expected Knob(low, high) with low <= high."
        )
    if knob.log and knob.low <= 0:
        raise _raises(cls)(f"{where}: a log scale from {knob.low} is undefined; expected low > 0.")
    return kind, knob


def _check_spelling(cls: type, f, hint):
    """Raise PolicyError for a field that means to be a knob, and is not written as one."""
    where, right = f"{cls.__name__}.{f.name}", f"{f.name}: Annotated[float, Knob(low, high)] = default"
    if Knob in getattr(hint, "__metadata__", ()):
        raise PolicyError(f"{where}: found Knob, which is the class; expected its range: {right}.")
    for place, thing in (("type", hint), ("default", f.default)):
        if isinstance(thing, Knob) or thing is Knob:
            raise PolicyError(f"{where}: found a Knob as its {place}; expected {right}.")


@cache
def _declared(cls: type) -> dict[str, KnobInfo]:
    hints = typing.get_type_hints(cls, include_extras=True)
    found = {}
    for base in cls.__mro__:
        for name, value in vars(base).items():
            if isinstance(value, Knob) and name not in hints:
                raise PolicyError(
                    f"{cls.__name__}.{name}: found a Knob without a type; expected {name}: Annotated[float, Knob(low, high)] = default."
                )
    for f in fields(cls):
        hint = hints[f.name]
        _check_spelling(cls, f, hint)
        knob = next((m for m in getattr(hint, "__metadata__", ()) if isinstance(m, Knob)), None)
        if knob is None:
            continue
        bare, optional = _optional(typing.get_args(hint)[0])
        kind, knob = _kind(cls, f.name, bare, knob)
        info = KnobInfo(f.name, kind, f.default, knob, optional, _raises(cls))
        problem = info.problem(f.default)
        if problem:
            raise info.raises(f"{cls.__name__}.{f.name}: the default {f.default!r} is outside its knob; {problem}.")
        found[f.name] = info
    return found


def knobs_of(thing: "Knobbed | type[Knobbed]") -> dict[str, KnobInfo]:
    """List the knobs of a policy, an estimator or another (class or instance) in order of declaration.

    Parameters
    ----------
    thing : Knobbed or type
        A frozen dataclass with annotated fields.

    Returns
    -------
    dict of str to KnobInfo

    Raises
    ------
    PolicyError, or what the class `raises`
        A knob is declared wrongly: the message names the class, the field and what was expected.

    Examples
    --------
    >>> from gpuschedlab.policies import Srtf
    >>> sorted(knobs_of(Srtf))[:1]
    ['interval']
    """
    cls = thing if isinstance(thing, type) else type(thing)
    if not hasattr(cls, "__dataclass_fields__") or "__dataclass_params__" not in cls.__dict__:
        raise _raises(cls)(f"{cls.__name__} is not a dataclass; expected @dataclass(frozen=True) above the class.")
    return dict(_declared(cls))


class Knobbed:
    """Base of a frozen dataclass with knobs: checks them when made, and changes them by copy.

    Attributes
    ----------
    constraints : tuple of Constraint
        Relations between knobs.
    raises : type of LabError
        What a wrong value raises.
    """

    raises: typing.ClassVar[type[LabError]] = PolicyError
    constraints: typing.ClassVar[tuple[Constraint, ...]] = ()

    def __post_init__(self):
        for name, info in knobs_of(self).items():
            value = getattr(self, name)
            problem = info.problem(value)
            if problem:
                raise self.raises(f"{type(self).__name__}.{name}: found {value!r}; {problem}.")
            if value is None:
                continue
            if info.kind == "floats":
                object.__setattr__(self, name, tuple(float(v) for v in value))
            elif info.kind == "int":
                object.__setattr__(self, name, int(value))
        for c in self.constraints:
            if not c.holds(self.knobs):
                raise self.raises(
                    f"{type(self).__name__}: found {self.knobs}; expected {c.text}. "
                    f"{type(self).__name__}.project(values) gives the nearest allowed values."
                )

    @property
    def knobs(self) -> dict:
        """Present values by name."""
        return {name: getattr(self, name) for name in knobs_of(self)}

    def with_knobs(self, **changes) -> typing.Self:
        """Copy with some knobs changed; a constraint that no longer holds is an error."""
        unknown = set(changes) - set(knobs_of(self))
        if unknown:
            raise self.raises(
                f"{type(self).__name__} has no knob {sorted(unknown)}; its knobs are {sorted(knobs_of(self))}."
            )
        return replace(self, **changes)

    @classmethod
    def project(cls, values: dict) -> dict:
        """Nearest allowed values: each into its range, then the constraints in order."""
        infos = knobs_of(cls)
        return cls.constrain({name: infos[name].clip(values.get(name, infos[name].default)) for name in infos})

    @classmethod
    def constrain(cls, values: dict) -> dict:
        """Nearest values of all knobs that the constraints allow, in order; each is in its range already."""
        for c in cls.constraints:
            if not c.holds(values):
                values = values | c.project(values)
        return values


def knob_word(value: object) -> str:
    """Write a knob's value as a word of a command line, as `parse_knob` reads it.

    Examples
    --------
    >>> knob_word((3250.0, 57_600.0)), knob_word(True), knob_word("easy")
    ('3250,57600', 'true', 'easy')
    """
    if isinstance(value, tuple | list):
        return ",".join(map(knob_word, value))
    return str(value).lower() if isinstance(value, bool | None) else str(value).removesuffix(".0")


def parse_knob(info: KnobInfo, text: str):
    """Read a knob's value from a word of a command line ("0.5", "true", "600,3600")."""
    try:
        if info.optional and text.lower() == "none":
            return None
        if info.kind == "floats":
            return tuple(float(v) for v in text.split(",") if v)
        if info.kind == "bool":
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.lower()]
        if info.kind == "choice":
            return next(c for c in info.knob.choices if str(c) == text)
        return int(text) if info.kind == "int" else float(text)
    except (ValueError, KeyError, StopIteration):
        raise info.raises(f"knob {info.name}: found {text!r}; expected {info.describe()}.") from None


__all__ = ["Constraint", "Data", "Knob", "KnobInfo", "Knobbed", "data_of", "knob_word", "knobs_of", "parse_knob"]
