"""A few jobs on a few GPUs that do one unit of work a second."""

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.policies import PromptTuner
from gpuschedlab.sim import Delays, simulate
from gpuschedlab.speeds import Speeds

RATES = pl.DataFrame(
    [(m, "v100", a, float(a)) for m in "ab" for a in (1, 2, 3, 4)],
    schema=["model", "gpu_type", "n_gpus", "rate"],
    orient="row",
)
SPEEDS = Speeds.from_frame(RATES)
DELAYS = Delays(kinds={"warm": 0.0, "cold": 10.0})
LAST = PromptTuner(late="drop")


def jobs(*rows, model="a"):
    """Jobs of (submit, work, seconds to the deadline[, model]); a GPU does one unit of work a second."""
    filled = [(*row, model)[:4] for row in rows]
    frame = pl.DataFrame(filled, schema=["submit", "target", "deadline", "model"], orient="row")
    frame = frame.with_columns(pl.col("submit", "target", "deadline").cast(float))
    return frame.with_columns(job_id=pl.Series([f"{i}" for i in range(len(rows))]), gpus=1.0, duration="target")


def run_of(trace, policy=LAST, gpus=4, **parts):
    parts = {"speeds": SPEEDS, "delays": DELAYS, "until": 500.0} | parts
    return simulate(trace, Cluster.homogeneous(1, gpus), policy, **parts)


def starts(run):
    return run.jobs["start"].to_list()


def most(run, name):
    """Largest number of GPUs that a pool had."""
    return run.pools.filter(pl.col("name") == name)["gpus"].max() or 0.0
