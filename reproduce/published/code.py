"""Which code a row is of: a hash of all that decides it, by which pages say what older code measured.

It counts the modules that the measurement imports, the files of the reference data that these name, and the libraries that decide.

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
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from gpuschedlab import _faces
from reproduce.published.inputs import digests, read_by, versions_of
from reproduce.published.kept import ROOT, file_of, meaning
from reproduce.published.numbers import Number, Ours, as_ours

PINNED = re.compile(r"gpuschedlab\.(sim|cluster|scenarios|traces(?!\.generator)|cli|plots|report|widgets)\b")
"""Rooms whose code does not count, beside the files that lie in no room: those that run every policy, read every log, or only show."""

DRAWN = re.compile(r"\.(figures|explorers?|hours|command|task|logbook|compiled)\b")
"""Modules of a paper that only show what it does, stand it in the suite, or have it compiled ahead."""

FACE = "gpuschedlab.policies"
READER = ("reproduce.published.data", ROOT / "reproduce" / "published" / "data.py")
"""Module that reads the published traces for benches, and its file."""

FIGURES = 10
"""Hexadecimal digits of a hash that are kept."""


def code_of(source: str, number: Number, value: Ours | float) -> str:
    """Hash of the code that measures a row.

    Examples
    --------
    >>> from reproduce.published.numbers import read_table
    >>> from reproduce.published import SOURCES
    >>> name = next(iter(SOURCES))
    >>> number = Number(*read_table(name).row(0)[:4])
    >>> len(code_of(name, number, 1.0))
    10
    """
    return _hashed(modules_of(source, number, value), tuple(digests(None).items()))


def code_of_case(source: str, measure: Callable, case: tuple, data_dir=None) -> str:
    """Hash of all that the answer of a case depends on: of the policies, those alone that the case names, or all where it names none.

    Parameters
    ----------
    source : str
    measure : callable
        Measures it.
    case : tuple
        Its arguments.
    data_dir : str or Path, optional
        Folder of the reference data; without it the committed digests count.
    """
    words = " ".join(word for word in case if isinstance(word, str))
    modules = _reached((measure.__module__,), _home(source), _policies_in(words))
    return _hashed(modules, tuple(digests(data_dir).items()))


@cache
def _hashed(modules: tuple[str, ...], files: tuple[tuple[str, str], ...]) -> str:
    known = hashlib.sha256()
    for module in modules:
        known.update(f"{module}\0".encode() + _meaning(module))
    read = read_by((*map(_path, modules), *_readers(modules)), dict(files))
    known.update(repr((read, versions_of(modules))).encode())
    return known.hexdigest()[:FIGURES]


def _readers(modules: tuple[str, ...]) -> list[Path]:
    """Modules beside the papers' that read files for some modules: their code does not count, the files that they name do."""
    imported = set().union(*(_imports(module)[0] for module in modules))
    return [READER[1]] if READER[0] in imported else []


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
    from reproduce.published import SOURCES

    module = importlib.import_module(SOURCES[source])
    by = getattr(module, "measured_by", None)
    start = tuple(by(number)) if by else tuple(sorted(set.union(*_imports(SOURCES[source])) - {SOURCES[source]}))
    words = " ".join((number.policy, number.metric, *as_ours(value).each))
    return _reached(start, _home(source), _policies_in(words))


def _home(source: str) -> str:
    """Package of a source, within the workshop."""
    from reproduce.published import SOURCES

    return SOURCES[source].removesuffix(".ours").removeprefix("reproduce.")


def _policies_in(text: str) -> frozenset[str]:
    """Policies that a text names."""
    words = re.findall(r"[a-z]+\d*", text.replace("_", " ").lower())
    return frozenset(word for word in words if word in _policies())


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
    seen: set[str] = set()
    found: set[str] = set()
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        if name.startswith("gpuschedlab.optim"):
            left += _below("gpuschedlab/optim")
        if _counts(name):
            found.add(name)
            left += _imported(name, named)
    return tuple(sorted(found))


def _own(home: str) -> list[str]:
    """Modules of a paper, by its package within the workshop, that do more than show it; its recipe counts where it is imported."""
    every = _below(f"gpuschedlab/{home.replace('.', '/')}")
    return [name for name in every if not DRAWN.search(name) and not name.endswith(".recipe")]


@cache
def _below(folder: str) -> list[str]:
    paths = sorted((ROOT / folder).rglob("*.py"))
    return [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths]


def _counts(module: str) -> bool:
    """Whether a module is one of ours, and its code counts; a package that lists names of others does not, those names do."""
    top, _, rest = module.partition(".")
    if top == "gpuschedlab":
        room = rest.partition(".")[0]
        is_module = (ROOT / top / room).is_dir() and _path(module) is not None
        return bool(rest) and is_module and not PINNED.match(module) and not _names(module)
    return not module.startswith("reproduce.published") and _path(module) is not None


@cache
def _path(module: str) -> Path | None:
    """File of a module of the package, the workshop or the tests; None of any other."""
    return file_of(module)


@cache
def _meaning(module: str) -> bytes:
    return hashlib.sha256(meaning(_path(module))).digest()


def _imported(module: str, named: frozenset[str]) -> set[str]:
    """Modules that a module names in its imports; policies that one of the workshop names only for rows that name none."""
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
