"""Golden answers: what many public functions answer on small inputs, in tables beside the tests (`make answers` writes them anew).

    @golden
    def test_figures_of_a_trace():
        return describe(small_trace())

compares every number and word of the answer, however nested, with `test_figures_of_a_trace` in the table of the test's file
(`answers/<file>.csv` beside it), and says which differ, from what to what. A table pins what the code did when it was written; it does
not prove it right: where a law or a value worked out by hand exists, test that. Read the difference (`git diff`) before committing
a table: each changed row is a changed answer. `make answers TESTS=tests/traces` writes those of some tests only.

Numbers are compared to five significant digits, so that they are those of any machine. Of long columns there are three sums, the
second with weights, so that order counts, the third of logarithms, so that small values count.
"""

import csv
import functools
import inspect
import math
import os
import re
import zlib
from dataclasses import fields, is_dataclass
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl

from gpuschedlab.errors import LabError
from gpuschedlab.knobs import knobs_of

REMAKE = bool(os.environ.get("GPUSCHEDLAB_REMAKE_ANSWERS"))
FEW = 6
"""Numbers that are written one by one."""
AXES = (
    "type",
    "range",
    "rangemode",
    "autorange",
    "tickvals",
    "ticktext",
    "tick0",
    "dtick",
    "domain",
    "tickformat",
    "anchor",
)
"""What a figure's axis has that is no style."""
HOLDS = ("description", "tooltip", "value", "min", "max", "step", "options", "disabled")
"""What a widget of an explorer has that is compared."""
LINES = 40
"""Lines of a text that are compared one by one."""


def golden(test):
    """A test whose answer is compared with its table."""

    @functools.wraps(test)
    def compared(**given):
        key = test.__name__ + "".join(f"[{v}]" for v in given.values() if isinstance(v, str | int | float))
        compare(Path(inspect.getfile(test)), key, dict(flat(test(**given))), test.__globals__)

    return compared


def compare(file: Path, key: str, found: dict[str, str], there: dict):
    """Raise an AssertionError where answers are not those of the table; or write them there, without those of tests that are gone."""
    table = file.parent / "answers" / f"{file.stem.removeprefix('test_')}.csv"
    rows = read(table)
    if REMAKE:
        table.parent.mkdir(exist_ok=True)
        rows = [row for row in rows if row[0] != key and row[0].partition("[")[0] in there]
        rows += [(key, *item) for item in found.items()]
        with table.open("w", newline="") as out:
            csv.writer(out, lineterminator="\n").writerows(sorted(rows))
        return
    was = {name: value for test, name, value in rows if test == key}
    changed = [
        f"{name or 'it'}: {was.get(name, 'absent')} is now {found.get(name, 'absent')}"
        for name in sorted(was.keys() | found.keys())
        if name not in was or name not in found or not same(was[name], found[name])
    ]
    shown = "\n".join(changed[:10])
    assert not changed, f"{len(changed)} of {len(was)} answers changed; if that is meant: make answers\n{shown}"


def read(table: Path) -> list[tuple]:
    """Rows of a table: test, name of the answer, the answer."""
    if not table.exists():
        return []
    with table.open(newline="") as file:
        return [tuple(row) for row in csv.reader(file)]


def same(a: str, b: str) -> bool:
    """Whether two answers are equal but for the last digits of their numbers."""
    if a == b:
        return True
    x, y = (re.split(r"([-+]?\d+\.?\d*(?:e[-+]?\d+)?)", text) for text in (a, b))
    return len(x) == len(y) and all(
        p == q if i % 2 == 0 else math.isclose(float(p), float(q), rel_tol=1e-5, abs_tol=1e-9)
        for i, (p, q) in enumerate(zip(x, y))
    )


def flat(value, name: str = ""):
    """Pairs of name and answer of all that is in a value."""
    if isinstance(value, pl.DataFrame):
        yield name, f"{value.height} rows"
        for column in value.columns:
            yield from flat(value[column], f"{name}.{column}" if name else column)
    elif isinstance(value, pl.Series):
        kind = value.dtype
        if kind.is_numeric() or kind == pl.Boolean:
            yield name, numbers(value.cast(pl.Float64).to_numpy())
        elif kind.is_temporal():
            yield name, numbers(value.to_physical().cast(pl.Float64).to_numpy())
        else:
            yield name, words([str(item) for item in value.to_list()])
    elif isinstance(value, np.ndarray) and value.dtype.names:
        for field in value.dtype.names:
            yield from flat(value[field], f"{name}.{field}")
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biufm":
        yield name, f"{'x'.join(map(str, value.shape))}: " * (value.ndim > 1) + numbers(value.astype(float).ravel())
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from flat(item, f"{name}.{key}" if name else f"{key}")
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from flat(getattr(value, field.name), f"{name}.{field.name}" if name else field.name)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from flat(value._asdict(), name)
    elif isinstance(value, list | tuple | np.ndarray | range):
        value = list(value)
        if value and all(isinstance(item, int | float | np.number | np.bool_ | None) for item in value):
            yield name, numbers(np.array([math.nan if item is None else item for item in value], float))
        elif value and all(isinstance(item, str) for item in value):
            yield name, words(value)
        elif value and all(isinstance(item, str | int | float | None) for item in value):
            yield name, words([str(item) for item in value])
        else:
            yield from flat({f"{i:02}": item for i, item in enumerate(value)} or "empty", name)
    elif isinstance(value, str):
        lines = [line.rstrip() for line in value.replace("\0", "").splitlines()] or [""]
        if len(lines) == 1 and len(value) < 400:
            yield name, lines[0]
        elif len(lines) > LINES or max(map(len, lines)) > 2000:
            yield name, words(lines)
        else:
            yield from ((f"{name}:{i:02}", line) for i, line in enumerate(lines) if line)
    elif isinstance(value, float | np.floating):
        yield name, f"{value:.8g}"
    elif value is None or isinstance(value, bool | int | np.integer | np.bool_ | date):
        yield name, str(value)
    elif isinstance(value, Exception):
        yield name, f"{type(value).__name__}: {value}"
    elif hasattr(value, "toarray"):
        yield from flat(value.toarray(), name)
    elif isinstance(value, set | frozenset):
        yield from flat(sorted(value, key=str), name)
    else:
        raise TypeError(
            f"golden: found {type(value).__name__} at {name}; expected numbers, words, frames, and what holds them."
        )


def numbers(values: np.ndarray) -> str:
    """Few numbers as they are, many as sums."""
    if len(values) <= FEW:
        return " ".join(f"{value:.8g}" for value in values) or "no numbers"
    known = np.where(np.isfinite(values), values, 0.0)
    weights = 1 + np.arange(len(values)) * 0.6180339887 % 1
    odd = [
        f"{count} {word}"
        for word, count in zip(("nan", "infinite"), (np.isnan(values).sum(), np.isinf(values).sum()))
        if count
    ]
    sums = known.sum(), weights @ known, weights[::-1] @ np.arcsinh(1e3 * known)
    text = " ".join(f"{value:.8g}" for value in sums)
    return f"{len(values)} numbers: {text}" + "".join(f", {word}" for word in odd)


def words(texts: list[str]) -> str:
    """Few words as they are, many by their checksum."""
    text = " | ".join(texts).replace("\0", "")
    return text if len(text) <= 200 else f"{len(texts)} words #{zlib.crc32(text.encode()):08x}: {text[:60]}"


def digest(value) -> str:
    """All numbers and words in a value in one line: three sums, and a checksum."""
    found = [np.zeros(0)]
    texts = []
    for part in leaves(value):
        if isinstance(part, np.ndarray):
            found.append(part.astype(float).ravel())
        else:
            texts.append(part)
    every = np.concatenate(found)
    said = f"; {words(texts)}" if texts else ""
    return f"{numbers(every) if len(every) else 'no numbers'}{said}"


def leaves(value):
    """Arrays of numbers, and words, in a value, in order."""
    if isinstance(value, pl.DataFrame):
        value = {name: value[name] for name in value.columns}
    if isinstance(value, pl.Series):
        kind = value.dtype
        value = value.to_physical() if kind.is_temporal() else value
        number = value.dtype.is_numeric() or kind == pl.Boolean
        value = value.cast(pl.Float64).to_numpy() if number else value.to_list()
    if hasattr(value, "toarray"):
        value = value.toarray()
    if isinstance(value, np.ndarray) and value.dtype.names:
        value = {name: value[name] for name in value.dtype.names}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufm":
        yield value
    elif isinstance(value, bool | int | float | np.number | np.bool_):
        yield np.array([value], float)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from leaves(item)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from leaves({field.name: getattr(value, field.name) for field in fields(value)})
    elif isinstance(value, list | tuple | set | frozenset | np.ndarray):
        for item in sorted(value, key=str) if isinstance(value, set | frozenset) else value:
            yield from leaves(item)
    else:
        yield str(value)


def brief(run) -> dict:
    """A run in a line a frame, without what rounds cost and proved."""
    names = ("jobs", "timeline", "allocations", "rounds", "pools")
    frames = {name: getattr(run, name) for name in names}
    return {
        name: digest(frame.drop("seconds", "solving", "objective", "bound", strict=False))
        for name, frame in frames.items()
    }


def ran(scenario, policy) -> dict | str:
    """What becomes of a policy in a scenario."""
    try:
        return brief(scenario.run(policy))
    except LabError as error:
        return f"{type(error).__name__}: {error}"


def drawn(figure) -> dict:
    """A figure in a few lines: its numbers, its words, and its axes; nothing of its style."""
    drawing = figure if hasattr(figure, "live") else figure.draw()
    axes = [part for name, part in drawing.layout.items() if name == "title" or name.endswith("axis")]
    titles = [str(part["title"].get("text", "")) for part in axes if isinstance(part.get("title"), dict)]
    titles += [str(part["text"]) for part in axes if "text" in part]
    sides = {
        name: part for name, part in drawing.layout.items() if re.match("[xy]axis", name) and isinstance(part, dict)
    }
    return {
        "data": digest(drawing.data),
        "words": [*titles, *(f"{k} {v}" for k, v in drawing.live.items() if isinstance(v, str))],
        "axes": digest({name: {k: v for k, v in part.items() if k in AXES} for name, part in sides.items()}),
        "live": digest(drawing.live),
    }


def moved(explorer, *left: str) -> dict:
    """What an explorer shows as it begins, and with each knob moved elsewhere and back; not those knobs that are left."""
    found = {"begin": shown(explorer)}
    for name, control in explorer.knobs.controls.items():
        if name not in left:
            was = control.value
            control.value = other(control.info, was)
            found[f"{name} {control.value}"] = shown(explorer)
            control.value = was
    return found


def other(info, value):
    """Another value of a knob."""
    knob = info.knob
    if info.kind == "bool":
        return not value
    if info.kind == "choice":
        return [choice for choice in knob.choices if choice != value][0]
    if info.kind == "floats":
        return tuple(1.5 * part for part in value)
    low = knob.low
    high = min(knob.high, 1e9)
    near = low + (high - low) / 4 if not knob.log else math.sqrt(low * high) if low > 0 else high / 2
    near = int(near) if info.kind == "int" else float(f"{near:.2g}")
    return near if value is None or near != value else low


def varied(thing, *left: str) -> dict:
    """A thing with knobs, and it with each of these elsewhere, by name; not those that are left."""
    known = knobs_of(thing)
    values = {name: info.value_of(thing) for name, info in known.items()}
    found = {"begin": thing}
    for name in known.keys() - set(left):
        new = type(thing).project(values | {name: other(known[name], values[name])})
        found[f"{name} {new[name]}"] = thing.with_knobs(**new)
    return dict(sorted(found.items()))


def shown(explorer) -> dict:
    """What stands on an explorer."""
    figures = {name: drawn(drawing) for name, drawing in explorer.board.drawings.items()}
    errors = [str(part.get("evalue", "")) for part in explorer.error.outputs if part["output_type"] == "error"]
    return {"status": explorer.status.value, "errors": errors} | figures


def held(explorer) -> dict[str, str]:
    """Widgets of an explorer, each with what it says, holds and allows, and whether it is seen."""
    lines = []
    left = [explorer.box]
    while left:
        widget = left.pop(0)
        left = [*getattr(widget, "children", ()), *left]
        said = {name: getattr(widget, name, None) for name in HOLDS}
        said |= {name: getattr(widget.layout, name, None) for name in ("display", "width", "height")}
        told = [
            f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in said.items()
            if value is not None
        ]
        if "description" in said and type(widget).__name__ != "HTML":
            lines.append(" ".join([type(widget).__name__, *told]))
    return {f"{i:02}": words([line]) for i, line in enumerate(lines)}


def refusal(call, *given, **named) -> str:
    """What a call raises, in words; "nothing" where it does not."""
    try:
        call(*given, **named)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"
