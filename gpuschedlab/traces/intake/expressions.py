"""Expressions over the columns of a file: a small grammar, compiled to polars through a tree of allowed nodes."""

import ast
import re
from collections.abc import Sequence

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.logs.instants import decimal_number, spans
from gpuschedlab.traces.logs.options import nearest
from gpuschedlab.traces.schema import shown

BINARY = {
    ast.Add: pl.Expr.__add__,
    ast.Sub: pl.Expr.__sub__,
    ast.Mult: pl.Expr.__mul__,
    ast.Div: pl.Expr.__truediv__,
    ast.FloorDiv: pl.Expr.__floordiv__,
    ast.Mod: pl.Expr.__mod__,
}
COMPARED = {
    ast.Eq: pl.Expr.eq,
    ast.NotEq: pl.Expr.ne,
    ast.Lt: pl.Expr.lt,
    ast.LtE: pl.Expr.le,
    ast.Gt: pl.Expr.gt,
    ast.GtE: pl.Expr.ge,
}
FUNCTIONS = ("col", "match", "part", "first", "min", "max", "round", "lower", "number", "seconds")
GRAMMAR = (
    "numbers, texts, column names, col('odd name'), + - * / // %, comparisons, A if C else B, and "
    "match(text, pattern), part(text, separator, k), first(a, b), min, max, round, lower, number(text), seconds(text)"
)
LONGEST = 1000
DEEPEST = 40
"""Characters of an expression, and the depth of its tree: more is no column."""


def compiled(text: str, columns: Sequence[str], source: str) -> pl.Expr:
    """Compile a text to a polars expression (`pl.Expr`), and return it; the exact name of a column is that column."""
    if not isinstance(text, str):
        raise TraceError(f"{source}: found {text!r}; expected a text: a column's name or an expression over columns.")
    if text in columns:
        return pl.col(text)
    try:
        if len(text) > LONGEST:
            raise ValueError(f"{len(text)} characters")
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = error
        if isinstance(error, SyntaxError):
            why = error.msg
        raise TraceError(f"{source}: found {text[:80]!r} ({why}); expected a column's name or {GRAMMAR}.") from error
    expression, _ = Compiler(columns, source).value(tree)
    return expression


class Compiler:
    """Compiles one tree; values are pairs of an expression and whether it is a text."""

    def __init__(self, columns: Sequence[str], source: str):
        self.columns = columns
        self.source = source

    def refuse(self, found: str) -> TraceError:
        """Return a `TraceError` that names the part that is not in the grammar."""
        return TraceError(f"{self.source}: found {found}; expected {GRAMMAR}.")

    def column(self, name: str) -> pl.Expr:
        """Return a column of the file, by its exact name, as an expression (`pl.Expr`)."""
        if name not in self.columns:
            raise TraceError(
                f"{self.source}: found the name {name}; expected one of {shown(list(self.columns))}.{nearest(name, self.columns)}"
            )
        return pl.col(name)

    def value(self, node: ast.AST, depth: int = 0) -> tuple[pl.Expr, bool]:
        """Return a tuple: the expression (`pl.Expr`) of a node, and whether it is a text."""
        if depth > DEEPEST:
            raise self.refuse("an expression that is nested too deeply")
        deeper = depth + 1
        match node:
            case ast.Constant(value=bool() | None):
                raise self.refuse(repr(node.value))
            case ast.Constant(value=int() | float()) if abs(node.value) < 1e15:
                return pl.lit(float(node.value)), False
            case ast.Constant(value=str()):
                return pl.lit(node.value), True
            case ast.Name():
                return self.column(node.id), True
            case ast.UnaryOp(op=ast.USub()):
                return -self.number(node.operand, deeper), False
            case ast.BinOp(op=op) if type(op) in BINARY:
                return BINARY[type(op)](self.number(node.left, deeper), self.number(node.right, deeper)), False
            case ast.IfExp():
                return self.choice(node, deeper)
            case ast.Call(func=ast.Name(id=name), keywords=[]) if name in FUNCTIONS:
                return self.call(name, node.args, deeper)
            case ast.Call(func=ast.Name(id=name)):
                raise self.refuse(f"the call of {name}")
        raise self.refuse(f"{type(node).__name__} in {ast.unparse(node)[:80]!r}")

    def number(self, node: ast.AST, depth: int) -> pl.Expr:
        """Return the expression (`pl.Expr`) of a node as numbers."""
        value, is_text = self.value(node, depth)
        if is_text:
            return decimal_number(value.cast(pl.String))
        return value

    def text(self, node: ast.AST, depth: int) -> pl.Expr:
        """Return the expression (`pl.Expr`) of a node as texts."""
        value, _ = self.value(node, depth)
        return value.cast(pl.String)

    def choice(self, node: ast.IfExp, depth: int) -> tuple[pl.Expr, bool]:
        """Return a tuple of A if C else B: the expression (`pl.Expr`), and whether it is a text."""
        yes, a = self.value(node.body, depth)
        no, b = self.value(node.orelse, depth)
        if a != b:
            yes = self.number(node.body, depth)
            no = self.number(node.orelse, depth)
        condition = self.truth(node.test, depth)
        chosen = pl.when(condition).then(yes).otherwise(no)
        return chosen, a and b

    def truth(self, node: ast.AST, depth: int) -> pl.Expr:
        """Return a comparison as an expression (`pl.Expr`), of texts if one side is a constant text."""
        if not (isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARED):
            raise self.refuse(f"{type(node).__name__} as a condition")
        sides = (node.left, node.comparators[0])
        texts = any(isinstance(s, ast.Constant) and isinstance(s.value, str) for s in sides)
        read = self.number
        if texts:
            read = self.text
        compare = COMPARED[type(node.ops[0])]
        return compare(*(read(side, depth) for side in sides))

    def call(self, name: str, args: list[ast.expr], depth: int) -> tuple[pl.Expr, bool]:
        """Return a tuple of one of the functions of the grammar: its expression (`pl.Expr`), and whether it is a text."""
        takes = {"col": 1, "match": 2, "part": 3, "round": 1, "lower": 1, "number": 1, "seconds": 1}
        if len(args) != takes.get(name, len(args)) or not args:
            raise self.refuse(f"{name}() with {len(args)} values")
        if name == "col":
            return self.column(self.constant(args[0], str, "a column's name")), True
        if name == "match":
            pattern = self.constant(args[1], str, "a pattern")
            try:
                pl.Series([""]).str.extract(pattern, 0)
            except pl.exceptions.PolarsError as error:
                raise self.refuse(f"the pattern {pattern!r}") from error
            has_group = re.search(r"(?<!\\)\((?!\?[:imsx-])", pattern) is not None
            return self.text(args[0], depth).str.extract(pattern, int(has_group)), True
        if name == "part":
            split = self.text(args[0], depth).str.split(self.constant(args[1], str, "a separator"))
            return split.list.get(int(self.constant(args[2], int, "a place from 0 on")), null_on_oob=True), True
        if name == "lower":
            return self.text(args[0], depth).str.to_lowercase(), True
        if name == "seconds":
            return self.text(args[0], depth).map_batches(spans, return_dtype=pl.Float64), False
        if name == "first":
            return self.first(args, depth)
        numbers = [self.number(a, depth) for a in args]
        if name == "min":
            return pl.min_horizontal(numbers), False
        if name == "max":
            return pl.max_horizontal(numbers), False
        if name == "round":
            return numbers[0].round(), False
        return numbers[0], False

    def first(self, args: list[ast.expr], depth: int) -> tuple[pl.Expr, bool]:
        """Return a tuple: the first value that is not null (`pl.Expr`), and whether it is a text.

        It is one if all are texts, otherwise a number.
        """
        expressions = [self.value(a, depth) for a in args]
        if all(is_text for _, is_text in expressions):
            return pl.coalesce([value for value, _ in expressions]), True
        return pl.coalesce([self.number(a, depth) for a in args]), False

    def constant(self, node: ast.AST, kind: type, what: str):
        """Return a constant of a kind (int, str, ...) that a function takes; raise an error if it is none."""
        if not isinstance(node, ast.Constant) or type(node.value) is not kind:
            raise self.refuse(f"{ast.unparse(node)[:80]!r}, where {what} stands")
        return node.value
