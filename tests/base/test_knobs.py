"""Knobs: declared once, checked when made, projected onto their constraints."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import pytest

from gpuschedlab.errors import PolicyError
from gpuschedlab.knobs import Constraint, Knob, Knobbed, knobs_of, parse_knob
from gpuschedlab.policies import ALL, Tiresias


@dataclass(frozen=True)
class Demo(Knobbed):
    """Every kind of knob."""

    count: Annotated[int, Knob(1, 5)] = 2
    level: Annotated[float, Knob(1, 100, log=True, unit="s")] = 10.0
    flag: Annotated[bool, Knob()] = False
    mode: Annotated[str, Knob(choices=("a", "b"))] = "a"
    cuts: Annotated[tuple[float, ...], Knob(0, 10, many=3)] = (1.0,)
    plain: int = 7
    constraints: ClassVar = (
        Constraint("as many cuts as count - 1", lambda k: len(k["cuts"]) == k["count"] - 1, lambda k: {"count": len(k["cuts"]) + 1}),
    )  # fmt: skip


def test_kinds_and_order_come_from_the_declaration():
    assert {n: i.kind for n, i in knobs_of(Demo).items()} == {
        "count": "int",
        "level": "float",
        "flag": "bool",
        "mode": "choice",
        "cuts": "floats",
    }
    assert "1 to 100 s, log scale (default 10)" in knobs_of(Demo)["level"].describe()


@pytest.mark.parametrize(
    "change",
    [
        {"count": 0},
        {"count": 2.5},
        {"count": True},
        {"level": float("nan")},
        {"level": "x"},
        {"flag": 3},
        {"mode": "c"},
        {"cuts": (11,)},
        {"cuts": 3},
        {"cuts": (1, 2, 3, 4)},
        {"count": 4},
    ],
)
def test_a_wrong_value_is_refused_with_what_was_expected(change):
    with pytest.raises(PolicyError, match="expected"):
        Demo(**change)


def test_with_knobs_refuses_what_is_no_knob():
    assert Demo().with_knobs(level=20).level == 20
    with pytest.raises(PolicyError, match="no knob"):
        Demo().with_knobs(plain=3)


def test_project_clips_and_then_meets_the_constraints():
    values = Demo.project({"count": 9, "level": 1e9, "mode": "z", "cuts": (1, 99)})
    assert values == {"count": 3, "level": 100.0, "flag": False, "mode": "a", "cuts": (1.0, 10.0)}
    Demo(**values)


@pytest.mark.parametrize("queues", range(1, 6))
@pytest.mark.parametrize("thresholds", [(), (5.0,), (9e7, 9e7, 1e8), (1e8, 1.0, 50.0, 3.0), (1.0, 1e7 + 1)])
def test_tiresias_projects_any_thresholds(queues, thresholds):
    Tiresias(**Tiresias.project({"queues": queues, "thresholds": thresholds}))


def test_every_policy_s_defaults_survive_projection():
    for cls in ALL.values():
        assert cls(**cls.project({})) == cls()


def test_a_wrong_declaration_names_class_field_and_cure():
    @dataclass(frozen=True)
    class Empty(Knobbed):
        a: Annotated[float, Knob(5, 1)] = 2.0

    @dataclass(frozen=True)
    class Outside(Knobbed):
        a: Annotated[float, Knob(0, 1)] = 2.0

    @dataclass(frozen=True)
    class Text(Knobbed):
        a: Annotated[str, Knob(0, 1)] = "x"

    @dataclass(frozen=True)
    class LogZero(Knobbed):
        a: Annotated[float, Knob(0, 1, log=True)] = 0.5

    class Bare(Knobbed):
        pass

    for cls, words in (
        (Empty, "low <= high"),
        (Outside, "default 2.0"),
        (Text, "choices"),
        (LogZero, "low > 0"),
        (Bare, "dataclass"),
    ):
        with pytest.raises(PolicyError, match=words) as error:
            knobs_of(cls)
        assert cls.__name__ in str(error.value)


def test_words_of_a_command_line_become_values():
    infos = knobs_of(Demo)
    assert [
        parse_knob(infos[n], t) for n, t in (("count", "3"), ("flag", "true"), ("mode", "b"), ("cuts", "1,2.5"))
    ] == [
        3,
        True,
        "b",
        (1.0, 2.5),
    ]
    for name, text in (("count", "x"), ("flag", "maybe"), ("mode", "c")):
        with pytest.raises(PolicyError, match="expected"):
            parse_knob(infos[name], text)
