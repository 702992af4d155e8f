"""What the readers share: opening files, reading CSV, what was left out, the trace that results."""

from __future__ import annotations

import datetime
import gzip
import json
import logging
from pathlib import Path
from typing import Any

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.schema import OnBad, Rule, require_columns, sift, validate

log = logging.getLogger("gpuschedlab.traces")

#: What a reader gives: a trace, or with on_bad="drop" a trace and the bad rows.
Read = pl.DataFrame | tuple[pl.DataFrame, pl.DataFrame]


def find(path: str | Path, *names: str, format: str) -> Path:
    """Return the file itself, or the one of these names in the folder.

    Raises
    ------
    TraceError
        If there is none.
    """
    path = Path(path)
    if path.is_file():
        return path
    if path.is_dir():
        for name in names:
            if found := sorted(path.rglob(name)) or sorted(path.rglob(f"{name}.gz")):
                return found[0]
    wanted = " or ".join(names)
    there = f"a folder without {wanted}" if path.is_dir() else "nothing"
    raise TraceError(
        f"{format} {path}: found {there}; expected the file {wanted}, or its folder. `gpuschedlab trace list` says what can be "
        "fetched."
    )


def read_bytes(path: Path) -> bytes:
    """Read a file, unpacking gzip.

    Raises
    ------
    TraceError
        If it cannot be read, or its end is missing.
    """
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (EOFError, gzip.BadGzipFile) as error:
        raise TraceError(
            f"{path}: found {error}; expected a whole gzip file. Its end is missing or it is damaged: get it again."
        ) from error
    except OSError as error:
        raise TraceError(f"{path}: found {error}; expected a file that can be read.") from error


def read_json(path: Path, format: str) -> Any:
    """Read a JSON file.

    Raises
    ------
    TraceError
        If it is not JSON, or its end is missing.
    """
    try:
        return json.loads(read_bytes(path))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise TraceError(
            f"{format} {path}: found {error}; expected JSON. Its end is missing or it is another file: get it again."
        ) from error


def read_csv(path: Path, format: str, *, header: tuple[str, ...] | None = None) -> pl.DataFrame:
    """Read a CSV file as texts; empty fields and `None` are nulls.

    Parameters
    ----------
    path : Path
        The file, plain or gzip.
    format : str
        Who an error names.
    header : tuple of str, optional
        Names of the columns of a file without a line of names.

    Raises
    ------
    TraceError
        If it is no CSV, or a line has another number of fields.
    """
    data = read_bytes(path)
    source = f"{format} {path}"
    if not data.strip():
        raise TraceError(f"{source}: found an empty file; expected a table. Get it again.")
    try:
        frame = pl.read_csv(data, has_header=header is None, infer_schema=False, null_values=["", "None"])
    except pl.exceptions.PolarsError as error:
        first = str(error).splitlines()[0]
        raise TraceError(
            f"{source}: found {first}; expected a CSV table with as many fields in each line. Its end may be missing: "
            "get it again."
        ) from error
    if header is not None:
        if frame.width != len(header):
            raise TraceError(
                f"{source}: found {frame.width} columns; expected {len(header)}, without a line of names: "
                f"{', '.join(header)}."
            )
        frame.columns = list(header)
    if not data.endswith(b"\n") and frame.height and frame.row(-1)[-1] is None:
        raise TraceError(f"{source}: found a last line that breaks off; expected whole lines. Get the file again.")
    return frame


def need_columns(frame: pl.DataFrame, names: list[str], source: str) -> None:
    """Raise a TraceError if the table lacks one of the columns of its format."""
    require_columns(frame, names, source=source, way_out="Is it the table of another format?")


def numbers(frame: pl.DataFrame, expected: dict[str, str]) -> tuple[pl.DataFrame, list[Rule]]:
    """Turn columns of texts into numbers; texts that are none break the rules returned (nulls stay nulls).

    Parameters
    ----------
    frame : polars.DataFrame
        What was read.
    expected : dict
        Column -> what it should hold, for the message.
    """
    raw = [pl.col(name).alias(f"{name}\0raw") for name in expected]
    cast = [pl.col(name).str.strip_chars().cast(pl.Float64, strict=False) for name in expected]
    rules = [_lost(name, what) for name, what in expected.items()]
    return frame.with_columns(*raw, *cast), rules


def times(
    frame: pl.DataFrame, expected: dict[str, str], format: str = "%Y-%m-%d %H:%M:%S"
) -> tuple[pl.DataFrame, list[Rule]]:
    """Turn columns of texts into wall-clock times, as `numbers` does."""
    raw = [pl.col(name).alias(f"{name}\0raw") for name in expected]
    cast = [pl.col(name).str.strip_chars().str.to_datetime(format, time_unit="us", strict=False) for name in expected]
    return frame.with_columns(*raw, *cast), [_lost(name, what) for name, what in expected.items()]


def _lost(name: str, expected: str) -> Rule:
    return Rule(name, expected, pl.col(name).is_null() & pl.col(f"{name}\0raw").is_not_null())


def leave_out(frame: pl.DataFrame, why: dict[str, pl.Expr], notes: dict[str, int]) -> pl.DataFrame:
    """Filter rows out that are no GPU jobs; `notes` counts them by reason, and the log tells."""
    for reason, expression in why.items():
        kept = frame.filter(expression.fill_null(False).not_())
        if kept.height < frame.height:
            notes[reason] = notes.get(reason, 0) + frame.height - kept.height
            log.info("left out %d rows: %s", notes[reason], reason)
        frame = kept
    return frame


def finish(
    frame: pl.DataFrame,
    rules: list[Rule],
    *,
    source: str,
    on_bad: OnBad,
    notes: dict[str, int],
    why: dict[str, pl.Expr],
    columns: list[pl.Expr],
    zero: pl.Expr,
    first_row: int = 1,
) -> Read:
    """Check what was read, leave out what is no GPU job, and make the trace.

    Parameters
    ----------
    frame : polars.DataFrame
        Rows of the source, with the columns that follow.
    rules : list of Rule
        Ways for a row to be bad.
    source : str
        Who an error names.
    on_bad : {"raise", "drop"}
        As in `validate`.
    notes : dict
        Counts of what is left out, by reason; filled here.
    why : dict
        Reason -> expression that is true for rows to leave out.
    columns : list of expressions
        The trace's columns.
    zero : expression
        Instant of submission in the units of `columns`' submit; its least value becomes time zero.
    first_row : int
        Number of the source's first row.
    """
    numbered = frame.with_row_index("row\0source", offset=first_row)
    good, bad = sift(numbered, rules, source=source, on_bad=on_bad, first_row=first_row)
    good = leave_out(good, why, notes)
    if good.is_empty():
        raise TraceError(f"{source}: found no GPU job in {frame.height:,} rows ({notes}); expected some.")
    good = good.with_columns((zero - zero.min()).alias("zero\0"))
    trace = good.select(*columns, pl.col("row\0source"))
    if on_bad == "raise":
        return _checked(trace, source).drop("row\0source")
    trace, worse = validate(trace, source=source, on_bad="drop")
    worse = worse.with_columns(row=pl.col("row\0source").cast(pl.Int64)).drop("row\0source")
    tidy = bad.select([name for name in bad.columns if "\0" not in name])
    return trace.drop("row\0source"), pl.concat([tidy, worse], how="diagonal_relaxed")


def _checked(trace: pl.DataFrame, source: str) -> pl.DataFrame:
    """Validate; an error names the row of the source, whose number rows left out would shift."""
    _, worse = validate(trace, source=source, on_bad="drop")
    if worse.is_empty():
        return validate(trace, source=source)
    row, problem = worse["row\0source"][0], worse["problem"][0]
    more = f"; and {worse.height - 1:,} more row{'s' * (worse.height > 2)}" if worse.height > 1 else ""
    raise TraceError(
        f"{source}, row {row}, {problem}{more}. Mend the source, or pass on_bad='drop' to have these rows returned apart."
    )


def clock(seconds: pl.Expr, zero: datetime.datetime) -> pl.Expr:
    """Return the wall-clock time that is so many seconds after another."""
    return pl.lit(zero, dtype=pl.Datetime("us")) + pl.duration(
        microseconds=(seconds * 1e6).cast(pl.Int64, strict=False)
    )
