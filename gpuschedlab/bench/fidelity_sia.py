"""Fidelity to the Sia artifact: Sia and Gavel on its workloads, beside the thesis' table 3.3.

The artifact (Jayaram Subramanya et al., SOSP'23) runs 160 jobs, submitted in 8 hours, on 64 GPUs of three types.
Every start costs a job its model's checkpoint-restore time. Sia's jobs are elastic; Gavel's have a fixed batch size
and GPU count.
"""

import time
from pathlib import Path

import numpy as np
import polars as pl

from gpuschedlab.errors import LabError

CLUSTER = "6x4:aws,2x8:dgx-ext,3x8:rtx"
SETS = ("philly", "saturn")

TABLE = {
    ("sia", "philly"): {"avg_jct": 0.6, "p99_jct": 9.5, "makespan": 14.2, "restarts": 2.9},
    ("sia", "saturn"): {"avg_jct": 0.7, "p99_jct": 10.9, "makespan": 14.9, "restarts": 3.4},
    ("gavel", "philly"): {"avg_jct": 1.9, "p99_jct": 30.0, "makespan": 33.8, "restarts": 5.7},
    ("gavel", "saturn"): {"avg_jct": 2.5, "p99_jct": 38.7, "makespan": 43.0, "restarts": 7.5},
}
"""Thesis, table 3.3, over ten workloads each: hours, and restarts a job."""

AS_RUN = {("gavel", "philly", 1): {"avg_jct": 6016.46 / 3600, "p99_jct": 99_222 / 3600, "makespan": 128_520 / 3600}}
"""Results (h) of the artifact's own simulator on single workloads."""

TOLERANCE = 0.2  # of Sia's average JCT, relative to the table
LONGEST = 3.0  # s that a workload may take under Sia

CAUSES = (
    "The table averages ten workloads of each set (standard deviation of Sia's average: 0.1 h); here are those that "
    "the folder holds.",
    "Sia's jobs advance at the tabled goodput, that of the best batch size at each moment; the artifact's jobs run at "
    "the batch size that their fitted models choose, and change it between epochs only.",
    "Sia knows goodput on all configurations from the start; the artifact's learns speeds as jobs run (equation 3.1). "
    "Made to do so here, its averages rise by 1 to 3 %, and restarts by half a restart.",
    "The artifact's Sia discounts restarts by 30 s for cifar10 and 45 s for yolov3, which pay 50 s and 80 s; here by "
    "what is paid. The averages differ by less than 1 %.",
    "On newTrace (48 h of 960 jobs; three workloads of ten) Sia restarts a job 3.4 times, 5.0 in the table. Three "
    "departures were undone one after the other: moves to other nodes of a type cost a restart (3.7), ties go to any of "
    "the equal configurations rather than to the present one (3.9), restarts of cifar10 and yolov3 are discounted by "
    "30 and 45 s (4.1). With goodput, besides, misjudged by 20 % on each configuration until a job has run there, a stand-in "
    "for the models that the artifact learns: 4.9. The average JCT rises from 0.80 to 0.85 h.",
    "The p99 of a set is one of its longest imagenet jobs: equally good answers to a round move it by 10 %.",
    "Gavel's linear program has many optima; the middle of the face is taken, as the artifact's interior-point solver "
    "does, to its own tolerance. Nodes are chosen by best fit; the artifact fills them by number.",
)
"""Why the figures differ."""


def run(data_dir: str | Path) -> dict:
    """Simulate Sia and Gavel on every workload of the folder, and put the averages beside the published ones.

    Parameters
    ----------
    data_dir : str or Path
        Folder with `profiles/` (`goodput`, `step_time`, `validation`) and `reference/sia_workloads`, parquet.

    Returns
    -------
    dict
        `workloads`: one dict each with `policy, set, workload, jobs, avg_jct, p99_jct, makespan` (h), `restarts` (a
        job), `seconds` (taken), and `as_run` where the artifact's own result is known; `sets`: the same over all jobs
        of a set, with `reference` and `error` (relative) of each figure; `causes` of the differences; `ok`: Sia's
        average within 20 % of the table's on each set, in at most 3 s a workload.

    Raises
    ------
    LabError
        A file is missing.
    """
    workloads = _read(data_dir, "reference/sia_workloads.parquet").filter(pl.col("set").is_in(SETS))
    rows, sets = [], []
    for policy, simulation in (("sia", _sia(data_dir)), ("gavel", _gavel(data_dir, workloads))):
        simulation(workloads.head(8))  # compiles
        for (name,), numbered in workloads.group_by("set", maintain_order=True):
            done = []
            for (number,), jobs in numbered.group_by("idx", maintain_order=True):
                begin = time.perf_counter()
                done.append(simulation(jobs).jobs)
                seconds = time.perf_counter() - begin
                rows.append(
                    {"policy": policy, "set": name, "workload": number, **figures(done[-1:]), "seconds": seconds}
                )
                if known := AS_RUN.get((policy, name, number)):
                    rows[-1]["as_run"] = known
            sets.append({"policy": policy, "set": name, **compare(figures(done), TABLE[policy, name])})
    ok = all(abs(s["error"]["avg_jct"]) <= TOLERANCE for s in sets if s["policy"] == "sia")
    ok &= all(r["seconds"] <= LONGEST for r in rows if r["policy"] == "sia")
    return {"bench": "fidelity_sia", "workloads": rows, "sets": sets, "causes": list(CAUSES), "ok": bool(ok)}


def figures(done: list[pl.DataFrame]) -> dict:
    """Figures of some workloads' jobs: mean and p99 JCT of all jobs, mean of the makespans (h), mean restarts.

    Examples
    --------
    >>> figures([pl.DataFrame({"jct": [3600.0, 7200.0], "end": [3600.0, 9000.0], "restarts": [0, 3]})])["avg_jct"]
    1.5
    """
    jct = np.concatenate([jobs["jct"].to_numpy() for jobs in done]) / 3600
    return {
        "jobs": len(jct),
        "avg_jct": float(jct.mean()),
        "p99_jct": float(np.quantile(jct, 0.99)),
        "makespan": float(np.mean([jobs["end"].max() for jobs in done])) / 3600,
        "restarts": float(np.mean(np.concatenate([jobs["restarts"].to_numpy() for jobs in done]))),
    }


def compare(found: dict, reference: dict) -> dict:
    """Figures with those of the table beside them.

    Examples
    --------
    >>> compare({"avg_jct": 0.66}, {"avg_jct": 0.6})["error"]["avg_jct"]
    0.1
    """
    error = {key: round(found[key] / value - 1, 4) for key, value in reference.items()}
    return found | {"reference": reference, "error": error}


def _sia(data_dir):
    """Make a function that runs a workload under Sia."""
    from gpuschedlab.cluster import Cluster
    from gpuschedlab.policies.sia import Sia
    from gpuschedlab.sim import simulate
    from gpuschedlab.speeds import goodput_speeds

    cluster = Cluster.parse(CLUSTER)
    speeds = goodput_speeds(_read(data_dir, "profiles/goodput.parquet"))

    def simulation(jobs):
        return simulate(workload_trace(jobs, jobs["application"], speeds), cluster, Sia(), speeds=speeds)

    return simulation


def _gavel(data_dir, workloads):
    """Make a function that runs a workload under Gavel, its jobs' progress counted in iterations."""
    from gpuschedlab.cluster import Cluster
    from gpuschedlab.policies.gavel import Gavel
    from gpuschedlab.sim import simulate
    from gpuschedlab.speeds import pollux_names, pollux_speeds
    from gpuschedlab.speeds.profiles import OTHER_SLOWDOWN, SLOWDOWN

    cluster = Cluster.parse(CLUSTER)
    slowdown = {name: SLOWDOWN.get(name, OTHER_SLOWDOWN) for name in workloads["application"].unique()}
    profiles = [_read(data_dir, f"profiles/{name}.parquet") for name in ("step_time", "validation")]
    options = {"gpu_type": cluster.gpu_types, "max_local": {}, "slowdown": slowdown, "iterations": True}
    speeds = pollux_speeds(*profiles, workloads, **options)

    def simulation(jobs):
        return simulate(workload_trace(jobs, pollux_names(jobs), speeds), cluster, Gavel(), speeds=speeds)

    return simulation


def workload_trace(jobs: pl.DataFrame, model: pl.Series, speeds) -> pl.DataFrame:
    """Trace of a workload of the artifact.

    Parameters
    ----------
    jobs : polars.DataFrame
        `name, time` (s), `application, num_replicas, batch_size`.
    model : polars.Series
        Name of each job's profile.
    speeds : Speeds

    Returns
    -------
    polars.DataFrame
        With `switch`, the delay (s) at each start; `duration` (s) is on at most the requested GPUs of the first type.
    """
    from gpuschedlab.speeds import RESTART

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


def _read(data_dir, name):
    file = Path(data_dir or ".") / name
    if data_dir is None or not file.is_file():
        raise LabError(f"bench fidelity: found no {name} in {data_dir}; expected the folder of reference data.")
    return pl.read_parquet(file)
