"""Canaries: short jobs of known work on more nodes than they need, which show the cost of placement."""

import itertools
from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.autosched.mechanisms.slowdowns import slowdowns
from gpuschedlab.errors import EstimatorError
from gpuschedlab.sim import Scenario

NOISE = 0.05
FEWEST = 3
"""Deviation of the logarithm of a measured duration on a real cluster, at least; canaries below which nothing is said."""


class Canaries(NamedTuple):
    """`jobs` to submit (rows of a trace; `duration` is known work, s), GPU-hours as believed, factor to which they show placement."""

    jobs: pl.DataFrame
    gpu_hours: float
    factor: float

    @property
    def sentence(self) -> str:
        """Sentence on the jobs to submit, their cost and the precision that they would give."""
        models = self.jobs["model"].n_unique()
        node_counts = self.jobs["nodes"].unique().sort()
        nodes = ", ".join(map(str, node_counts))
        return (
            f"Submit {self.jobs.height} canaries of known work, {models} models on {nodes} nodes, one at a time: some "
            f"{self.gpu_hours:.0f} GPU-hours; they would show the placement to a factor of {self.factor:.2f}."
        )


def ask(scenario: Scenario, *, begin=0.0, every=3600.0, seconds=600.0, gpus: int = 8) -> Canaries:
    """Plan `Canaries`: each model of the speeds on 1, 2 and 4 nodes, one after the other."""
    if scenario.speeds is None:
        raise EstimatorError("Twin.ask: found no speeds; expected speeds by placement, such as speeds=default_speeds.")
    models = [model_name for model_name, relative in zip(scenario.speeds.models, scenario.speeds.relative) if relative]
    node_counts = [nodes for nodes in (1, 2, 4) if nodes <= scenario.cluster.total_nodes]
    canary_sizes = list(itertools.product(models, node_counts))
    jobs = pl.DataFrame(canary_sizes, schema={"model": pl.String, "nodes": pl.Int64}, orient="row")
    jobs = jobs.with_columns(
        job_id=pl.format("canary-{}-{}", "model", "nodes"),
        user=pl.lit("canary"),
        gpus=pl.lit(float(gpus)),
        duration=pl.lit(float(seconds)),
        submit=begin + every * pl.int_range(pl.len()),
    )
    slow = slowdowns(jobs, scenario.speeds)
    gpu_time = gpus * seconds * np.exp(-slow)
    hours = float(gpu_time.sum() / 3600)
    slow_spread = max(np.sqrt((slow**2).sum()), 1e-9)
    return Canaries(jobs, hours, factor=float(np.exp(1.96 * NOISE / slow_spread)))


def power_of_canaries(log: pl.DataFrame, slow: np.ndarray, asked: Canaries) -> tuple[float, float, float, int]:
    """Return a tuple: power of the slowdown, both ends of its interval, and number of canaries that were spread.

    The power is that of canaries that ran in one piece; it is (1, 0, inf) if they are too few.
    """
    canary_attempts = log.with_columns(slow=slow, pieces=pl.len().over("job"))
    canary_attempts = canary_attempts.filter(pl.col("pieces") == 1, pl.col("why") == "done")
    work = asked.jobs.select("job_id", work="duration")
    canary_attempts = canary_attempts.join(work, on="job_id", maintain_order="left").filter(pl.col("slow") < -1e-6)
    if canary_attempts.height < FEWEST:
        return 1.0, 0.0, np.inf, canary_attempts.height
    x = canary_attempts["slow"].to_numpy()
    seconds = canary_attempts["end"] - canary_attempts["start"]
    y = np.log(canary_attempts["work"] / seconds).to_numpy()
    power = float(x @ y / (x @ x))
    deviation = max(NOISE, float(np.std(y - power * x, ddof=1)))
    power_half = 1.96 * deviation / np.sqrt(x @ x)
    return power, max(power - power_half, 0.0), power + power_half, canary_attempts.height
