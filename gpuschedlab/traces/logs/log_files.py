"""Files of a log: how they begin, their tables of texts, their JSON."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.logs import texts as src
from gpuschedlab.traces.schema import LINE

HEAD = 4096


def head_of(path: Path) -> str:
    """First characters of a file, plain or gzip; a folder has none."""
    if not path.is_file():
        return ""
    with src.readable(path.name, "a log"), src.opened(path) as stream:
        return stream.read(HEAD).decode("utf-8-sig", errors="replace")


def tables(
    files: Sequence[Path], format: str, needed: Iterable[str], *, surplus: bool = False, **how: Any
) -> pl.DataFrame:
    """Table of one file, or of several one after the other: texts, null where there is nothing."""
    found = []
    for file in files:
        source = f"{format} {file.name}"
        frame = src.read_texts(file, source=source, **how)
        src.require(frame, list(needed), source=source)
        if src.SURPLUS in frame.columns and not surplus:
            row = frame[src.SURPLUS].is_not_null().arg_max() + 2
            raise TraceError(f"{source}, row {row}: found more fields than the header has columns; expected as many.")
        found.append(frame)
    return found[0] if len(found) == 1 else pl.concat(found, how="diagonal")


def lines_of(files: Sequence[Path], format: str, expected: str) -> pl.DataFrame:
    """Lines of files, one after the other: `line`, and its number."""
    lines: list[str] = []
    for file in files:
        with src.readable(f"{format} {file.name}", expected):
            lines += src.text_of(file).splitlines()
    frame = pl.DataFrame({"line": lines}, schema={"line": pl.String})
    return frame.with_columns(pl.int_range(1, 1 + pl.len(), dtype=pl.Int64).alias(LINE))


def json_of(file: Path, format: str, expected: str) -> Any:
    """What a JSON file holds."""
    with src.readable(f"{format} {file.name}", expected):
        return json.loads(src.text_of(file))


def objects(files: Sequence[Path], format: str, key: str, expected: str) -> list[dict]:
    """Objects in the list `key` of JSON files."""
    found = []
    for file in files:
        data = json_of(file, format, expected)
        entries = data.get(key) if isinstance(data, Mapping) else None
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise TraceError(
                f"{format} {file.name}: found JSON without a list of objects {key!r}; expected {expected}."
            )
        found += entries
    return found


def inside(entry: Any, *path: str) -> Any:
    """Value at a path of keys of nested objects; None where it is not there.

    Examples
    --------
    >>> inside({"a": {"b": 1}}, "a", "b"), inside({"a": None}, "a", "b")
    (1, None)
    """
    for key in path:
        entry = entry.get(key) if isinstance(entry, Mapping) else None
    return entry


def several(entry: Any, *path: str) -> list[dict]:
    """Objects of the list at a path; none where it is not there."""
    found = inside(entry, *path)
    return [e for e in found if isinstance(e, Mapping)] if isinstance(found, list) else []


def text(value: Any) -> str | None:
    """Text of a JSON value; JSON can hold halves of characters, which are no text."""
    if value is None or isinstance(value, (Mapping, list)):
        return None
    return str(value).encode(errors="replace").decode() or None


def number(value: Any) -> float | None:
    """Number of a JSON value: plain, a text, or Slurm's {set, infinite, number}."""
    if isinstance(value, Mapping):
        if value.get("infinite"):
            return float("inf")
        value = value.get("number") if value.get("set", True) else None
    try:
        return None if isinstance(value, bool) or value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
