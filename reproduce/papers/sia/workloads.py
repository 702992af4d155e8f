"""Workloads of the Sia artifact as traces, with the forms that its jobs take, and what is measured of a run.

The artifact (Jayaram Subramanya et al., SOSP'23) runs 160 jobs, submitted in 8 hours, on 64 GPUs. Every start costs a job
its model's checkpoint-restore time. Jobs are adaptive (their batch size follows from their GPUs), or have the batch size
and GPUs of the workload.
"""

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
import polars as pl

from reproduce.published.data import read_data

CLUSTERS = {"typed": "6x4:aws,2x8:dgx-ext,3x8:rtx", "t4": "16x4:aws"}
"""Settings of the thesis, 3.4.3: heterogeneous and homogeneous."""

SPIKE = "spike"
"""Set of the stand-ins for Spike-240, one for each workload of newTrace."""


class Form(NamedTuple):
    """What the jobs of a workload are: their requests, the names of their models, and the speed table."""

    jobs: pl.DataFrame
    models: pl.Series
    speeds: object


@cache
def _profiles(data_dir) -> tuple[pl.DataFrame, pl.DataFrame]:
    return tuple(read_data(data_dir, f"profiles/{name}.parquet") for name in ("step_time", "validation"))


@cache
def _slowdown() -> dict[str, float]:
    from gpuschedlab.papers.sia.speeds import OTHER_SLOWDOWN, SLOWDOWN
    from reproduce.papers.pollux.profiles import EPOCHS

    return {name: SLOWDOWN.get(name, OTHER_SLOWDOWN) for name in EPOCHS}


@cache
def _goodput(data_dir):
    from gpuschedlab.speeds import goodput_speeds

    return goodput_speeds(read_data(data_dir, "profiles/goodput.parquet"))


def cluster(setting: str, times: int = 1):
    """Cluster of a setting, with so many times its nodes.

    Examples
    --------
    >>> cluster("typed", 32).total_gpus
    2048
    """
    from gpuschedlab.cluster import Cluster

    return Cluster(tuple(replace(g, nodes=times * g.nodes) for g in Cluster.parse(CLUSTERS[setting]).groups))


def _shape(setting: str) -> dict[str, tuple[int, int]]:
    return {g.gpu_type: (g.nodes, g.gpus_per_node) for g in cluster(setting).groups}


@cache
def _any_placement(data_dir, setting: str):
    from reproduce.papers.pollux.adaptive import adaptive_speeds
    from reproduce.papers.pollux.profiles import EPOCHS

    return adaptive_speeds(*_profiles(data_dir), EPOCHS, shape=_shape(setting), max_local={}, slowdown=_slowdown())


@cache
def _tuned_anywhere(data_dir, setting: str):
    """As `_any_placement`, also on more GPUs than the artifact gives an application."""
    from reproduce.papers.pollux.adaptive import adaptive_speeds
    from reproduce.papers.pollux.profiles import EPOCHS

    options = {"shape": _shape(setting), "max_local": {}, "most": {}, "slowdown": _slowdown()}
    return adaptive_speeds(*_profiles(data_dir), EPOCHS, **options)


def adaptive(data_dir, setting: str, jobs: pl.DataFrame) -> Form:
    """Jobs that choose their batch size, on Sia's configurations (`goodput.parquet`)."""
    return Form(jobs, jobs["application"], _goodput(data_dir))


def placed(data_dir, setting: str, jobs: pl.DataFrame) -> Form:
    """Jobs that choose their batch size, on any number of nodes and GPUs (from the measured step times)."""
    return Form(jobs, jobs["application"], _any_placement(data_dir, setting))


def scaling(data_dir, setting: str, jobs: pl.DataFrame) -> Form:
    """Jobs with the batch size of the workload, on any number of nodes and GPUs."""
    from reproduce.papers.pollux.adaptive import adaptive_speeds
    from reproduce.papers.pollux.profiles import pollux_names

    kinds = jobs.select("application", "batch_size").unique().iter_rows()
    options = {"shape": _shape(setting), "max_local": {}, "slowdown": _slowdown()}
    return Form(jobs, pollux_names(jobs, elastic=True), adaptive_speeds(*_profiles(data_dir), kinds, **options))


def fixed(data_dir, setting: str, jobs: pl.DataFrame) -> Form:
    """Jobs with the batch size and GPUs of the workload, their progress counted in iterations."""
    from reproduce.papers.pollux.profiles import pollux_names, pollux_speeds

    options = {"gpu_type": tuple(_shape(setting)), "max_local": {}, "slowdown": _slowdown(), "iterations": True}
    return Form(jobs, pollux_names(jobs), pollux_speeds(*_profiles(data_dir), jobs, **options))


def tuned(data_dir, setting: str, jobs: pl.DataFrame) -> Form:
    """Jobs with batch sizes and GPUs that are tuned to the T4s of the setting, the same whenever it is asked for."""
    from reproduce.papers.pollux.tuned import tuned_jobs

    nodes, width = _shape(setting)["aws"]
    options = {"gpus": nodes * width, "gpus_per_node": width, "max_local": {}}
    return fixed(data_dir, setting, tuned_jobs(jobs, *_profiles(data_dir), **options))


def retuned(data_dir, setting: str, jobs: pl.DataFrame) -> Form:
    """Jobs with the GPUs of the workload whose batch size is tuned to these all the same, as the artifact runs its rigid jobs."""
    from gpuschedlab.speeds import Speeds

    every = _tuned_anywhere(data_dir, setting)
    parts = []
    for name, gpus in jobs.select("application", "num_replicas").unique(maintain_order=True).iter_rows():
        m = every.models.index(name)
        ends = every.seg_end[every.seg_first[m] : every.seg_first[m + 1]]
        kept = {"model": pl.lit(f"{name}/{gpus}"), "n_gpus": pl.lit(gpus)}
        for kind, nodes in every.configurations(name).filter(n_gpus=gpus).select("gpu_type", "n_nodes").iter_rows():
            rate = every.rates(np.full(len(ends), m), ends, every.type_codes([kind]), [nodes], [gpus])[:, 0]
            rows = pl.DataFrame({"progress": ends, "rate": rate})
            parts.append(rows.with_columns(**kept, gpu_type=pl.lit(kind), n_nodes=pl.lit(nodes)))
    names = jobs.select(pl.concat_str("application", "num_replicas", separator="/")).to_series()
    return Form(jobs, names, Speeds.from_frame(pl.concat(parts), gpu_types=tuple(_shape(setting))))


def workload(data_dir, name: str, number: int) -> pl.DataFrame:
    """One workload of the artifact, or a `SPIKE`: `name, time` (s), `application, num_replicas, batch_size`."""
    every = read_data(data_dir, "reference/sia_workloads.parquet")
    if name == SPIKE:
        return spike(every.filter(set="newtrace", idx=number))
    return every.filter(set=name, idx=number)


def spike(jobs: pl.DataFrame, count: int = 240, lasts: float = 6 * 3600.0) -> pl.DataFrame:
    """Stand-in for the thesis' Spike-240: the jobs, so many in a row, that were submitted in least time, in six hours.

    Examples
    --------
    >>> spike(pl.DataFrame({"time": [0.0, 50.0, 60.0, 80.0, 200.0]}), count=3, lasts=60.0)["time"].to_list()
    [0.0, 20.0, 60.0]
    """
    jobs = jobs.sort("time")
    time = jobs["time"].to_numpy()
    spans = time[count - 1 :] - time[: len(time) - count + 1]
    first = int(spans.argmin())
    moved = (time[first : first + count] - time[first]) * (lasts / spans[first])
    return jobs[first : first + count].with_columns(time=pl.Series(moved))


def workload_trace(form: Form) -> pl.DataFrame:
    """Trace of a workload of the artifact.

    Parameters
    ----------
    form : Form
        Its jobs have `name, time` (s), `application, num_replicas, batch_size`.

    Returns
    -------
    polars.DataFrame
        With `switch`, the delay (s) at each start; `duration` (s) is on at most the requested GPUs of the first type.
    """
    from gpuschedlab.speeds import RESTART

    jobs, model, speeds = form
    asked = jobs.select(model=model, gpus="num_replicas").unique(maintain_order=True)
    lasts = {(m, g): _duration(speeds, m, g) for m, g in asked.iter_rows()}
    return pl.DataFrame(
        {
            "job_id": [f"{row:05d}-{name}" for row, name in enumerate(jobs["name"])],
            "submit": jobs["time"].cast(pl.Float64),
            "gpus": jobs["num_replicas"].cast(pl.Float64),
            "duration": [lasts[pair] for pair in zip(model, jobs["num_replicas"], strict=True)],
            "model": model,
            "batch_size": jobs["batch_size"].cast(pl.Int64),
            "switch": jobs["application"].replace_strict(RESTART, default=30.0, return_dtype=pl.Float64),
        }
    )


def _duration(speeds, model: str, gpus: int) -> float:
    """Seconds on the largest known configuration of the first type up to some GPUs, on the fewest nodes."""
    known = speeds.configurations(model).filter(
        (pl.col("gpu_type") == speeds.gpu_types[0]) & pl.col("placement").is_null() & (pl.col("n_gpus") <= gpus)
    )
    best = known.sort("n_gpus", "n_nodes", descending=[True, False]).row(0, named=True)
    m = speeds.models.index(model)
    ends = speeds.seg_end[speeds.seg_first[m] : speeds.seg_first[m + 1]]
    rate = speeds.rates(np.full(len(ends), m), ends, [0], [best["n_nodes"]], [best["n_gpus"]])[:, 0]
    return float((np.diff(ends, prepend=0.0) / rate).sum())


def observed(run, speeds) -> dict:
    """What is measured of one run, as JSON holds it: per job JCT (h) and rho, and figures of the whole."""
    from gpuschedlab.metrics.fairness import finish_time_fairness_by_type
    from gpuschedlab.metrics.usage import timeline_of

    line = timeline_of(run)
    jobs = (line["running"] + line["waiting"]).to_numpy()
    time = line["time"].to_numpy()
    return {
        "jct": (run.jobs["jct"] / 3600).to_list(),
        "rho": finish_time_fairness_by_type(run, speeds).tolist(),
        "makespan": run.jobs["end"].max() / 3600,
        "gpu_hours": (run.jobs["attained"] / 3600).mean(),
        "contention": float(jobs[:-1] @ np.diff(time) / (time[-1] - time[0])),
        "contention_max": int(jobs.max()),
        "restarts": run.jobs["restarts"].mean(),
    }


def figures(done: list[dict]) -> dict:
    """Figures over some workloads: of all jobs (`avg_jct, p99_jct, worst_rho, unfair`), means of the others.

    Examples
    --------
    >>> one = {"jct": [1.0, 2.0], "rho": [0.5, 1.5], "makespan": 3.0, "gpu_hours": 2.0, "contention": 4.0}
    >>> one |= {"contention_max": 7, "restarts": 1.0, "round_p50": 0.1, "round_p95": 0.2}
    >>> found = figures([one, one])
    >>> found["avg_jct"], found["worst_rho"], found["unfair"], found["contention_max"]
    (1.5, 1.5, 0.5, 7)
    """
    jct, rho = (np.concatenate([each[key] for each in done]) for key in ("jct", "rho"))
    found = {"avg_jct": float(jct.mean()), "p99_jct": float(np.quantile(jct, 0.99))}
    for key in ("makespan", "gpu_hours", "contention", "restarts", "round_p50", "round_p95"):
        found[key] = float(np.mean([each[key] for each in done]))
    found["contention_max"] = max(each["contention_max"] for each in done)
    return found | {"worst_rho": float(rho.max()), "unfair": float(np.mean(rho > 1 + 1e-9))}
