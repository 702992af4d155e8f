"""Which tests are near to a place in the package: those whose text has the names that stand there."""

import ast
import math
from functools import cache
from pathlib import Path
from typing import NamedTuple

from mutations import Mutation

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "gpuschedlab"
TESTS = ROOT / "tests"
NOT_NEAR = ("browser", "faults", "published", "budgets", "house", "notebooks")
MOST = 25
"""Functions of tests that are near."""
SECONDS = 20.0
"""What they may take together, by what is known of them."""


class Test(NamedTuple):
    """A function of tests: its name in pytest's words, and all names in it and in what it calls in its file."""

    name: str
    words: frozenset
    imports: frozenset


def _words(node) -> set[str]:
    found = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            found.add(part.id)
        elif isinstance(part, ast.Attribute):
            found.add(part.attr)
        elif isinstance(part, ast.arg | ast.keyword) and part.arg:
            found.add(part.arg)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            found.update(word for word in part.value.replace("-", "_").split() if word.isidentifier())
    return found


def _tests_of(file: Path) -> list[Test]:
    tree = ast.parse(file.read_text())
    functions = {node.name: _words(node) for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    imports = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            imports |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Import):
            imports |= {name.name for name in node.names}
    found = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            words = set(functions[node.name])
            new = set(functions[node.name])
            while new := {w for name in new & functions.keys() for w in functions[name]} - words:
                words |= new
            path = file.relative_to(ROOT).as_posix()
            found.append(Test(f"{path}::{node.name}", frozenset(words), frozenset(imports)))
    return found


@cache
def tests() -> list[Test]:
    """Every function of tests that may be near to something."""
    files = sorted(TESTS.rglob("test_*.py"))
    return [test for file in files if file.relative_to(TESTS).parts[0] not in NOT_NEAR for test in _tests_of(file)]


@cache
def _rare(word: str) -> float:
    """How much a word says: 1 where one test has it, 0 where all have."""
    having = sum(word in test.words for test in tests())
    return 1 - math.log(having) / math.log(len(tests())) if having else 0.0


def around(tree: ast.Module, line: int) -> list:
    """Functions and classes about a line, the inmost last."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef))
    return sorted((node for node in nodes if _first(node) <= line <= node.end_lineno), key=_first)


def _first(node) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def function_at(fault: Mutation) -> int | None:
    """First line of the function about a fault; None: it stands outside of all."""
    nodes = around(ast.parse((PACKAGE / fault.path).read_text()), fault.line)
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    return _first(functions[-1]) if functions else None


def nearest(fault: Mutation, seconds: dict[str, float]) -> list[str]:
    """Functions of tests, the nearest and quickest first; `seconds`: what is known of how long they take."""
    path = fault.path
    module = f"gpuschedlab.{path.removesuffix('.py').replace('/', '.')}"
    tree = ast.parse((PACKAGE / path).read_text())
    module = module.removesuffix(".__init__")
    parts = Path(path).parts
    own = [node.name for node in around(tree, fault.line)]
    defined = {node.name: _words(node) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    callers = {name for name, words in defined.items() if own and words & set(own) and name not in own}
    weights = dict.fromkeys(defined, 1.0) | dict.fromkeys(callers, 4.0) | dict.fromkeys(own, 8.0)
    weights = {name: weight for name, weight in weights.items() if len(name) > 2}
    room = "tests/" + "/".join(parts[: 2 if parts[0] == "papers" else 1])
    ranked = []
    for test in tests():
        score = sum(weights[word] * _rare(word) for word in test.words & weights.keys())
        score += 2.0 * (module in test.imports or any(name.startswith(module + ".") for name in test.imports))
        file = test.name.partition("::")[0]
        score += (1.5 + (Path(path).stem in Path(file).stem)) * file.startswith(room)
        score += 4.0 * (file.startswith(room) and "test_golden_" in file)  # they compare much at once
        if score > 1:
            ranked.append((-score / (1 + seconds.get(test.name, 0.5) / 2), test.name))
    found = []
    total = 0.0
    for _, name in sorted(ranked)[: 3 * MOST]:
        if len(found) < MOST and total + seconds.get(name, 0.5) <= SECONDS:
            found.append(name)
            total += seconds.get(name, 0.5)
    return found
