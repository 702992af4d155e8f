"""Files of public artifacts in their own form, made from the tables of the reference data: what layouts.py reads, reversed."""

import io
import json
import pickle
import sys
import types
import unittest.mock
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from reproduce.reference.artifacts import RECIPES


def artifact_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Path below github.com and content of each file that the tables of a folder come from."""
    for file, recipe in RECIPES.items():
        frame = (pl.read_csv if file.endswith(".csv") else pl.read_parquet)(folder / file)
        for labels, names in recipe.parts:
            rows = frame.filter(
                *(pl.col(name).eq_missing(value) for name, value in labels.items() if name in frame.columns)
            )
            rows = rows.drop(name for name in labels if name in frame.columns)
            made = FORMS.get(file, plain)(rows, names)
            yield from zip(names, [made] if isinstance(made, bytes) else made, strict=True)


def plain(rows: pl.DataFrame, names, end: str = "\n") -> bytes:
    return rows.write_csv(line_terminator=end).encode()


def summary(rows, names) -> bytes:
    jcts = {}
    for workload, job, jct in rows.rows():
        jcts.setdefault(f"workload-{workload}", {})[job] = int(jct)
    unused = {f"workload-{i}": {"bert-0": 1650} for i in range(5, 9)}
    return json.dumps({"jcts": unused | jcts, "avgs": {}}, indent=4).encode()


def step_times(rows, names) -> bytes:
    if "placements" in names[0]:
        rows = rows.filter(pl.col("placement").is_not_null()).drop("n_nodes", "n_gpus")
        return plain(rows.select("local_bsz", "step_time", "sync_time", "placement"), names)
    rows = rows.filter(pl.col("placement").is_null()).drop("placement")
    return plain(rows.rename({"n_nodes": "num_nodes", "n_gpus": "num_replicas"}), names)


def validation(rows, names) -> bytes:
    assert rows["epoch"].to_list() == list(range(rows.height))
    return plain(rows.drop("epoch").with_columns(pl.col("iteration").cast(pl.Int64, strict=False)), names)


def results(rows, names) -> tuple[bytes, bytes]:
    beside = rows.select("name", "finish_time_fairness")
    return plain(rows.drop("finish_time_fairness").with_columns(target_num_gpus=4), names), plain(beside, names)


ZIPPED: dict[str, bytes] = {}


def workloads(rows, names) -> bytes:
    """One archive of all cases, which are met one by one."""
    load = 1.0 if len(ZIPPED) < 4 else 1.5
    fm = ("roberta-base", "roberta-large", "vit", "vit-large")[len(ZIPPED) % 4]
    ZIPPED[f"main/FM-{load:g}-{fm}/workload-0.csv"] = plain(rows, names)
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as made:
        for name, body in ZIPPED.items():
            made.writestr(name, body)
    return held.getvalue()


def philly(rows, names) -> bytes:
    """Last first, but for jobs of one second; an empty line ends the file."""
    columns = {"timestamp": pl.col("orig_time").dt.to_string("%Y-%m-%d %H:%M:%S"), "duration": "duration_s"}
    columns |= {"num_gpus": "n_gpus", "gpu_time": pl.col("duration_s") * pl.col("n_gpus"), "cluster": "vc"}
    return plain(rows.sort("orig_time", descending=True, maintain_order=True).select(**columns), names) + b"\n"


def converted(job_id: pl.Expr, clamp: float):
    return {
        "job_id": job_id,
        "arrival_s": "submit_s",
        "service_sec": pl.col("duration_s").clip(upper_bound=clamp),
        "gpu_count": "n_gpus",
    }


def venus(rows, names) -> tuple[bytes, bytes]:
    rows = rows.with_row_index("n")
    start = pl.datetime(2020, 9, 1, time_unit="us")
    labelled = {
        **{"job_id": "job_id", "user": "user", "tenant": "vc", "class": pl.lit("finetune")},
        "submit_time": (pl.col("orig_time") - start).dt.total_microseconds(),
        **{"num_chips": "n_gpus", "chip_type": pl.lit(None), "num_nodes": 1, "duration_s": "duration_s"},
        **{"walltime_limit_s": "duration_s", "final_status": "status"},
    }
    slice = rows.filter(pl.col("vc").is_not_null()).select(**labelled)
    jobs = rows.select(**converted(pl.format("{}#{}", "job_id", "n"), 172_800.0))
    return plain(jobs, names, "\r\n"), b"# source: HeliosData, cluster Venus\n" + plain(slice, names)


def pai(rows, names) -> bytes:
    return plain(rows.select(**converted(pl.format("ali-{}", "job_id"), 172_800.0)), names, "\r\n")


def goodputs(rows, names) -> bytes:
    configs = {}
    by_type = {}
    for (gpu,), own in rows.group_by("gpu_type", maintain_order=True):
        shapes = own.select("n_nodes", "n_gpus").unique(maintain_order=True)
        configs[gpu] = {"num_nodes": shapes["n_nodes"].to_list(), "num_gpus": shapes["n_gpus"].to_list()}
        by_type[gpu] = own["goodput"].to_numpy().reshape(shapes.height, -1).T
        progress = own["progress"].head(by_type[gpu].shape[0]).to_list()
    logs = [
        {"progress": value, "goodputs": {gpu: values[i] for gpu, values in by_type.items()}}
        for i, value in enumerate(progress)
    ]
    return pickle.dumps({"configs": configs, "logs": logs})


def scaling(rows, names) -> bytes:
    types = {gpu: own["goodput"].to_list() for (gpu,), own in rows.group_by("gpu_type", maintain_order=True)}
    counts = rows["n_gpus"].unique(maintain_order=True).to_list()
    return pickle.dumps({"max_progress": rows["max_progress"][0], "goodputs": {"num_gpus": counts, **types}})


def saved(report: dict) -> bytes:
    held = io.BytesIO()
    np.save(held, report)
    return held.getvalue()


def put(report: dict, keys, metric: str, epoch: float, value: float):
    """Add a point to the curve at the end of a chain of keys."""
    for key in keys:
        report = report.setdefault(key, {})
    report.setdefault("log_history", [])
    report.setdefault("log_history_epoch", [])
    report.setdefault(metric, []).append(value)
    report.setdefault(f"{metric}_epoch", []).append(epoch)


def tuned(rows, names) -> bytes:
    report = {}
    rates = {1e-5: "1e-5", 2e-5: "2e-5", 4e-5: "4e-5", 1e-4: "1e-4", 4e-4: "4e-4", 1e-3: "1e-3", 1e-2: "1e-2"}
    for fm, task, rate, steps, *point in rows.rows():
        put(report, (fm, task, rates[rate], steps), *point)
    return saved(report)


def after(rows, names) -> bytes:
    report = {}
    for fm, source, target, *point in rows.rows():
        put(report, (fm, f"{source},{target}"), *point)
    return saved(report)


def together(rows, names) -> bytes:
    report = {}
    for fm, a, b, task, metric, epoch, value in rows.rows():
        put(report, (fm, f"{a},{b}"), f"{task}_{metric}", epoch, value)
    return saved(report)


class JobIdPair:
    """A job's name in the pickles of Gavel's simulator, which hold themselves."""

    def __init__(self, job: int):
        self._job0 = job
        self._job1 = None
        self._singletons = (self,)
        self._as_set = {job, None}


JobIdPair.__module__ = "job_id_pair"


def rounds_of_gavel(rows, names) -> list[bytes]:
    """A trace without a head, and a pickle a policy in which the first worker of a job counts the time of all."""
    text = "LM (batch size 5)\tpython3 main.py --data %s/x\tlm\t--steps\t1\t9\t{gpus}\tgns\t1\t-1.000000\t{dur:.0f}\t{arrival:.0f}\n"
    files = ["".join(text.format(**row) for row in rows.iter_rows(named=True)).encode()]
    home = types.ModuleType("job_id_pair")
    home.JobIdPair = JobIdPair
    with unittest.mock.patch.dict(sys.modules, {"job_id_pair": home}):
        for name in names[1:]:
            policy = Path(name).name.partition("_120_")[0]
            seconds = (rows[f"work_{policy}"] * rows["gpus"]).to_list()
            times = {JobIdPair(job): {job % 32: value, 99: 0.0} for job, value in enumerate(seconds)}
            run = {
                "jct_list": rows[f"jct_{policy}"].to_list(),
                "job_run_time": times,
                "per_round_schedule": [OrderedDict()],
            }
            files.append(pickle.dumps(run))
    return files


def wide(rows, names) -> bytes:
    table = rows.pivot("n_gpus", index="global_batch", values="iters_per_s").rename(
        {"global_batch": "global_batch_size"}
    )
    return plain(table, names, "\r\n" if "T4" in names[0] else "\n")


def packed(rows, names) -> bytes:
    found = {}
    for gpu, model, n, partner, m, speed, other in rows.rows():
        partners = found.setdefault(gpu, {}).setdefault(str((model, n)), {})
        partners["null" if partner is None else str((partner, m))] = speed if partner is None else [speed, other]
    return json.dumps(found, indent=4).encode()


def slowdown(rows, names) -> bytes:
    found = {}
    for model, gpus, nodes, speed in rows.rows():
        found.setdefault(model, {}).setdefault(str(gpus), {})[str(nodes)] = speed
    return json.dumps(found).encode()


FORMS = {
    "reference/pollux_artifact_jct.parquet": summary,
    "reference/titan_workloads.parquet": workloads,
    "reference/titan_artifact_jct.parquet": results,
    "traces/philly_pollux.parquet": philly,
    "traces/helios_venus_gpu.parquet": venus,
    "traces/pai2020_sample_8pct.parquet": pai,
    "profiles/goodput.parquet": goodputs,
    "profiles/synthetic.parquet": scaling,
    "profiles/step_time.parquet": step_times,
    "profiles/validation.parquet": validation,
    "profiles/finetune_curves.parquet": tuned,
    "profiles/transfer_temporal.parquet": after,
    "profiles/transfer_spatial.parquet": together,
    "profiles/elasticflow_speed.parquet": wide,
    "profiles/gavel_speed.parquet": packed,
    "inputs/shockwave/tacc32.parquet": rounds_of_gavel,
    "profiles/placement_slowdown.csv": slowdown,
}
