"""What is given for a field of a policy, an estimator or a recipe is taken, or refused by the field's name and what was expected."""

import dataclasses
from functools import partial
from typing import Annotated

import pytest
from present import whole
from wrong_values import WRONG, refused

from gpuschedlab import estimators, policies
from gpuschedlab.errors import LabError, PolicyError
from gpuschedlab.estimators import Noisy
from gpuschedlab.knobs import Knob, Knobbed, knobs_of
from gpuschedlab.scenarios import recipes

NEEDED = {
    "Pop": {"policy": policies.ThemisRounds()},
    "LenientRounds": {"policy": policies.ThemisRounds()},
    "Agent": {"act": int},
}


def classes() -> dict[str, type]:
    faces = (getattr(face, name) for face in (policies, estimators) for name in face.__all__)
    found = (*faces, *policies.ALL.values(), *estimators.ALL.values(), *recipes().values(), policies.Fifo().plan)
    found = (each if isinstance(each, type) else type(each) for each in found)
    return {cls.__name__: cls for cls in found if issubclass(cls, Knobbed) and dataclasses.is_dataclass(cls)}


CLASSES = classes()


def make_with(cls):
    """Function that makes one with a field changed."""
    return partial(cls, **NEEDED.get(cls.__name__, {}))


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_each_field_takes_a_value_or_says_what_it_takes(name):
    cls = CLASSES[name]
    infos = knobs_of(cls)
    for field in (f for f in dataclasses.fields(cls) if f.init):
        wrong = [value for value in WRONG if refused(make_with(cls), field.name, value)]
        info = infos.get(field.name)
        if info is None or info.holder:
            assert any(value is WRONG[9] for value in wrong), field.name
        else:
            ill = [value for value in WRONG if info.problem(value) is not None]
            assert [repr(v) for v in wrong if v in ill] == [repr(v) for v in ill], field.name


def test_the_classes_are_many():
    assert len(CLASSES) >= 30 or not whole()
    assert {"Noisy", "Fifo", "Plan"} <= {*CLASSES}


def test_an_error_given_for_the_estimator_is_named():
    with pytest.raises(LabError, match=r"Noisy.estimator: found 0.5; expected Estimator\."):
        Noisy(0.5)


def test_types_of_fields_without_a_knob():
    @dataclasses.dataclass(frozen=True)
    class Held(Knobbed):
        pairs: tuple[tuple[str, float], ...] = ()
        two: tuple[int, int] = (1, 2)
        some: "dict | None" = None
        loose: int = None  # not even the default is one
        marked: Annotated[int, "no knob"] = 3
        level: Annotated[float, Knob(0, 1)] = 0.5

    assert Held(pairs=[("a", 1)], two=(3, 4), some={}, loose="x").loose == "x"
    for name, value, expected in (
        ("pairs", (("a", "b"),), r"tuple\[tuple\[str, float\], ...\]"),
        ("two", (1, 2, 3), r"tuple\[int, int\]"),
        ("two", (1, 2.5), r"tuple\[int, int\]"),
        ("some", [], r"dict \| None"),
        ("marked", "3", "int"),
        ("level", "3", "a number"),
    ):
        with pytest.raises(PolicyError, match=rf"Held.{name}: found .*expected {expected}"):
            Held(**{name: value})
