"""Laws of all that a user makes, on drawn arguments: made twice it is the same, as it is from its word, its text and its pickle.

A value beyond a knob's range, and one of a kind that the parameter has not, is refused with words: nothing of Python's own comes out.
"""

import dataclasses
import math
import pickle
import re
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from strategies.alike import alike, is_plain
from strategies.of_knobs import constructor_defaults, own_knobs
from strategies.registry import arguments_of, classes, made, with_knobs
from wrong_values import WRONG

from gpuschedlab import estimators, policies
from gpuschedlab.check import small_trace
from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import LabError
from gpuschedlab.knobs import Knob, Knobbed, KnobInfo, texts_of, word_of
from gpuschedlab.parse import estimator_of, policy_of
from gpuschedlab.scenarios import recipe_of, recipes
from gpuschedlab.traces import generate

CLASSES = {cls.__name__: cls for cls in classes()}
KNOBBED = {cls.__name__: cls for cls in with_knobs()}
FEW, MORE = 12, 100
"""Draws of each class on which laws are tried, and draws at most in which each parameter must change."""


@cache
def drawn(name: str, count: int = FEW) -> list[dict]:
    """Return some arguments of a class's constructor; nothing is made smaller, since an example says all of its few arguments."""
    values = []

    @settings(max_examples=count, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None)
    @given(arguments_of(CLASSES[name]))
    def keep(arguments):
        values.append(arguments)

    keep()
    return values


@pytest.mark.parametrize("name", CLASSES)
def test_the_same_arguments_make_the_same(name):
    make = made(CLASSES[name]).make
    for arguments in drawn(name):
        thing = make(**arguments)
        again = make(**arguments)
        assert alike(thing, again), arguments
        assert alike(pickle.loads(pickle.dumps(thing)), thing), arguments
        if type(thing).__eq__ is not object.__eq__ and is_plain(arguments):
            assert thing == again
            assert has_dicts(arguments) or hash(thing) == hash(again)


def made_with(name: str, parameter: str, value: object):
    """Object of a class with one of its drawn arguments changed."""
    return made(CLASSES[name]).make(**drawn(name)[-1] | {parameter: value})


def has_dicts(arguments: dict) -> bool:
    """Whether a dict is among the arguments, which no dataclass of it can be hashed with."""
    return "{" in repr(list(arguments.values()))


@pytest.mark.parametrize("name", CLASSES)
def test_the_text_of_a_thing_makes_it_again(name):
    make = made(CLASSES[name]).make
    for arguments in drawn(name):
        thing = make(**arguments)
        if is_plain(thing) and type(thing).__eq__ is not object.__eq__:
            names = {cls.__name__: cls for cls in classes_within(thing)}
            assert eval(repr(thing), {"inf": math.inf} | names) == thing


def classes_within(thing: object) -> set[type]:
    """Dataclasses of a thing and of its parts."""
    if isinstance(thing, tuple | list):
        return set().union(*map(classes_within, thing))
    if not dataclasses.is_dataclass(thing):
        return set()
    return {type(thing)} | classes_within([getattr(thing, field.name) for field in dataclasses.fields(thing)])


ONE_VALUE = {"answers", "choices", "options", "type_of_config"}
"""Parameters that stand for several, or of which one value is enough."""


@pytest.mark.parametrize("name", CLASSES)
def test_each_parameter_changes_from_draw_to_draw(name):
    """A parameter that always had one value would be no part of the laws."""
    parameters = constructor_defaults(made(CLASSES[name]).make).keys() - ONE_VALUE
    constant = [parameter for parameter in parameters if not changes(parameter, drawn(name))]
    assert not [parameter for parameter in constant if not changes(parameter, drawn(name, MORE))]


def changes(parameter: str, arguments: list[dict]) -> bool:
    """Whether a parameter has several values in a list of arguments."""
    values = [each[parameter] for each in arguments]
    return any(not alike(value, values[0]) for value in values)


WORDS = dict.fromkeys(policies.ALL.values(), policy_of) | dict.fromkeys(estimators.ALL.values(), estimator_of)
WORDS |= dict.fromkeys(recipes().values(), recipe_of)
"""Functions that read the words of classes."""


@pytest.mark.parametrize("cls", WORDS, ids=lambda cls: cls.__name__)
def test_a_word_makes_it_again(cls):
    """Of knobs and texts: all else that a class holds is no part of its word."""
    things = [with_defaults(cls(**arguments)) for arguments in drawn(cls.__name__)]
    plain = [thing for thing in things if thing is not None]
    assert plain
    for thing in plain:
        assert WORDS[cls](word_of(thing)) == thing
        if cls in recipes().values():
            assert recipe_of(thing.to_dict()) == thing


def with_defaults(thing: Knobbed) -> Knobbed | None:
    """Return the knobs and texts of a thing on the defaults of all else; None if these do not fit together."""
    plain = type(thing)()
    try:
        return dataclasses.replace(plain, **texts_of(thing)).with_knobs(**thing.knobs)
    except LabError:
        return None


def beyond(info: KnobInfo) -> list:
    """Values just beyond what a knob allows: below and above its range, between whole numbers, one value too many."""
    knob = info.knob
    if info.kind in ("bool", "choice"):
        return ["no such choice", 2, -1]
    step = 1 if info.kind == "int" else 0
    below = knob.low - step if step else math.nextafter(knob.low, -math.inf)
    above = knob.high + step if step else math.nextafter(knob.high, math.inf)
    values = [below, above, -math.inf, math.nan] + ([] if knob.unlimited else [math.inf])
    if info.kind == "int" and knob.high < 2**52:
        values.append(knob.low + 0.5)
    if info.kind == "floats":
        values = [(value,) for value in values] + [(knob.low,) * (knob.many + 1)]
    return values


@pytest.mark.parametrize("name", KNOBBED)
def test_a_value_just_beyond_a_knob_is_refused_by_its_name(name):
    cls = KNOBBED[name]
    arguments = drawn(name)[-1]
    for knob, info in own_knobs(cls).items():
        for value in beyond(info):
            with pytest.raises(cls.raises) as refusal:
                cls(**arguments | {knob: value})
            assert f"{name}.{knob}: found {value!r}; expected " in str(refusal.value)
            assert names_the_range(str(refusal.value), info), str(refusal.value)


def names_the_range(words: str, info: KnobInfo) -> bool:
    """Whether a refusal says what is allowed: the choices, whole numbers, the number of values, or the ends of the range."""
    knob = info.knob
    allowed = [f"{knob.low:g} to {knob.high:g}"] if knob.low is not None else [repr(choice) for choice in knob.choices]
    return any(part in words for part in [*allowed, "a whole number", f"at most {knob.many} values", "number"])


@pytest.mark.parametrize("name", KNOBBED)
def test_any_values_are_projected_on_allowed_ones(name):
    cls = KNOBBED[name]
    anything = {knob: st.sampled_from(beyond(info)[:3]) | values_beside(info) for knob, info in own_knobs(cls).items()}
    arguments = drawn(name)[0]

    @settings(max_examples=FEW, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None)
    @given(st.fixed_dictionaries(anything))
    def law(values):
        projected = cls.project(values)
        assert cls.project(projected) == projected
        own = {knob: projected[knob] for knob in own_knobs(cls)}
        cls(**arguments | own)

    law()


@pytest.mark.parametrize("name", KNOBBED)
def test_an_allowed_value_is_left_where_it_is_or_moved_onto_the_grid(name):
    for arguments in drawn(name):
        for knob, info in own_knobs(KNOBBED[name]).items():
            value = arguments[knob]
            clipped = info.clip(value)
            if info.knob.step and value is not None and not info.knob.log and abs(value) < math.inf:
                assert abs(clipped - value) <= 0.500001 * info.knob.step
            else:
                assert clipped == value


def values_beside(info: KnobInfo) -> st.SearchStrategy:
    """Numbers in and about a knob's range."""
    if info.kind in ("bool", "choice"):
        return st.sampled_from(list(info.knob.choices))
    span = info.knob.high - info.knob.low
    numbers = st.floats(info.knob.low - 0.1 * span, info.knob.high + 0.1 * span)
    return st.lists(numbers, max_size=info.knob.many + 1).map(tuple) if info.kind == "floats" else numbers


KINDS = (*WRONG, 10**30, -(10**30))
NO_FIELD_MEANS = WRONG[9]
"""An object without any meaning."""


@pytest.mark.parametrize("name", CLASSES)
def test_a_value_of_another_kind_is_taken_or_refused_with_words(name):
    """A knob's own value that is a problem, and an object without meaning in another field of its class, is not taken."""
    make = made(CLASSES[name]).make
    knobs = own_knobs(CLASSES[name]) if name in KNOBBED else {}
    for arguments in drawn(name)[-2:]:
        for parameter in arguments:
            for value in KINDS:
                words = words_of_refusal(make, arguments, parameter, value)
                case = f"{name}({parameter}={value!r}): {words}"
                if words:
                    assert "expected" in words, case
                    assert parameter in words or repr(value) in words, case
                elif parameter in knobs:
                    assert allows(knobs[parameter], value), case
                elif knobs:
                    assert value is not NO_FIELD_MEANS, case


def allows(info: KnobInfo, value: object) -> bool:
    """Whether a knob's declaration allows a value."""
    knob = info.knob
    if value is None and info.optional:
        return True
    if info.kind in ("bool", "choice"):
        return value in tuple(knob.choices)
    if info.kind == "floats":
        return (
            isinstance(value, tuple | list) and len(value) <= knob.many and all(in_range(knob, part) for part in value)
        )
    return in_range(knob, value) and (info.kind == "float" or value % 1 == 0)


def in_range(knob: Knob, value: object) -> bool:
    """Whether a value is a number, no truth value, and within a knob's range."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return knob.low <= value <= knob.high or (knob.unlimited and value == math.inf)


@pytest.mark.parametrize("name", CLASSES)
def test_a_part_of_another_kind_is_taken_or_refused_with_words(name):
    """Of a tuple, a list or a dict: its first part, the first part of that, and so on."""
    make = made(CLASSES[name]).make
    for arguments in drawn(name)[-6:]:
        for parameter, value in arguments.items():
            for changed in with_wrong_parts(value):
                words = words_of_refusal(make, arguments, parameter, changed)
                assert not words or "expected" in words, f"{name}({parameter}={changed!r}): {words}"


def with_wrong_parts(value: object) -> list:
    """Copies of a container, each with a part that is of another kind."""
    if isinstance(value, tuple | list) and value:
        first, *others = value
        return [type(value)([part, *others]) for part in (*KINDS, *with_wrong_parts(first))]
    if isinstance(value, dict) and value:
        key, part = next(iter(value.items()))
        keys = [wrong for wrong in (*KINDS, *with_wrong_parts(key)) if is_hashable(wrong)]
        parts = [value | {key: wrong} for wrong in (*KINDS, *with_wrong_parts(part))]
        return parts + [{wrong: part} for wrong in keys]
    return []


def is_hashable(value: object) -> bool:
    """Whether a value can be the key of a dict."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def words_of_refusal(make, arguments: dict, parameter: str, value: object) -> str:
    """Return the words with which a value is refused, "" if it is taken; any error but the package's own goes on."""
    try:
        make(**arguments | {parameter: value})
    except LabError as error:
        return str(error)
    return ""


NO_SEEDS = (-1, 0.5, math.nan, "x", None, True)
WITH_SEEDS = {
    "generate": (lambda rng: generate("venus", days=1, jobs=3, rng=rng), "rng"),
    "with_failures": (lambda rng: Cluster.homogeneous(1, 1).with_failures(9.0, 1.0, 99.0, rng), "rng"),
    "small_trace": (lambda rng: small_trace(3, rng), "rng"),
}
WITH_SEEDS |= {
    f"{name}({parameter})": (partial(made_with, name, parameter), parameter)
    for name in sorted(CLASSES.keys() - {"Noisy"})  # declares that a seed may be negative
    for parameter in ("seed", "rng")
    if parameter in constructor_defaults(made(CLASSES[name]).make)
}
WITH_SEEDS |= {f"{word} recipe": (cls(), "seed") for word, cls in recipes().items() if cls.drawn}


@pytest.mark.parametrize("case", WITH_SEEDS)
def test_no_seed_but_a_whole_number_from_0_on(case):
    """What is made of it would else fail much later, with an error of numpy's."""
    call, parameter = WITH_SEEDS[case]
    for seed in NO_SEEDS:
        with pytest.raises(LabError, match=rf"{parameter}: found {re.escape(repr(seed))}; expected "):
            call(seed)


def test_several_whole_numbers_are_a_seed_as_numpy_takes_them():
    drawn_by = small_trace(3, [1, 2])
    assert drawn_by.equals(small_trace(3, np.random.default_rng([1, 2])))
    assert not drawn_by.equals(small_trace(3, [1, 3]))
    for seed in ((1, 2), np.array([1, 2]), range(1, 3), np.random.SeedSequence([1, 2]), np.random.PCG64([1, 2])):
        assert drawn_by.equals(small_trace(3, seed)), seed
    with pytest.raises(LabError, match="rng: found -2; expected a whole number, 0 or more, several of them, or"):
        small_trace(3, [1, -2])
