"""Traces out again: SWF and csv, with names replaced unless they are asked for."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from polars import selectors

from gpuschedlab.traces.formats.parquet import written
from gpuschedlab.traces.formats.swf import FIELDS
from gpuschedlab.traces.schema import validate

#: Columns that name people and projects, and the letter that replaces their values.
NAMES = {"user": "u", "account": "a", "name": "j"}
STATUS = {"completed": 1, "failed": 0, "killed": 5}
#: SWF field <- column of texts that is numbered.
NUMBERED = {"user": "user", "group": "account", "executable": "name", "queue": "vc", "partition": "gpu_type"}


def without_names(trace: pl.DataFrame) -> pl.DataFrame:
    """Return a frame with users, accounts and job names replaced by u1, a1, j1, in order of appearance."""
    numbers_of_names = {
        name_column: _numbers(trace[name_column]) for name_column in NAMES if name_column in trace.columns
    }
    numbered = [
        pl.format("{}{}", pl.lit(NAMES[name_column]), number).alias(name_column)
        for name_column, number in numbers_of_names.items()
    ]
    return trace.with_columns(numbered)


def _numbers(values: pl.Series) -> pl.Series:
    """Return a Series: the number of each value in order of appearance, from 1; null if it is null."""
    distinct_values = values.drop_nulls().unique(maintain_order=True)
    return values.replace_strict(
        distinct_values, pl.int_range(1, len(distinct_values) + 1, eager=True), default=None, return_dtype=pl.Int64
    )


def write_csv(trace: pl.DataFrame, path: str | Path, *, names: bool = False) -> Path:
    """Write a trace as a csv file that `read("csv", path)` reads back, equal in every column of the schema, and return the path.

    Lists are texts with `|` between their entries, an unlimited requested time is `unlimited`, and `clock` is written as the
    times of submission if it is there.

    Parameters
    ----------
    trace : polars.DataFrame
        A trace.
    path : path
        The file.
    names : bool
        Whether users, accounts and job names stay; otherwise they are replaced by u1, a1, j1.

    Returns
    -------
    Path
        `path`.
    """
    trace = validate(trace, source="write_csv")
    trace = trace if names else without_names(trace)
    lists = selectors.list().cast(pl.List(pl.String))
    changed = [lists.list.join("|")]
    if "requested_time" in trace.columns:
        limit = pl.col("requested_time").cast(pl.String)
        changed.append(limit.replace("inf", "unlimited"))
    if "clock" in trace.columns:
        first_submit = trace["submit"].min()
        zero = trace["clock"].min() - pl.duration(microseconds=first_submit * 1e6)
        for instant_column in [n for n in ("submit", "eligible", "started") if n in trace.columns]:
            microseconds = pl.col(instant_column) * 1e6
            elapsed = microseconds.round().cast(pl.Int64)
            stamp = zero + pl.duration(microseconds=elapsed)
            changed.append(stamp.dt.strftime("%Y-%m-%d %H:%M:%S%.6f").alias(instant_column))
    if "state" in trace.columns:  # what a state means is written beside it
        status_columns = {"status": pl.lit(None, pl.String), "censored": pl.lit(False)}
        changed += [
            value.alias(status_column)
            for status_column, value in status_columns.items()
            if status_column not in trace.columns
        ]
    csv_rows = trace.with_columns(changed).drop("clock", strict=False)
    return written(csv_rows.write_csv().encode(), path)


def write_swf(trace: pl.DataFrame, path: str | Path, *, names: bool = False) -> Path:
    """Write a trace in the Standard Workload Format, with GPUs in the place of processors, and return the path.

    Jobs are numbered from 1 in their order, and so are users, accounts (field 13), names, virtual clusters (15) and types (16);
    a csv file beside it (`path` + ".map.csv") says which job has which number. GPUs are rounded up; the wait comes from
    `started`, or is -1; of other columns nothing is kept. Numbers stand for names: only with `names` does the map resolve them.

    Parameters
    ----------
    trace : polars.DataFrame
        A trace.
    path : path
        The file.
    names : bool
        Whether the map keeps users, accounts and names.

    Returns
    -------
    Path
        `path`.

    References
    ----------
    Chapin et al., "Benchmarks and standards for the evaluation of parallel job schedulers", JSSPP 1999, version 2.2.
    """
    trace = validate(trace, source="write_swf").with_columns(number=pl.int_range(1, pl.len() + 1))
    swf_columns = {swf_name: pl.lit(-1.0) for swf_name in FIELDS} | {
        "job": pl.col("number"),
        "submit": pl.col("submit"),
        "run_time": pl.col("duration"),
    }
    swf_columns |= dict.fromkeys(("allocated", "requested"), pl.col("gpus").ceil())
    has = set(trace.columns)
    swf_columns |= {
        swf_name: pl.lit(_numbers(trace[trace_column]))
        for swf_name, trace_column in NUMBERED.items()
        if trace_column in has
    }
    unknown_is_null = {"default": None, "return_dtype": pl.Float64}
    before = pl.col("after").list.first()
    limit = pl.col("requested_time")
    optional = {
        "wait": pl.col("started") - pl.col("submit"),
        "requested_time": pl.when(limit.is_finite()).then(limit),
        "status": pl.col("status").replace_strict(STATUS, **unknown_is_null),
        "preceding": before.replace_strict(trace["job_id"], trace["number"], **unknown_is_null),
        "think_time": pl.col("think_time"),
    }
    for swf_name, swf_field in optional.items():
        if set(swf_field.meta.root_names()) <= has:
            swf_columns[swf_name] = swf_field
    swf_rows = trace.select(_number(swf_columns[swf_name]).alias(swf_name) for swf_name in FIELDS)
    swf_header = ["; Version: 2.2", f"; MaxRecords: {trace.height}"]
    if "clock" in has and trace.height:
        clock = pl.col("clock").dt.epoch("us")
        zero = clock.min() / 1e6 - pl.col("submit").min()
        start = trace.select(zero).item()
        swf_header.append(f"; UnixStartTime: {round(start)}")
    mapped = ["number", "job_id", *NUMBERED.values()]
    mapped = [trace_column for trace_column in mapped if trace_column in trace.columns]
    if not names:
        mapped = [trace_column for trace_column in mapped if trace_column not in NAMES]
    number_map = trace.select(mapped).write_csv()
    written(number_map.encode(), f"{path}.map.csv")
    swf_text = "\n".join(swf_header) + "\n" + swf_rows.write_csv(separator=" ", include_header=False)
    return written(swf_text.encode(), path)


def lost_in_swf(trace: pl.DataFrame) -> list[str]:
    """Return a list of the columns of a trace that SWF has no field for, and those that are rounded."""
    swf_columns = {*NUMBERED.values(), "job_id", *["submit", "gpus", "duration", "started", "requested_time"]}
    swf_columns |= {"status", "clock", "after", "think_time"}
    lost = [trace_column for trace_column in trace.columns if trace_column not in swf_columns]
    if "gpus" in trace.columns and (trace["gpus"] % 1 != 0).any():
        lost.append("shares of GPUs (rounded up)")
    return lost


def _number(value: pl.Expr) -> pl.Expr:
    """Return an expression (`pl.Expr`): the text of a number, whole if it is, -1 if it is not known."""
    value = value.cast(pl.Float64).fill_null(-1.0).fill_nan(-1.0)
    is_whole = value == value.floor()
    integer = value.cast(pl.Int64, strict=False).cast(pl.String)
    decimal = value.cast(pl.String)
    return pl.when(is_whole).then(integer).otherwise(decimal)
