"""How densely code is written, from its syntax tree: the figures do not depend on where lines break."""

import ast
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from package_files import files_of

SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr, ast.Raise)
"""Statements of which operations are counted."""
OPERATIONS = (
    ast.Call,
    ast.BinOp,
    ast.BoolOp,
    ast.Compare,
    ast.Subscript,
    ast.IfExp,
    ast.comprehension,
    ast.Lambda,
    ast.UnaryOp,
)
TRUTH = (ast.Compare, ast.BoolOp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED = (ast.Module, ast.ClassDef, *FUNCTIONS)
CONDITIONAL_KINDS = (ast.IfExp, ast.BoolOp, ast.Subscript, ast.BinOp)
LEAVES = (ast.Name, ast.Constant, ast.alias, ast.Pass)
"""Nodes without any below them that count."""
GENERIC = frozenset(
    {
        "found",
        "left",
        "each",
        "held",
        "kept",
        "made",
        "given",
        "asked",
        "said",
        "told",
        "known",
        "shown",
        "own",
        "other",
        "others",
        "rest",
        "thing",
        "place",
        "what",
        "of",
        "at",
        "now",
        "then",
        "there",
        "one",
        "some",
        "whole",
        "way",
        "seen",
        "words",
        "word",
        "came",
        "taken",
        "look",
    }
)
"""Participles and pronouns: as names they say nothing of what they hold."""
PARAMETERS = 7
"""Parameters of a function at most; of any kind, so that a `*` hides none."""
PARTS = 15
"""Fields of a NamedTuple at most; a larger one is a list of parameters by another name."""


@dataclass(frozen=True)
class Density:
    """Figures of some code. Lower is plainer."""

    operations: float
    """Calls, operators, subscripts, comprehensions, lambdas and conditional expressions per simple statement."""
    unchained: float
    """The same, if each chain of method calls counts once."""
    packed: float
    """Share of assignments that put several values into several names."""
    conditionals: float
    """Conditional expressions, and what stands in for them, per 1,000 simple statements."""
    generic: float
    """Share of assigned names that are participles or pronouns."""
    letters: float
    """Share of assigned names that have one letter."""
    wide: int
    """Functions with more than `PARAMETERS` parameters, and NamedTuples with more than `PARTS` fields."""


def counts_of(tree: ast.Module) -> Counter:
    """Return how often there is each thing that figures are made of, in a module; of a name that is assigned, as ("name", name)."""
    counts: Counter = Counter()
    # Each node with whether it is part of a simple statement; none of these is part of another.
    waiting = [(tree, False)]
    while waiting:
        node, is_counted = waiting.pop()
        kind = type(node)
        if kind in SIMPLE:
            is_counted = not _is_text(node)
            counts["statements"] += is_counted
        if is_counted and kind in OPERATIONS:
            counts["operations"] += 1
            counts["links"] += _is_link(node)
        if kind in CONDITIONAL_KINDS:
            counts["conditionals"] += _is_conditional(node)
        if kind is ast.Assign:
            counts["assignments"] += 1
            counts["packed"] += _is_packed(node)
        if kind is ast.Name and isinstance(node.ctx, ast.Store):
            counts["name", node.id] += 1
        if kind in DOCUMENTED:
            counts["wide"] += _is_wide(node)
            counts["words"] += _words_of_docstring(node)
        if kind not in LEAVES:
            waiting += [(child, is_counted) for child in ast.iter_child_nodes(node)]
    return counts


@cache
def counts_of_file(path: Path) -> Counter:
    """Return the counts of a module, which is read once."""
    return counts_of(ast.parse(path.read_text(encoding="utf-8")))


def measure(modules: Iterable[Counter]) -> Density:
    """Return the figures of some modules, of which the counts are given."""
    counts: Counter = Counter()
    for counts_of_module in modules:
        counts.update(counts_of_module)
    bare = Counter()
    for key, count in counts.items():
        if isinstance(key, tuple):
            bare[key[1].strip("_").rstrip("0123456789").strip("_")] += count
    statements = max(counts["statements"], 1)
    stored = max(bare.total(), 1)
    return Density(
        operations=counts["operations"] / statements,
        unchained=(counts["operations"] - counts["links"]) / statements,
        packed=counts["packed"] / max(counts["assignments"], 1),
        conditionals=1000 * counts["conditionals"] / statements,
        generic=sum(bare[name] for name in GENERIC) / stored,
        letters=sum(count for name, count in bare.items() if len(name) == 1) / stored,
        wide=counts["wide"],
    )


def words_of_docstrings(modules: Iterable[Counter]) -> int:
    """Return how many words the docstrings of some modules have, without examples; their counts are given."""
    return sum(counts["words"] for counts in modules)


def rooms(package: Path) -> dict[str, list[Path]]:
    """Return the modules of each folder of a package; large folders are divided by their sub-folders."""
    divided = ("papers", "autosched", "traces", "sim", "plots")
    modules: dict[str, list[Path]] = {}
    for path in sorted(files_of(package, ".py")):
        folders = path.relative_to(package).parts[:-1]
        depth = 2 if folders and folders[0] in divided else 1
        room = "/".join(folders[:depth]) or "files beside the rooms"
        modules.setdefault(room, []).append(path)
    return modules


def plainer(old: Density, new: Density) -> Density:
    """Return the lower of two figures, each."""
    return Density(**{figure.name: min(getattr(old, figure.name), getattr(new, figure.name)) for figure in fields(old)})


def _words_of_docstring(node: ast.AST) -> int:
    """Return how many words a docstring has without its examples; 0 without one."""
    text = ast.get_docstring(node) or ""
    return len(re.findall(r"[A-Za-z']+", re.sub(r"(?m)^\s*(>>>|\.\.\.).*$", "", text)))


def _is_text(node: ast.stmt) -> bool:
    """Whether a statement is a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_link(node: ast.AST) -> bool:
    """Whether a method is called on what another call returned."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call)


def _is_packed(node: ast.AST) -> bool:
    """Whether an assignment says several things: a tuple, a generator, a `map` or a conditional goes into several names."""
    if not isinstance(node, ast.Assign) or not any(isinstance(t, ast.Tuple | ast.List) for t in node.targets):
        return False
    if isinstance(node.value, ast.Call):
        return isinstance(node.value.func, ast.Name) and node.value.func.id == "map"
    if isinstance(node.value, ast.Tuple | ast.List):
        return not _is_swap(node)
    return isinstance(node.value, ast.GeneratorExp | ast.ListComp | ast.IfExp)


def _is_swap(node: ast.Assign) -> bool:
    """Whether an assignment only changes the order of what it reads."""
    read = {ast.unparse(part) for part in node.value.elts}
    return all({ast.unparse(part) for part in getattr(target, "elts", ())} == read for target in node.targets)


def _is_conditional(node: ast.AST) -> bool:
    """Whether an expression chooses one of two values: `b if a else c`, `a and b or c`, `(b, c)[a]` or `b * (a != 1)`."""
    if isinstance(node, ast.IfExp):
        return True
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        first = node.values[0]
        return isinstance(first, ast.BoolOp) and isinstance(first.op, ast.And) and not _is_truth(first.values[-1])
    if isinstance(node, ast.Subscript):
        literal = isinstance(node.value, ast.Tuple | ast.List | ast.Dict)
        return literal and not isinstance(node.slice, ast.Constant | ast.Slice)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _is_truth(node.left) or _is_truth(node.right)
    return False


def _is_truth(node: ast.AST) -> bool:
    """Whether an expression is true or false by its form."""
    return isinstance(node, TRUTH) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def _is_wide(node: ast.AST) -> bool:
    """Whether a function has too many parameters, or a NamedTuple too many fields."""
    if isinstance(node, FUNCTIONS):
        a = node.args
        parameters = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
        return sum(parameter.arg not in ("self", "cls") for parameter in parameters) > PARAMETERS
    if isinstance(node, ast.ClassDef) and any("NamedTuple" in ast.unparse(base) for base in node.bases):
        return sum(isinstance(statement, ast.AnnAssign) for statement in node.body) > PARTS
    return False
