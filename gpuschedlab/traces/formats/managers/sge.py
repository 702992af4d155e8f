"""Accounting of Grid Engine: lines of `accounting`, one a job or a task of it."""

import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gpuschedlab.traces.logs.log_files import lines_of
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import Raw, as_number, label

#: Our columns <- places of fields between colons.
FIRST = ["vc", "nodelist", "-", "user", "name", "id", "account", "-", "submit", "start", "end", "failed", "exit"]
FIELDS = {name: place for place, name in enumerate(FIRST) if name != "-"} | {"task": 35, "rest": 39}
RECORD = r"^(?:[^:\n]*:){8}\d{9,13}:\d{1,13}:\d{1,13}:\d+:\d+:(?:[^:\n]*:){25,}"


def recognises(head: str) -> bool:
    """Whether a file begins as Grid Engine's accounting."""
    return any(re.match(RECORD, line) for line in head.splitlines()[:5])


def read(files: Sequence[Path], options: Options) -> Raw:
    """Return a `Raw` of the jobs of the lines: GPUs and limit are those of `-l gpu=N,h_rt=...` in a job's category."""
    # Instants are seconds, or milliseconds in Univa's; failed 100 is a signal, as of qdel. Lines of a parallel job's tasks
    # (pe_taskid) are parts of its own. See accounting(5).
    log_rows = lines_of(files, "sge", "Grid Engine's accounting")
    line = pl.col("line")
    comment = line.str.starts_with("#")
    log_rows = log_rows.filter(~comment, line != "")
    sge_fields = line.str.splitn(":", 40).struct
    fields = [sge_fields.field(f"field_{i}").alias(sge_field) for sge_field, i in FIELDS.items()]
    log_rows = log_rows.with_columns(fields)
    log_rows = log_rows.with_columns(_unix_seconds(sge_field) for sge_field in ("submit", "start", "end"))
    exit_code = as_number("exit")
    failed = as_number("failed")
    succeeded = (exit_code == 0) & (failed == 0)
    by_signal = pl.when(failed == 100).then(pl.lit("killed"))
    outcome = by_signal.when(succeeded).then(pl.lit("completed"))
    no_array = pl.col("task").is_in(["0", ""])
    task_id = pl.format("{}.{}", "id", "task")
    job_id = pl.when(no_array).then("id").otherwise(task_id)
    request = pl.col("rest").str
    gpus = request.extract(r"(?:^|[\s,])n?gpus?=(\d+)").cast(pl.Float64)
    own_line = request.contains("(?i):none:")
    where = {
        sge_column: sge_column
        for sge_column in ("vc", "nodelist", "user", "name", "account", "submit", "start", "end", "line")
    } | {
        "job_id": job_id,
        "gpus": gpus.fill_null(0.0),
        "requested_time": request.extract(r"(?:^|[\s,])[hs]_rt=([\d:]+)"),
        "meaning": outcome.otherwise(pl.lit("failed")),
        "left": label(own_line.not_(), "steps"),
    }
    assumed = ["gpu= counts the GPUs of a job, whatever its slots"]
    return Raw(log_rows, where, cpu=False, repeats="attempts", first_line=1, assumed=assumed)


def _unix_seconds(name: str) -> pl.Expr:
    """Return an expression (`pl.Expr`): instants of a column, in seconds or milliseconds, as Unix seconds; null if 0 or no number."""
    instant = as_number(name)
    milliseconds = pl.when(instant > 1e11).then(instant / 1e3)
    return milliseconds.when(instant > 0).then(instant)
