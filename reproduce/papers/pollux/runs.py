"""The Pollux artifact (Qiao et al., OSDI'21): Tiresias, Optimus and Pollux on its workloads, beside its simulator's results.

The artifact runs 160 jobs on 16 nodes of 4 T4. Under Tiresias (two queues split at 57,600 GPU-s) batch size and GPUs are
fixed, under Optimus the batch size is. Every 60 s the policy decides; each placement costs 30 s; under Tiresias a new
allocation takes from the node with the most free GPUs.
"""

from functools import cache, partial

import numpy as np
import polars as pl

from reproduce.published.data import read_data

NODES = 16
GPUS_PER_NODE = 4
GPU_TYPE = "aws"
THRESHOLD = 57_600.0  # GPU-s that split the queues (the artifact's, not Tiresias' own 3,250)
INTERVAL = 60.0
RESTART = 30.0
TOLERANCE = 60.0  # s within which a completion time counts as equal


def measure(data_dir, policy: str, number: int, seed: int = 0) -> dict:
    """One workload under one policy: `compare`, with `worst_job`, `restarts` per job, and the mean of the published JCT.

    `seed` is of Pollux' search.
    """
    jobs = read_data(data_dir, "reference/pollux_workloads.parquet").filter(workload=number)
    wanted = read_data(data_dir, "reference/pollux_artifact_jct.parquet").filter(policy=policy, workload=number)
    simulation = {"tiresias": tiresias_run, "optimus": optimus_run, "pollux": partial(pollux_run, seed=seed)}[policy]
    done = simulation(jobs, _speeds(data_dir, policy)).jobs
    both = done.join(wanted.select("job", wanted="jct"), left_on="name", right_on="job", maintain_order="left")
    worst = both["name"][int((both["jct"] - both["wanted"]).abs().arg_max())]
    found = {"policy": policy, "workload": number, "seed": seed, **compare(both["jct"], both["wanted"])}
    return found | {"worst_job": worst, "restarts": float(both["restarts"].mean())}


@cache
def _speeds(data_dir, policy: str):
    """Speeds of the jobs of all workloads under a policy."""
    from reproduce.papers.pollux.adaptive import adaptive_speeds
    from reproduce.papers.pollux.profiles import pollux_elastic_speeds, pollux_speeds

    workloads = read_data(data_dir, "reference/pollux_workloads.parquet")
    profiles = [read_data(data_dir, f"profiles/{name}.parquet") for name in ("step_time", "validation")]
    if policy == "pollux":
        return adaptive_speeds(*profiles, workloads["application"], shape={GPU_TYPE: (NODES, GPUS_PER_NODE)})
    made = pollux_speeds if policy == "tiresias" else pollux_elastic_speeds
    return made(*profiles, workloads, gpu_type=GPU_TYPE)


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
    from gpuschedlab.policies import Tiresias
    from reproduce.papers.pollux.profiles import pollux_names

    policy = Tiresias(queues=2, thresholds=(THRESHOLD,), interval=INTERVAL, placement="widest")
    return _simulate(pollux_trace(jobs, speeds, pollux_names(jobs)), policy, speeds)


def optimus_run(jobs: pl.DataFrame, speeds):
    """Run one workload as the artifact's Optimus did.

    Parameters
    ----------
    jobs : polars.DataFrame
        As for `tiresias_run`; `num_replicas` only says what the estimate is of.
    speeds : Speeds
        From `pollux_elastic_speeds`, holding a profile for each job.

    Returns
    -------
    Run
    """
    from gpuschedlab.policies import Optimus
    from reproduce.papers.pollux.profiles import pollux_names

    policy = Optimus(whole_epochs=True, interval=INTERVAL)
    return _simulate(pollux_trace(jobs, speeds, pollux_names(jobs, elastic=True)), policy, speeds)


def pollux_run(jobs: pl.DataFrame, speeds, seed: int = 0):
    """Run one workload as the artifact's Pollux did.

    Parameters
    ----------
    jobs : polars.DataFrame
        As for `tiresias_run`; batch sizes and GPUs are chosen by the jobs and the policy.
    speeds : Speeds
        From `adaptive_speeds`.

    Returns
    -------
    Run
    """
    from gpuschedlab.policies import Pollux

    trace = pollux_trace(jobs.with_columns(num_replicas=pl.lit(1)), speeds, jobs["application"])
    return _simulate(trace, Pollux(interval=INTERVAL, seed=seed), speeds)


def _simulate(trace, policy, speeds):
    from gpuschedlab.cluster import Cluster
    from gpuschedlab.sim import Delays, simulate

    # The artifact counts its 30 s at every placement, the first too.
    cluster = Cluster.homogeneous(NODES, GPUS_PER_NODE, GPU_TYPE)
    delays = Delays(switch=RESTART)
    return simulate(trace, cluster, policy, speeds=speeds, delays=delays)


def pollux_trace(jobs: pl.DataFrame, speeds, model: pl.Series) -> pl.DataFrame:
    """Trace of a workload: each job with its profile, and its duration (s) on its GPUs of the fewest nodes.

    Jobs of the same second go by their row there, by their id here: the ids begin with the row.
    """
    from gpuschedlab.speeds.elapsed import seconds_to

    gpus = jobs["num_replicas"].to_numpy()
    whole = np.full(len(gpus), np.inf)
    first = np.zeros(len(gpus), np.int64)
    duration = seconds_to(speeds, speeds.model_codes(model), whole, first, -(-gpus // GPUS_PER_NODE), gpus)
    return pl.DataFrame(
        {
            "job_id": [f"{row:05d}-{name}" for row, name in enumerate(jobs["name"])],
            "name": jobs["name"],
            "submit": jobs["time"].cast(pl.Float64),
            "gpus": gpus.astype(float),
            "duration": duration,
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
    mean = float(found.mean())
    reference = float(wanted.mean())
    return {
        "jobs": len(off),
        "avg_jct": mean,
        "reference": reference,
        "error": mean / reference - 1,
        "within": float((off <= TOLERANCE).mean()),
        "same": float((off <= 1.0).mean()),
        "worst": float(off.max()),
    }
