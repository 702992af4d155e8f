"""Lazy faces: packages whose public names stand in the stub `__init__.pyi`, and are loaded when they are first used.

What belongs to a paper lies in the folder `policies/<paper>/`, which has such a stub of its own. Names from its programs,
estimators, speeds and recipes are public names of `problems`, `estimators`, `speeds` and `widgets` as well: these list what is
there, and name no paper themselves.
"""

import ast
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent

FACES = {
    "program": "problems",
    "configurations": "problems",
    "estimators": "estimators",
    "speeds": "speeds",
    "recipe": "widgets",
}
"""Modules and folders of a paper, and the package that gives their public names as well."""


@cache
def names_of(package: str) -> dict[str, str]:
    """Public names of a package's stub, in its order, and the module of each; those of modules that are there.

    Examples
    --------
    >>> names_of("gpuschedlab.estimators")["Oracle"]
    'gpuschedlab.estimators.oracle'
    """
    stub = ROOT.joinpath(*package.split(".")[1:], "__init__.pyi")
    found = {}
    for node in ast.parse(stub.read_text(encoding="utf-8")).body if stub.exists() else ():
        if not isinstance(node, ast.ImportFrom) or node.level != 1:
            continue
        first, module = stub.parent / node.module.partition(".")[0], f"{package}.{node.module}"
        if first.is_dir() or first.with_suffix(".py").exists():
            names = [alias.name for alias in node.names]
            found |= dict.fromkeys(names_of(module) if names == ["*"] else names, module)
    return found


@cache
def names_of_papers(part: str) -> dict[str, str]:
    """Names that the papers add to a part of the package, and the module of each.

    Examples
    --------
    >>> sorted(names_of_papers("estimators"))
    ['Transfers']
    """
    found = {}
    for stub in sorted(ROOT.glob("policies/*/__init__.pyi")):
        paper = f"{ROOT.name}.policies.{stub.parent.name}"
        own = names_of(paper).items()
        found |= {name: module for name, module in own if FACES.get(module.split(".")[3]) == part}
    return found


def attach(package: str) -> tuple[Callable, Callable, list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package by its `__name__`: the names of its stub, then those of the papers."""
    part = package.rpartition(".")[2]
    modules = names_of(package) | (names_of_papers(part) if part in FACES.values() else {})

    def load(name: str):
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        thing = getattr(importlib.import_module(modules[name]), name)
        setattr(sys.modules[package], name, thing)  # the next time it is found at once
        return thing

    return load, lambda: sorted(modules), list(modules)


class Classes(Mapping):
    """Classes by the name that the command line uses, in a given order; each is loaded, by its name, when it is asked for."""

    def __init__(self, load: Callable, names):
        self._load, self._names = load, {name.lower(): name for name in names}

    def __getitem__(self, word: str) -> type:
        return self._load(self._names[word])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __or__(self, others: Mapping) -> dict:
        return dict(self) | dict(others)

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self))}}}"
