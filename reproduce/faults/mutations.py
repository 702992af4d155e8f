"""Small faults, as changes of one place in a source: a comparison flipped, off by one, a term dropped, a sign, a constant, ..."""

import ast
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

FLIPPED = {ast.Lt: ">", ast.Gt: "<", ast.LtE: ">=", ast.GtE: "<=", ast.Eq: "!=", ast.NotEq: "=="}
EDGES = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
OPPOSITE = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}
SWAPPED = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "argmin": "argmax",
    "argmax": "argmin",
}
SWAPPED |= {"nanmin": "nanmax", "nanmax": "nanmin", "floor": "ceil", "ceil": "floor", "any": "all", "all": "any"}
WORDS = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Assert)
"""What no fault is planted in: messages and imports; annotations and declarations of knobs neither."""


class Mutation(NamedTuple):
    """Characters from `begin` on of a file (a path within the package), `before`, become `after`; `text` is of the line they begin in."""

    path: str
    line: int
    kind: str
    begin: int
    end: int
    before: str
    after: str
    text: str
    column: int

    @property
    def name(self) -> str:
        """What it is called in results."""
        return f"{self.path}:{self.line} {self.kind}: {self.before} -> {self.after}"

    def located(self, text: str) -> "Mutation | None":
        """The fault where its place is now, in a file that was edited since it was drawn; None: its line is gone."""
        lines = text.split("\n")
        same = [i for i, line in enumerate(lines) if line == self.text]
        if not same:
            return None
        at = min(same, key=lambda i: abs(i - self.line + 1))
        begin = sum(len(line) + 1 for line in lines[:at]) + self.column
        found = text[begin : begin + len(self.before)] == self.before
        return self._replace(line=at + 1, begin=begin, end=begin + len(self.before)) if found else None

    def applied(self, text: str) -> str:
        """The text of the file with the fault in it."""
        return text[: self.begin] + self.after + text[self.end :]


class _Finder:
    """All faults of one file."""

    def __init__(self, path: str, text: str):
        self.path = path
        self.text = text
        self.lines = [line + "\n" for line in text.split("\n")]
        self.starts = [0, *accumulate(map(len, self.lines))]

    def _at(self, line: int, column: int) -> int:
        """Place in characters of a place in lines and bytes."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def _span(self, node) -> tuple[int, int]:
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _mutation(self, kind: str, line: int, begin: int, end: int, after: str) -> Mutation:
        text = self.lines[line - 1][:-1]
        column = begin - self.starts[line - 1]
        return Mutation(self.path, line, kind, begin, end, self.text[begin:end], after, text, column)

    def _make(self, kind: str, node, after: str) -> Mutation:
        return self._mutation(kind, node.lineno, *self._span(node), after)

    def _source(self, node) -> str:
        begin, end = self._span(node)
        return self.text[begin:end]

    def _between(self, kind: str, left, right, old: str, after: str) -> Iterator[Mutation]:
        """The operator between two operands becomes another."""
        begin = self._span(left)[1]
        end = self._span(right)[0]
        gap = self.text[begin:end]
        if gap.count(old) == 1:
            first = self._span(left)[0]
            last = self._span(right)[1]
            changed = self.text[first:begin] + gap.replace(old, after) + self.text[end:last]
            yield self._mutation(kind, left.lineno, first, last, changed)

    def walk(self, node) -> Iterator[Mutation]:
        """Faults of a node and of what is in it."""
        if isinstance(node, WORDS) or (isinstance(node, ast.AnnAssign) and not node.value):
            return
        yield from self.of(node)
        skipped = {id(part) for name in ("annotation", "returns", "decorator_list") for part in _parts(node, name)}
        for child in ast.iter_child_nodes(node):
            if id(child) not in skipped:
                yield from self.walk(child)

    def of(self, node) -> Iterator[Mutation]:
        """Faults of a node."""
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            op = type(node.ops[0])
            (right,) = node.comparators
            symbol = {ast.Lt: "<", ast.Gt: ">", ast.LtE: "<=", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}.get(op)
            for kind, table in (("flipped", FLIPPED), ("edge", EDGES)):
                if op in table:
                    yield from self._between(kind, node.left, right, symbol, table[op])
        elif isinstance(node, ast.BinOp) and type(node.op) in OPPOSITE:
            symbol = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}[type(node.op)]
            yield from self._between("sign", node.left, node.right, symbol, OPPOSITE[type(node.op)])
            yield self._make("dropped", node, f"({self._source(node.left)})")
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
            yield self._make("dropped", node, f"({self._source(node.left)})")
        elif isinstance(node, ast.BoolOp):
            yield self._make("dropped", node, f"({self._source(node.values[0])})")
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
            old = "+=" if isinstance(node.op, ast.Add) else "-="
            yield from self._between("sign", node.target, node.value, old, {"+=": "-=", "-=": "+="}[old])
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
            if not isinstance(node.operand, ast.Constant):
                yield self._make("sign", node, f"({self._source(node.operand)})")
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield self._constant(node)
        elif isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            if name in SWAPPED and isinstance(node.ctx, ast.Load):
                source = self._source(node)
                yield self._make("swapped", node, source[: len(source) - len(name)] + SWAPPED[name])

    def _constant(self, node) -> Mutation:
        value = node.value
        if isinstance(value, int):
            return self._make("off by one", node, str(value + 1))
        return self._make("constant", node, repr(2 * value if value else 1.0))


def _parts(node, name: str) -> list:
    part = getattr(node, name, None)
    return part if isinstance(part, list) else [part]


def mutations_of(path: Path, root: Path) -> list[Mutation]:
    """All faults of a file that leave it a program."""
    text = path.read_text()
    finder = _Finder(path.relative_to(root).as_posix(), text)
    found = []
    for node in ast.parse(text).body:  # a statement is read again for each fault in it: a file would take too long
        first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
        begin = finder.starts[first - 1]
        end = finder.starts[node.end_lineno]
        for mutation in finder.walk(node):
            part = mutation._replace(begin=mutation.begin - begin, end=mutation.end - begin)
            try:
                ast.parse(part.applied(text[begin:end]))
            except SyntaxError:
                continue
            if mutation.before != mutation.after:
                found.append(mutation)
    return found
