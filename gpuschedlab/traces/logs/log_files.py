"""Files of a log, plain or gzip: how they begin, their tables of texts, their JSON."""

import contextlib
import gzip
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import polars as pl

from gpuschedlab._files import UNREADABLE, reason
from gpuschedlab.errors import MOST_BYTES, MOST_CELL, MOST_CELLS, MOST_COLUMNS, MOST_ROWS, TraceError
from gpuschedlab.traces.schema import LINE, require_columns

#: Texts that stand for "nothing here" in the published files.
NOTHING = ["", "None", "none", "null", "NULL", "nan", "NaN", "NA", "\\N"]
SURPLUS = "(beyond the last)"  # what a row has more than there are columns: such rows are bad
RAW = "\0raw"  # what a column was before it was converted: error messages show this
SECONDS = "seconds from 0 up, at most ten years"
HEAD = 4096
PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x78\x01", b"\x78\x9c", b"\x78\xda", b"PK\x03\x04", b"\xfd7zXZ")
"""How gzip, zstd, zlib, zip and xz begin."""


def find_file(path: str | Path, name: str, *, source: str) -> Path:
    """Return the path itself if it is a file, or that of the file called `name` in or below a folder."""
    path = Path(path)
    if path.is_dir():
        files_of_name = sorted(path.rglob(name))
        if len(files_of_name) != 1:
            many = ", ".join(str(f) for f in files_of_name[:5]) or "none"
            raise TraceError(f"{source}: found in {path} {many}; expected one file {name}. Name the file itself.")
        return files_of_name[0]
    if not path.is_file():
        raise TraceError(f"{source}: found no file {path}; expected {name}. Check the path, or see trace.fetch.")
    return path


@contextlib.contextmanager
def readable(source: str, expected: str = "comma-separated text") -> Iterator[None]:
    """Return a context (an iterator that yields once) that names the source of whatever goes wrong while a file is read."""
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
    """Return the stream of a file's bytes, a binary `IO`, unpacked if it is gzip."""
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    return (gzip.open if packed else open)(path, "rb")


def content_of(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the bytes of a file, unpacked if it is gzip. It is refused as soon as it has more of them, or of lines, than are read."""
    content = io.BytesIO()
    line_count = 0
    with opened(path) as stream:
        while chunk := stream.read(2**22):
            line_count += chunk.count(b"\n")
            if content.tell() + len(chunk) > most or line_count > MOST_ROWS:
                raise TraceError(
                    f"{path.name}: found more than {content.tell():,} bytes in {line_count:,} lines, unpacked; expected at most "
                    f"{most:,} bytes and {MOST_ROWS:,} lines. Read a part of the log, or leave out what no column needs."
                )
            content.write(chunk)
    return content.getvalue()


def text_of(path: Path, most: int = MOST_BYTES) -> str:
    """Text of a file, plain or gzip; bytes that are no text are replaced."""
    return content_of(path, most).decode("utf-8-sig", errors="replace")


def read_texts(
    path: Path, *, source: str, header: list[str] | None = None, separator: str = ",", quote: str | None = '"'
) -> pl.DataFrame:
    """Return a frame of a csv file, plain or gzip, all columns as texts: null if there is nothing."""
    with readable(source):
        raw = content_of(path)
        _check_text(raw, path, source, separator)
        try:
            how = {"infer_schema": False, "separator": separator, "quote_char": quote}
            csv_frame = _nulls(pl.read_csv(raw, has_header=header is None, **how), source)
        except pl.exceptions.ComputeError as error:
            if quote is None and "utf-8" in str(error):  # names of jobs in another encoding harm nothing else
                csv_frame = _nulls(pl.read_csv(raw.decode("utf-8-sig", errors="replace").encode(), **how), source)
            else:
                csv_frame = _ragged(raw, header is None, how, source)
        if header is None:
            return csv_frame.rename(
                {csv_column: csv_column.strip().lstrip("\ufeff") for csv_column in csv_frame.columns}
            )
    csv_columns = [csv_column for csv_column in csv_frame.columns if csv_column != SURPLUS]
    if len(csv_columns) != len(header):
        raise TraceError(
            f"{source}: found {len(csv_columns)} columns; expected {len(header)}: {', '.join(header)}. "
            "Take the file as its owner publishes it."
        )
    csv_frame = csv_frame.rename(dict(zip(csv_columns, header, strict=True)))
    if csv_frame.height and list(csv_frame.row(0)[: len(header)]) == header:
        return csv_frame.slice(1)
    return csv_frame


def short_texts(frame: pl.DataFrame, source: str) -> pl.DataFrame:
    """Return the frame as it is; raise TraceError if one of its texts is longer than any that a log has."""
    for texts in frame:
        # Expressions over a single value copy it several times.
        if len(texts) == 1:
            size = texts.estimated_size()
        else:
            size = texts.str.len_bytes().max() or 0
        if size > MOST_CELL:
            raise TraceError(
                f"{source}: found a value of {size:,} bytes in {texts.name[:80]}; expected at most {MOST_CELL:,}. Check the quotes."
            )
    return frame


def _nulls(csv_frame: pl.DataFrame, source: str) -> pl.DataFrame:
    """Return a frame with null if a text stands for nothing.

    It is looked for after reading, which costs a fifth of polars' own `null_values`.
    """
    csv_frame = short_texts(csv_frame, source)
    if not csv_frame.width:
        return csv_frame
    holds_any = csv_frame.select(pl.all().is_in(NOTHING).any())
    changed = []
    for text_column, any_ in holds_any.row(0, named=True).items():
        if any_:
            says_something = pl.col(text_column).is_in(NOTHING).not_()
            changed.append(pl.when(says_something).then(text_column).alias(text_column))
    return csv_frame.with_columns(changed)


def _ragged(raw: bytes, has_header: bool, how: dict, source: str) -> pl.DataFrame:
    """Read a table some of whose rows have more fields than it has columns, and return a frame. The first of those is in SURPLUS."""
    how = how | {"truncate_ragged_lines": True}
    csv_columns = pl.read_csv(raw, n_rows=1, has_header=has_header, **how).columns
    # polars takes the number of columns from the first line.
    numbers = map(str, range(len(csv_columns) + 1))
    wider = how["separator"].join(numbers).encode()
    row_bytes = raw.partition(b"\n")[2] if has_header else raw
    csv_frame = _nulls(pl.read_csv(wider + b"\n" + row_bytes, **how), source)
    return csv_frame.rename(dict(zip(csv_frame.columns, [*csv_columns, SURPLUS], strict=True)))


def _check_text(raw: bytes, path: Path, source: str, separator: str):
    """Raise a TraceError if a file begins as no table does, but as one that can be made into one; or if it is too large."""
    column_count = raw.partition(b"\n")[0].count(separator.encode()) + 1
    line_count = raw.count(b"\n")
    if column_count > MOST_COLUMNS or column_count * line_count > MOST_CELLS:
        raise TraceError(
            f"{source}: found {line_count:,} lines of {column_count:,} columns; expected at most {MOST_COLUMNS:,} columns, and "
            f"{MOST_CELLS:,} values. Read a part of the log, or leave out columns that are not needed."
        )
    head = raw[:200]
    if head.startswith(PACKED):  # polars would unpack it, however large it becomes
        raise TraceError(f"{source}: found a packed file; expected plain text, or gzip once. Unpack {path.name}.")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head:
        raise TraceError(
            f"{source}: found text in UTF-16; expected UTF-8. Convert it: iconv -f UTF-16 -t UTF-8 {path.name} > new.csv, "
            'or in Excel save it as "CSV UTF-8".'
        )
    if head.lstrip(b"\xef\xbb\xbf").startswith(b"#"):
        first = head.splitlines()[0].decode(errors="replace")
        raise TraceError(
            f"{source}: found a comment in the first line ({first}); expected the table "
            f"itself. Remove the comments: grep -v '^#' {path.name} > new.csv."
        )


def headless(names: Iterable[str]) -> str:
    """Way out of a table whose first line holds numbers or dates in the place of names; "" if it has names."""
    for name in names:
        if re.fullmatch(r"[-+\d.:T ]*\d[-+\d.:TZ ]*", name.strip().strip('"')):
            return (
                f"; its first line holds values ({name}), no names: put a line of names above it (sacct: without -n)."
            )
    return ""


def head_of(path: Path) -> str:
    """Return the first characters of a file, plain or gzip, as a text; "" for a folder."""
    if not path.is_file():
        return ""
    with readable(path.name, "a log"), opened(path) as stream:
        return stream.read(HEAD).decode("utf-8-sig", errors="replace")


def headed(*names: str) -> Callable[[str], bool]:
    """Return a test, a callable of a text, of whether a file begins with a line that has some words, such as names of its columns."""

    def begins(head: str) -> bool:
        first = head.partition("\n")[0]
        return set(names) <= set(re.findall(r"\w+", first))

    return begins


def tables(
    files: Sequence[Path], format: str, needed: Iterable[str], *, surplus: bool = False, **how: Any
) -> pl.DataFrame:
    """Return a frame of one file, or of several one after the other: texts, null if there is nothing."""
    frames = []
    for log_file in files:
        source = f"{format} {log_file.name}"
        log_frame = read_texts(log_file, source=source, **how)
        require_columns(log_frame, list(needed), source=source)
        if SURPLUS in log_frame.columns and not surplus:
            wide_row = log_frame[SURPLUS].is_not_null().arg_max() + 2
            raise TraceError(
                f"{source}, row {wide_row}: found more fields than the header has columns; expected as many."
            )
        frames.append(log_frame)
    if len(frames) == 1:
        return frames[0]
    return pl.concat(frames, how="diagonal")


def lines_of(files: Sequence[Path], format: str, expected: str) -> pl.DataFrame:
    """Return a frame of the lines of files, one after the other: `line`, and its number."""
    log_lines: list[str] = []
    for log_file in files:
        with readable(f"{format} {log_file.name}", expected):
            log_lines += text_of(log_file).splitlines()
    line_frame = short_texts(pl.DataFrame({"line": log_lines}, schema={"line": pl.String}), format)
    line_number = pl.int_range(1, 1 + pl.len(), dtype=pl.Int64)
    return line_frame.with_columns(line_number.alias(LINE))


def json_of(file: Path, format: str, expected: str) -> Any:
    """Return the content of a JSON file: a dict, a list, or another value."""
    with readable(f"{format} {file.name}", expected):
        return json.loads(text_of(file, MOST_BYTES // 4))


def objects(files: Sequence[Path], format: str, key: str, expected: str) -> list[dict]:
    """Return a list of dicts: the objects in the list `key` of JSON files."""
    json_objects: list[dict] = []
    for json_file in files:
        json_data = json_of(json_file, format, expected)
        entries = json_data.get(key) if isinstance(json_data, Mapping) else None
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise TraceError(
                f"{format} {json_file.name}: found JSON without a list of objects {key!r}; expected {expected}."
            )
        json_objects += entries
    return json_objects


def inside(entry: Any, *path: str) -> Any:
    """Return the value, of any type, at a path of keys of nested objects; None if it is not there."""
    for json_key in path:
        entry = entry.get(json_key) if isinstance(entry, Mapping) else None
    return entry


def mapping(entry: Any, *path: str) -> Mapping:
    """Return the object at a path of keys, a mapping; empty if there is none, or something else."""
    json_object = inside(entry, *path)
    return json_object if isinstance(json_object, Mapping) else {}


def several(entry: Any, *path: str) -> list[dict]:
    """Return a list of dicts: the objects of the list at a path; empty if it is not there."""
    entries = inside(entry, *path)
    if not isinstance(entries, list):
        return []
    return [json_object for json_object in entries if isinstance(json_object, Mapping)]


def text(value: Any) -> str | None:
    """Return the text of a JSON value; None if it is none. JSON can hold halves of characters, which are no text."""
    if value is None or isinstance(value, (Mapping, list)):
        return None
    return str(value).encode(errors="replace").decode() or None


def number(value: Any) -> float | None:
    """Return a JSON value as a float: plain, a text, or Slurm's {set, infinite, number}; None if it is no number."""
    if isinstance(value, Mapping):
        if value.get("infinite"):
            return float("inf")
        value = value.get("number") if value.get("set", True) else None
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None
