"""Knobs of classes as their sources declare them, for help: nothing is imported that a class needs only to run.

Of a module only those names are evaluated that its declarations of knobs use: constants, types, and functions that make a `Knob`.
"""

import ast
import builtins
import importlib
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gpuschedlab._faces import ROOT, home_of, names_of, papers
from gpuschedlab.errors import interrupts

READY = ("gpuschedlab.knobs", "gpuschedlab._knob", "gpuschedlab.errors")
"""Modules of the package that are imported, as they need nothing that is slow."""


class Unreadable(Exception):
    """Something that a source does not say without being run."""


def declared(module: str, name: str) -> type:
    """Return a class, a `type`, with the docstring and the knobs of a class, by its module and name.

    It is the class itself if its source says its knobs in a way that only Python can follow.
    """
    try:
        with interrupts():
            return module_of(module)[name]
    except Exception:  # of any code: importing it works, or says what is wrong
        return getattr(importlib.import_module(module), name)


@cache
def module_of(name: str) -> "SourceModule":
    """Return the `SourceModule` of a module of the package or of a paper, as its source has it.

    Raises
    ------
    Unreadable
        It is neither, or has no source.
    """
    known_packages = {ROOT.name, *(paper.partition(".")[0] for paper in papers())}
    if name.partition(".")[0] not in known_packages:
        raise Unreadable(name)
    package = home_of(name)
    if package is not None and (package / "__init__.py").exists():
        return SourceModule(name, package / "__init__.py")
    parent, _, stem = name.rpartition(".")
    home = home_of(parent)
    if home is None or not (home / f"{stem}.py").exists():
        raise Unreadable(name)
    return SourceModule(name, home / f"{stem}.py")


class SourceModule(dict):
    """Names of a module, each evaluated when it is first asked for."""

    def __init__(self, name: str, path: Path):
        super().__init__(__name__=name, __builtins__=builtins)
        self.statements: dict[str, ast.stmt] = {}
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            self.statements |= dict.fromkeys(_bound_names(statement), statement)

    def __missing__(self, name: str):
        statement = self.statements.get(name)
        if statement is None:
            if hasattr(builtins, name):
                raise KeyError(name)  # Python looks there next
            raise Unreadable(name)
        if isinstance(statement, ast.Import | ast.ImportFrom):
            self[name] = _imported(statement, name)
        elif isinstance(statement, ast.ClassDef):
            self[name] = self.skeleton(statement)
        else:
            exec(compile(ast.Module([statement], []), self["__name__"], "exec"), self)
        return self[name]

    def value(self, expression: ast.expr):
        """Return the value of an expression, any object."""
        return eval(compile(ast.Expression(expression), self["__name__"], "eval"), self)

    def skeleton(self, node: ast.ClassDef) -> type:
        """Return a new `type` with the docstring, the bases and the knobs of a class, and no more."""
        body = {"__doc__": ast.get_docstring(node, clean=False), "__module__": self["__name__"], "__annotations__": {}}
        for statement in node.body:
            if not isinstance(statement, ast.AnnAssign) or not self.may_declare(statement.annotation):
                continue
            hint = self.value(statement.annotation)
            if hasattr(hint, "__metadata__") and _is_knob(hint):
                body["__annotations__"][statement.target.id] = hint
                body[statement.target.id] = self.value(statement.value)
        bases = tuple(self.value(base) for base in node.bases)
        skeleton_class = type(node.name, bases, body)
        decorators = [ast.unparse(decorator).partition("(")[0] for decorator in node.decorator_list]
        return dataclass(frozen=True)(skeleton_class) if "dataclass" in decorators else skeleton_class

    def may_declare(self, annotation: ast.expr) -> bool:
        """Whether a type may be one with a knob: an `Annotated`, or a name that is given to one somewhere."""
        if isinstance(annotation, ast.Name):
            return _is_alias(self, annotation.id)
        return isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value).endswith("Annotated")


def _is_knob(hint) -> bool:
    """Whether a type says that its field is a knob, or holds a thing with knobs."""
    from gpuschedlab.knobs import Holds, Knob

    return any(isinstance(mark, Knob | Holds) for mark in hint.__metadata__)


def _is_alias(module: SourceModule, class_name: str) -> bool:
    """Whether a name of a module is assigned a value, here or in the module from which it is imported."""
    statement = module.statements.get(class_name)
    if isinstance(statement, ast.ImportFrom) and statement.module.partition(".")[0] == ROOT.name:
        origin, original = _origin(statement, class_name)
        return _is_alias(module_of(origin), original)
    return isinstance(statement, ast.Assign)


def _bound_names(statement: ast.stmt) -> list[str]:
    """List of the names that a statement at the top of a module binds."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
    if isinstance(statement, ast.ClassDef | ast.FunctionDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]


def _origin(statement: ast.ImportFrom, imported_name: str) -> tuple[str, str]:
    """Return a tuple: name of the module that has a name which a statement imports, and the name there."""
    original = next(alias.name for alias in statement.names if imported_name in (alias.asname, alias.name))
    public = names_of(statement.module) if home_of(statement.module) else {}
    return public.get(original, statement.module), original


def _imported(statement: ast.Import | ast.ImportFrom, imported_name: str):
    """Return the object of a name that an import binds: of the standard library itself, of the package as its source has it."""
    if isinstance(statement, ast.Import):
        if imported_name not in sys.stdlib_module_names:
            raise Unreadable(imported_name)
        return importlib.import_module(imported_name)
    origin, original = _origin(statement, imported_name)
    if origin in READY or origin.partition(".")[0] in sys.stdlib_module_names:
        return getattr(importlib.import_module(origin), original)
    return module_of(origin)[original]
