"""One door for all formats."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.schema import OnBad, Read, with_jobs

#: Formats, each with a function `read_<format>` in the module of its name, or in that of `MODULES`.
READERS = ("philly", "helios", "pai", "itp", "workload", "csv", "swf", "parquet", "chronus")
MODULES = dict.fromkeys(("helios", "itp", "workload"), "tables")


def read(name: str, path: str | Path, *, on_bad: OnBad = "raise", **options: Any) -> Read:
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
    module = importlib.import_module(f"gpuschedlab.traces.readers.{MODULES.get(name, name)}")
    return getattr(module, f"read_{name}")(path, on_bad=on_bad, **options)


def read_trace(word: str) -> pl.DataFrame:
    """Read a trace: FILE.parquet in our own form, or what `source_of` reads.

    Raises
    ------
    TraceError
        There is none, it is broken, or holds no job; the message says which row, or what there is to choose from.
    """
    from gpuschedlab.traces.generator.presets import presets

    name, path, options = source_of(word) if ":" in word and not Path(word).exists() else ("parquet", word, {})
    if name == "parquet" and not Path(path).is_file():
        raise TraceError(
            f"trace {word!r}: found no such file or preset; expected one of {', '.join(presets())}, FILE.parquet, or "
            "FORMAT:PATH, such as philly:cluster_job_log or csv:jobs.csv."
        )
    return with_jobs(read(name, path, **options), f"trace {word!r}")


def source_of(word: str) -> tuple[str, str, dict]:
    """Split FORMAT:PATH, or csv:FILE:COLUMN=NAME,...,units=UNIT, into what `traces.read` takes.

    Examples
    --------
    >>> source_of("csv:jobs.csv:gpus=Cards,units=h")
    ('csv', 'jobs.csv', {'columns': {'gpus': 'Cards'}, 'units': 'h'})
    >>> source_of("helios:venus/cluster_log.csv")
    ('helios', 'venus/cluster_log.csv', {})
    """
    name, _, path = word.partition(":")
    file, colon, last = path.rpartition(":")
    if name != "csv" or not colon or "=" not in last:
        return name, path, {}
    columns = dict(part.split("=", 1) for part in last.split(",") if "=" in part)
    options = {key: columns.pop(key) for key in ("units", "dates", "separator") if key in columns}
    return name, file, {"columns": columns} | options
