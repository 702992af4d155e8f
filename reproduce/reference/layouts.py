"""Files of published artifacts as frames: each function reads the files that make one part of a table."""

from __future__ import annotations

import ast
import datetime
import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

CLAMP = 172_800.0
"""Longest duration (s) that the converter of sim/helios_trace.csv and sim/alibaba_trace_sub.csv writes."""


def rows(files: list[Path], labels: dict) -> pl.DataFrame:
    """Rows of a csv file as text, to be cast exactly once; `epoch` is the number of the row."""
    return pl.read_csv(files[0], infer_schema=False).with_row_index("epoch")


def steps(files: list[Path], labels: dict) -> pl.DataFrame:
    """Step times by placement (`431`: GPUs on each node), or by nodes and replicas alone."""
    table = rows(files, labels)
    if "placement" in table.columns:
        nodes = pl.col("placement").str.split("").list.eval(pl.element().cast(pl.Int64))
        return table.with_columns(nodes.list.len().alias("n_nodes"), nodes.list.sum().alias("n_gpus"))
    return table.rename({"num_nodes": "n_nodes", "num_replicas": "n_gpus"}).with_columns(placement=pl.lit(None))


def zipped(files: list[Path], labels: dict) -> pl.DataFrame:
    """Rows of the one csv file that an unpacked archive has in the folder of a load and a model."""
    folder = f"FM-{labels['load']:g}-{labels['fm']}"
    (found,) = files[0].parent.rglob(f"{folder}/workload-0.csv")
    return rows([found], labels)


def fairness(files: list[Path], labels: dict) -> pl.DataFrame:
    """Results by job, and the finish-time fairness that stands in a file beside them."""
    return rows(files[:1], labels).join(rows(files[1:], labels), on="name", how="left", maintain_order="left")


def summary(files: list[Path], labels: dict) -> pl.DataFrame:
    """Completion times of workloads 1 to 4, of the eight in a summary."""
    found = json.loads(files[0].read_text())["jcts"]
    kept = {int(name.removeprefix("workload-")): jobs for name, jobs in found.items()}
    lines = [(number, *job) for number, jobs in kept.items() if number <= 4 for job in jobs.items()]
    return pl.DataFrame(lines, ["workload", "job", "jct"], orient="row")


def wide(files: list[Path], labels: dict) -> pl.DataFrame:
    """Speeds that stand in a column a GPU count; what was not measured is empty."""
    table = pl.read_csv(files[0], infer_schema=False)
    lines = [
        (batch, n, speed) for batch, *speeds in table.rows() for n, speed in zip(table.columns[1:], speeds, strict=True)
    ]
    return pl.DataFrame(lines, ["global_batch", "n_gpus", "iters_per_s"], orient="row").drop_nulls()


def slowdown(files: list[Path], labels: dict) -> pl.DataFrame:
    """Relative speeds by model, GPUs and nodes."""
    found = json.loads(files[0].read_text())
    lines = [
        (model, gpus, nodes, speed)
        for model, by_gpus in found.items()
        for gpus, by_nodes in by_gpus.items()
        for nodes, speed in by_nodes.items()
    ]
    return pl.DataFrame(lines, ["model", "n_gpus", "n_nodes", "relative_speed"], orient="row")


def packed(files: list[Path], labels: dict) -> pl.DataFrame:
    """Gavel's speeds of a model alone (partner "null") and packed with each other one; keys are written as tuples."""
    lines = []
    for gpu, models in json.loads(files[0].read_text()).items():
        for key, partners in models.items():
            model, n = ast.literal_eval(key)
            for other, speed in partners.items():
                partner, m = (None, None) if other == "null" else ast.literal_eval(other)
                lines.append((gpu, model, n, partner, m, *(speed if isinstance(speed, list) else (speed, None))))
    names = ["gpu_type", "model", "n_gpus", "partner", "partner_gpus", "iters_per_s", "partner_iters_per_s"]
    return pl.DataFrame(lines, names, orient="row", infer_schema_length=None)


def philly(files: list[Path], labels: dict) -> pl.DataFrame:
    """Philly's jobs by submission; those of one second keep the order of the file."""
    time = pl.col("timestamp").str.to_datetime(time_unit="us").alias("orig_time")
    table = rows(files, labels).drop_nulls("timestamp").with_columns(time).sort("orig_time", maintain_order=True)
    return table.with_row_index("n").select(
        "orig_time",
        pl.format("philly-{}", "n").alias("job_id"),
        pl.col("cluster").alias("vc"),
        pl.col("duration").alias("duration_s"),
        pl.col("num_gpus").alias("n_gpus"),
        (pl.col("orig_time") - pl.col("orig_time").min()).dt.total_seconds().alias("submit_s"),
    )


def _converted(file: Path) -> pl.DataFrame:
    """Jobs in the form of mystous/gpu_scheduler."""
    names = {"arrival_s": "submit_s", "service_sec": "duration_s", "gpu_count": "n_gpus"}
    return pl.read_csv(file, schema_overrides={"job_id": pl.String}).rename(names)


def venus(files: list[Path], labels: dict) -> pl.DataFrame:
    """Venus' GPU jobs; users, states and durations beyond the clamp where a second file labels the job."""
    first = datetime.datetime(2020, 3, 18, 4, 1, 39)  # submission of the first job, by the labelled ones
    slice = pl.read_csv(files[1], comment_prefix="#", schema_overrides={"job_id": pl.String})
    slice = slice.select("job_id", "user", vc="tenant", status="final_status", whole="duration_s")
    jobs = _converted(files[0]).with_columns(pl.col("job_id").str.split("#").list.first())
    micro = pl.duration(microseconds=(pl.col("submit_s") * 1e6).cast(pl.Int64))
    return jobs.join(slice, on="job_id", how="left", maintain_order="left").with_columns(
        pl.coalesce("whole", "duration_s").alias("duration_s"),
        (pl.lit(first) + micro).alias("orig_time"),
        (pl.col("whole").is_null() & (pl.col("duration_s") >= CLAMP)).alias("duration_censored"),
    )


def pai(files: list[Path], labels: dict) -> pl.DataFrame:
    """A sample of PAI's terminated tasks; the role of a task stands in its name."""
    return _converted(files[0]).with_columns(
        pl.col("job_id").str.strip_prefix("ali-"),
        pl.col("submit_s").alias("orig_time"),
        pl.col("job_id").str.extract(r"-([^-#]+)#\d+$").alias("name"),
        (pl.col("duration_s") >= CLAMP).alias("duration_censored"),
    )


class JobId:
    """Stand-in for the class of Gavel's simulator that names one job or two: of its fields, `_job0` is the first job's number."""


class _Plain(pickle.Unpickler):
    """Unpickler of plain data and numpy arrays alone: a pickle from elsewhere must not run code."""

    def find_class(self, module, name):
        module = module.replace("numpy.core.", "numpy._core.")
        if (module, name) == ("job_id_pair", "JobIdPair"):
            return JobId
        if (module, name) in {("collections", "OrderedDict"), ("builtins", "set")}:
            return super().find_class(module, name)
        if (module, name) in {
            *((f"numpy._core.{part}", n) for part in ("multiarray", "numeric") for n in ("_reconstruct", "scalar")),
            *(("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode"), ("numpy._core.numeric", "_frombuffer")),
        }:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} in a pickle, which is no plain data")


def _unpickled(file: Path):
    """Content of a pickle, or of an array file that holds one."""
    with file.open("rb") as stream:
        if stream.read(6) != b"\x93NUMPY":
            stream.seek(0)
            return _Plain(stream).load()
        stream.seek(0)
        version = np.lib.format.read_magic(stream)
        (np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0)(stream)
        return _Plain(stream).load().item()


def rounds_of_gavel(files: list[Path], labels: dict) -> pl.DataFrame:
    """Jobs of a trace of Gavel's simulator, and of each run that was kept: seconds that a job ran on its GPUs, and its completion time."""
    lines = pl.read_csv(files[0], separator="\t", has_header=False, quote_char=None)
    jobs = lines.select(
        pl.nth(11).cast(pl.Float64).alias("arrival"),
        pl.nth(6).cast(pl.Int64).alias("gpus"),
        pl.nth(10).cast(pl.Float64).alias("dur"),
    )
    work = {}
    times = {}
    for file in files[1:]:
        policy = file.name.partition(f"_{files[0].stem}")[0]
        run = _unpickled(file)
        seconds = np.zeros(jobs.height)
        for job, by_worker in run["job_run_time"].items():
            seconds[getattr(job, "_job0", job)] = sum(by_worker.values())
        work[f"work_{policy}"] = seconds / jobs["gpus"].to_numpy()
        times[f"jct_{policy}"] = np.array(run["jct_list"], float)
    return jobs.with_columns(**work, **times)


def goodputs(files: list[Path], labels: dict) -> pl.DataFrame:
    """Goodput in each configuration as training progresses."""
    found = _unpickled(files[0])
    progress = np.array([log["progress"] for log in found["logs"]], float)
    frames = []
    for gpu, shape in found["configs"].items():
        values = np.array([log["goodputs"][gpu] for log in found["logs"]], np.float32)
        for k, (nodes, gpus) in enumerate(zip(shape["num_nodes"], shape["num_gpus"], strict=True)):
            fixed = {"gpu_type": gpu, "n_nodes": int(nodes), "n_gpus": int(gpus)}
            frames.append(
                pl.DataFrame({"progress": progress, "goodput": values[:, k]}).with_columns(**_literals(fixed))
            )
    return pl.concat(frames)


def scaling(files: list[Path], labels: dict) -> pl.DataFrame:
    """Goodput of a job of one phase by GPU type and GPUs."""
    found = _unpickled(files[0])
    counts = found["goodputs"]["num_gpus"]
    types = {gpu: values for gpu, values in found["goodputs"].items() if gpu != "num_gpus"}
    lines = [
        (gpu, int(n), float(found["max_progress"]), float(value))
        for gpu, values in types.items()
        for n, value in zip(counts, values, strict=True)
    ]
    return pl.DataFrame(lines, ["gpu_type", "n_gpus", "max_progress", "goodput"], orient="row")


def _literals(fixed: dict) -> dict[str, pl.Expr]:
    return {name: pl.lit(value) for name, value in fixed.items()}


def _curve(found: dict, prefix: str = "") -> Iterator[tuple[str, float, float]]:
    """Metric, epoch and value of the curves in one report of TitanSched."""
    for key in found:
        if key.startswith(f"{prefix}eval_") and not key.endswith("_epoch"):
            for epoch, value in zip(found[f"{key}_epoch"], found[key], strict=True):
                yield key.removeprefix(prefix), float(epoch), float(value)


def tuned(files: list[Path], labels: dict) -> pl.DataFrame:
    """Curves of fine-tuning by learning rate and gradient-accumulation steps."""
    lines = [
        (fm, task, float(rate), steps, *point)
        for fm, tasks in _unpickled(files[0]).items()
        for task, rates in tasks.items()
        for rate, by_steps in rates.items()
        for steps, found in by_steps.items()
        for point in _curve(found)
    ]
    names = ["fm", "task", "learning_rate", "grad_steps", "metric", "epoch", "value"]
    return pl.DataFrame(lines, names, orient="row")


def after(files: list[Path], labels: dict) -> pl.DataFrame:
    """Curves of a task that begins from a model tuned on another."""
    lines = [
        (fm, *pair.split(","), *point)
        for fm, pairs in _unpickled(files[0]).items()
        for pair, found in pairs.items()
        for point in _curve(found)
    ]
    return pl.DataFrame(lines, ["fm", "source", "target", "metric", "epoch", "value"], orient="row")


def together(files: list[Path], labels: dict) -> pl.DataFrame:
    """Curves of each of two tasks that are tuned together."""
    lines = [
        (fm, *pair.split(","), task, *point)
        for fm, pairs in _unpickled(files[0]).items()
        for pair, found in pairs.items()
        for task in pair.split(",")
        for point in _curve(found, f"{task}_")
    ]
    return pl.DataFrame(lines, ["fm", "task_a", "task_b", "task", "metric", "epoch", "value"], orient="row")
