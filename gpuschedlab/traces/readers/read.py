"""One door for all published formats."""

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
    "parquet": ("parquet", "read_parquet"),
}


def read(
    name: str, path: str | Path, *, on_bad: OnBad = "raise", **options: Any
) -> pl.DataFrame | tuple[pl.DataFrame, pl.DataFrame]:
    """Read a trace in a published format.

    Parameters
    ----------
    name : {"philly", "helios", "pai", "itp", "workload", "parquet"}
        The format; each has a reader `read_<name>`, whose docstring says how it treats CPU-only rows, retries, censored
        durations, missing users and time zones.
    path : path
        The file, or where the format has several the folder.
    on_bad : {"raise", "drop"}
        "drop" returns (good, bad), the bad rows with `row` and `problem`.
    **options
        Of that reader (`notes=`, which takes counts of what was left out; `durations=` of workloads; `zone=` of Philly).

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
    >>> read("swf", "log.swf")
    Traceback (most recent call last):
    gpuschedlab.errors.TraceError: read: found the format 'swf'; expected one of philly, helios, pai, itp, ...
    """
    if name not in READERS:
        raise TraceError(
            f"read: found the format {name!r}; expected one of {', '.join(READERS)}. "
            "Bring other sources into the columns of gpuschedlab.traces.SCHEMA and pass them to validate()."
        )
    module, function = READERS[name]
    return getattr(importlib.import_module(f"gpuschedlab.traces.readers.{module}"), function)(
        path, on_bad=on_bad, **options
    )
