"""The one door for logs of real clusters: a file, a spec beside it, or a format and a path."""

from __future__ import annotations

import glob
import importlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import ClusterError, TraceError
from gpuschedlab.traces import formats
from gpuschedlab.traces.formats.parquet import stored
from gpuschedlab.traces.intake.settle import settle
from gpuschedlab.traces.logs.ledger import Intake
from gpuschedlab.traces.logs.log_files import find_file, head_of, headless, readable
from gpuschedlab.traces.logs.options import nearest, options_of, source_of
from gpuschedlab.traces.logs.states import NAMED
from gpuschedlab.traces.schema import OnBad, Read

HOME = "gpuschedlab.traces.formats"
#: Formats that are recognised, and the module of each; in this order a file is asked for what it is.
RECOGNISED = {name: f"{HOME}.{module}" for name, module in NAMED["recognised"].items()}
#: All formats: the others must be named.
FORMATS = RECOGNISED | {name: f"{HOME}.{module}" for name, module in NAMED["named"].items()}


def unlisted(folder: Path) -> dict[str, str]:
    """Return a dict of formats: names of modules of a folder that are not listed above and read logs, and the module of each."""
    modules = {path: f"{HOME}.{path.stem}" for path in sorted(folder.glob("*.py"))}
    new = {path: format_module for path, format_module in modules.items() if format_module not in FORMATS.values()}
    return {
        path.stem: format_module
        for path, format_module in new.items()
        if "\ndef read(" in path.read_text(encoding="utf-8")
    }


#: A module that is there and not listed is a format of its name, and is asked before all others.
RECOGNISED = unlisted(Path(formats.__file__).parent) | RECOGNISED
FORMATS = RECOGNISED | FORMATS
#: The one file that a folder is searched for.
PATTERNS = dict.fromkeys(("csv", "itp", "workload", "chronus"), "*.csv")
PATTERNS |= {"swf": "*.swf", "philly": "cluster_job_log*", "helios": "cluster_log.csv"}


def intake(source: str | Path | tuple[str, str | Path], **options: Any) -> Intake:
    """Read the log of a real cluster, and return the `Intake`: jobs, and a report on the rows that came in, those left out, and why.

    Parameters
    ----------
    source : path or (format, path)
        A TOML spec, a file whose format is recognised, or a format (`FORMATS`) and a path, also as one word: "slurm:sacct.txt".
    **options
        As in a spec (`gpuschedlab.traces.logs.options.Options`); they go before those of the spec.

    Returns
    -------
    Intake

    Raises
    ------
    IntakeError
        No job is left, or more than a tenth of the GPU-hours is lost.
    TraceError
        There is no such file or option, or the file does not keep the promises of its format.

    Warns
    -----
    IntakeWarning
        From 1 % of the GPU-hours on are lost.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "log.txt")
    >>> _ = file.write_text(
    ...     "JobID|Submit|Start|End|Elapsed|State|AllocTRES\\n"
    ...     "7|2024-05-01T10:00:00|2024-05-01T10:00:05|2024-05-01T11:00:05|01:00:00|COMPLETED|cpu=4,gres/gpu=2\\n"
    ...     "7.batch|2024-05-01T10:00:05|2024-05-01T10:00:05|2024-05-01T11:00:05|01:00:00|COMPLETED|cpu=4,gres/gpu=2\\n")
    >>> print(intake(file, zone="UTC").report.line())
    intake: 2 rows, 1 jobs, 2 GPU-h; left out: 1 steps
    """
    log, _ = taken(source, options)
    return log


def taken(
    source: Any, options: Mapping[str, Any], on_bad: OnBad | None = None, notes: dict | None = None
) -> tuple[Intake, pl.DataFrame]:
    """Return a tuple: the `Intake` of a source, and a frame of its bad rows; `notes` takes counts of rows left out."""
    format, paths, options = _named(source, dict(options))
    source_name = f"{format} {paths[0].name}"
    chosen = options_of(options, source_name)
    if format == "parquet":
        return stored(paths[0], on_bad or "raise")
    if format in PATTERNS and paths[0].is_dir():
        paths = [find_file(paths[0], PATTERNS[format], source=format)]
        source_name = f"{format} {paths[0].name}"
    reader = importlib.import_module(FORMATS[format])
    with readable(source_name, f"a log of the format {format}"):
        raw = reader.read(paths, chosen)
        if isinstance(raw, Intake):
            return raw, pl.DataFrame()
        log, bad = settle(raw, chosen, format=format, files=paths, on_bad=on_bad)
    if notes is not None:
        notes |= dict.fromkeys((*raw.reasons, *raw.left, *raw.within), 0)
        notes |= log.report.counts() | log.report.within
        notes.pop("bad", None)
    if chosen.cluster:
        log = replace(log, cluster=_cluster(chosen.cluster, source_name))
    return log, bad


def read_with(format: str, path: str | Path, on_bad: OnBad, notes: dict | None, options: dict[str, Any]) -> Read:
    """Return the trace of a file, a frame read strictly; with on_bad="drop" a tuple of it and the frame of bad rows (`Read`).

    `notes` takes counts of rows left out.
    """
    if on_bad not in ("raise", "drop"):
        raise TraceError(f"{format}: on_bad is {on_bad!r}; expected 'raise' or 'drop'.")
    if not Path(path).exists() and format in PATTERNS:
        find_file(path, PATTERNS[format], source=format)
    if format == "philly" and options.get("zone", "") is None:
        options = options | {"zone": "UTC"}  # whose differences are those of the clock
    log, bad = taken((format, path), options, on_bad, notes)
    if log.trace is None:
        raise TraceError(
            f"{format} {Path(path).name}: found a cluster and no jobs; expected a log of jobs. gpuschedlab.intake gives the cluster."
        )
    if on_bad == "raise":
        return log.trace
    return log.trace, bad


def _cluster(given: Mapping[str, str], name: str) -> Cluster:
    """Cluster of a spec."""
    if unknown := [cluster_key for cluster_key in given if cluster_key != "nodes"]:
        raise TraceError(f'{name}: found the key cluster.{unknown[0]}; expected nodes, such as nodes = "70x8:v100".')
    try:
        return Cluster.parse(str(given.get("nodes", "")))
    except ClusterError as error:
        raise TraceError(f"{name}: {error}") from error


def _named(source: Any, options: dict[str, Any]) -> tuple[str, list[Path], dict[str, Any]]:
    """Return a tuple: the format, list of paths and dict of options of a source."""
    format = None
    path = source
    if isinstance(source, tuple) and len(source) == 2:
        format, path = source
    if not isinstance(path, str | Path):
        raise TraceError(f"intake: found {source!r}; expected a path, or a format and a path.")
    if format not in (None, "spec", *FORMATS):
        raise TraceError(
            f"read: found the format {format!r}; expected one of {', '.join(FORMATS)}.{nearest(str(format), FORMATS)}"
        )
    if format is None and isinstance(path, str) and not Path(path).exists():
        format_name, path_behind, more = source_of(path)
        if path_behind and format_name in FORMATS:
            return _named((format_name, path_behind), _over(more, options))
    path = Path(path)
    if format in (None, "spec") and path.suffix == ".toml":
        return _spec(path, options)
    files = _meant(path)
    if not files or not files[0].exists():
        raise TraceError(f"intake: found no file {path}; expected a log, or a spec in TOML. Check the path.")
    if format is None and files[0].suffix == ".parquet":
        format = "parquet"
    return format or recognised(files[0]), files, options


def _spec(path: Path, options: dict[str, Any]) -> tuple[str, list[Path], dict[str, Any]]:
    """Return a tuple: the format, list of paths and dict of options of a TOML file; options given apart go before its own."""
    try:
        spec = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TraceError(
            f"spec {path.name}: found no TOML ({error}); expected keys such as format, path, [columns]."
        ) from error
    entry = spec.pop("path", None)
    spec_files = entry
    if isinstance(entry, str):
        spec_files = [entry]
    if not entry or not all(isinstance(spec_file, str) for spec_file in spec_files):
        raise TraceError(
            f'spec {path.name}: found path = {entry!r}; expected the path of the log, such as path = "jobs.csv".'
        )
    format = spec.pop("format", None)
    files = []
    for spec_file in spec_files:
        files += _meant(path.parent / spec_file)
    missing = [log_file for log_file in files if not log_file.exists()]
    if not files:
        missing = [entry]
    if missing:
        raise TraceError(
            f"spec {path.name}: found no file {missing[0]}; expected the log that path names, beside the spec."
        )
    return format or recognised(files[0]), files, _over(spec, options)


def _meant(path: Path) -> list[Path]:
    """Return a list of the files (`Path`) of a path, which may be a pattern."""
    if not glob.has_magic(str(path)) or path.exists():
        return [path]
    return sorted(Path(matched_path) for matched_path in glob.glob(str(path)))


def _over(given: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dict of options over others that were given: tables such as columns entry by entry."""
    merged = {**given, **options}
    for option_name, value in options.items():
        if isinstance(value, Mapping) and isinstance(given.get(option_name), Mapping):
            merged[option_name] = {**given[option_name], **value}
    return merged


def recognised(path: Path) -> str:
    """Return the format of a file, a name, by how it begins."""
    head = head_of(path)
    for format_name, module in RECOGNISED.items():
        reader = importlib.import_module(module)
        if hasattr(reader, "recognises") and reader.recognises(head):
            return format_name
    first = head.partition("\n")[0]
    advice = headless(re.split(r"[,;|\t]", first))
    raise TraceError(
        f"intake: found in {path} the log of no known format, which begins {first[:60]!r}; expected one of {', '.join(FORMATS)}. "
        f"Name it: (format, path){advice}."
    )
