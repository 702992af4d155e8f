"""Make a small site whose log records when jobs started: `python data/site/make.py [FOLDER]`, in seconds."""

import sys
from pathlib import Path

import numpy as np
import polars as pl

import gpuschedlab as lab
from gpuschedlab.estimators import Requested
from gpuschedlab.papers.clusters.recipe import Site

NODES, GPUS, DAYS, JOBS, LOAD, SEED = 6, 8, 14, 1600, 0.85, 3
DEPTH, WINDOW, EVERY = 8, 172_800.0, 30.0
LAUNCH = 20.0
"""Seconds for which a job holds its GPUs before it starts; neither the site's files nor its log say so."""

BY_HAND = {
    "job_id": "by hand",
    "submit": 11 * 86_400.0 + 15 * 3600.0,
    "gpus": GPUS,
    "duration": 10 * 3600.0,
    "nice": -100_000.0,
}
"""A node that somebody holds past the log: the scheduler gave it before all others, and none of the site's files says so."""

HOURS = (1, 2, 4, 8, 12, 24, 48)
"""Time limits that users request: the first that is at least one to three times as long as the job."""

ACCOUNTS = {"research": (60, ("ada", "ben", "cem")), "product": (40, ("dora", "eli"))}
CONF = f"""\
# Synthetic: made by data/site/make.py
NodeName=gpu[01-{NODES:02}] Gres=gpu:a100:{GPUS} CPUs=128 RealMemory=1000000
PartitionName=batch Nodes=ALL MaxTime=2-00:00:00 DefaultTime=60 State=UP
SchedulerType=sched/backfill
SchedulerParameters=bf_interval={EVERY:.0f},bf_window={WINDOW / 60:.0f},bf_job_part_count_reserve={DEPTH}
PriorityWeightFairshare=10000
PriorityDecayHalfLife=7-0
"""
TOML = """\
# Synthetic: made by data/site/make.py
[log]
path = "jobs.csv"
[slurm]
conf = "slurm.conf"
assoc = "assoc.txt"
[scheduler]
backfill = "plan"
resolution = 0
"""


def jobs(rng: np.random.Generator) -> pl.DataFrame:
    """Jobs of two weeks with requested times, users and accounts."""
    trace = lab.generate("venus", days=DAYS, jobs=JOBS, load=LOAD, cluster_gpus=NODES * GPUS, rng=rng)
    trace = trace.filter(pl.col("gpus") <= NODES * GPUS // 2)
    people = [(user, account) for account, (_, users) in ACCOUNTS.items() for user in users]
    known = {name: i % len(people) for i, name in enumerate(sorted(trace["user"].unique()))}
    place = trace["user"].replace_strict(known, return_dtype=pl.Int64).to_list()
    asked = trace["duration"].to_numpy() * rng.uniform(1, 3, trace.height)
    limit = np.array(HOURS)[np.minimum(np.searchsorted(3600 * np.array(HOURS), asked), len(HOURS) - 1)] * 3600.0
    return trace.select(
        job_id=pl.format("{}", pl.int_range(1, pl.len() + 1)),
        submit=pl.col("submit").round(),
        gpus=pl.col("gpus").cast(pl.Int64),
        duration=pl.col("duration").round().clip(1.0, 3600.0 * HOURS[-1]),
        requested_time=pl.Series(limit),
        user=pl.Series([people[i][0] for i in place]),
        account=pl.Series([people[i][1] for i in place]),
        clock=pl.col("clock"),
    )


def recorded(trace: pl.DataFrame, rule: lab.Ordered) -> pl.Series:
    """Starts under the site's own rule, beside a job that is not in the log, as the log records them."""
    extra = pl.DataFrame([BY_HAND | {"requested_time": BY_HAND["duration"]}]).cast({"gpus": pl.Int64})
    both = pl.concat([trace, extra], how="diagonal").sort("submit", maintain_order=True)
    cluster, delays = lab.Cluster.parse(f"{NODES}x{GPUS}:a100"), lab.Delays(switch=LAUNCH)
    run = lab.Scenario(both, cluster, estimator=Requested(), delays=delays).run(rule)
    return run.jobs.filter(pl.col("job_id") != BY_HAND["job_id"])["start"] + LAUNCH


def make(folder: Path) -> None:
    """Write the site's four files; the log is that of the rule that the others say."""
    rows = ["Account|User|ParentName|Share"]
    for account, (shares, users) in ACCOUNTS.items():
        rows += [f"{account}|||{shares}", *(f"{account}|{user}||1" for user in users)]
    for name, text in (("assoc.txt", "\n".join(rows) + "\n"), ("slurm.conf", CONF), ("site.toml", TOML)):
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    trace = jobs(np.random.default_rng(SEED))
    trace.write_csv(folder / "jobs.csv")  # the rule looks at its clock
    started = recorded(trace, Site(str(folder / "site.toml")).own)
    trace.with_columns(started=started.round()).write_csv(folder / "jobs.csv")


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
