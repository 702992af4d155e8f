"""How densely code is written, from its syntax tree: the figures do not depend on where lines break."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

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


def measure(trees: Iterable[ast.Module]) -> Density:
    """Return the figures of some modules."""
    counts: Counter = Counter()
    names: Counter = Counter()
    for tree in trees:
        for node in ast.walk(tree):
            counts["packed"] += _is_packed(node)
            counts["assignments"] += isinstance(node, ast.Assign)
            counts["conditionals"] += _is_conditional(node)
            counts["wide"] += _is_wide(node)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names[node.id] += 1
            if isinstance(node, SIMPLE) and not _is_text(node):
                counts["statements"] += 1
                counts["operations"] += sum(isinstance(part, OPERATIONS) for part in ast.walk(node))
                counts["links"] += sum(_is_link(part) for part in ast.walk(node))
    bare = Counter()
    for name, count in names.items():
        bare[name.strip("_").rstrip("0123456789").strip("_")] += count
    statements = max(counts["statements"], 1)
    stored = max(sum(names.values()), 1)
    return Density(
        operations=counts["operations"] / statements,
        unchained=(counts["operations"] - counts["links"]) / statements,
        packed=counts["packed"] / max(counts["assignments"], 1),
        conditionals=1000 * counts["conditionals"] / statements,
        generic=sum(bare[name] for name in GENERIC) / stored,
        letters=sum(count for name, count in bare.items() if len(name) == 1) / stored,
        wide=counts["wide"],
    )


def words_of_docstrings(trees: Iterable[ast.Module]) -> int:
    """Return how many words the docstrings have, without examples."""
    texts = (ast.get_docstring(node) or "" for node in _documented(trees))
    return sum(len(re.findall(r"[A-Za-z']+", re.sub(r"(?m)^\s*(>>>|\.\.\.).*$", "", text))) for text in texts)


def rooms(package: Path) -> dict[str, list[Path]]:
    """Return the modules of each folder of a package; large folders are divided by their sub-folders."""
    divided = ("papers", "autosched", "traces", "sim", "plots")
    modules: dict[str, list[Path]] = {}
    for path in sorted(package.rglob("*.py")):
        folders = path.relative_to(package).parts[:-1]
        depth = 2 if folders and folders[0] in divided else 1
        room = "/".join(folders[:depth]) or "files beside the rooms"
        modules.setdefault(room, []).append(path)
    return modules


def plainer(old: Density, new: Density) -> Density:
    """Return the lower of two figures, each."""
    return Density(**{figure.name: min(getattr(old, figure.name), getattr(new, figure.name)) for figure in fields(old)})


def _documented(trees: Iterable[ast.Module]) -> Iterator[ast.AST]:
    for tree in trees:
        yield from (node for node in ast.walk(tree) if isinstance(node, DOCUMENTED))


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
