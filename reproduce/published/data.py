"""The reference data that benchmarks compare with, from a folder that the project does not hold."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from gpuschedlab._files import read_frame
from gpuschedlab.errors import LabError, TraceError
from gpuschedlab.traces import validate

DAY = 86_400.0


@dataclass(frozen=True)
class Extract:
    """An extract of a published trace, and the stretch of it that was recorded as a whole.

    Parameters
    ----------
    file : str
        Parquet file below `traces/`.
    first, days : float
        The stretch (days): its first day since the extract's first job's midnight, and its length.
    start : str
        Wall-clock time of the stretch's start (ISO).
    """

    file: str
    first: float
    days: int
    start: str


#: Philly's first weeks and last days hold few jobs; so do those of Venus before April; both are left out. In PAI's extract
#: the wall-clock time is unknown: time zero counts as midnight of a Monday.
EXTRACTS = {
    "philly": Extract("philly_pollux.parquet", 21, 77, "2017-09-25"),
    "venus": Extract("helios_venus_gpu.parquet", 14, 180, "2020-04-01"),
    "pai": Extract("pai2020_sample_8pct.parquet", 2, 61, "2020-07-06"),
}


def load_real(data_dir: str | Path, name: str, *, whole: bool = False) -> pl.DataFrame:
    """Read an extract as a trace.

    Parameters
    ----------
    data_dir : str or Path
        Folder with `traces/`.
    name : {"philly", "venus", "pai"}
        Which.
    whole : bool
        All of it, from its first job's midnight on, instead of the stretch that was recorded as a whole.

    Returns
    -------
    polars.DataFrame
        A trace; `clock` is the wall-clock time of submission (of pai: an assumed one).

    Raises
    ------
    TraceError
        If there is no such extract.
    """
    if name not in EXTRACTS:
        raise TraceError(f"load_real: found {name!r}; expected one of {', '.join(EXTRACTS)}.")
    extract = EXTRACTS[name]
    path = Path(data_dir) / "traces" / extract.file
    start = datetime.datetime.fromisoformat(extract.start)
    zero = start - datetime.timedelta(days=extract.first)
    if not path.is_file():
        raise TraceError(f"load_real: found no file {path}; expected the folder of the reference data, with traces/.")
    frame = read_frame(path)
    if frame.schema["orig_time"] == pl.Datetime:
        submit = (pl.col("orig_time") - zero).dt.total_microseconds() / 1e6
    else:
        submit = pl.col("submit_s")
    columns = [
        "job_id",
        submit.alias("submit"),
        pl.col("n_gpus").alias("gpus"),
        pl.col("duration_s").alias("duration"),
        *[c for c in ("user", "vc", "name") if frame[c].null_count() < 0.5 * frame.height],
        *([pl.col("duration_censored").alias("censored")] if "duration_censored" in frame.columns else []),
    ]
    frame = frame.select(columns)
    if not whole:
        first = extract.first * DAY
        frame = frame.filter(pl.col("submit").is_between(first, first + extract.days * DAY, closed="left"))
        frame = frame.with_columns(pl.col("submit") - first)
        zero = start
    micro = pl.duration(microseconds=(pl.col("submit") * 1e6).cast(pl.Int64))
    return validate(frame.with_columns((pl.lit(zero) + micro).alias("clock")), source=f"load_real {name}")


def read_data(data_dir, name: str) -> pl.DataFrame:
    """Read a parquet file of the reference data.

    Raises
    ------
    LabError
        There is no such file.

    Examples
    --------
    >>> read_data("nowhere", "reference/sia_workloads.parquet")
    Traceback (most recent call last):
    gpuschedlab.errors.LabError: found no reference/sia_workloads.parquet in nowhere; ...
    """
    file = Path(data_dir or ".") / name
    if data_dir is None or not file.is_file():
        raise LabError(f"found no {name} in {data_dir}; expected the folder of the reference data. Pass --data FOLDER.")
    return read_frame(file)
