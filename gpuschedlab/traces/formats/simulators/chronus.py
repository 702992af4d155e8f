"""Workloads of the Chronus artifact: jobs with strict and soft deadlines, made from Philly."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gpuschedlab._files import read_frame
from gpuschedlab.errors import TraceError
from gpuschedlab.traces.deadlines import broken_tables
from gpuschedlab.traces.logs.log_files import readable, tables
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import Raw, given, one_of, whole_gpus
from gpuschedlab.traces.schema import Rule, require_columns

NEEDED = ["job_id", "user", "num_gpu", "submit_time", "duration", "expect_time_list", "expect_value_list", "job_type"]
KINDS = {"strict": "strict", "soft": "soft", "best": "best_effort"}
MINUTE = 60.0
TEN = 10.0
"""The artifact's values go to 10, those of a trace to 100."""

LISTS = {"deadlines": ("expect_time_list", MINUTE), "rewards": ("expect_value_list", TEN)}


def read(files: Sequence[Path], options: Options) -> Raw:
    """Return a `Raw` of the jobs of a workload, as `read_chronus` says."""
    source = f"chronus {files[0].name}"
    if files[0].suffix == ".parquet":
        with readable(source, "a parquet file with a column `set`"):
            workload_rows = read_frame(files[0]).cast(pl.String)
    else:
        workload_rows = tables(files, "chronus", (), surplus=True)
    all_rows = workload_rows.height
    sets = sorted(workload_rows["set"].unique()) if "set" in workload_rows.columns else []
    workload = options.workload
    if workload is not None or len(sets) > 1:
        if workload not in sets:
            raise TraceError(f"{source}: found workload {workload!r}; expected one of {', '.join(sets) or 'none'}.")
        workload_rows = workload_rows.filter(set=workload)
    other_workloads = {}
    if workload_rows.height < all_rows:
        other_workloads["other_workloads"] = all_rows - workload_rows.height
    require_columns(workload_rows, NEEDED, source=source)
    # Numbers that are joined by dashes; what is no number becomes null, for the rules to find.
    entry = pl.element().str.strip_chars()
    list_number = entry.cast(pl.Float64, strict=False)
    has_deadlines = pl.col("job_type") != "best"
    lists = {}
    for ours, (workload_column, unit) in LISTS.items():
        entries = pl.col(workload_column).str.split("-")
        numbers = entries.list.eval(list_number * unit)
        lists[ours] = pl.when(has_deadlines).then(numbers)
    where: dict[str, str | pl.Expr] = {
        "job_id": "job_id",
        "submit": "submit_time",
        "gpus": "num_gpu",
        "duration": "duration",
        "user": "user",
        "model": "model_name",
        "kind": pl.col("job_type").replace_strict(KINDS, default=None, return_dtype=pl.String),
        **lists,
    }
    broken = [Rule(LISTS[ours][0], expected, bad) for ours, expected, bad in broken_tables() if ours in LISTS]
    return Raw(
        workload_rows,
        where,
        units={"submit": MINUTE, "duration": MINUTE},
        zero=0.0,
        left=other_workloads,
        columns=tuple(where),
        rules=[
            whole_gpus("num_gpu"),
            one_of("job_type", KINDS),
            *(given(workload_column, "minutes from 0 up") for workload_column in ("submit_time", "duration")),
            *broken,
        ],
    )
