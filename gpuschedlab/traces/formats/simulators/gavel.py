"""Traces of Gavel's simulator: a line a job, fields separated by tabs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.logs.log_files import find_file, lines_of, readable
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import LINE, Raw
from gpuschedlab.traces.schema import require_columns

#: Places of the fields, by their number in a line.
FORMS = {
    10: {"model": 0, "target": 5, "gpus": 6, "weight": 7, "slo": 8, "submit": 9},
    7: {"model": 0, "target": 4, "submit": 5, "gpus": 6},
}


def recognises(head: str) -> bool:
    """Whether a file begins as such a trace."""
    first = head.partition("\n")[0]
    return first.count("\t") + 1 in FORMS and "JobID" not in head[:60]


def read(files: Sequence[Path], options: Options) -> Raw:
    """Return a `Raw` of jobs: the type as model, the steps as target; a duration is steps over the speed of the model on its GPUs."""
    # See Narayanan et al., Gavel, OSDI 2020; scheduler/utils.py of stanford-futuredata/gavel, parse_trace.
    source = f"gavel {files[0].name}"
    line = pl.col("line")
    log_rows = lines_of(files, "gavel", "lines of fields separated by tabs")
    log_rows = log_rows.filter(line.str.strip_chars() != "")
    log_rows = log_rows.with_columns(fields=line.str.split("\t"))
    size = pl.col("fields").list.len()
    odd = log_rows.filter(size.is_in(list(FORMS)).not_() | (size != size.first()))
    if odd.height or log_rows.is_empty():
        odd_row = 1
        fields_found = "nothing"
        if odd.height:
            odd_row = odd[LINE][0]
            fields_found = f"{len(odd['fields'][0])} fields"
        raise TraceError(
            f"{source}, row {odd_row}: found {fields_found}; expected 10 or 7 fields, separated by tabs, as in all lines."
        )
    form = FORMS[log_rows.select(size.first()).item()]
    gavel_fields = {gavel_field: pl.col("fields").list.get(i) for gavel_field, i in form.items()}
    log_rows = log_rows.select(LINE, **gavel_fields)
    job_number = pl.int_range(pl.len())
    log_rows = log_rows.with_columns(job_id=job_number.cast(pl.String))
    if "duration" not in options.columns:
        log_rows = log_rows.with_columns(duration=_durations(log_rows, options, source))
    slo = pl.col("slo").cast(pl.Float64, strict=False)
    where = {n: n for n in log_rows.columns if n != LINE} | {"slo": pl.when(slo >= 0).then(slo)}
    assumed = [] if isinstance(options.speeds, Mapping) else [f"speeds are those of {options.gpu_type}"]
    return Raw(log_rows, where, assumed=assumed)


def _durations(log_rows: pl.DataFrame, options: Options, source: str) -> pl.Series:
    """Return a Series of the seconds of each job: steps over steps a second."""
    models = log_rows["model"].unique(maintain_order=True).to_list()
    steps = log_rows["target"].cast(pl.Float64, strict=False)
    if options.speeds is None:
        raise TraceError(
            f"{source}: found no durations, and no speeds for {models[0]!r} and {len(models) - 1} more; expected "
            "speeds=, steps a second by model, or a table with model, gpu_type, gpus, steps."
        )
    if isinstance(options.speeds, Mapping):
        rate = log_rows["model"].replace_strict(dict(options.speeds), default=None, return_dtype=pl.Float64)
    else:
        path = find_file(options.speeds, "a speed table", source=source)
        with readable(f"{source}, speeds {path.name}", "a table with model, gpu_type, gpus, steps"):
            speed_rows = (
                pl.read_parquet(path, glob=False) if path.suffix == ".parquet" else pl.read_csv(path, glob=False)
            )
            speed_rows = speed_rows.rename({"n_gpus": "gpus", "iters_per_s": "steps"}, strict=False)
            require_columns(speed_rows, ["model", "gpus", "steps"], source=f"{source}, speeds {path.name}")
            speed_rows = (
                speed_rows.filter(pl.col("gpu_type") == options.gpu_type)
                if "gpu_type" in speed_rows.columns
                else speed_rows
            )
            speed_rows = (
                speed_rows.filter(pl.col("partner").is_null()) if "partner" in speed_rows.columns else speed_rows
            )
            speed_rows = speed_rows.select(
                "model", gpus=pl.col("gpus").cast(pl.Float64), rate=pl.col("steps").cast(pl.Float64)
            )
            speed_rows = speed_rows.filter(pl.col("rate") > 0).unique(["model", "gpus"], keep="first")
            job_speeds = log_rows.select("model", gpus=pl.col("gpus").cast(pl.Float64, strict=False))
            rate = job_speeds.join(speed_rows, on=["model", "gpus"], how="left", maintain_order="left")["rate"]
    if rate.null_count():
        unknown_job = log_rows.row(rate.is_null().arg_max(), named=True)
        raise TraceError(
            f"{source}, row {unknown_job[LINE]}: found no speed of {unknown_job['model']!r} on {unknown_job['gpus']} GPUs; "
            "expected one in speeds=."
        )
    return steps / rate
