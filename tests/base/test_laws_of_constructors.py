"""Laws of all that a user makes, on drawn arguments: made twice it is the same, as it is from its word, its text and its pickle.

A value beyond a knob's range, and one of a kind that the parameter has not, is refused with words: nothing of Python's own comes out.
"""

import dataclasses
import pickle

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from strategies.alike import alike, is_plain
from strategies.of_knobs import constructor_defaults
from strategies.registry import classes, made, with_knobs

from gpuschedlab import estimators, policies
from gpuschedlab.errors import LabError
from gpuschedlab.knobs import Knobbed, texts_of, word_of
from gpuschedlab.parse import estimator_of, policy_of
from gpuschedlab.scenarios import recipe_of, recipes

CLASSES = {cls.__name__: cls for cls in classes()}
KNOBBED = {cls.__name__: cls for cls in with_knobs()}


def examples(count: int):
    """Settings of a law: nothing is made smaller, since an example says all of its few arguments."""
    return settings(max_examples=count, phases=[Phase.generate], suppress_health_check=list(HealthCheck))


def drawn(strategy: st.SearchStrategy, count: int) -> list:
    """Return some values of a strategy."""
    values = []

    @examples(count)
    @given(strategy)
    def keep(value):
        values.append(value)

    keep()
    return values


@pytest.mark.parametrize("name", CLASSES)
def test_the_same_arguments_make_the_same(name):
    rule = made(CLASSES[name])
    for arguments in drawn(rule.arguments, 8):
        thing = rule.make(**arguments)
        again = rule.make(**arguments)
        assert alike(thing, again), arguments
        assert alike(pickle.loads(pickle.dumps(thing)), thing), arguments
        if type(thing).__eq__ is not object.__eq__ and is_plain(arguments):
            assert thing == again
            assert has_dicts(arguments) or hash(thing) == hash(again)


def has_dicts(arguments: dict) -> bool:
    """Whether a dict is among the arguments, which no dataclass of it can be hashed with."""
    return "{" in repr(list(arguments.values()))


@pytest.mark.parametrize("name", CLASSES)
def test_each_parameter_is_drawn_at_several_values(name):
    """A parameter that always has its default would be no part of the laws."""
    cls = CLASSES[name]
    rule = made(cls)
    defaults = constructor_defaults(rule.make)
    seen = drawn(rule.arguments, 40)
    for parameter in defaults.keys() - FIXED.get(name, set()):
        values = [arguments[parameter] for arguments in seen if parameter in arguments]
        assert any(not alike(value, values[0]) for value in values), parameter


FIXED = {
    "Guess": {"answers", "choices"},
    "Session": {"options"},
    "CausalModel": {"options"},
    "Layers": {"knobs"},
    "MultipleChoice": {"type_of_config"},
}
"""Parameters of which one value is enough, or that stand for several."""


WORDS = dict.fromkeys(policies.ALL.values(), policy_of) | dict.fromkeys(estimators.ALL.values(), estimator_of)
WORDS |= dict.fromkeys(recipes().values(), recipe_of)
"""Functions that read the words of classes."""


@pytest.mark.parametrize("cls", WORDS, ids=lambda cls: cls.__name__)
def test_a_word_makes_it_again(cls):
    """Of knobs and texts: all else that a class holds is no part of its word."""
    things = [with_defaults(thing) for thing in drawn(made(cls).objects, 8)]
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
