"""Reader of a table of one's own: other names of columns, dates, units, and words for how jobs ended."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from gpuschedlab.errors import MOST_CELL, TraceError
from gpuschedlab.traces.logs.instants import UNITS, unit_in
from gpuschedlab.traces.logs.log_files import headless, opened, readable, tables
from gpuschedlab.traces.logs.options import TIMES, Options, nearest
from gpuschedlab.traces.logs.raw import Raw
from gpuschedlab.traces.logs.states import NAMED
from gpuschedlab.traces.schema import SCHEMA, shown

#: Our columns, and the names by which they are found.
NAMES = {ours: names.split() for ours, names in NAMED["csv"].items()}
OTHERS = (*NAMES, "started", "status", "clock", "deadlines", "rewards")
NAMES |= {name: [name.replace("_", "")] for name in SCHEMA if name not in OTHERS}
STEP = r"^\d+(?:_\d+)?(?:\+\d+)?\.(?:batch|extern|interactive|\d+)$"
TRUTH = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}


def recognises(head: str) -> bool:
    """Whether a file begins as a table whose columns are found by their names."""
    first = head.partition("\n")[0]
    mark = _mark(first)
    header_names = {_plain(header_name.strip('"')) for header_name in first.split(mark)}
    has_submit = header_names & set(NAMES["submit"])
    has_job = header_names & {*NAMES["job_id"], *NAMES["gpus"]}
    return bool(has_submit and has_job)


def read(files: Sequence[Path], options: Options) -> Raw:
    """Return a `Raw` of the rows of a table with a header line, one a job."""
    # Columns are found by their usual names (`NAMES`; case, spaces, `-` and `_` do not count), unless `columns` gives
    # them. Each of submit, start and end is a number or a date, and duration a number or a text such as 1-02:30:00;
    # without a duration it is end - start. A column `queue` of numbers holds waiting times, and is no virtual
    # cluster. Slurm's steps are left out.
    source = f"csv {files[0].name}"
    with readable(source), opened(files[0]) as log_stream:
        header_line = log_stream.readline(MOST_CELL).decode("utf-8-sig", errors="replace")
    log_rows = tables(files, "csv", (), separator=options.separator or _mark(header_line))
    given_columns = set(options.columns)
    where = _places(log_rows, given_columns, options, source)
    assumed = []
    if not {"job_id"} & {*where, *given_columns}:
        where["job_id"] = pl.int_range(1, 1 + pl.len()).cast(pl.String)
        assumed = ["no column names the jobs: they are numbered (columns.job_id= gives one)"]
    has = {*where, *given_columns}
    if isinstance(where.get("job_id"), str):
        step = pl.col(where["job_id"]).str.contains(STEP)
        where["left"] = pl.when(step).then(pl.lit("steps"))
    # These three are as `write_csv` writes them.
    if {"state", "status", "censored"} <= set(log_rows.columns) and "state" not in given_columns:
        where |= {"state": "state", "meaning": "status"}
    for boolean_column in [n for n in has & set(where) if SCHEMA.get(n) and SCHEMA[n].dtype == pl.Boolean]:
        lower_case = pl.col(where[boolean_column]).str.to_lowercase()
        where[boolean_column] = lower_case.replace_strict(TRUTH, default=None)
    all_columns = where | dict(options.columns)
    theirs = {ours: log_column for ours, log_column in all_columns.items() if isinstance(log_column, str)}
    units = _units_in_names(log_rows, theirs, options)
    assumed += [f"{theirs[n]!r} is in {unit}, as its name says (units= gives another)" for n, unit in units.items()]
    seconds = {ours: UNITS[unit] for ours, unit in units.items()}
    if {"numgpusalloc", "jobstate"} <= {_plain(log_column) for log_column in log_rows.columns} and theirs.get(
        "requested_time"
    ) == "time_limit":
        seconds.setdefault("requested_time", UNITS["min"])
        assumed.append("'time_limit' is in min, as Slurm's own interface gives it (units= gives another)")
    return Raw(log_rows, where, units=seconds, assumed=assumed, guessed=[n for n in where if n != "left"])


def _units_in_names(log_rows: pl.DataFrame, theirs: dict[str, str], options: Options) -> dict[str, str]:
    """Return a dict of units of times by our columns, if the file's column says one and holds numbers; empty if none does."""
    units = {}
    for ours in TIMES:
        # Of columns, not of expressions over them, which convert as they are written.
        if theirs.get(ours) not in log_rows.columns or options.unit(ours, 0.0) != 0.0:
            continue
        unit = unit_in(theirs[ours])
        if not unit:
            continue
        numbers = log_rows[theirs[ours]].cast(pl.Float64, strict=False)
        if numbers.is_not_null().any():
            units[ours] = unit
    return units


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _mark(header: str) -> str:
    """Return the sign between values as a text: the one that the header has most of."""
    return max(",;|\t", key=header.count)


def _places(log_rows: pl.DataFrame, given_columns: set[str], options: Options, source: str) -> dict[str, Any]:
    """Return a dict of our columns -> those of the file, by their usual names."""
    named_columns = set(options.columns.values())
    plain = {
        _plain(log_column): log_column
        for log_column in reversed(log_rows.columns)
        if log_column not in named_columns and not log_column.endswith("\0raw")
    }
    where: dict[str, Any] = {}
    if "queue" in plain and log_rows[plain["queue"]].drop_nulls().cast(pl.Float64, strict=False).is_not_null().all():
        del plain["queue"]  # numbers are seconds waited
    for ours, usual_spellings in NAMES.items():
        usual_names = [plain[n] for n in usual_spellings if n in plain]
        if usual_names and ours not in given_columns:
            where[ours] = usual_names[0]
    has = {*where, *given_columns}
    lacking = [ours for ours in ("submit", "gpus") if ours not in has]
    if "duration" not in has and not {"start", "end"} <= has:
        lacking.append("duration (or start and end)")
    if lacking:
        lacking = [*({"job_id"} - has), *lacking]
        example = lacking[0].split()[0]
        raise TraceError(
            f"{source}: found the columns {shown(log_rows.columns)}; expected also {', '.join(lacking)}. Name yours: "
            f"columns={{{example!r}: '...'}}, or on the command line csv:FILE:{example}=..."
            f"{nearest(example, log_rows.columns)}{headless(log_rows.columns)}"
        )
    return where
