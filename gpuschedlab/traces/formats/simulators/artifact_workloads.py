"""Workloads of the Pollux and Sia artifacts: the application of a job, on how many GPUs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.logs.log_files import SURPLUS, tables
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import Raw, from_one, given, numeric, whole_gpus
from gpuschedlab.traces.schema import Rule

NEEDED = ["name", "time", "application", "num_replicas", "batch_size"]
NAMES = {"name": "job_id", "time": "submit", "num_replicas": "gpus", "application": "model"}


def read(files: Sequence[Path], options: Options) -> Raw:
    """Return a `Raw` of the jobs of a workload, as `read_workload` says."""
    workload_rows = tables(files, "workload", NEEDED, surplus=True)
    if options.durations is None:
        raise TraceError(
            f"workload {files[0].name}: found no durations, as the format has none; expected durations=, in seconds on the "
            "requested GPUs. Pass one number, or a mapping by application."
        )
    where: dict[str, str | pl.Expr] = {NAMES.get(n, n): n for n in workload_rows.columns if n != SURPLUS}
    where |= {"batch_size": numeric("batch_size"), "duration": _durations(options.durations)}
    rules = [
        given("time"),
        given("application", "a text"),
        whole_gpus("num_replicas"),
        from_one("gpus", "num_replicas"),
        from_one("batch_size", "batch_size"),
        Rule("application", "an application that durations= holds", pl.col("duration").is_null()),
        Rule("duration", "seconds above 0 in durations=", pl.col("duration") < 1e-9),
    ]
    return Raw(workload_rows, where, zero=0.0, columns=tuple(where), rules=rules)


def _durations(given: float | Mapping[str, float]) -> pl.Expr:
    """Return an expression (`pl.Expr`): seconds of each row, by its application, batch size and GPUs before its application alone."""
    if not isinstance(given, Mapping):
        return pl.lit(float(given))
    sizes = (numeric(size_column).cast(pl.Int64, strict=False) for size_column in ("batch_size", "num_replicas"))
    keys = pl.format("{}/{}/{}", "application", *sizes), pl.col("application")
    known_durations = {str(k): float(v) for k, v in given.items()}
    return pl.coalesce(k.replace_strict(known_durations, default=None, return_dtype=pl.Float64) for k in keys)
