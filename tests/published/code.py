"""Which code a row is of: a hash of the modules that its measurement imports, by which pages say what older code measured.

Imports are followed as they are written, from the module of the measuring function (`measured_by` of a source's module, otherwise
all that this imports) and from the policies that the row names; a row that names none follows all that it could run. The paper's own
modules count as a whole, but those that draw, and so does `optim` once anything of it is imported, since solvers are found by their
word. `PINNED` does not count: golden runs hold the engine and the cluster to the byte in every `make test`, and the rows that
`cheap` of a source measures hold them at full size; with them every edit of the engine would make all rows old. Of a module its
meaning counts: not its comments, docstrings and layout.
"""

import ast
import hashlib
import importlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from gpuschedlab import _faces
from published.kept import TESTS, meaning
from published.numbers import Number, Ours, as_ours

ROOT = TESTS.parent
PINNED = re.compile(r"gpuschedlab\.(sim|cluster|scenarios|traces(?!\.generator))\b")
"""Rooms whose code does not count, beside the files that lie in no room: what runs every policy, and what reads every log."""

DRAWN = re.compile(r"\.(figures|explorers?|hours|command|task|logbook)\b")
"""Modules of a paper that only show what it does, or stand it in the suite."""

FACE = "gpuschedlab.policies"
FIGURES = 10
"""Hexadecimal digits of a hash that are kept."""


def code_of(source: str, number: Number, value: Ours | float) -> str:
    """Hash of the code that measures a row.

    Examples
    --------
    >>> from published.numbers import read_table
    >>> from published import SOURCES
    >>> name = next(iter(SOURCES))
    >>> number = Number(*read_table(name).row(0)[:4])
    >>> len(code_of(name, number, 1.0))
    10
    """
    return _hashed(modules_of(source, number, value))


@cache
def _hashed(modules: tuple[str, ...]) -> str:
    known = hashlib.sha256()
    for module in modules:
        known.update(f"{module}\0".encode() + _meaning(module))
    return known.hexdigest()[:FIGURES]


def codes_of(source: str, found: Mapping[Number, float | str | Ours]) -> dict[Number, str]:
    """Hash of each number that was measured."""
    return {
        n: code_of(source, n, value) for n, value in found.items() if value is not None and not isinstance(value, str)
    }


def older(source: str, found: Mapping, codes: Mapping[Number, str]) -> set[Number]:
    """Numbers that other code than today's measured, or code that nobody wrote down."""
    return {number for number, code in codes_of(source, found).items() if codes.get(number) != code}


def modules_of(source: str, number: Number, value: Ours | float) -> tuple[str, ...]:
    """Modules whose code counts for a row."""
    from published import SOURCES

    module = importlib.import_module(SOURCES[source])
    by = getattr(module, "measured_by", None)
    start = tuple(by(number)) if by else tuple(sorted(set.union(*_imports(SOURCES[source])) - {SOURCES[source]}))
    words = " ".join((number.policy, number.metric, *as_ours(value).each)).replace("_", " ").lower()
    return _reached(
        start, SOURCES[source].removesuffix(".ours"), frozenset(set(re.findall(r"[a-z]+\d*", words)) & set(_policies()))
    )


@cache
def _policies() -> dict[str, str]:
    """Module of each policy, by its word."""
    return {name.lower(): module for name, module in _names(FACE).items()}


@cache
def _names(package: str) -> dict[str, str]:
    """Public names of a package that loads them when they are used, and the module of each."""
    part = package.partition(".")[2] or "policies"
    return _faces.names_of(package) | _faces.names_of_papers(part)


@cache
def _reached(start: tuple[str, ...], home: str, named: frozenset[str]) -> tuple[str, ...]:
    """Modules that imports lead to; without a named policy also those of all policies."""
    left = [*start, *_own(home), *(_policies()[name] for name in named)]
    found: set[str] = set()
    while left:
        if (name := left.pop()) in found or not _counts(name):
            continue
        found.add(name)
        left += _imported(name, named)
        if name.startswith("gpuschedlab.optim"):
            left += _below("gpuschedlab/optim")
    return tuple(sorted(found))


def _own(home: str) -> list[str]:
    """Modules of a paper, by the package of its tests, that do more than show it; its recipe counts where it is imported."""
    every = _below(f"gpuschedlab/{home.replace('.', '/')}")
    return [name for name in every if not DRAWN.search(name) and not name.endswith(".recipe")]


@cache
def _below(folder: str) -> list[str]:
    paths = sorted((ROOT / folder).rglob("*.py"))
    return [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths]


def _counts(module: str) -> bool:
    """Whether a module is one of ours, and its code counts."""
    top, _, rest = module.partition(".")
    if top == "gpuschedlab":
        room = rest.partition(".")[0]
        return bool(rest) and not PINNED.match(module) and (ROOT / top / room).is_dir() and _path(module) is not None
    return top != "published" and _path(module) is not None


@cache
def _path(module: str) -> Path | None:
    """File of a module of the package or of the tests."""
    base = (ROOT if module.partition(".")[0] == "gpuschedlab" else TESTS) / module.replace(".", "/")
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


@cache
def _meaning(module: str) -> bytes:
    return hashlib.sha256(meaning(_path(module))).digest()


def _imported(module: str, named: frozenset[str]) -> set[str]:
    """Modules that a module names in its imports; policies that one of the tests names only for rows that name none."""
    modules, policies = _imports(module)
    return modules if named and not module.startswith("gpuschedlab.") else modules | policies


@cache
def _imports(module: str) -> tuple[set[str], set[str]]:
    """Modules that a module names in its imports, also within functions, and those of policies that it asks the face for."""
    modules = set()
    policies = set()
    for node in ast.walk(ast.parse(_path(module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            public = _names(node.module) if node.module.startswith("gpuschedlab") else {}
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found = public.get(alias.name) or (inner if _path(inner) else node.module)
                (policies if node.module == FACE else modules).add(found)
    return modules, policies
