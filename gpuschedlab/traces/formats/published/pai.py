"""Reader of Alibaba's PAI trace of 2020: several tables without header lines."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.logs import texts as src
from gpuschedlab.traces.schema import MOST_GPUS, OnBad, Read, Rule

COURSE = ["status", "start_time", "end_time"]
JOB = ["job_name", "inst_id", "user", *COURSE]
TASK = ["job_name", "task_name", "inst_num", *COURSE, "plan_cpu", "plan_mem", "plan_gpu", "gpu_type"]
INSTANCE = ["job_name", "task_name", "inst_name", "worker_name", "inst_id", *COURSE, "machine"]
TAG = ["inst_id", "user", "gpu_type_spec", "group", "workload"]
# Running and Waiting jobs had no outcome yet.
STATES = {"Terminated": "completed", "Failed": "failed", "Running": None, "Waiting": None}
EAST = 8 * 3600  # s; the trace's clock is right in UTC+8


def read_pai(path: str | Path, *, instances: bool = False, on_bad: OnBad = "raise", notes: dict | None = None) -> Read:
    """Read Alibaba's PAI trace of 2020 from a folder of its tables, as published (without header lines).

    *A job* is one row: its GPU tasks run together, so its GPUs are their sum of inst_num x plan_gpu / 100, and its duration
    goes from the first GPU task's start to the last one's end; waiting (from the job's start_time, which is its submission,
    to its first task) is not in it. *Fractions*: totals below 1 GPU stay fractions; a total above 1 that is not whole is
    rounded up (the exact figure is kept in `gpus_planned`). *CPU-only* tasks (no plan_gpu) do not count, jobs of only those
    are left out. *Censored*: a Running task lasts until the latest time in the tables. *Retries* happen to instances: with
    instances=True, `attempts` is the most launches of any instance. Waiting jobs, and jobs whose tasks lack a start or (not
    running) an end, are left out; all is counted. *Users*: of the job table, otherwise of the group tags, otherwise null.
    *Time zone*: seconds less a constant; read as Unix time in UTC+8, hour of day and day of week are right and
    dates are not; so is `clock`.

    Parameters
    ----------
    path : path
        Folder with pai_job_table.csv and pai_task_table.csv; pai_group_tag_table.csv gives `name` (the group of repeated
        jobs), `model` (workload) and `gpu_type` (gpu_type_spec, what the job asks for).
    instances : bool
        Whether to read pai_instance_table.csv (2 GB) too, for `attempts` and `machines`.
    on_bad : {"raise", "drop"}
        "drop" returns (good, bad): bad rows with `table`, `row` (line of the file) and `problem`. A job with a bad task is
        in neither.
    notes : dict, optional
        Takes counts: cpu_only, waiting, untimed, never_ran (jobs left out), tasks_without_job, jobs_with_bad_tasks.

    Returns
    -------
    polars.DataFrame
        A trace: job_id (job_name), submit (s), gpus, duration (s), user, status, censored, clock, gpus_planned, gpu_model, and
        what the optional tables give.

    Raises
    ------
    TraceError
        A table is missing or has another number of columns, or a row is bad.

    References
    ----------
    Weng et al., "MLaaS in the Wild", NSDI 2022, section 2; README of alibaba/clusterdata, cluster-trace-gpu-v2020
    (CC-BY-4.0).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "pai_job_table.csv").write_text("j,i,u,Terminated,100.0,500.0\\n")
    >>> _ = (folder / "pai_task_table.csv").write_text("j,worker,2.0,Terminated,140.0,500.0,600.0,29.3,25.0,T4\\n")
    >>> read_pai(folder).select("job_id", "submit", "gpus", "duration", "status").row(0)
    ('j', 0.0, 0.5, 360.0, 'completed')
    """
    folder = Path(path)
    if not folder.is_dir():
        raise TraceError(f"pai: found no folder {folder}; expected one with pai_job_table.csv and pai_task_table.csv.")
    jobs, bad_jobs = _jobs(folder, on_bad)
    tasks, bad_tasks = _tasks(folder, on_bad)
    latest = (table[name].max() for table in (jobs, tasks) for name in ("start_time", "end_time"))
    last = max((time for time in latest if time is not None), default=0)
    tasks, spoilt = _known_tasks(tasks, jobs, bad_jobs, bad_tasks, notes)
    jobs = jobs.join(spoilt, on="job_name", how="anti", maintain_order="left")
    jobs = jobs.join(_per_job(tasks, last), on="job_name", how="left", maintain_order="left")
    reasons = {
        "waiting": pl.col("status") == "Waiting",
        "cpu_only": pl.col("gpus_planned").fill_null(0.0) == 0,
        "untimed": pl.col("start_time").is_null() | pl.col("untimed"),
        "never_ran": pl.col("duration") == 0,
    }
    jobs = src.leave_out(jobs, reasons, notes, source="pai")
    tags, bad_tags = _tags(folder, on_bad)
    jobs = jobs.join(tags, on="inst_id", how="left", maintain_order="left")
    if instances:
        jobs = jobs.join(_tries(folder), on="job_name", how="left", maintain_order="left")
    bad = pl.concat([bad_jobs, bad_tasks, bad_tags], how="diagonal")
    return src.finish(_trace(jobs), bad, source="pai", on_bad=on_bad)


def _table(folder: Path, name: str, header: list[str], on_bad: OnBad, rules: list[Rule], counts: list[str]):
    """Read a table; return its good rows, and its bad ones with their table's name."""
    file = src.find_file(folder, f"{name}.csv", source="pai")
    frame = src.numbers(src.read_texts(file, source=f"pai {file.name}", header=header), counts)
    good, bad = src.part(frame, rules, source=f"pai {file.name}", on_bad=on_bad, first_row=1)
    return good, bad.with_columns(table=pl.lit(name))


def _times(needed: pl.Expr) -> list[Rule]:
    """Rules of start_time and end_time: there where needed, in range, in order."""
    names = ("start_time", "end_time")
    rules = [src.number_rule(n, src.SECONDS, where=needed | pl.col(n + src.RAW).is_not_null()) for n in names]
    return [*rules, Rule("end_time", "a time not before start_time", pl.col("end_time") < pl.col("start_time"))]


def _jobs(folder: Path, on_bad: OnBad) -> tuple[pl.DataFrame, pl.DataFrame]:
    rules = [*src.id_rules("job_name"), src.known_rule("status", STATES)]
    return _table(folder, "pai_job_table", JOB, on_bad, rules + _times(pl.lit(False)), ["start_time", "end_time"])


def _tasks(folder: Path, on_bad: OnBad) -> tuple[pl.DataFrame, pl.DataFrame]:
    asked = pl.col("plan_gpu" + src.RAW).is_not_null()
    percent = "percent of a GPU, from 0 up"
    rules = [
        src.text_rule("job_name"),
        src.known_rule("status", STATES),
        src.number_rule("plan_gpu", percent, high=100 * MOST_GPUS, where=asked),
        src.number_rule("inst_num", "instances, from 1 up", low=1, high=MOST_GPUS, where=pl.col("plan_gpu") > 0),
        *_times((pl.col("status") == "Terminated") & (pl.col("plan_gpu") > 0)),
    ]
    return _table(folder, "pai_task_table", TASK, on_bad, rules, ["inst_num", "plan_gpu", "start_time", "end_time"])


def _known_tasks(tasks, jobs, bad_jobs, bad_tasks, notes) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return tasks of jobs that there are, and the names of jobs with a bad task: their GPUs are not known."""
    seen = pl.concat([jobs.select("job_name"), bad_jobs.select("job_name")])
    known = tasks.join(seen, on="job_name", how="semi", maintain_order="left")
    spoilt = bad_tasks.select("job_name").drop_nulls().unique()
    if notes is not None:
        notes["tasks_without_job"] = tasks.height - known.height
        notes["jobs_with_bad_tasks"] = jobs.join(spoilt, on="job_name", how="semi").height
    return known, spoilt


def _per_job(tasks: pl.DataFrame, last: float) -> pl.DataFrame:
    """Return GPUs, duration (s) and censoring of each job, from its GPU tasks."""
    running = (pl.col("status") == "Running") & pl.col("start_time").is_not_null() & pl.col("end_time").is_null()
    tasks = tasks.filter(pl.col("plan_gpu") > 0).with_columns(running=running)
    end = pl.when("running").then(last).otherwise("end_time")
    return tasks.group_by("job_name", maintain_order=True).agg(
        gpus_planned=(pl.col("inst_num") * pl.col("plan_gpu")).sum() / 100,
        duration=end.max() - pl.col("start_time").min(),
        censored=pl.col("running").any(),
        untimed=(pl.col("start_time").is_null() | end.is_null()).any(),
        gpu_model=pl.col("gpu_type").drop_nulls().first(),
    )


def _tags(folder: Path, on_bad: OnBad) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the group tags of each inst_id (the first of several), if the table is there."""
    if not list(folder.rglob("pai_group_tag_table.csv")):
        return pl.DataFrame(schema={"inst_id": pl.String}), pl.DataFrame()
    rules = [src.text_rule("inst_id")]
    good, bad = _table(folder, "pai_group_tag_table", TAG, on_bad, rules, [])
    return good.unique("inst_id", keep="first", maintain_order=True).rename({"user": "tag_user"}), bad


def _tries(folder: Path) -> pl.DataFrame:
    """Return the most launches of an instance, and the machines, of each job; never the whole table in memory."""
    file = src.find_file(folder, "pai_instance_table.csv", source="pai")
    with src.readable(f"pai {file.name}"):
        lazy = pl.scan_csv(file, has_header=False, infer_schema=False, null_values=src.NOTHING)
        width = len(lazy.collect_schema())
        if width != len(INSTANCE):
            raise TraceError(
                f"pai {file.name}: found {width} columns; expected {len(INSTANCE)}: {', '.join(INSTANCE)}."
            )
        lazy = lazy.rename(dict(zip(lazy.collect_schema().names(), INSTANCE, strict=True)))
        each = lazy.group_by("job_name", "task_name", "inst_name").agg(pl.len(), pl.col("machine").unique())
        jobs = each.group_by("job_name").agg(
            attempts=pl.col("len").max().cast(pl.Int64),
            machines=pl.col("machine").list.explode().drop_nulls().n_unique().cast(pl.Int64),
        )
        return jobs.collect(engine="streaming")


def _trace(jobs: pl.DataFrame) -> pl.DataFrame:
    start, planned = pl.col("start_time"), pl.col("gpus_planned")
    whole = (planned - 1e-9).ceil()  # 10 x 30 % is 3 GPUs, whatever the floats say
    tags = {"group": "name", "workload": "model", "gpu_type_spec": "gpu_type"}
    extra = [n for n in ("attempts", "machines") if n in jobs.columns]
    user = pl.coalesce(n for n in ("user", "tag_user") if n in jobs.columns)
    return jobs.select(
        "duration",
        "censored",
        "gpus_planned",
        "gpu_model",
        *extra,
        *(pl.col(old).alias(new) for old, new in tags.items() if old in jobs.columns),
        job_id="job_name",
        submit=start - start.min(),
        gpus=pl.when(planned < 1 - 1e-9).then(planned).otherwise(whole),
        user=user,
        status=pl.col("status").replace_strict(STATES, return_dtype=pl.String),
        clock=pl.from_epoch(((start + EAST) * 1e6).cast(pl.Int64), time_unit="us"),
    )
