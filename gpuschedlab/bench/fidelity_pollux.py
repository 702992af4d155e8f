"""Fidelity to the Pollux artifact: Tiresias on its workloads, against its own simulator's completion times.

The artifact (Qiao et al., OSDI'21) runs 160 jobs of fixed batch size and GPUs on 16 nodes of 4 T4. Every 60 s
Tiresias (two queues split at 57,600 GPU-s) decides; each placement costs 30 s; a new allocation takes from
the node with the most free GPUs.
"""

import time
from pathlib import Path

import numpy as np
import polars as pl

from gpuschedlab.errors import LabError

NODES, GPUS_PER_NODE, GPU_TYPE = 16, 4, "aws"
THRESHOLD = 57_600.0  # GPU-s that split the queues (the artifact's, not Tiresias' own 3,250)
INTERVAL = 60.0
RESTART = 30.0
TOLERANCE = 60.0  # s within which a completion time counts as equal


def run(data_dir: str | Path) -> dict:
    """Simulate every workload of the artifact, and compare with its results.

    Parameters
    ----------
    data_dir : str or Path
        Folder with `profiles/` (`step_time`, `validation`) and `reference/` (`pollux_workloads`,
        `pollux_artifact_jct`), parquet.

    Returns
    -------
    dict
        `workloads`: one dict each with `workload, jobs, avg_jct` (s), `reference` (s), `error` (relative),
        `within` (share of jobs within 60 s), `same` (share within 1 s), `worst` (s), `restarts` (a job),
        `seconds` (taken); `within`: share of all jobs; `ok`: each average within 1 % and at least 95 % of the
        jobs within 60 s.

    Raises
    ------
    LabError
        A file is missing.
    """
    from gpuschedlab.speeds import pollux_speeds

    workloads = _read(data_dir, "reference/pollux_workloads.parquet")
    reference = _read(data_dir, "reference/pollux_artifact_jct.parquet").filter(policy="tiresias")
    step_time = _read(data_dir, "profiles/step_time.parquet")
    validation = _read(data_dir, "profiles/validation.parquet")
    speeds = pollux_speeds(step_time, validation, workloads, gpu_type=GPU_TYPE)
    rows = []
    for (number,), jobs in workloads.group_by("workload", maintain_order=True):
        begin = time.perf_counter()
        done = tiresias_run(jobs, speeds).jobs
        seconds = time.perf_counter() - begin
        wanted = reference.filter(workload=number).select("job", wanted="jct")
        both = done.join(wanted, left_on="name", right_on="job", how="inner")
        rows.append({"workload": number, **compare(both["jct"], both["wanted"])})
        rows[-1] |= {"restarts": float(both["restarts"].mean()), "seconds": seconds}
    within = sum(r["within"] * r["jobs"] for r in rows) / sum(r["jobs"] for r in rows)
    ok = within >= 0.95 and all(abs(r["error"]) <= 0.01 for r in rows)
    return {"bench": "fidelity_pollux", "workloads": rows, "within": within, "ok": bool(ok)}


def tiresias_run(jobs: pl.DataFrame, speeds):
    """Run one workload as the artifact's Tiresias did.

    Parameters
    ----------
    jobs : polars.DataFrame
        `name, time` (s), `application, num_replicas, batch_size`.
    speeds : Speeds
        From `pollux_speeds`, holding a profile for each job.

    Returns
    -------
    Run
    """
    from gpuschedlab.cluster import Cluster
    from gpuschedlab.policies import Tiresias
    from gpuschedlab.sim import Delays, simulate

    policy = Tiresias(queues=2, thresholds=(THRESHOLD,), interval=INTERVAL, placement="widest")
    cluster = Cluster.homogeneous(NODES, GPUS_PER_NODE, GPU_TYPE)
    # The artifact counts its 30 s at every placement, the first too.
    delays = Delays(switch=RESTART)
    return simulate(pollux_trace(jobs, speeds), cluster, policy, speeds=speeds, delays=delays)


def pollux_trace(jobs: pl.DataFrame, speeds) -> pl.DataFrame:
    """Trace of a workload: each job with its profile, and its duration (s) on the fewest nodes.

    Jobs of the same second go by their row there, by their id here: the ids begin with the row.
    """
    from gpuschedlab.speeds import pollux_names
    from gpuschedlab.speeds.codes import find_row

    ideal = {}
    for m, name in enumerate(speeds.models):
        gpus = int(name.rpartition("/")[2])
        counts = np.array([GPUS_PER_NODE] * (gpus // GPUS_PER_NODE) + [gpus % GPUS_PER_NODE])
        counts = counts[counts > 0]
        row = find_row(speeds.first, speeds.code, speeds.row, m, 0, len(counts), gpus, counts)
        ends = speeds.seg_end[speeds.seg_first[m] : speeds.seg_first[m + 1]]
        ideal[name] = float((np.diff(ends, prepend=0.0) / speeds.rate[row : row + len(ends)]).sum())
    model = pollux_names(jobs)
    return pl.DataFrame(
        {
            "job_id": [f"{row:05d}-{name}" for row, name in enumerate(jobs["name"])],
            "name": jobs["name"],
            "submit": jobs["time"].cast(pl.Float64),
            "gpus": jobs["num_replicas"].cast(pl.Float64),
            "duration": model.replace_strict(ideal, return_dtype=pl.Float64),
            "model": model,
            "batch_size": jobs["batch_size"].cast(pl.Int64),
        }
    )


def compare(found: pl.Series, wanted: pl.Series) -> dict:
    """Compare completion times (s), job by job.

    Examples
    --------
    >>> compare(pl.Series([100.0, 300.0]), pl.Series([100.0, 200.0]))["within"]
    0.5
    """
    off = np.abs(found.to_numpy() - wanted.to_numpy())
    mean, reference = float(found.mean()), float(wanted.mean())
    return {
        "jobs": len(off),
        "avg_jct": mean,
        "reference": reference,
        "error": mean / reference - 1,
        "within": float((off <= TOLERANCE).mean()),
        "same": float((off <= 1.0).mean()),
        "worst": float(off.max()),
    }


def _read(data_dir, name):
    file = Path(data_dir) / name
    if not file.is_file():
        raise LabError(f"bench fidelity: found no {name} in {data_dir}; expected the folder of reference data.")
    return pl.read_parquet(file)
