"""Workloads of the Titan artifact (SoCC'22, Ymir's predecessor): fine-tuning jobs of one foundation model on 32 V100."""

from functools import cache

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import LabError
from gpuschedlab.sim import Delays, Scenario
from gpuschedlab.speeds import Transfer, transfer_speeds
from reproduce.papers.ymir.finetune import StepTimes, finetune_speeds
from reproduce.published.data import read_data

MODELS = ("roberta-base", "roberta-large", "vit", "vit-large")
LOADS = (1.0, 1.5)
NODES = 8
GPUS_PER_NODE = 4
GPU_TYPE = "v100"
CHECKPOINT = 30.0
"""Seconds at each start, beside the loading of the foundation model."""

MOST_EPOCHS = 10.0
"""Epochs after which a job ends, whether it has reached its target or not."""

SAMPLES = {
    "wnli": 159,
    "rte": 623,
    "mrpc": 917,
    "stsb": 1_438,
    "sst2": 16_838,
    "qnli": 26_186,
    "qqp": 90_962,
    "mnli": 98_176,
    "snli": 137_344,
    "Bingsu#Cat_and_Dog": 8_000,
    "frgfm#imagenette": 9_469,
    "imagenet-split-0": 25_000,
    "cifar100": 50_000,
    "mnist": 60_000,
    "fashion_mnist": 60_000,
    "imagenet-split-1": 75_000,
    "food101": 75_750,
    "imagenet-split-2": 100_000,
}
"""Samples of an epoch as the artifact counts them: its work over the epochs to the target. Language tasks have a quarter of
their true size there."""

UNREACHED = ("roberta-base@mrpc", "roberta-large@mrpc", "roberta-base@qnli")
"""Tasks that run for all epochs in the artifact: it reads their targets one unit in the last place too high."""


def tasks(data_dir, fm: str) -> pl.DataFrame:
    """Tasks of a foundation model: `model, task, learning_rate, grad_steps, target, batch_size, samples, epochs`.

    Raises
    ------
    LabError
        There is no such foundation model in the artifact.
    """
    if fm not in MODELS:
        raise LabError(f"titan: found foundation model {fm!r}; expected one of {', '.join(MODELS)}.")
    jobs = read_data(data_dir, "reference/titan_workloads.parquet").filter(fm=fm)
    named = {"learning_rate": "target_lr", "grad_steps": "target_gradient_steps", "target": "target_metric"}
    names = pl.col("application").str.split("@").list.get(1)
    asked = jobs.select(names.alias("task"), model="application", batch_size="target_batch_size", **named).unique()
    curves = read_data(data_dir, "profiles/finetune_curves.parquet").filter(fm=fm)
    reached = asked.join(curves, on=["task", "learning_rate", "grad_steps"], maintain_order="left").filter(
        pl.col("value") >= pl.col("target")
    )
    epochs = reached.group_by("task", maintain_order=True).agg(epochs=pl.col("epoch").min())
    found = asked.join(epochs, on="task", how="left", maintain_order="left").sort("model")
    spent = pl.when(pl.col("model").is_in(UNREACHED)).then(MOST_EPOCHS).otherwise(pl.col("epochs"))
    samples = pl.col("task").replace_strict(SAMPLES, return_dtype=pl.Float64)
    return found.with_columns(samples=samples, epochs=spent.fill_null(MOST_EPOCHS))


def step_times(data_dir, fm: str, gpu_type: str = "V100") -> StepTimes:
    """Look-up table of a foundation model."""
    placements = read_data(data_dir, "profiles/fm_placements.parquet").filter(fm=fm, gpu_type=gpu_type)
    more = read_data(data_dir, "profiles/fm_scalability.parquet").filter(fm=fm, gpu_type=gpu_type)
    return StepTimes(placements, more.filter(pl.col("num_replicas") == GPUS_PER_NODE * pl.col("num_nodes")))


@cache
def speeds(data_dir, fm: str):
    """Speeds of all tasks of a foundation model, with what they gain from each other."""
    known = tasks(data_dir, fm)
    return finetune_speeds(step_times(data_dir, fm), known, gpu_type=GPU_TYPE, transfer=transfer(data_dir, fm, known))


def transfer(data_dir, fm: str, known: pl.DataFrame, *, counted: bool = True) -> Transfer:
    """Measured gains; a job that never reaches its target ends after `MOST_EPOCHS`, as the artifact's jobs do.

    Parameters
    ----------
    data_dir : str or Path
    fm : str
    known : polars.DataFrame
        From `tasks`.
    counted : bool
        Whether a joint epoch counts the samples of both tasks; otherwise the gain is one of epochs alone, and 0 for pairs
        that never reach the target.
    """
    names = ("finetune_curves", "transfer_temporal", "transfer_spatial")
    frames = [read_data(data_dir, f"profiles/{name}.parquet") for name in names]
    goals = known.select("task", "learning_rate", "grad_steps", "target")
    size = {f"{fm}@{task}": n for task, n in SAMPLES.items()}
    found = transfer_speeds(*frames, fm, goals, samples=SAMPLES if counted else None)
    if not counted:
        return found
    alone = dict(known.select("model", "epochs").iter_rows())
    merged = {(a, b): f or alone[a] / MOST_EPOCHS * size[a] / (size[a] + size[b]) for (a, b), f in found.merged.items()}
    after = {(a, b): f or alone[b] / MOST_EPOCHS for (a, b), f in found.transfer.items()}
    return found._replace(merged=merged, transfer=after)


def switch_seconds(data_dir, fm: str) -> float:
    """Seconds that a start takes: checkpoint and loading."""
    frame = read_data(data_dir, "profiles/fm_context_switch.parquet").filter(fm=fm, gpu_type="V100")
    return CHECKPOINT + frame["time_cost"][0]


def scenario(data_dir, fm: str, load: float, *, elastic: bool = True, **parts) -> Scenario:
    """One workload on 8 nodes of 4 V100.

    Parameters
    ----------
    data_dir : str or Path
    fm : str
        Of `MODELS`.
    load : float
        Of `LOADS`.
    elastic : bool
        Whether jobs run on any GPUs; otherwise on those that they request, consolidated.
    **parts
        Of the scenario.
    """
    jobs = read_data(data_dir, "reference/titan_workloads.parquet").filter(fm=fm, load=load)
    if jobs.is_empty():
        raise LabError(f"titan: found no workload of {fm!r} at load {load}; expected one of {MODELS} at {LOADS}.")
    table = parts.get("speeds") or speeds(data_dir, fm)
    work = dict(tasks(data_dir, fm).select("model", "epochs").iter_rows())
    gpus = jobs["num_gpus"].to_numpy()
    rate = table.rates(table.model_codes(jobs["application"]), gpus * 0.0, gpus * 0, -(-gpus // GPUS_PER_NODE), gpus)
    own = rate[range(len(gpus)), range(len(gpus))]
    trace = pl.DataFrame(
        {
            "job_id": [f"{i:05d}-{name}" for i, name in enumerate(jobs["name"])],
            "name": jobs["name"],
            "submit": jobs["submission_time"].cast(pl.Float64),
            "gpus": gpus.astype(float),
            "duration": jobs["application"].replace_strict(work, return_dtype=pl.Float64) / own,
            "fm": jobs["fm"],
            "task": jobs["application"].str.split("@").list.get(1),
        }
    )
    if elastic:
        target = jobs["application"].replace_strict(work, return_dtype=pl.Float64)
        trace = trace.with_columns(model=jobs["application"], target=target)
    given = {"delays": Delays(switch=switch_seconds(data_dir, fm)), "speeds": table if elastic else None}
    return Scenario(trace, Cluster.homogeneous(NODES, GPUS_PER_NODE, GPU_TYPE), **{**given, **parts})
