"""Docstrings say of which type the answer is: a reader who has no code before them knows what they get."""

import ast
import re
from collections.abc import Iterator

import pytest
from package_files import PACKAGE, sources

WORDS = {
    "Any": r"\w+",
    "Callable": "function|callable",
    "DataFrame": "dataframe|frames?|table",
    "Expr": "expressions?",
    "Iterator": r"iterat\w+|yields?|generator|one after another",
    "Mapping": "dict|mapping",
    "ModuleType": "module",
    "NoReturn": "raises?",
    "None": "none|nothing",
    "Path": "paths?|files?|folder",
    "Read": "dataframe|frames?",
    "Self": r"\w+",
    "Series": "series|columns?",
    "bool": "whether|true|false|bool",
    "bytes": "bytes",
    "dict": "dicts?|mapping",
    "float": r"\w+",
    "frozenset": "frozen sets?|frozensets?|sets?",
    "int": "int|integers?|numbers?|counts?|index|seed|position|code|bits?|bytes|rank|length|how many|row|place|0|1|-1",
    "list": "lists?",
    "ndarray": r"arrays?|vector|matrix|mask|shape|\(\w+,",
    "object": r"\w+",
    "set": "sets?",
    "str": r"str|strings?|texts?|words?|names?|sentences?|html|markdown|lines?|titles?|labels?|keys?|id|digest|checksum|messages?|json|"
    r"format|colour|characters?",
    "tuple": "tuples?|pairs?|triples?|both",
    "type": "class|type",
}
"""Words of a docstring that say a type, as regular expressions. Any other class is said by its own name."""


def type_names(annotation: ast.expr | None) -> list[str]:
    """Names of the outer types of an annotation, as a list: of ``list[int] | None`` they are list and None."""
    if isinstance(annotation, ast.Constant):
        if isinstance(annotation.value, str):
            return type_names(ast.parse(annotation.value, mode="eval").body)
        return ["None"] if annotation.value is None else []
    if isinstance(annotation, ast.BinOp):
        return type_names(annotation.left) + type_names(annotation.right)
    if isinstance(annotation, ast.Subscript):
        return type_names(annotation.value)
    if isinstance(annotation, ast.Attribute):
        return [annotation.attr]
    if isinstance(annotation, ast.Name):
        return [annotation.id]
    return []


def unsaid(function: ast.FunctionDef) -> list[str]:
    """Names of the types that a function returns and its docstring has no word for, as a list; empty if it only acts."""
    types = type_names(function.returns)
    if types == ["None"]:
        return []
    text = re.split(r"\n\s*Examples\n", ast.get_docstring(function))[0]
    return [
        name for name in types if not re.search(rf"(?<!\w)({WORDS.get(name, name + 's?')})(?!\w)", text, re.IGNORECASE)
    ]


def documented(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Yield the functions of a module that have a docstring and say what they return."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.returns is not None and ast.get_docstring(node):
            yield node


def test_docstrings_say_the_type_of_the_answer():
    silent = [
        f"{path.relative_to(PACKAGE)}:{function.lineno} {function.name}: {', '.join(types)}"
        for path in sources()
        for function in documented(ast.parse(path.read_text(encoding="utf-8")))
        if (types := unsaid(function))
    ]
    assert silent == [], "say in the docstring which type is returned"


@pytest.mark.parametrize(
    ("code", "types"),
    [
        ('def f() -> dict:\n    """Shares by name."""', ["dict"]),
        ('def f() -> dict:\n    """Return a dict of shares by name."""', []),
        ('def f() -> "Run | None":\n    """Return the run."""', ["None"]),
        ('def f() -> "Run | None":\n    """Return the `Run`; None before the first job."""', []),
        ('def f() -> list[str]:\n    """Return names."""', ["list"]),
        ('def f() -> np.ndarray:\n    """Return the rates (jobs, types)."""', []),
        ('def f() -> Comparison:\n    """Return both beside each other."""', ["Comparison"]),
        ('def f() -> None:\n    """Refuse it."""', []),
    ],
)
def test_a_type_that_is_not_said_is_found(code, types):
    (function,) = documented(ast.parse(code))
    assert unsaid(function) == types
