"""One door for all formats."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.schema import OnBad

#: Format -> module and function that reads it.
READERS = {
    "philly": ("philly", "read_philly"),
    "helios": ("tables", "read_helios"),
    "pai": ("pai", "read_pai"),
    "itp": ("tables", "read_itp"),
    "workload": ("tables", "read_workload"),
    "csv": ("csv", "read_csv"),
    "swf": ("swf", "read_swf"),
    "parquet": ("parquet", "read_parquet"),
    "chronus": ("chronus", "read_chronus"),
}


def read(
    name: str, path: str | Path, *, on_bad: OnBad = "raise", **options: Any
) -> pl.DataFrame | tuple[pl.DataFrame, pl.DataFrame]:
    """Read a trace in a published format, or from a csv file of one's own.

    Parameters
    ----------
    name : {"philly", "helios", "pai", "itp", "workload", "csv", "swf", "parquet", "chronus"}
        The format ("csv": a file of one's own); each has a reader `read_<name>`; its docstring says how it treats
        CPU-only rows, retries, censored durations, missing users and time zones.
    path : path
        The file, or where the format has several the folder.
    on_bad : {"raise", "drop"}
        "drop" returns (good, bad), the bad rows with `row` and `problem`.
    **options
        Of that reader (`notes=`, which takes counts of what was left out; `durations=` of workloads; `zone=` of Philly;
        `columns=` and `units=` of csv; `workload=` of Chronus).

    Returns
    -------
    polars.DataFrame or (good, bad)
        A trace, checked.

    Raises
    ------
    TraceError
        The format is not known, the file is broken, or a row is bad.

    Examples
    --------
    >>> read("sacct", "log.txt")
    Traceback (most recent call last):
    gpuschedlab.errors.TraceError: read: found the format 'sacct'; expected one of philly, helios, pai, itp, ...
    """
    if name not in READERS:
        raise TraceError(
            f"read: found the format {name!r}; expected one of {', '.join(READERS)}. "
            "Read a table of your own as csv, with columns={...}; or bring it into the columns of gpuschedlab.traces.SCHEMA "
            "and pass it to validate()."
        )
    module, function = READERS[name]
    return getattr(importlib.import_module(f"gpuschedlab.traces.readers.{module}"), function)(
        path, on_bad=on_bad, **options
    )
