"""One strategy for each class that a user makes: of its arguments, and of the objects themselves."""

import typing
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from hypothesis import strategies as st

import strategies.by_hand as by_hand
import strategies.fields_by_hand as fields_by_hand
from gpuschedlab import estimators, policies
from gpuschedlab.knobs import Knobbed
from gpuschedlab.scenarios import recipes
from strategies.of_knobs import (
    SEEDS,
    WORDS,
    allowed,
    defaults_of,
    has_knobs,
    learnt_length,
    other_fields,
    own_knobs,
    values_of,
)


@dataclass(frozen=True)
class Made:
    """How a class is made: its constructor, and a strategy of the constructor's arguments by name."""

    make: Callable
    arguments: st.SearchStrategy

    @property
    def objects(self) -> st.SearchStrategy:
        """Strategy of the objects."""
        return self.arguments.map(lambda arguments: self.make(**arguments))


@cache
def made(cls: type) -> Made:
    """How a class is made.

    Raises
    ------
    LookupError
        No strategy of the class is known.
    """
    found = by_hand.strategies_of_arguments().get(cls)
    if found is not None:
        return Made(*found)
    if has_knobs(cls):
        return Made(cls, _arguments_of_knobs(cls))
    raise LookupError(f"{cls.__name__}: found no strategy; expected one in strategies/by_hand.py.")


def strategy_of(cls: type) -> st.SearchStrategy:
    """Return a strategy of the objects of a class."""
    return made(cls).objects


def arguments_of(cls: type) -> st.SearchStrategy:
    """Return a strategy of all arguments of a class's constructor, by name."""
    return made(cls).arguments


@st.composite
def _arguments_of_knobs(draw, cls: type[Knobbed]) -> dict:
    """Draw all fields of a class with knobs; a constraint that does not hold is met by the class's own projection."""
    by_hand_too = fields_by_hand.fields()
    strategies = {name: by_hand_too.get((cls.__name__, name), values_of(info)) for name, info in own_knobs(cls).items()}
    arguments = allowed(cls, draw(st.fixed_dictionaries(strategies)))
    for name in other_fields(cls):
        arguments[name] = draw(field_of(cls, name))
    mend = fields_by_hand.mended().get(cls.__name__)
    if mend is not None:
        arguments = mend(arguments, draw)
    return arguments


@cache
def field_of(cls: type[Knobbed], name: str) -> st.SearchStrategy:
    """Return a strategy of a field that is no knob: written by hand, or of its type.

    Raises
    ------
    LookupError
        Nothing says which values the field may have.
    """
    found = fields_by_hand.fields().get((cls.__name__, name))
    if found is not None:
        return found
    hint = other_fields(cls)[name]
    if length := learnt_length(cls, name):
        learnt = defaults_of(cls)[name]
        return st.sampled_from([learnt, learnt[::-1]]) if len(learnt) <= length else st.nothing()
    simple = {bool: st.booleans(), int: SEEDS, str: WORDS}
    if hint in simple:
        return simple[hint]
    if has_knobs(hint):
        return strategy_of(hint)
    if isinstance(hint, type) and issubclass(hint, Knobbed):
        return st.deferred(lambda: st.one_of([strategy_of(leaf) for leaf in leaves(hint)]))
    raise LookupError(
        f"{cls.__name__}.{name}: found no strategy of {hint}; expected one in strategies/fields_by_hand.py."
    )


@cache
def leaves(base: type[Knobbed]) -> tuple[type[Knobbed], ...]:
    """Classes of the registries that derive from a base and hold none of its kind."""
    known = [*policies.ALL.values(), *estimators.ALL.values()]
    return tuple(cls for cls in known if issubclass(cls, base) and not _holds(cls))


def _holds(cls: type[Knobbed]) -> bool:
    """Whether a class has a field that is a policy or an estimator."""
    from gpuschedlab.estimators import Estimator
    from gpuschedlab.sim import Policy

    hints = typing.get_type_hints(cls)
    kinds = [hints[name] for name in other_fields(cls)]
    return any(isinstance(kind, type) and issubclass(kind, Policy | Estimator) for kind in kinds)


@cache
def with_knobs() -> tuple[type[Knobbed], ...]:
    """Classes with knobs that a user makes: public ones, those of the registries, and those that these hold."""
    from strategies.public_classes import public_classes

    registered = [*policies.ALL.values(), *estimators.ALL.values(), *recipes().values()]
    found = [cls for cls in public_classes().values() if has_knobs(cls)] + registered
    for cls in found:  # grows by the classes that are held
        found += [kind for kind in other_fields(cls).values() if has_knobs(kind) and kind not in found]
    return tuple(dict.fromkeys(found))


@cache
def classes() -> tuple[type, ...]:
    """Every class with a strategy: those with knobs, then those by hand."""
    return tuple(dict.fromkeys([*with_knobs(), *by_hand.strategies_of_arguments()]))
