"""What the readers share: files into frames of texts, texts into numbers and times, and what was left out."""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

import polars as pl

from gpuschedlab._files import UNREADABLE, reason
from gpuschedlab.errors import TraceError
from gpuschedlab.traces.schema import LONGEST, MOST_GPUS, OnBad, Read, Rule, require_columns, sift, validate

#: Texts that stand for "nothing here" in the published files.
NOTHING = ["", "None", "none", "null", "NULL", "nan", "NaN", "NA", "\\N"]
SURPLUS = "(beyond the last)"  # what a row has more than there are columns: `part` finds such rows bad
RAW = "\0raw"  # what a column was before it was converted: error messages show this
SECONDS = "seconds from 0 up, at most ten years"
EVERYWHERE = pl.lit(True)


def find_file(path: str | Path, name: str, *, source: str) -> Path:
    """Return the file itself, or the one called `name` in or below a folder.

    Raises
    ------
    TraceError
        There is none, or several.
    """
    path = Path(path)
    if path.is_dir():
        found = sorted(path.rglob(name))
        if len(found) != 1:
            many = ", ".join(str(f) for f in found[:5]) or "none"
            raise TraceError(f"{source}: found in {path} {many}; expected one file {name}. Name the file itself.")
        return found[0]
    if not path.is_file():
        raise TraceError(f"{source}: found no file {path}; expected {name}. Check the path, or see trace.fetch.")
    return path


@contextlib.contextmanager
def readable(source: str, expected: str = "comma-separated text") -> Iterator[None]:
    """Name the source of whatever goes wrong while a file is read.

    Raises
    ------
    TraceError
        In the place of errors of the disk, of gzip, of encodings, of JSON and of polars.
    """
    try:
        yield
    except TraceError:
        raise
    except UNREADABLE as error:
        raise TraceError(
            f"{source}: found nothing readable ({reason(error)}); expected {expected}. "
            "The file may be cut off: fetch it again."
        ) from error


def opened(path: Path) -> IO[bytes]:
    """Stream of a file's bytes, unpacked where it is gzip."""
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    return (gzip.open if packed else open)(path, "rb")


def text_of(path: Path) -> str:
    """Text of a file, plain or gzip; bytes that are no text are replaced."""
    with opened(path) as stream:
        return stream.read().decode("utf-8-sig", errors="replace")


def read_texts(
    path: Path, *, source: str, header: list[str] | None = None, separator: str = ",", quote: str | None = '"'
) -> pl.DataFrame:
    """Read a csv file, plain or gzip, all columns as texts: null where there is nothing.

    A `header` names the columns of a file without a header line (one that has it all the same is read too). Where rows have
    more fields than there are columns, there is the further column SURPLUS.

    Raises
    ------
    TraceError
        The file is empty, no csv, has other columns, is in UTF-16, or begins with a comment.
    """
    with readable(source):
        _check_text(path, source)
        try:
            how = {"infer_schema": False, "separator": separator, "quote_char": quote}
            frame = _nulls(pl.read_csv(path, has_header=header is None, **how))
        except pl.exceptions.ComputeError as error:
            if quote is None and "utf-8" in str(error):  # names of jobs in another encoding harm nothing else
                return read_texts_of(text_of(path), how)
            frame = _ragged(path, header is None, separator, quote)
        if header is None:
            return frame.rename({name: name.strip().lstrip("\ufeff") for name in frame.columns})
    names = [name for name in frame.columns if name != SURPLUS]
    if len(names) != len(header):
        raise TraceError(
            f"{source}: found {len(names)} columns; expected {len(header)}: {', '.join(header)}. "
            "Take the file as its owner publishes it."
        )
    frame = frame.rename(dict(zip(names, header, strict=True)))
    return frame.slice(1) if frame.height and list(frame.row(0)[: len(header)]) == header else frame


def read_texts_of(text: str, how: dict) -> pl.DataFrame:
    """Table of a text, bytes of which were replaced."""
    frame = _nulls(pl.read_csv(text.encode(), **how))
    return frame.rename({name: name.strip() for name in frame.columns})


def _nulls(frame: pl.DataFrame) -> pl.DataFrame:
    """Null where a text stands for nothing: looked for after reading, which costs a fifth of polars' own `null_values`."""
    there = frame.select(pl.all().is_in(NOTHING).any()).row(0, named=True) if frame.width else {}
    return frame.with_columns(
        pl.when(pl.col(c).is_in(NOTHING).not_()).then(c).alias(c) for c, any_ in there.items() if any_
    )


def _ragged(path: Path, has_header: bool, separator: str, quote: str | None) -> pl.DataFrame:
    """Read a table some of whose rows have more fields than it has columns: the first of those is in SURPLUS."""
    how = {"infer_schema": False, "truncate_ragged_lines": True, "separator": separator, "quote_char": quote}
    names = pl.read_csv(path, n_rows=1, has_header=has_header, **how).columns
    with opened(path) as stream:
        if has_header:
            stream.readline()
        # polars takes the number of columns from the first line.
        wider = separator.join(map(str, range(len(names) + 1))).encode() + b"\n" + stream.read()
    frame = _nulls(pl.read_csv(wider, **how))
    return frame.rename(dict(zip(frame.columns, [*names, SURPLUS], strict=True)))


def _check_text(path: Path, source: str):
    """Raise a TraceError if a file begins as no table does, but as one that can be made into one."""
    with opened(path) as stream:
        head = stream.read(200)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head:
        raise TraceError(
            f"{source}: found text in UTF-16; expected UTF-8. Convert it: iconv -f UTF-16 -t UTF-8 {path.name} > new.csv, "
            'or in Excel save it as "CSV UTF-8".'
        )
    if head.lstrip(b"\xef\xbb\xbf").startswith(b"#"):
        raise TraceError(
            f"{source}: found a comment in the first line ({head.splitlines()[0].decode(errors='replace')}); expected the table "
            f"itself. Remove the comments: grep -v '^#' {path.name} > new.csv."
        )


def numbers(frame: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """Turn texts into numbers; what is no number becomes null, and stays in the column `name` + `RAW`."""
    texts = pl.col([n for n in names if n in frame.columns])
    return frame.with_columns(texts.name.suffix(RAW), texts.str.strip_chars().cast(pl.Float64, strict=False))


def times(frame: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """Turn texts such as 2017-10-07 01:12:09 into wall-clock times; others become null, and stay in `name` + `RAW`."""
    texts = pl.col([n for n in names if n in frame.columns])
    clock = texts.str.strip_chars().str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="us", strict=False)
    return frame.with_columns(texts.name.suffix(RAW), clock)


def text_rule(name: str) -> Rule:
    """Rule that a text must be there."""
    return Rule(name, "a text", pl.col(name).is_null())


def id_rules(name: str) -> list[Rule]:
    """Rules that a row's identifier must be there, and its own."""
    return [text_rule(name), Rule(name, "a text that no other row has", pl.col(name).is_first_distinct().not_())]


def number_rule(
    name: str, expected: str, *, low: float = 0.0, high: float = LONGEST, where: pl.Expr = EVERYWHERE
) -> Rule:
    """Rule that a number must be there (or, with `where`, only in those rows), finite and in [low, high]."""
    value = pl.col(name)
    return Rule(name, expected, where & (value.is_null() | ~value.is_finite() | (value < low) | (value > high)))


def gpu_rule(name: str) -> Rule:
    """Rule for a whole number of GPUs; 0 is a job that requests CPUs only."""
    number = number_rule(name, "GPUs: a whole number from 0 up", high=MOST_GPUS)
    return Rule(name, number.expected, number.bad | (pl.col(name) != pl.col(name).floor()))


def time_rule(name: str, where: pl.Expr = EVERYWHERE) -> Rule:
    """Rule that a wall-clock time must be there."""
    return Rule(name, "a time such as 2017-10-07 01:12:09", where & pl.col(name).is_null())


def clock_rules(name: str) -> list[Rule]:
    """Rules that a wall-clock time must be there, and in the trace: one of 1970 would move time zero, and all jobs with it."""
    away = (pl.col(name) - pl.col(name).median()).dt.total_seconds().abs()
    return [time_rule(name), Rule(name, "a time within ten years of the other rows'", away > LONGEST)]


def known_rule(name: str, known: Iterable[str]) -> Rule:
    """Rule that a text must be there and one of those that the source documents."""
    known = list(known)
    return Rule(name, f"one of {', '.join(known)}", pl.col(name).is_null() | pl.col(name).is_in(known).not_())


def part(
    frame: pl.DataFrame, rules: list[Rule], *, source: str, on_bad: OnBad, first_row: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Part good rows from bad ones (as `sift`); the bad ones get back what the source holds."""
    fields = Rule(SURPLUS, "as many fields as the other rows have", pl.col(SURPLUS).is_not_null())
    rules = [*([fields] if SURPLUS in frame.columns else []), *rules]
    good, bad = sift(frame, rules, source=source, on_bad=on_bad, first_row=first_row)
    good, bad = (rows.drop(SURPLUS, strict=False) for rows in (good, bad))
    raw = [n for n in good.columns if n.endswith(RAW)]
    back = bad.with_columns(pl.col(n).alias(n.removesuffix(RAW)) for n in raw).drop(raw)
    return good.drop(raw), back


def leave_out(frame: pl.DataFrame, reasons: Mapping[str, pl.Expr], notes: dict | None, *, source: str) -> pl.DataFrame:
    """Drop the good rows that are no GPU jobs with a duration, and count them in the notes by the first reason that holds.

    Raises
    ------
    TraceError
        No job is left: the message says of how many rows, and why.
    """
    rows, left = frame.height, {}
    for name, out in reasons.items():
        before, frame = frame.height, frame.filter(out.fill_null(False).not_())
        left[name] = before - frame.height
    if notes is not None:
        notes |= {name: notes.get(name, 0) + count for name, count in left.items()}
    if rows and frame.is_empty():
        why = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in left.items() if count)
        raise TraceError(
            f"{source}: found {rows:,} row{'s' * (rows > 1)} and no job among them ({why}); expected jobs that request GPUs, "
            "and ran. Take another part of the log, or check which columns hold GPUs, durations and status."
        )
    return frame


def finish(frame: pl.DataFrame, bad: pl.DataFrame, *, source: str, on_bad: OnBad) -> Read:
    """Bring what a reader made into the canonical form; with on_bad="drop" return the bad rows beside it."""
    good = validate(frame, source=source)
    return good if on_bad == "raise" else (good, bad)


def read_table(path: str | Path, name: str, columns: list[str], *, format: str) -> tuple[pl.DataFrame, str]:
    """Read the one csv table of a format, all columns as texts, and say what errors name it.

    Raises
    ------
    TraceError
        There is no such file, or columns of the published format are missing.
    """
    file = find_file(path, name, source=format)
    frame = read_texts(file, source=f"{format} {file.name}")
    require(frame, columns, source=f"{format} {file.name}")
    return frame, f"{format} {file.name}"


def jobs_of(
    frame: pl.DataFrame,
    rules: list[Rule],
    reasons: Mapping[str, pl.Expr],
    form: Callable[[pl.DataFrame], pl.DataFrame],
    *,
    source: str,
    on_bad: OnBad,
    notes: dict | None,
    spare: Iterable[str] = (),
) -> Read:
    """Jobs of one table with a header: `part`, `leave_out`, and, as `form` names the columns, `finish`; bad rows without `spare`."""
    good, bad = part(frame, rules, source=source, on_bad=on_bad, first_row=2)
    good = form(leave_out(good, reasons, notes, source=source))
    return finish(good, bad.drop(spare, strict=False), source=source, on_bad=on_bad)


def require(frame: pl.DataFrame, names: list[str], *, source: str) -> None:
    """Raise a TraceError if columns of the published format are missing."""
    require_columns(frame, names, source=source, way_out="Take the file as its owner publishes it.")
