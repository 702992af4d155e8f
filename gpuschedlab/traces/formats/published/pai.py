"""Alibaba's PAI trace of 2020: several tables without header lines."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gpuschedlab.errors import MOST_GPUS, TraceError
from gpuschedlab.traces.logs.devices import whole_or_share
from gpuschedlab.traces.logs.instants import wall_clock
from gpuschedlab.traces.logs.log_files import NOTHING, RAW, SECONDS, SURPLUS, find_file, read_texts, readable
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import Raw, label
from gpuschedlab.traces.schema import LINE, LONGEST, Rule, sift

COURSE = ["status", "start_time", "end_time"]
JOB = ["job_name", "inst_id", "user", *COURSE]
TASK = ["job_name", "task_name", "inst_num", *COURSE, "plan_cpu", "plan_mem", "plan_gpu", "gpu_type"]
INSTANCE = ["job_name", "task_name", "inst_name", "worker_name", "inst_id", *COURSE, "machine"]
TAG = ["inst_id", "user", "gpu_type_spec", "group", "workload"]
# Running and Waiting jobs had no outcome yet.
STATES = {"Terminated": "completed", "Failed": "failed", "Running": None, "Waiting": None}
EAST = "Etc/GMT-8"  # the trace's clock is right in UTC+8
TAGS = {"name": "group", "model": "workload", "gpu_type": "gpu_type_spec"}
_IS_STATE = pl.col("status").is_in(list(STATES))
STATUS = Rule("status", f"one of {', '.join(STATES)}", _IS_STATE.fill_null(False).not_())


def read(files: Sequence[Path], options: Options) -> Raw:
    """Return a `Raw` of jobs with the GPUs and times of their tasks, as docs/howto/published-logs.md says."""
    folder = files[0]
    if not folder.is_dir():
        raise TraceError(f"pai: found no folder {folder}; expected one with pai_job_table.csv and pai_task_table.csv.")
    jobs, bad_jobs = _jobs(folder)
    tasks, bad_tasks = _tasks(folder)
    latest = (log_table[pai_column].max() for log_table in (jobs, tasks) for pai_column in ("start_time", "end_time"))
    last = max((time for time in latest if time is not None), default=0)
    left_out = dict.fromkeys(("waiting", "cpu_only", "untimed", "never_ran"), 0)
    seen_jobs = pl.concat([jobs.select("job_name"), bad_jobs.select("job_name")])
    all_tasks = tasks.height
    tasks = tasks.join(seen_jobs, on="job_name", how="semi", maintain_order="left")
    spoilt = bad_tasks.select("job_name").drop_nulls().unique()  # their GPUs are not known
    left_out["tasks_without_job"] = all_tasks - tasks.height
    beside = {"tasks": tasks.height}
    left_out["jobs_with_bad_tasks"] = jobs.join(spoilt, on="job_name", how="semi").height
    jobs = jobs.join(spoilt, on="job_name", how="anti", maintain_order="left")
    jobs = jobs.join(_per_job(tasks, last), on="job_name", how="left", maintain_order="left")
    tags, bad_tags = _tags(folder)
    beside["tags"] = tags.height
    tags = tags.unique("inst_id", keep="first", maintain_order=True)
    jobs = jobs.join(tags, on="inst_id", how="left", maintain_order="left")
    if options.instances:
        tries = _tries(folder)
        beside["instances"] = int(tries["instances"].sum())
        jobs = jobs.join(tries.drop("instances"), on="job_name", how="left", maintain_order="left")
    status = pl.col("status")
    start_time = pl.col("start_time")
    gpus_planned = pl.col("gpus_planned")
    users = [pai_column for pai_column in ("user", "tag_user") if pai_column in jobs.columns]
    reasons = {  # why a job is none of those that held GPUs for a known time
        "waiting": status == "Waiting",
        "cpu_only": gpus_planned.fill_null(0.0) == 0,
        "untimed": start_time.is_null() | pl.col("untimed"),
    }
    reason_to_leave = pl.coalesce(label(holds, reason) for reason, holds in reasons.items())
    where: dict[str, str | pl.Expr] = {
        "job_id": "job_name",
        "submit": "start_time",
        "duration": "duration",
        "gpus": whole_or_share(gpus_planned),  # 10 x 30 % is 3 GPUs, whatever the floats say
        "left": reason_to_leave,
        "user": pl.coalesce(users),
        "status": status.replace_strict(STATES, return_dtype=pl.String),
        "clock": wall_clock(start_time, EAST),
    }
    where |= {n: n for n in ("censored", "gpus_planned", "gpu_model", "attempts", "machines")} | TAGS
    bad = pl.concat([bad_jobs, bad_tasks, bad_tags], how="diagonal").drop(LINE, strict=False)
    trace_columns = tuple(pai_column for pai_column in where if pai_column != "left")
    return Raw(jobs, where, first_line=1, columns=trace_columns, left=left_out, beside=beside, bad=bad)


def _table(folder: Path, name: str, header: list[str], rules: list[Rule], counts: Sequence[str]):
    """Read a table; return two frames: its good rows, and its bad ones with their table's name, as they stand in the file."""
    pai_file = find_file(folder, f"{name}.csv", source="pai")
    texts = read_texts(pai_file, source=f"pai {pai_file.name}", header=header)
    line = pl.int_range(1, 1 + pl.len(), dtype=pl.Int64).alias(LINE)
    read = pl.col(counts)
    log_rows = texts.with_columns(line, read.name.suffix(RAW), read.str.strip_chars().cast(pl.Float64, strict=False))
    if SURPLUS in texts.columns:
        rules = [Rule(SURPLUS, "as many fields as the other rows have", pl.col(SURPLUS).is_not_null()), *rules]
    good, bad = sift(log_rows, rules, source=f"pai {pai_file.name}", on_bad="drop")
    back = bad.with_columns(pl.col(n + RAW).alias(n) for n in counts)
    spare = [SURPLUS, *(n + RAW for n in counts)]
    return good.drop(spare, strict=False), back.drop(spare, strict=False).with_columns(table=pl.lit(name))


def _number(name: str, expected: str, *, low: float = 0.0, high: float = LONGEST, where: pl.Expr) -> Rule:
    """Rule that a number must be there in some rows, finite and in [low, high]."""
    value = pl.col(name)
    no_number = value.is_null() | ~value.is_finite()
    outside = (value < low) | (value > high)
    return Rule(name, expected, where & (no_number | outside))


def _times(needed: pl.Expr) -> list[Rule]:
    """Return a list of each `Rule` of start_time and end_time: there if needed, in range, in order."""
    rules = []
    for time_column in ("start_time", "end_time"):
        says_something = pl.col(time_column + RAW).is_not_null()
        rules.append(_number(time_column, SECONDS, where=needed | says_something))
    reversed_order = pl.col("end_time") < pl.col("start_time")
    return [*rules, Rule("end_time", "a time not before start_time", reversed_order)]


def _text(name: str) -> Rule:
    return Rule(name, "a text", pl.col(name).is_null())


def _jobs(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    is_first = pl.col("job_name").is_first_distinct()
    twice = Rule("job_name", "a text that no other row has", is_first.not_())
    rules = [_text("job_name"), twice, STATUS, *_times(pl.lit(False))]
    return _table(folder, "pai_job_table", JOB, rules, ["start_time", "end_time"])


def _tasks(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    says_gpus = pl.col("plan_gpu" + RAW).is_not_null()
    plans_gpus = pl.col("plan_gpu") > 0
    terminated = pl.col("status") == "Terminated"
    percent = "percent of a GPU, from 0 up"
    rules = [
        _text("job_name"),
        STATUS,
        _number("plan_gpu", percent, high=100 * MOST_GPUS, where=says_gpus),
        _number("inst_num", "instances, from 1 up", low=1, high=MOST_GPUS, where=plans_gpus),
        *_times(terminated & plans_gpus),
    ]
    return _table(folder, "pai_task_table", TASK, rules, ["inst_num", "plan_gpu", "start_time", "end_time"])


def _per_job(tasks: pl.DataFrame, last: float) -> pl.DataFrame:
    """Return a frame of the GPUs, duration (s) and censoring of each job, from its GPU tasks."""
    start = pl.col("start_time")
    running = (pl.col("status") == "Running") & start.is_not_null() & pl.col("end_time").is_null()
    tasks = tasks.filter(pl.col("plan_gpu") > 0).with_columns(running=running)
    end = pl.when("running").then(last).otherwise("end_time")
    percent = pl.col("inst_num") * pl.col("plan_gpu")
    untimed = start.is_null() | end.is_null()
    gpu_types = pl.col("gpu_type").drop_nulls()
    by_job = tasks.group_by("job_name", maintain_order=True)
    return by_job.agg(
        gpus_planned=percent.sum() / 100,
        duration=end.max() - start.min(),
        censored=pl.col("running").any(),
        untimed=untimed.any(),
        gpu_model=gpu_types.first(),
    )


def _tags(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return a tuple of frames: the group tags of each inst_id, if the table is there; and its bad rows."""
    if not list(folder.rglob("pai_group_tag_table.csv")):
        return pl.DataFrame(schema={"inst_id": pl.String}), pl.DataFrame()
    good, bad = _table(folder, "pai_group_tag_table", TAG, [_text("inst_id")], [])
    return good.drop(LINE).rename({"user": "tag_user"}), bad


def _tries(folder: Path) -> pl.DataFrame:
    """Return a frame of the most launches of an instance, the machines, and the rows of each job; never the whole table in memory."""
    pai_file = find_file(folder, "pai_instance_table.csv", source="pai")
    with readable(f"pai {pai_file.name}"):
        lazy = pl.scan_csv(pai_file, has_header=False, infer_schema=False, null_values=NOTHING, glob=False)
        lazy_columns = lazy.collect_schema().names()
        if len(lazy_columns) != len(INSTANCE):
            expected = f"{len(INSTANCE)}: {', '.join(INSTANCE)}."
            raise TraceError(f"pai {pai_file.name}: found {len(lazy_columns)} columns; expected {expected}")
        lazy = lazy.rename(dict(zip(lazy_columns, INSTANCE, strict=True)))
        instances = lazy.group_by("job_name", "task_name", "inst_name").agg(pl.len(), pl.col("machine").unique())
        launches = pl.col("len")
        machines = pl.col("machine").list.explode()
        try_counts = {
            "attempts": launches.max(),
            "instances": launches.sum(),
            "machines": machines.drop_nulls().n_unique(),
        }
        jobs = instances.group_by("job_name").agg(**try_counts)
        jobs = jobs.with_columns(pl.col(*try_counts).cast(pl.Int64))
        return jobs.collect(engine="streaming")
