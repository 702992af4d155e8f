"""One knob: its declaration at a field, its consequences, and its values as words."""

import math
import numbers
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from gpuschedlab.errors import LabError, PolicyError


def check_number(value: object, raises: type[LabError], who: str, expected: str, *, low=0, whole=False, finite=True):
    """Raise an error unless a value is a number from `low` up: one that is not nan, and no text."""
    fits = _is_number(value) and value >= low and (value % 1 == 0 or not whole) and (value < math.inf or not finite)
    if not fits:
        raise raises(f"{who}: found {value!r}; expected {expected}.")


def check_kind(value: object, kinds, raises: type[LabError], who: str, expected: str):
    """Raise an error unless a value is of a class, or of one of several."""
    if not isinstance(value, kinds):
        raise raises(f"{who}: found {value!r}; expected {expected}.")


def tuple_of(values: object, kinds, raises: type[LabError], who: str, expected: str) -> tuple:
    """Return values as a tuple. Raise an error for text, for a value without parts, and for a part that is not of the classes."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise raises(f"{who}: found {values!r}; expected {expected}.")
    parts = tuple(values)
    for part in parts:
        check_kind(part, kinds, raises, who, expected)
    return parts


def numbers_of(values: object, raises: type[LabError], who: str, expected: str):
    """Return values as an array of floats. Raise an error if they are none."""
    import numpy as np

    try:
        return np.asarray(values, float)
    except (TypeError, ValueError, OverflowError):
        raise raises(f"{who}: found {values!r}; expected {expected}.") from None


def random_generator(rng: object, raises: type[LabError], who: str):
    """Return the generator of a seed, or the generator that is given.

    A seed is a whole number, 0 or more, several of them, or one of numpy's own kinds. Raise an error for any other.
    """
    import numpy as np

    if isinstance(rng, np.random.Generator | np.random.BitGenerator | np.random.SeedSequence):
        return np.random.default_rng(rng)
    expected = ", several of them, or a numpy.random.Generator"
    if isinstance(rng, np.ndarray):
        rng = rng.tolist()
    if isinstance(rng, list | tuple | range) and len(rng):
        for number in rng:
            check_seed(number, raises, who, expected)
        return np.random.default_rng([int(number) for number in rng])
    check_seed(rng, raises, who, expected)
    return np.random.default_rng(int(rng))


def check_seed(seed: object, raises: type[LabError], who: str, more: str = ""):
    """Raise an error unless a seed is a whole number, 0 or more."""
    check_number(seed, raises, who, f"a whole number, 0 or more{more}", whole=True)


@dataclass(frozen=True)
class Knob:
    """The choices for one field: a range (with unit and scale), or a set of choices.

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
        One sentence on its effect.
    many : int
        Greatest length, for a field that is a tuple of numbers.
    tuned : (float, float), optional
        Part of the range that tuners search; default: all of it.
    unlimited : bool
        Whether infinity is allowed, too.
    words : str
        Its name in sentences ("next queue after"), if another; of a policy the first such knob stands in the first row.
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
    unlimited: bool = False
    words: str = ""


@dataclass(frozen=True)
class Data:
    """Marks a tuple of numbers that is learnt, not chosen: compiled keys see it, tuners and sliders do not."""

    many: int
    """Its greatest length."""


@dataclass(frozen=True)
class Holds:
    """Marks a field that is a policy, or another thing with knobs: these of its knobs count as those of its holder.

    They are read where they are declared, so that ranges, units and help are written once.

    Parameters
    ----------
    names : tuple of str
        Of the knobs; none: all.
    """

    names: tuple[str, ...] = ()


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
    """A knob as declared: its name, kind (float, int, bool, choice, floats), default and `Knob`."""

    # `optional`: whether it may be None, too; `raises`: the error of its owner; `holder`: the field that holds the thing whose
    # knob it is ("": it is a field itself).

    name: str
    kind: str
    default: object
    knob: Knob
    optional: bool = False
    raises: type[LabError] = PolicyError
    holder: str = ""

    def value_of(self, thing) -> object:
        """Return the present value, any object, in something that has this knob."""
        return getattr(getattr(thing, self.holder) if self.holder else thing, self.name)

    @property
    def label(self) -> str:
        """Words and unit, as a slider shows them."""
        return f"{self.words} ({self.knob.unit})" if self.knob.unit else self.words

    @property
    def words(self) -> str:
        """Name as readers have it."""
        return self.knob.words or self.name.replace("_", " ")

    def words_at(self, place: int | None) -> str:
        """Return the name of a place in a knob of several numbers, from 0 on, as its slider has it; None: of all of it."""
        return f"{self.words} {place + 1}" if place else self.words

    def describe(self) -> str:
        """Range or choices, unit and default in one line, as help shows them."""
        knob = self.knob
        allowed = (
            f"one of {', '.join(map(knob_word, knob.choices))}" if knob.choices else f"{knob.low:g} to {knob.high:g}"
        )
        scale = ", log scale" if knob.log else ""
        count_in_words = (
            f", up to {knob.many} values" if self.kind == "floats" else ", or none" if self.optional else ""
        )
        count_in_words += ", or inf" if knob.unlimited else ""
        return f"{allowed}{' ' + knob.unit if knob.unit else ''}{scale}{count_in_words} (default {knob_word(self.default)})"

    def problem(self, value: object) -> str | None:
        """Say how a value is wrong in a text, or None if it is allowed."""
        knob = self.knob
        if value is None and self.optional:
            return None
        if self.kind in ("choice", "bool"):
            return None if value in tuple(knob.choices) else f"expected one of {tuple(knob.choices)}"
        knob_numbers = value if self.kind == "floats" else (value,)
        if not isinstance(knob_numbers, tuple | list) or not all(_is_number(number) for number in knob_numbers):
            return f"expected {'a tuple of numbers' if self.kind == 'floats' else 'a number'}"
        if self.kind == "int" and not float(value).is_integer():  # nor is infinity
            return "expected a whole number"
        if not all(
            knob.low <= number <= knob.high or (knob.unlimited and number == math.inf) for number in knob_numbers
        ):
            return f"expected {knob.low:g} to {knob.high:g}{' ' + knob.unit if knob.unit else ''}"
        return f"expected at most {knob.many} values" if len(knob_numbers) > knob.many else None

    def clip(self, value):
        """Return the nearest allowed value, of the knob's kind (range, step, whole numbers; unknown choice: the default)."""
        k = self.knob
        if value is None and self.optional:
            return None
        if self.kind in ("choice", "bool"):
            return value if value in k.choices else self.default
        if k.unlimited and value == math.inf:
            return value
        if self.kind == "floats":
            return tuple(min(max(float(v), k.low), k.high) for v in value)[: k.many]
        value = min(max(value, k.low), k.high)
        if k.step and not k.log:
            # To twelve digits: 3 steps of 0.1 are 0.3, as people write it.
            value = float(f"{k.low + round((value - k.low) / k.step) * k.step:.12g}")
        value = min(max(value, k.low), k.high)
        return round(value) if self.kind == "int" else float(value)


def _is_number(value) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and not math.isnan(value)


def knob_word(value: object, digits: int | None = None) -> str:
    """Write a knob's value as a word of a command line, as `parse_knob` reads it; for readers, to some significant `digits`.

    Examples
    --------
    >>> knob_word((3250.0, 57_600.0)), knob_word(True), knob_word("easy"), knob_word(1 / 3, 3), knob_word((), 3)
    ('3250,57600', 'true', 'easy', '0.333', 'none')
    """
    if isinstance(value, tuple | list):
        return ",".join(knob_word(knob_number, digits) for knob_number in value) or "none" * bool(digits)
    if digits and isinstance(value, float):
        value = float(f"{value:.{digits}g}")
    return str(value).lower() if isinstance(value, bool | None) else str(value).removesuffix(".0")


def parse_knob(info: KnobInfo, text: str):
    """Return a knob's value (float, int, bool, choice, tuple of floats, None) from a command line's word ("true", "600,3600")."""
    try:
        if info.optional and text.lower() == "none":
            return None
        if info.kind == "floats":
            return tuple(float(number_text) for number_text in text.split(",") if number_text)
        if info.kind == "bool":
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.lower()]
        if info.kind == "choice":
            return next(choice for choice in info.knob.choices if str(choice) == text)
        return int(text) if info.kind == "int" else float(text)
    except (ValueError, KeyError, StopIteration):
        raise info.raises(f"knob {info.name}: found {text!r}; expected {info.describe()}.") from None
