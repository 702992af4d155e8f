"""Fine-tuning tasks with measured speeds and gains, and jobs of them, from figures that ship with the package."""

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl

from gpuschedlab._data import path
from gpuschedlab.errors import SpeedError
from gpuschedlab.speeds.curves import Curves
from gpuschedlab.speeds.table import Speeds

DIGITS = "digits"
"""The zoo: small networks on tasks of digits, of which everything is measured here."""

FOUNDATIONS = ("roberta-base", "roberta-large", "vit", "vit-large", DIGITS)
GPUS_PER_NODE = 4
HOUR = 3600.0

SIZES = ((0.5, 0.3), (10.0, 0.6), (64.0, 0.1))
"""Most GPU-hours of small, medium and large jobs, and their shares (thesis, section 3.5.1)."""


@lru_cache(maxsize=16)  # a recipe asks for its own again and again
def task_speeds(fm: str, tasks: int = 9) -> Speeds:
    """Return `Speeds` (epochs a second) of tasks of a foundation model on V100, their gains from each other, and their curves.

    `fm` is one of `FOUNDATIONS`; the first 1 to 9 tasks by name are taken (1 to 14 of ``digits``), whose models are called ``fm@task``.
    """
    if fm not in FOUNDATIONS:
        raise SpeedError(f"task_speeds: found foundation model {fm!r}; expected one of {', '.join(FOUNDATIONS)}.")
    rates = pl.read_csv(_file(fm, "tasks.csv")).filter(fm=fm)
    factors = pl.read_csv(_file(fm, "transfers.csv")).filter(fm=fm)
    task_names = rates["task"].unique(maintain_order=True)
    if not 1 <= tasks <= len(task_names):
        raise SpeedError(f"task_speeds: found {tasks} tasks; expected 1 to {len(task_names)}.")
    chosen = task_names[:tasks]
    task_rates = rates.filter(pl.col("task").is_in(chosen.implode()))
    frame = task_rates.select(
        pl.format("{}@{}", "fm", "task").alias("model"),
        "n_nodes",
        "n_gpus",
        gpu_type=pl.lit("v100"),
        progress="epochs",
        rate=pl.col("rate") / HOUR,
    )
    # On more nodes than were measured, a job is as slow as on the worst that were.
    worst = frame.group_by("model", "n_gpus", "gpu_type", "progress", maintain_order=True).agg(pl.col("rate").min())
    on_other_nodes = worst.with_columns(n_nodes=pl.lit(None, pl.Int64))
    frame = pl.concat([frame, on_other_nodes.select(frame.columns)])
    both = factors.filter(pl.col(c).is_in(chosen.implode()) for c in ("task", "other"))
    pairs = {mode: {} for mode in ("merged", "transfer")}
    for mode, other_task, task, factor in both.select("mode", "other", "task", "factor").iter_rows():
        a = f"{fm}@{task}"
        b = f"{fm}@{other_task}"
        pairs[mode][(a, b) if mode == "merged" else (b, a)] = factor
    return Speeds.from_frame(frame, **pairs, curves=Curves.from_frame(task_curves(fm, chosen)))


def task_curves(fm: str, tasks: Iterable[str]) -> pl.DataFrame:
    """Return a frame of measured curves of some tasks of a foundation model, as `Curves.from_frame` takes them.

    Progress is in epochs of a task alone.
    """
    tasks = list(tasks)
    curve_rows = pl.read_parquet(_file(fm, "curves.parquet")).filter(
        pl.col("task").is_in(tasks), pl.col("other").is_in(tasks) | pl.col("other").is_null(), fm=fm
    )
    prefix = pl.lit(f"{fm}@")
    curve_names = [(prefix + pl.col("task")).alias("model"), (prefix + pl.col("other")).alias("other")]
    return curve_rows.explode("progress", "metric").select(
        "mode", *curve_names, pl.col("progress", "metric").cast(pl.Float64)
    )


def _file(fm: str, name: str) -> Path:
    return path(f"{'zoo' if fm == DIGITS else 'tasks'}/{name}")


def finetuning_jobs(
    speeds: Speeds, *, gpus: int = 32, hours: float = 8.0, load: float = 1.0, rng: int | np.random.Generator = 0
) -> pl.DataFrame:
    """Return a frame of jobs of tasks that come at random: small, medium and large by their GPU-time, as in Ymir's evaluation.

    They come within some hours and request 1, 2 or 4 GPUs; `load` is the GPU-time demanded, on these, over that of the cluster. The
    paper's trace is not public: arrivals are Poisson; if a foundation model has no task of a size, the others take its share.
    """
    if not min(gpus, hours, load) > 0:
        raise SpeedError(f"finetuning_jobs: found gpus={gpus}, hours={hours}, load={load}; expected numbers above 0.")
    rng = np.random.default_rng(rng)
    gpu_counts = np.array([1, 2, 4])
    total = speeds.total
    models = np.arange(len(speeds.models))
    rate = speeds.rates(models, 0.0 * models, gpu_counts * 0, gpu_counts * 0 + 1, gpu_counts)
    cost = total / rate[:, 0] / HOUR
    size_class = np.searchsorted([most for most, _ in SIZES[:-1]], cost)
    weight = np.array([SIZES[s][1] / (size_class == s).sum() for s in size_class])
    weight /= weight.sum()
    # Each draw of a job costs so much on average; draws are the same for all loads.
    mean_cost = weight @ cost
    most = int(np.ceil(4 * load * gpus * hours / mean_cost)) + 10
    model = rng.choice(len(models), most, p=weight)
    requested_size = rng.choice(3, most, p=[0.5, 0.3, 0.2])
    seconds = total[model] / np.where(
        np.isnan(rate[model, requested_size]), rate[model, 0], rate[model, requested_size]
    )
    requested_size = np.where(np.isnan(rate[model, requested_size]), 0, requested_size)
    demand = np.cumsum(seconds * gpu_counts[requested_size])
    n = max(1, int(np.searchsorted(demand, load * gpus * hours * HOUR)))
    submit = np.sort(rng.uniform(0, hours * HOUR, most)[:n])
    model_names = pl.Series(speeds.models).gather(model[:n])
    name_parts = model_names.str.split("@").list
    requested = gpu_counts[requested_size[:n]].astype(float)
    return pl.DataFrame(
        {
            "job_id": [f"job {i}" for i in range(n)],
            "submit": submit,
            "gpus": requested,
            "duration": seconds[:n],
            "model": model_names,
            "target": total[model[:n]],
            "fm": name_parts.get(0),
            "task": name_parts.get(1),
        }
    )
