"""Knobs that are read from sources are those of the classes, and nothing slow is imported for them."""

import importlib
import sys

import pytest

from gpuschedlab import policies
from gpuschedlab._faces import names_of, names_of_papers
from gpuschedlab.cli.knob_sources import Unreadable, declared, module_of
from gpuschedlab.knobs import knobs_of

MODULES = names_of("gpuschedlab.policies") | names_of_papers("policies")


@pytest.mark.parametrize("word", policies.ALL)
def test_the_source_says_the_knobs_of_a_policy(word):
    cls = policies.ALL[word]
    source = module_of(MODULES[cls.__name__])[cls.__name__]
    assert source is not cls
    assert source.__doc__ == cls.__doc__
    assert list(knobs_of(source).items()) == list(knobs_of(cls).items())


PLAIN = '''
import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from gpuschedlab.knobs import Knob, Knobbed

DAY = 24 * 3600.0
LOW, HIGH = 1, 7
Wait = Annotated[float, Knob(0, DAY, unlimited=True, unit="s", help="of a job")]


def weight(of: str) -> Knob:
    return Knob(LOW, HIGH, help=f"weight of {of}")


@dataclass(frozen=True)
class First(Knobbed):
    """Order of its own."""

    wait: Wait = math.inf
    table: tuple = tuple(np.zeros(3))
    age: Annotated[int, weight("age")] = HIGH
    kinds: ClassVar = (1, 2)


@dataclass(frozen=True)
class Second(First):
    """The same, with another default."""

    age: Annotated[int, weight("age")] = 2
    fair: Annotated[bool, Knob(help="whether shares count")] = False
'''


@pytest.fixture
def paper(tmp_path, monkeypatch):
    """Function that makes the module of a paper from outside, and returns its name."""
    name = f"{tmp_path.name}_paper"

    def make(text: str) -> str:
        home = tmp_path / name
        home.mkdir()
        (home / "__init__.py").write_text("")
        (home / "policy.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr("gpuschedlab.cli.knob_sources.papers", lambda: (name,))
        module_of.cache_clear()
        importlib.invalidate_caches()
        return f"{name}.policy"

    yield make
    module_of.cache_clear()
    for module in (name, f"{name}.policy"):
        sys.modules.pop(module, None)


@pytest.mark.parametrize("name", ["First", "Second"])
def test_constants_functions_and_bases_are_followed(paper, name):
    module = paper(PLAIN)
    source = declared(module, name)
    assert module not in sys.modules
    cls = getattr(importlib.import_module(module), name)
    assert source.__doc__ == cls.__doc__
    assert list(knobs_of(source).items()) == list(knobs_of(cls).items())


def test_a_class_is_imported_if_its_source_does_not_say_its_knobs(paper):
    module = paper(PLAIN.replace("LOW, HIGH = 1, 7", "LOW, HIGH = np.arange(1, 8)[[0, -1]].tolist()"))
    with pytest.raises(Unreadable):
        module_of(module)["First"]
    assert declared(module, "First") is importlib.import_module(module).First
    assert knobs_of(declared(module, "Second"))["age"].knob.high == 7


def test_other_packages_are_not_read():
    for name in ("numpy.linalg", "gpuschedlab.no_such_module"):
        with pytest.raises(Unreadable, match=name):
            module_of(name)
