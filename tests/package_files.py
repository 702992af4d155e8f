"""Files of the package, and what each imports."""

import ast
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "gpuschedlab"


def files_of(folder: Path, *suffixes: str) -> Iterator[Path]:
    """Files of a folder that end so; folders of machine code are not looked into, which come and go while tests run."""
    for parent, folder_names, file_names in os.walk(folder):
        folder_names[:] = [name for name in folder_names if name != "__pycache__"]
        yield from (Path(parent, name) for name in file_names if name.endswith(suffixes))


def sources() -> list[Path]:
    return sorted(files_of(PACKAGE, ".py"))


@cache
def parsed(path: Path) -> ast.Module:
    """Syntax of a file, which many rules look at."""
    return ast.parse(path.read_text())


@cache
def statements(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """All imports of a file, anywhere in it."""
    return [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Import | ast.ImportFrom)]


def named(node: ast.AST) -> list[str]:
    """Modules, and names of modules, that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def modules_imported(folder: Path) -> dict[str, set[str]]:
    """Modules of a folder, and which of its modules each imports, at its top or within a function."""
    dotted = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in files_of(folder, ".py")}
    paths = {name.removesuffix(".__init__"): path for name, path in dotted.items()}
    graph = {}
    for name, path in paths.items():
        found = {there for node in statements(path) for there in imported_modules(node, paths)}
        graph[name] = found - {name}
    return graph


def imported_modules(node: ast.AST, modules) -> set[str]:
    """Which of these modules a statement imports; a name that is no module counts for the one that it comes from."""
    if isinstance(node, ast.ImportFrom) and not node.level:
        names = {f"{node.module}.{alias.name}" for alias in node.names}
        return {name if name in modules else node.module for name in names} & set(modules)
    return set(named(node)) & set(modules)
