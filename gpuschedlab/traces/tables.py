"""Readers of traces that are one CSV table: Helios, Microsoft's ITP, workloads of Pollux and Sia."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from gpuschedlab.traces.files import Read, find, finish, need_columns, numbers, read_csv, times
from gpuschedlab.traces.schema import LONGEST, OnBad, Rule

HELIOS_STATUS = {
    "COMPLETED": "completed",
    "CANCELLED": "killed",
    "CANCELED": "killed",
    "FAILED": "failed",
    "TIMEOUT": "failed",
    "NODE_FAIL": "failed",
}
_WHEN = "a wall-clock time such as 2020-06-09 18:41:01"
_GPUS = "a whole number of GPUs, from 0 up"
_SECONDS = "seconds, from 0 up and at most ten years"


def read_helios(path: str | Path, *, on_bad: OnBad = "raise", notes: dict[str, int] | None = None) -> Read:
    """Read `cluster_log.csv` of one of the clusters of SenseTime's Helios (Venus, Earth, Saturn, Uranus).

    - *Left out*, and counted in `notes`: CPU-only jobs (gpu_num 0), about half of the rows, and GPU jobs that ran
    for no time. - *Outcomes*: CANCELLED is killed; TIMEOUT and NODE_FAIL are failed, as in the owners' analysis.
    - *Time zone*: the times carry none; they are China's, which has no daylight saving, so differences are elapsed
    seconds. - *Retries, censoring*: Slurm gives a restarted job a row of its own; all jobs had ended when the log
    was taken. - *Task*: where there is a column jobname (the predictor's version of the log), it is `name`.

    Further columns: cpu_num, node_num, queue (s waited in Helios).

    Parameters
    ----------
    path : str or Path
        The file, plain or gzip, or a folder with it.
    on_bad : {"raise", "drop"}
        "drop" returns (trace, bad rows).
    notes : dict, optional
        Filled with what was left out: reason -> rows.

    Returns
    -------
    polars.DataFrame or (trace, bad)

    Raises
    ------
    TraceError
        If the file is not such a table, or (on_bad="raise") a row is bad; the line of names is row 1.

    References
    ----------
    Hu et al., "Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU Datacenters", SC'21;
    github.com/S-Lab-System-Group/HeliosData, README.
    """
    path = find(path, "cluster_log.csv", format="helios")
    source = f"helios {path}"
    frame = read_csv(path, "helios")
    need_columns(frame, ["job_id", "user", "vc", "gpu_num", "state", "submit_time", "duration"], source)
    frame, rules = numbers(frame, {"gpu_num": _GPUS, "duration": _SECONDS})
    frame, late = times(frame, {"submit_time": _WHEN})
    state = pl.col("state").str.strip_chars().str.to_uppercase()
    rules += late
    rules += [
        *_absent("job_id", "submit_time", "duration", "gpu_num"),
        Rule("gpu_num", _GPUS, (pl.col("gpu_num") < 0) | (pl.col("gpu_num") != pl.col("gpu_num").floor())),
        Rule("duration", _SECONDS, ~pl.col("duration").is_between(0, LONGEST)),
        Rule("state", ", ".join(HELIOS_STATUS), state.is_in([*HELIOS_STATUS, "SUSPENDED"]).not_()),
    ]
    extra = [name for name in ("cpu_num", "node_num", "queue") if name in frame.columns]
    columns = [
        pl.col("job_id"),
        pl.col("zero\0").alias("submit"),
        pl.col("gpu_num").alias("gpus"),
        pl.col("duration"),
        pl.col("user"),
        pl.col("vc"),
        *([pl.col("jobname").alias("name")] if "jobname" in frame.columns else []),
        state.replace_strict(HELIOS_STATUS, default=None).alias("status"),
        pl.col("submit_time").alias("clock"),
        *[pl.col(name).cast(pl.Float64, strict=False) for name in extra],
    ]
    why = {"CPU only": pl.col("gpu_num") == 0, "ran for no time": pl.col("duration") == 0}
    return finish(
        frame,
        rules,
        source=source,
        on_bad=on_bad,
        notes={} if notes is None else notes,
        why=why,
        columns=columns,
        zero=pl.col("submit_time").dt.epoch("us") / 1e6,
        first_row=2,
    )


def read_itp(path: str | Path, *, on_bad: OnBad = "raise", notes: dict[str, int] | None = None) -> Read:
    """Read a cluster of Microsoft's ITP (elasticflow-traces): the raw csv, or the one that ElasticFlow added to.

    Raw: job_id, submission_time, duration, num_gpu. With what ElasticFlow made up for its experiments: num_iteration
    (`target`), model_name, deadline (an instant; here since submission), batch_size. The names that ElasticFlow's
    simulator uses for them (submit_time, iteration, ddl) are understood, too.

    - *Times* are seconds since the collection began (2021-03-04; the hour and zone are not said, so there is no
    `clock`). - *Left out*, and counted in `notes`: rows with no GPU, and jobs that ran for no time.
    - Users, virtual clusters, outcomes, retries and censoring are not in the source.

    Parameters
    ----------
    path : str or Path
        The file, plain or gzip.
    on_bad : {"raise", "drop"}
        "drop" returns (trace, bad rows).
    notes : dict, optional
        Filled with what was left out: reason -> rows.

    Returns
    -------
    polars.DataFrame or (trace, bad)

    Raises
    ------
    TraceError
        If the file is not such a table, or (on_bad="raise") a row is bad; the line of names is row 1.

    References
    ----------
    Gu et al., "ElasticFlow: An Elastic Serverless Training Platform for Distributed Deep Learning", ASPLOS'23;
    github.com/microsoft/elasticflow-traces, README.
    """
    path = find(path, "*.csv", format="itp")
    source = f"itp {path}"
    other = {"submit_time": "submission_time", "iteration": "num_iteration", "ddl": "deadline"}
    frame = read_csv(path, "itp").rename(other, strict=False)
    need_columns(frame, ["job_id", "submission_time", "duration", "num_gpu"], source)
    known = {"submission_time": _SECONDS, "duration": _SECONDS, "num_gpu": _GPUS}
    made_up = {"num_iteration": "a number", "deadline": "an instant (s)", "batch_size": "a whole number"}
    known |= {name: what for name, what in made_up.items() if name in frame.columns}
    frame, rules = numbers(frame, known)
    rules += [
        *_absent("job_id", "submission_time", "duration", "num_gpu"),
        Rule("num_gpu", _GPUS, (pl.col("num_gpu") < 0) | (pl.col("num_gpu") != pl.col("num_gpu").floor())),
        Rule("duration", _SECONDS, ~pl.col("duration").is_between(0, LONGEST)),
        Rule("submission_time", _SECONDS, ~pl.col("submission_time").is_between(0, LONGEST)),
    ]
    given = {
        "num_iteration": pl.col("num_iteration").alias("target"),
        "model_name": pl.col("model_name").alias("model"),
        "deadline": (pl.col("deadline") - pl.col("submission_time")).alias("deadline"),
        "batch_size": pl.col("batch_size"),
    }
    columns = [
        pl.col("job_id"),
        pl.col("zero\0").alias("submit"),
        pl.col("num_gpu").alias("gpus"),
        pl.col("duration"),
        *[expression for name, expression in given.items() if name in frame.columns],
    ]
    why = {"no GPU": pl.col("num_gpu") == 0, "ran for no time": pl.col("duration") == 0}
    return finish(
        frame,
        rules,
        source=source,
        on_bad=on_bad,
        notes={} if notes is None else notes,
        why=why,
        columns=columns,
        zero=pl.col("submission_time"),
        first_row=2,
    )


#: GPU time (s) that stands for a job of each application: the geometric middle of its class in Pollux (OSDI'21, table 1:
#: small up to 1 GPU-hour, medium 1 to 10, large 10 to 100, extra-large 100 to 1,000; for small, from 0.1).
POLLUX_WORK = {
    "cifar10": 3600 * 0.1**0.5,
    "ncf": 3600 * 0.1**0.5,
    "bert": 3600 * 10**0.5,
    "deepspeech2": 3600 * 10**0.5,
    "yolov3": 36_000 * 10**0.5,
    "imagenet": 360_000 * 10**0.5,
}


def read_workload(
    path: str | Path,
    *,
    work: Mapping[str, float] = POLLUX_WORK,
    on_bad: OnBad = "raise",
    notes: dict[str, int] | None = None,
) -> Read:
    """Read a workload of the Pollux or Sia simulator: name, time, application, num_replicas, batch_size.

    The file says what is trained, not how long it takes: that depends on the speeds of the application
    (`gpuschedlab.jobs`). So `duration` is `work[application] / num_replicas`, a rough figure unless you pass a
    better one; simulated with a table of speeds that knows the model, a job takes the time that the table says.

    Times stay as they are, from the workload's own zero. Columns: `model` is the application, `name` too (its jobs
    are alike), `batch_size` as in the file; further columns stay. num_replicas must be there and not 0: workloads
    that leave GPUs to the scheduler (COpter's) have none.

    Parameters
    ----------
    path : str or Path
        The file, plain or gzip.
    work : mapping
        Application -> GPU time (GPU-s).
    on_bad : {"raise", "drop"}
        "drop" returns (trace, bad rows).
    notes : dict, optional
        Filled with what was left out; here nothing.

    Returns
    -------
    polars.DataFrame or (trace, bad)

    Raises
    ------
    TraceError
        If the file is not such a table, an application is not in `work`, or (on_bad="raise") a row is bad; the line of
        names is row 1.

    References
    ----------
    Qiao et al., "Pollux", OSDI'21, and its artifact: github.com/petuum/adaptdl, branch osdi21-artifact,
    simulator/workloads; Jayaram Subramanya et al., "Sia", SOSP'23.
    """
    path = find(path, "workload-*.csv", "*.csv", format="workload")
    source = f"workload {path}"
    frame = read_csv(path, "workload")
    need_columns(frame, ["name", "time", "application", "num_replicas", "batch_size"], source)
    frame, rules = numbers(frame, {"time": _SECONDS, "num_replicas": _GPUS, "batch_size": "a whole number"})
    known = ", ".join(work)
    replicas = pl.col("num_replicas")
    rules += [
        *_absent("name", "time", "application", "num_replicas"),
        Rule("time", _SECONDS, ~pl.col("time").is_between(0, LONGEST)),
        Rule("num_replicas", "a whole number of GPUs, from 1 up", (replicas < 1) | (replicas != replicas.floor())),
        Rule("application", f"one of {known}; pass work= with others", ~pl.col("application").is_in([*work])),
    ]
    taken = {"name", "time", "application", "num_replicas", "batch_size"}
    columns = [
        pl.col("name").alias("job_id"),
        pl.col("time").alias("submit"),
        replicas.alias("gpus"),
        (pl.col("application").replace_strict(dict(work), default=None, return_dtype=pl.Float64) / replicas).alias(
            "duration"
        ),
        pl.col("application").alias("model"),
        pl.col("application").alias("name"),
        pl.col("batch_size"),
        *[pl.col(name) for name in frame.columns if name not in taken and not re.search("\0", name)],
    ]
    return finish(
        frame,
        rules,
        source=source,
        on_bad=on_bad,
        notes={} if notes is None else notes,
        why={},
        columns=columns,
        zero=pl.col("time"),
        first_row=2,
    )


def _absent(*names: str) -> list[Rule]:
    """Return the rules that values are there."""
    return [Rule(name, "a value", pl.col(name).is_null()) for name in names]
