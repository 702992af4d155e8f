"""Traces in our own form: one parquet file, written whole or not at all."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict
from pathlib import Path

import polars as pl

from gpuschedlab._files import KEY, UNREADABLE, parquet, read_frame, whole
from gpuschedlab.errors import TraceError
from gpuschedlab.traces.logs.ledger import HOUR, Intake, Report, most_at_once
from gpuschedlab.traces.schema import OnBad, Read, validate

REPORT = "gpuschedlab intake"
"""Entry of a parquet file's metadata: what came in from the log."""


def stored(path: Path, on_bad: OnBad) -> tuple[Intake, pl.DataFrame]:
    """Return a tuple: the `Intake` of a file, with the report on the log of which it was made, and a frame of its bad rows."""
    good_and_bad = read_parquet(path, on_bad=on_bad)
    trace, bad = good_and_bad if isinstance(good_and_bad, tuple) else (good_and_bad, pl.DataFrame())
    with contextlib.suppress(*UNREADABLE, TypeError):
        if stored_report := pl.read_parquet_metadata(path).get(REPORT):
            entries = {"peak": most_at_once(trace)} | json.loads(stored_report)
            return Intake(trace, None, Report(**entries)), bad
    hours = float((trace["gpus"] * trace["duration"]).sum()) / HOUR
    log_height = trace.height + bad.height
    peak = most_at_once(trace)
    left_out = {}
    if bad.height:
        left_out["bad"] = {"rows": bad.height, "gpu_hours": 0.0, "share": 0.0, "example": int(bad["row"][0])}
    report = Report(
        "parquet", path.name, rows=log_height, jobs=trace.height, gpu_hours=hours, left_out=left_out, peak=peak
    )
    return Intake(trace, None, report), bad


def read_parquet(path: str | Path, *, on_bad: OnBad = "raise") -> Read:
    """Read a frame of a trace that `write_parquet` stored, or any parquet file with the columns of a trace.

    Parameters
    ----------
    path : path
        The file.
    on_bad : {"raise", "drop"}
        "drop" returns (good, bad), the bad rows with `row` (from 1) and `problem`.

    Returns
    -------
    polars.DataFrame
        A trace, checked (`validate`).

    Raises
    ------
    TraceError
        The file is missing, cut off, no parquet, or not the one that was stored (its checksum is another); columns are missing;
        or a row is bad.

    Examples
    --------
    >>> read_parquet("nowhere.parquet")
    Traceback (most recent call last):
    gpuschedlab.errors.TraceError: nowhere.parquet: ...; expected a parquet file with the columns of a trace...
    """
    try:
        stored_trace = read_frame(Path(path))
    except OSError as error:
        raise TraceError(
            f"{path}: found {error}; expected a parquet file with the columns of a trace. "
            "Check the path; if the file is cut off or harmed, store or fetch it again; if another program has changed it, "
            f"have it leave out the entry {KEY!r} of the metadata."
        ) from error
    return validate(stored_trace, source=str(path), on_bad=on_bad)


def write_parquet(trace: pl.DataFrame, path: str | Path, *, report: Report | None = None) -> Path:
    """Store a trace (or the bad rows of one) as a parquet file, whole or not at all, with its checksum in its metadata.

    The frame is written as it is: `read_parquet` is the door that checks.

    Parameters
    ----------
    trace : polars.DataFrame
        Frame to store.
    path : path
        The file; folders are made, a file that is there is replaced at the end.
    report : Report, optional
        Report on the log of which it is made: it is kept in the file, and `gpuschedlab.intake` gives it back.

    Returns
    -------
    Path
        `path`.

    Raises
    ------
    TraceError
        It cannot be written (a full disk, no permission): the file that was there before is untouched.

    Examples
    --------
    >>> import tempfile
    >>> trace = pl.DataFrame({"job_id": ["a"], "submit": [0.0], "gpus": [1.0], "duration": [60.0]})
    >>> read_parquet(write_parquet(trace, f"{tempfile.mkdtemp()}/trace.parquet")).equals(trace)
    True
    """
    parquet_bytes = parquet(trace, {} if report is None else {REPORT: json.dumps(asdict(report))})
    return written(parquet_bytes, path, f"room for {trace.height:,} rows. Free some space, or choose another folder.")


def written(data: bytes, path: str | Path, expected: str = "room for it.") -> Path:
    """Write a trace's file, whole or not at all, and return its path."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole(path) as part_file:
            part_file.write_bytes(data)
    except OSError as error:
        raise TraceError(f"trace not stored in {path}: found {error.strerror or error}; expected {expected}") from error
    return path
