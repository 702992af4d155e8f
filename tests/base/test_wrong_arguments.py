"""Types of fields without a knob, and what a refusal says of them; `test_laws_of_constructors.py` asks every class."""

import dataclasses
from typing import Annotated

import pytest

from gpuschedlab.errors import LabError, PolicyError
from gpuschedlab.estimators import Noisy
from gpuschedlab.knobs import Knob, Knobbed


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
