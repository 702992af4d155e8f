"""Compiled functions that Python calls give it plain tuples: numba makes a NamedTuple by Python code, in which Ctrl-C ends the process."""

import ast
from collections.abc import Iterator

from test_architecture import PACKAGE, parsed, sources

COMPILED = ("njit", "bare")
"""Decorators of compiled functions."""
NESTED = {"planner"}
"""Methods that are compiled where they are asked for, and are called by the engine alone."""


def called(node: ast.AST) -> str:
    """Last name of what is called; empty for anything else, and for what has no name."""
    function = getattr(node, "func", None)
    return getattr(function, "attr", getattr(function, "id", ""))


def is_compiled(function: ast.FunctionDef) -> bool:
    """Whether a decorator compiles a function."""
    return any(ast.unparse(mark).partition("(")[0].rpartition(".")[2] in COMPILED for mark in function.decorator_list)


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Each function of the package, and its module."""
    for path in sources():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef):
                yield path.relative_to(PACKAGE).as_posix(), node


def named_tuples() -> set[str]:
    """Classes of named tuples."""
    found = set()
    for path in sources():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef) and any(ast.unparse(base).endswith("NamedTuple") for base in node.bases):
                found.add(node.name)
            if isinstance(node, ast.Assign) and called(node.value).lower() == "namedtuple":
                found.add(ast.unparse(node.targets[0]))
    return found


def gives_named_tuple(function: ast.FunctionDef, classes: set[str]) -> bool:
    """Whether a function returns a named tuple, alone or within a tuple."""
    made = {
        ast.unparse(node.targets[0])
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and called(node.value) in classes
    }
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            if any(called(part) in classes or ast.unparse(part) in made for part in parts):
                return True
    return False


def test_no_named_tuple_comes_from_machine_code_to_python():
    classes = named_tuples()
    everything = list(functions())
    giving = {
        function.name: place
        for place, function in everything
        if is_compiled(function) and gives_named_tuple(function, classes)
    }
    assert giving, "compiled functions may give one another named tuples"
    wrong = [
        f"{place}: {function.name} calls {called(node)} of {giving[called(node)]}"
        for place, function in everything
        if not is_compiled(function) and function.name not in NESTED
        for node in ast.walk(function)
        if called(node) in giving and place.rpartition("/")[0] == giving[called(node)].rpartition("/")[0]
    ]
    assert not wrong, "\n".join(wrong)
