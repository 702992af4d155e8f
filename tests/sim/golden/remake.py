"""Golden runs: every policy on five tiny traces. `python tests/sim/golden/remake.py` writes golden.csv anew.

Read the difference (`git diff tests/sim/golden`) before committing it: each changed row is a changed decision.
"""

from pathlib import Path

import polars as pl

from gpuschedlab.cluster import Cluster, Nodes, Outage
from gpuschedlab.policies import ALL
from gpuschedlab.sim import Delays, simulate

FILE = Path(__file__).with_name("golden.csv")
COLUMNS = ("trace", "policy", "job", "start", "end", "preemptions", "restarts")


def jobs(*rows: str) -> pl.DataFrame:
    """Read jobs from lines of: id, submit (s), GPUs, duration (s), deadline (s since submission)."""
    names = ("job_id", "submit", "gpus", "duration", "deadline")
    table = pl.DataFrame([row.split() for row in rows], schema=names, orient="row")
    numbers = table.with_columns(pl.col(names[1:]).cast(pl.Float64))
    users = pl.Series([f"user-{i % 2}" for i in range(len(rows))])
    return numbers.with_columns(user=users, vc=users, name=users, kind=pl.lit("strict"))


#: Name -> (jobs, cluster, delays). Four nodes or more: Lucid sets two aside.
TINY = {
    # a long job ahead of short ones on one GPU at a time
    "convoy": (
        jobs("a 0 4 9000 9000", "b 10 4 600 900", "c 20 4 60 100", "d 500 4 300 9000"),
        Cluster.homogeneous(6, 1),
        Delays(),
    ),
    # gangs of unequal size, which leave holes
    "gangs": (
        jobs("a 0 3 1200 3000", "b 60 8 600 3000", "c 120 1 300 400", "d 180 2 2400 9000", "e 240 1 900 1000"),
        Cluster.homogeneous(4, 4),
        Delays(restart=30.0),
    ),
    # all at once, on parts of GPUs: ties
    "ties": (
        jobs("a 0 0.5 300 600", "b 0 0.5 300 600", "c 0 1 300 300", "d 0 2 300 900", "e 0 2 100 900"),
        Cluster.homogeneous(4, 1),
        Delays(),
    ),
    # a node fails twice, with a checkpoint every 100 s
    "failure": (
        jobs("a 0 4 1000 2000", "b 0 4 1000 2000", "c 100 2 1000 2000"),
        Cluster((Nodes("gpu", 4, 2),), (Outage(2, 250.0, 700.0), Outage(3, 900.0, 950.0))),
        Delays(restart=20.0, switch=5.0, checkpoint=100.0),
    ),
    # two types of GPU, more demand than either has
    "types": (
        jobs("a 0 2 600 900", "b 30 4 900 2000", "c 60 4 600 1000", "d 90 1 120 200", "e 120 2 1500 9000"),
        Cluster((Nodes("slow", 3, 2), Nodes("fast", 1, 4))),
        Delays(),
    ),
}


def rows(trace: str, policy: str) -> pl.DataFrame:
    """Run a policy on a tiny trace; one row a job, times rounded to milliseconds."""
    tiny, cluster, delays = TINY[trace]
    run = simulate(tiny, cluster, ALL[policy](), delays=delays)
    labels = {"trace": pl.lit(trace), "policy": pl.lit(policy), "job": pl.col("job_id")}
    found = run.jobs.with_columns(**labels).select(COLUMNS)
    return found.with_columns(pl.col("start", "end").round(3), pl.col("preemptions", "restarts").cast(int))


def table() -> pl.DataFrame:
    """Run every policy on every tiny trace."""
    return pl.concat([rows(trace, policy) for trace in TINY for policy in sorted(ALL)])


if __name__ == "__main__":
    table().write_csv(FILE)
