"""Traces by words: a format and a path, a file, or a spec."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.intake.door import FORMATS as READERS
from gpuschedlab.traces.intake.door import read_with, taken
from gpuschedlab.traces.logs.ledger import Intake
from gpuschedlab.traces.logs.options import nearest, options_in, source_of
from gpuschedlab.traces.schema import OnBad, Read, with_jobs


def read(name: str, path: str | Path, *, on_bad: OnBad = "raise", **options: Any) -> Read:
    """Read a trace in a published format, or from a csv file of one's own: `gpuschedlab.intake` without its report.

    Parameters
    ----------
    name : str
        The format: slurm, pbs, condor, sge, k8s, openb, spot, acme, supercloud, google2019, gavel, batsim, swf, philly, helios, pai, itp,
        workload, chronus, parquet, or csv (a file of one's own).
    path : path
        The file, or if the format has several the folder.
    on_bad : {"raise", "drop"}
        "drop" returns (good, bad), the bad rows with `row` (line of the file) and `problem`.
    **options
        Those of a spec (`gpuschedlab.traces.logs.options.Options`), among them `durations=` of workloads, `zone=` of Philly,
        `instances=` of PAI, `processors=` of SWF, `workload=` of Chronus; and `notes=`, which takes counts of rows left out.

    Returns
    -------
    polars.DataFrame or (good, bad)
        A trace, checked.

    Raises
    ------
    TraceError
        The format is not known, the file is broken, a column is not found, an option is wrong, or a row is bad.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "jobs.csv")
    >>> _ = file.write_text("JobID,Submit Time,Cards,Hours,State\\na,2024-05-01 10:00,8,1.5,COMPLETED\\n")
    >>> found = read("csv", file, columns={"gpus": "Cards", "duration": "Hours"}, units="h")
    >>> found.select("job_id", "gpus", "duration").row(0)
    ('a', 8.0, 5400.0)
    >>> read("sacct", "log.txt")
    Traceback (most recent call last):
    gpuschedlab.errors.TraceError: read: found the format 'sacct'; expected one of slurm, pbs, ...
    """
    if name not in READERS:
        raise TraceError(
            f"read: found the format {name!r}; expected one of {', '.join(READERS)}.{nearest(str(name), READERS)} "
            "Read a table of your own as csv, with columns={...}; or bring it into the columns of gpuschedlab.traces.SCHEMA "
            "and pass it to validate()."
        )
    notes = options.pop("notes", None)
    if name == "csv":
        statuses = options.pop("statuses", None)
        if statuses:
            options["states"] = {state: _meaning(status) for state, status in statuses.items()}
    return read_with(name, path, on_bad, notes, options)


def _meaning(status: str) -> str:
    """Meaning of a state, as options have it, from the word that `statuses=` has for it."""
    if status == "unfinished":
        return "running"
    return status


def _begins_with_format(source: str) -> bool:
    """Whether a source is a format that is known and a path, as one word."""
    format, path, _ = source_of(source)
    return bool(path) and format in READERS


def taken_of(word: str, settings: Iterable[str] = (), on_bad: OnBad | None = None) -> tuple[Intake, pl.DataFrame]:
    """Return a tuple: the `Intake`, and a frame of bad rows, of a file or a spec, or of FORMAT:PATH.

    `settings` are KEY=VALUE with the keys of a spec.
    """
    from gpuschedlab.traces.generator.presets import presets

    if not Path(word).exists() and not _begins_with_format(word):
        raise TraceError(
            f"trace {word!r}: found no such file or preset; expected one of {', '.join(presets())}, FILE.parquet, SPEC.toml, or "
            f"FORMAT:PATH, such as slurm:sacct.txt or csv:jobs.csv (formats: {', '.join(READERS)})."
        )
    log, bad = taken(word, options_in(settings), on_bad)
    if log.trace is None:
        raise TraceError(f"trace {word!r}: found a list of nodes, and no jobs; expected a log of jobs.")
    with_jobs(log.trace, f"trace {word!r}")
    return log, bad
