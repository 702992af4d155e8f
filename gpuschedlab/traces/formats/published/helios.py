"""Readers of traces that are one csv table: Helios, Microsoft ITP, and the workloads of Pollux and Sia."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.logs import texts as src
from gpuschedlab.traces.schema import LONGEST, OnBad, Read, Rule

HELIOS = ["job_id", "user", "vc", "gpu_num", "node_num", "state", "submit_time", "start_time", "end_time", "duration"]
HELIOS_STATES = {
    "COMPLETED": "completed",
    "CANCELLED": "killed",
    "FAILED": "failed",
    # "Very rare in our traces, and regarded as failed in our analysis" (README of the data, note 2).
    "TIMEOUT": "failed",
    "NODE_FAIL": "failed",
}
ITP = ["job_id", "submission_time", "duration", "num_gpu"]
WORKLOAD = ["name", "time", "application", "num_replicas", "batch_size"]


def read_helios(path: str | Path, *, on_bad: OnBad = "raise", notes: dict | None = None) -> Read:
    """Read one cluster of SenseTime's Helios traces: `cluster_log.csv` as published.

    Rows that request no GPU, that ran 0 s (cancelled before they began), and the one SUSPENDED job, which the owners leave
    out too, are left out and counted. Times are local (UTC+8, no daylight saving), so that their differences are elapsed
    seconds; zero is the first GPU job. TIMEOUT and NODE_FAIL are failed. Durations are not censored. A job
    has one row and one start: retries are jobs of their own. A missing user or virtual cluster stays null.

    Parameters
    ----------
    path : path
        The file, or a folder that holds one.
    on_bad : {"raise", "drop"}
        "drop" returns (good, bad), the bad rows with `row` (line of the file) and `problem`.
    notes : dict, optional
        Takes counts of what was left out: cpu_only, suspended, never_ran.

    Returns
    -------
    polars.DataFrame
        A trace: job_id, submit (s), gpus, duration (s), user, vc, name (where the file has jobname), status, clock,
        machines (nodes requested).

    Raises
    ------
    TraceError
        Columns are missing, or a row is bad; a duration must be end_time - start_time.

    References
    ----------
    Hu et al., "Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU Datacenters", SC 2021,
    table 1; README of S-Lab-System-Group/HeliosData (CC-BY-4.0).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "cluster_log.csv")
    >>> _ = file.write_text(
    ...     "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\\n"
    ...     "7,uA,vcB,8,64,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:30,2020-06-09 18:45:30,240,3\\n")
    >>> read_helios(file).select("job_id", "submit", "gpus", "duration", "status").row(0)
    ('7', 0.0, 8.0, 240.0, 'failed')
    """
    frame, source = src.read_table(path, "cluster_log.csv", HELIOS, format="helios")
    frame = src.numbers(frame, ["gpu_num", "node_num", "duration"])
    frame = src.times(frame, ["submit_time", "start_time", "end_time"])
    ran = (pl.col("gpu_num") > 0) & (pl.col("duration") > 0)
    lasted = (pl.col("end_time") - pl.col("start_time")).dt.total_seconds()
    rules = [
        *src.id_rules("job_id"),
        src.gpu_rule("gpu_num"),
        src.known_rule("state", [*HELIOS_STATES, "SUSPENDED"]),
        *src.clock_rules("submit_time"),
        src.number_rule("duration", src.SECONDS),
        src.time_rule("start_time", ran),
        src.time_rule("end_time", ran),
        Rule("duration", "end_time - start_time", ran & ((lasted - pl.col("duration")).abs() > 1)),
    ]
    reasons = {
        "cpu_only": pl.col("gpu_num") == 0,
        "suspended": pl.col("state") == "SUSPENDED",
        "never_ran": pl.col("duration") == 0,
    }
    return src.jobs_of(frame, rules, reasons, _helios_trace, source=source, on_bad=on_bad, notes=notes)


def _helios_trace(good: pl.DataFrame) -> pl.DataFrame:
    clock = pl.col("submit_time")
    return good.select(
        "job_id",
        "user",
        "vc",
        "duration",
        *([pl.col("jobname").alias("name")] if "jobname" in good.columns else []),
        submit=(clock - clock.min()).dt.total_seconds().cast(pl.Float64),
        gpus="gpu_num",
        status=pl.col("state").replace_strict(HELIOS_STATES, return_dtype=pl.String),
        clock=clock,
        machines=pl.col("node_num").cast(pl.Int64, strict=False),
    )


def read_itp(path: str | Path, *, on_bad: OnBad = "raise", notes: dict | None = None) -> Read:
    """Read one cluster of Microsoft's ITP traces: a csv of raw-traces or of elasticflow-traces, as published.

    Times of submission are seconds since the collection began, and stay so (the wall clock is not published). Rows that
    request no GPU or last 0 s are left out and counted. The elasticflow csv adds generated columns: model_name -> model,
    num_iteration -> target, batch_size, and deadline, which is absolute there (16566 + 1.23 x 3890 = 21347 in the README's
    example) and counts from submission here.
    Users, outcomes and censoring are not published.

    Parameters
    ----------
    path : path
        The csv file of one cluster.
    on_bad : {"raise", "drop"}
        "drop" returns (good, bad), the bad rows with `row` (line of the file) and `problem`.
    notes : dict, optional
        Takes counts of what was left out: cpu_only, never_ran.

    Returns
    -------
    polars.DataFrame
        A trace: job_id, submit (s), gpus, duration (s), and where published model, target (iterations), batch_size,
        deadline (s since submission).

    Raises
    ------
    TraceError
        Columns are missing, or a row is bad; a deadline must come after submission.

    References
    ----------
    Gu et al., "ElasticFlow", ASPLOS 2023, section 6.1; README of microsoft/elasticflow-traces.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "cluster.csv")
    >>> _ = file.write_text("job_id,submission_time,duration,num_gpu\\na,50,3600,4\\n")
    >>> read_itp(file).select("job_id", "submit", "gpus", "duration").row(0)
    ('a', 50.0, 4.0, 3600.0)
    """
    frame, source = src.read_table(path, "*.csv", ITP, format="itp")
    extra = [n for n in ("num_iteration", "deadline", "batch_size") if n in frame.columns]
    frame = src.numbers(frame, [*ITP[1:], *extra])
    rules = [*src.id_rules("job_id"), src.gpu_rule("num_gpu")]
    rules += [src.number_rule(n, src.SECONDS) for n in ("submission_time", "duration")]
    if "deadline" in extra:
        late = pl.col("deadline") <= pl.col("submission_time")
        rules += [src.number_rule("deadline", src.SECONDS), Rule("deadline", "a time after submission_time", late)]
    counts = [n for n in extra if n != "deadline"]
    rules += [src.number_rule(n, "a number from 1 up", low=1, high=1e15) for n in counts]
    reasons = {"cpu_only": pl.col("num_gpu") == 0, "never_ran": pl.col("duration") == 0}
    names = {"num_gpu": "gpus", "submission_time": "submit", "model_name": "model", "num_iteration": "target"}

    def trace(good: pl.DataFrame) -> pl.DataFrame:
        since = [pl.col("deadline") - pl.col("submission_time")] if "deadline" in extra else []
        return good.with_columns(since).rename(names, strict=False)

    return src.jobs_of(frame, rules, reasons, trace, source=source, on_bad=on_bad, notes=notes)


def read_workload(
    path: str | Path,
    *,
    durations: float | Mapping[str, float] | None = None,
    on_bad: OnBad = "raise",
    notes: dict | None = None,
) -> Read:
    """Read a workload csv of the Pollux or Sia artifact: name, time, application, num_replicas, batch_size.

    The file holds what a job trains, not how long it takes: that is the speed tables' to say (`gpuschedlab.speeds`), so the
    durations on the requested GPUs come from the caller. Further columns of Sia's files pass through. Users,
    outcomes and wall clock are not published; there are no CPU-only rows, retries or censored durations.

    Parameters
    ----------
    path : path
        The csv file.
    durations : float or mapping
        Seconds on the requested GPUs: one figure for all, or by "application/batch_size/num_replicas" or "application".
    on_bad : {"raise", "drop"}
        "drop" returns (good, bad), the bad rows with `row` (line of the file) and `problem`.
    notes : dict, optional
        Stays as it is: nothing is left out.

    Returns
    -------
    polars.DataFrame
        A trace: job_id (the job's name), submit (s), gpus (num_replicas), duration (s), model (application), batch_size.

    Raises
    ------
    TraceError
        Columns are missing, a row is bad, or an application has no duration.

    References
    ----------
    Qiao et al., "Pollux", OSDI 2021, section 5.1 (petuum/adaptdl, simulator/workloads); Subramanya et al., "Sia",
    SOSP 2023, section 4.2.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "workload.csv")
    >>> _ = file.write_text("name,time,application,num_replicas,batch_size\\nbert-0,90,bert,4,96\\n")
    >>> read_workload(file, durations={"bert": 7200}).select("job_id", "submit", "gpus", "duration", "model").row(0)
    ('bert-0', 90.0, 4.0, 7200.0, 'bert')
    """
    frame, source = src.read_table(path, "*.csv", WORKLOAD, format="workload")
    if durations is None:
        raise TraceError(
            f"{source}: found no durations, as the format has none; expected durations=, in seconds on the requested GPUs. "
            "Pass one number, or a mapping by application."
        )
    frame = src.numbers(frame, ["time", "num_replicas", "batch_size"])
    frame = frame.with_columns(duration=_durations(durations))
    rules = [
        *src.id_rules("name"),
        src.number_rule("time", src.SECONDS),
        src.text_rule("application"),
        src.gpu_rule("num_replicas"),
        src.number_rule("num_replicas", "GPUs: a whole number from 1 up", low=1),
        src.number_rule("batch_size", "samples, from 1 up", low=1),
        Rule("application", "an application that durations= holds", pl.col("duration").is_null()),
        src.number_rule("duration", "seconds above 0 in durations=", low=1e-9, high=LONGEST),
    ]
    names = {"name": "job_id", "time": "submit", "num_replicas": "gpus", "application": "model"}
    return src.jobs_of(frame, rules, {}, lambda good: good.rename(names), source=source, on_bad=on_bad, notes=notes)


def _durations(given: float | Mapping[str, float]) -> pl.Expr:
    """Seconds of each row: the entry of its application, batch size and GPUs before that of its application."""
    if not isinstance(given, Mapping):
        return pl.lit(float(given))
    sizes = pl.col("batch_size").cast(pl.Int64, strict=False), pl.col("num_replicas").cast(pl.Int64, strict=False)
    keys = pl.format("{}/{}/{}", "application", *sizes), pl.col("application")
    known = {str(k): float(v) for k, v in given.items()}
    return pl.coalesce(k.replace_strict(known, default=None, return_dtype=pl.Float64) for k in keys)
