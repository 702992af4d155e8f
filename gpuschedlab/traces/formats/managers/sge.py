"""Accounting of Grid Engine: lines of `accounting`, one a job or a task of it."""

import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gpuschedlab.traces.logs.log_files import lines_of
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import Raw

#: Our columns <- places of fields between colons.
FIRST = ["vc", "nodelist", "-", "user", "name", "id", "account", "-", "submit", "start", "end", "failed", "exit"]
FIELDS = {name: place for place, name in enumerate(FIRST) if name != "-"} | {"task": 35, "rest": 39}
RECORD = r"^(?:[^:\n]*:){8}\d{9,13}:\d{1,13}:\d{1,13}:\d+:\d+:(?:[^:\n]*:){25,}"


def recognises(head: str) -> bool:
    """Whether a file begins as Grid Engine's accounting."""
    return any(re.match(RECORD, line) for line in head.splitlines()[:5])


def read(files: Sequence[Path], options: Options) -> Raw:
    """Jobs of the lines: GPUs and limit are those of `-l gpu=N,h_rt=...` in a job's category."""
    # Instants are seconds, or milliseconds in Univa's; failed 100 is a signal, as of qdel. Lines of a parallel job's tasks
    # (pe_taskid) are parts of its own. See accounting(5).
    table = lines_of(files, "sge", "Grid Engine's accounting").filter(
        ~pl.col("line").str.starts_with("#"), pl.col("line") != ""
    )
    parts = pl.col("line").str.splitn(":", 40).struct
    table = table.with_columns(parts.field(f"field_{i}").alias(name) for name, i in FIELDS.items())
    seconds = (pl.col(name).cast(pl.Float64, strict=False) for name in ("submit", "start", "end"))
    table = table.with_columns(pl.when(at > 1e11).then(at / 1e3).when(at > 0).then(at) for at in seconds)
    exit, failed = (pl.col(name).cast(pl.Float64, strict=False) for name in ("exit", "failed"))
    asked = pl.col("rest").str
    ended = pl.when(failed == 100).then(pl.lit("killed")).when((exit == 0) & (failed == 0)).then(pl.lit("completed"))
    where = {name: name for name in ("vc", "nodelist", "user", "name", "account", "submit", "start", "end", "line")} | {
        "job_id": pl.when(pl.col("task").is_in(["0", ""])).then("id").otherwise(pl.format("{}.{}", "id", "task")),
        "gpus": asked.extract(r"(?:^|[\s,])n?gpus?=(\d+)").cast(pl.Float64).fill_null(0.0),
        "requested_time": asked.extract(r"(?:^|[\s,])[hs]_rt=([\d:]+)"),
        "meaning": ended.otherwise(pl.lit("failed")),
        "left": pl.when(asked.contains("(?i):none:").not_()).then(pl.lit("steps")),
    }
    assumed = ["gpu= counts the GPUs of a job, whatever its slots"]
    return Raw(table, where, cpu=False, repeats="attempts", first_line=1, assumed=assumed)
