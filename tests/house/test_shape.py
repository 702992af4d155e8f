"""The shape of the package: how long files and functions are, how full folders, and that neither folders nor names go round."""

import ast
from collections import Counter
from pathlib import Path

import pytest
from test_architecture import PACKAGE, find_circle, modules_imported, parsed, sources

FILE = 400
"""Lines of a file at most."""
FUNCTION = 60
"""Lines of a function at most, without its docstring."""
FOLDER = 14
"""Modules of a folder at most."""

ALIKE = {"__init__": "of each folder", "__main__": "what `python -m gpuschedlab` runs"}
"""Stems of modules that may stand more than once outside of papers, and why."""


def place(path: Path) -> str:
    """Folder of a module; a file beside the folders stands for itself."""
    inside = path.relative_to(PACKAGE)
    return inside.stem if len(inside.parts) == 1 else inside.parent.as_posix()


def length(node: ast.FunctionDef) -> int:
    """Lines of a function, from `def` on, without its docstring."""
    first = node.body[0]
    told = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    return node.end_lineno - node.lineno + 1 - (first.end_lineno - first.lineno + 1) * told


def folders(modules: dict[str, set[str]]) -> dict[str, set[str]]:
    """Which folders each folder imports, from what modules import."""
    path = {name: PACKAGE.joinpath(*name.split(".")[1:]) for name in modules}
    home = {name: place(p / "__init__.py" if p.is_dir() else p.with_suffix(".py")) for name, p in path.items()}
    found = {}
    for name, there in modules.items():
        found.setdefault(home[name], set()).update({home[other] for other in there} - {home[name]})
    return found


def test_files_are_read_in_one_sitting():
    long = {str(path.relative_to(PACKAGE)): len(path.read_text().splitlines()) for path in sources()}
    assert {name: lines for name, lines in long.items() if lines > FILE} == {}


def test_functions_are_short():
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    long = {
        f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}": length(node)
        for path in sources()
        for node in ast.walk(parsed(path))
        if isinstance(node, kinds) and length(node) > FUNCTION
    }
    assert long == {}


def test_folders_are_not_full():
    counts = Counter(path.parent.relative_to(PACKAGE).as_posix() for path in sources())
    assert {name: n for name, n in counts.items() if n > FOLDER} == {}


def test_folders_do_not_import_in_circles():
    graph = folders(modules_imported(PACKAGE))
    assert "optim/prices" in graph["optim"]
    circle = find_circle(graph)
    assert not circle, f"folders go round: {' -> '.join(circle)}"


def test_a_name_of_a_module_stands_once():
    """So that a stem says which file is meant; that of a command is called as the command, that of a paper as in all papers."""
    named = [path for path in sources() if not {"papers", "commands"} & set(path.relative_to(PACKAGE).parts)]
    stems = Counter(path.stem for path in named)
    assert {stem for stem, n in stems.items() if n > 1} - set(ALIKE) == set()


@pytest.mark.parametrize(
    ("text", "lines"), [("def f():\n    '''So.\n\n    And so.'''\n    return 1", 2), ("def f():\n    g()", 2)]
)
def test_docstrings_do_not_count(text, lines):
    assert length(ast.parse(text).body[0]) == lines
