"""Runs of Ymir and of what it is compared with: on the Titan artifact's workloads, and on jobs made by the paper's recipe."""

import time

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.papers.ymir.metrics import merged_shares
from gpuschedlab.sim import Delays, Scenario
from reproduce.papers.ymir import titan
from reproduce.published.data import read_data
from reproduce.published.timing import timed

UNMERGED = ("tiresias", "srtf", "optimus", "ymir_unmerged")
MERGED = ("ymir", "ymir_temporal", "ymir_spatial", "ymir_target", "ymir_noise")
STRANGERS = ("themis", "pollux")
OTHERS = ("tiresias_120", "srtf_120", "ymir_180", "ymir_300", "ymir_late")
"""Policies by their names in the table: those compared with the artifact job by job, Ymir by what it knows, those compared with the
artifact's averages only, and others."""

RIGID = ("tiresias", "srtf", "themis", "tiresias_120", "srtf_120")
"""Policies whose jobs have the GPUs that they request."""

ARTIFACT_NAMES = {"ymir_unmerged": "titan_nomerge"}
WITHIN = 2.0
"""Seconds within which a job's time counts as equal."""

NOISE = 0.4
PREPARE = 30.0
"""Seconds of a data loader's preparation, which Ymir hides (section 6.2)."""

NODES = 60
HOURS = 4.0
"""Nodes of 4 GPUs of the large cluster, and the time over which its jobs come (h)."""


def policy_of(name: str):
    """Policy, and the estimator, by the name in the table."""
    from gpuschedlab.estimators import Oracle, Transfers
    from gpuschedlab.policies import Optimus, Pollux, Sjf, Srtf, Themis, Tiresias, Ymir

    known = {"ymir_target": Transfers(), "ymir_noise": Transfers(method="oracle", noise=NOISE)}.get(name, Oracle())
    policies = {
        "tiresias": Tiresias(queues=2, thresholds=(57_600.0,), interval=300.0, placement="widest"),
        "srtf": Sjf(interval=300.0),
        "tiresias_120": Tiresias(queues=2, thresholds=(57_600.0,), interval=120.0, placement="widest"),
        "srtf_120": Srtf(interval=120.0),
        "themis": Themis(lease_term=600.0),
        "optimus": Optimus(interval=300.0),
        "pollux": Pollux(interval=300.0, population=50, generations=10),
        "ymir_unmerged": Ymir(temporal=False, spatial=False),
        "ymir_temporal": Ymir(spatial=False),
        "ymir_spatial": Ymir(temporal=False),
        "ymir_180": Ymir(interval=180.0),
        "ymir_300": Ymir(interval=300.0),
    }
    return policies.get(name, Ymir()), known


def measure(data_dir, name: str, fm: str, load: float) -> dict:
    """One workload under one policy: `avg_jct`, `p99_jct` (s), shares of jobs merged, and of those that end as published."""
    policy, known = policy_of(name)
    given = titan.scenario(data_dir, fm, load, elastic=name not in RIGID, estimator=known)
    if name == "ymir_late":  # what the data pipe hides is seen at each start
        given = given.replace(delays=Delays(switch=titan.switch_seconds(data_dir, fm) + PREPARE))
    run = given.run(policy)
    same = {"as_published": as_published(data_dir, run.jobs, name, fm, load)} if name in UNMERGED else {}
    return {**figures(run), **same}


def as_published(data_dir, jobs: pl.DataFrame, name: str, fm: str, load: float) -> float:
    """Share of jobs (`job_id, jct`) that complete within `WITHIN` s of the artifact's own run."""
    published = read_data(data_dir, "reference/titan_artifact_jct.parquet")
    published = published.filter(fm=fm, load=load, policy=ARTIFACT_NAMES.get(name, name))
    ours = jobs.select("jct", name=pl.col("job_id").str.slice(6))  # the id is the place in the trace, and the name
    both = ours.join(published, on="name", maintain_order="left", validate="1:1")
    return ((both["jct"] - both["staying_time"]).abs() <= WITHIN).mean()


def figures(run) -> dict[str, float]:
    """What is compared of a run."""
    jct = run.jobs["jct"]
    return {"avg_jct": float(jct.mean()), "p99_jct": float(jct.quantile(0.99)), **merged_shares(run)}


def many_jobs(data_dir, size: str, name: str, seed: int) -> dict:
    """Generated ViT jobs at load 1 on 240 GPUs: `avg_jct` (s), and `mean` and `max` CPU seconds of a round."""
    from gpuschedlab.papers.ymir.speeds.tasks import finetuning_jobs, task_speeds

    policy, known = policy_of(name)
    speeds = task_speeds("vit")
    seconds = []
    jobs = finetuning_jobs(speeds, gpus=4 * NODES, hours=HOURS, load=1.0, rng=seed)
    if name in RIGID:
        jobs = jobs.drop("model", "target")
        speeds = None
    given = Scenario(jobs, Cluster.homogeneous(NODES, 4, titan.GPU_TYPE), speeds=speeds, estimator=known)
    given = given.replace(delays=Delays(switch=titan.switch_seconds(data_dir, "vit")))
    rounds = hasattr(policy, "allocate")
    run = given.run(timed(policy, seconds, time.process_time) if rounds else policy)
    spent = {"mean": sum(seconds) / len(seconds), "max": max(seconds)} if seconds else {}
    return {**figures(run), **spent, "jobs": jobs.height}


def tasks_alone(data_dir, fm: str, count: int, seed: int) -> dict:
    """What merging brings on 32 GPUs at load 1.5, where there are so many data sets: `speedup`."""
    from gpuschedlab.papers.ymir.speeds.tasks import finetuning_jobs, task_speeds

    speeds = task_speeds(fm, count)
    jobs = finetuning_jobs(speeds, gpus=titan.NODES * titan.GPUS_PER_NODE, load=1.5, rng=seed)
    cluster = Cluster.homogeneous(titan.NODES, titan.GPUS_PER_NODE, titan.GPU_TYPE)
    given = Scenario(jobs, cluster, speeds=speeds, delays=Delays(switch=titan.switch_seconds(data_dir, fm)))
    alone, merged = (figures(given.run(policy_of(name)[0]))["avg_jct"] for name in ("ymir_unmerged", "ymir"))
    return {"speedup": alone / merged}
