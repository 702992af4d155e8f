"""Traces that the batteries run on by default."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from gpuschedlab._knob import random_generator
from gpuschedlab.errors import TraceError
from gpuschedlab.estimators import Estimator
from gpuschedlab.speeds import Speeds


def small_trace(jobs: int = 60, rng: int | np.random.Generator = 0) -> pl.DataFrame:
    """Make a short trace (frame) with everything that a policy may look at.

    Parameters
    ----------
    jobs : int
        Number of jobs.
    rng : int or numpy.random.Generator
        Seed.

    Returns
    -------
    polars.DataFrame
        Distinct submission times in s, 0.5 to 8 GPUs, heavy-tailed durations in s, users, virtual clusters,
        names, deadlines, rewards, kinds.

    Examples
    --------
    >>> small_trace(3)["job_id"].to_list()
    ['job-000', 'job-001', 'job-002']
    """
    rng = random_generator(rng, TraceError, "small_trace: rng")
    duration = np.ceil(rng.lognormal(6, 1.2, jobs)).clip(20, 20_000)
    submit = np.cumsum(1 + rng.integers(0, 90, jobs))
    return pl.DataFrame(
        {
            "job_id": [f"job-{i:03}" for i in range(jobs)],
            "submit": submit.astype(float),
            "gpus": rng.choice([0.5, 1, 2, 4, 8], jobs, p=[0.1, 0.45, 0.2, 0.15, 0.1]),
            "duration": duration,
            "user": [f"user-{i}" for i in rng.integers(0, 5, jobs)],
            "vc": [f"vc-{i}" for i in rng.integers(0, 2, jobs)],
            "name": [f"task-{'abcdefgh'[i]}" for i in rng.integers(0, 8, jobs)],
            "deadline": np.ceil(duration * rng.uniform(1.2, 6, jobs)),
            "reward": 100.0,
            "kind": rng.choice(["best_effort", "strict", "soft"], jobs),
        },
        schema_overrides={"reward": pl.Float64},
    )


@dataclass(frozen=True)
class Guess(Estimator):
    """The same guess for all jobs of a size, whatever their truth."""

    seconds: float = 900.0
    needs_history = False

    def _predict(self, jobs):
        return self.seconds * (1 + jobs["gpus"].to_numpy())


def elastic_sample() -> tuple[pl.DataFrame, Speeds]:
    """Make a tuple of a short trace (frame) and its `Speeds`: two of three jobs can run on 1 to 8 GPUs of types "slow" and "fast"."""
    # Of 40 jobs as of `small_trace` those of model "cnn" have a target in progress units, and rates in two phases; two of them
    # that share GPUs go at 0.8 of their speed.
    speed_rows = [
        ("cnn", gpu_type, gpus, segment_end, (1 + type_number) * np.int64(gpus) ** 0.8 * (1 - 0.3 * segment_number))
        for type_number, gpu_type in enumerate(("slow", "fast"))
        for gpus in (1, 2, 4, 8)
        for segment_number, segment_end in enumerate((100.0, np.inf))
    ]
    frame = pl.DataFrame(speed_rows, schema=["model", "gpu_type", "n_gpus", "progress", "rate"], orient="row")
    is_elastic = pl.int_range(pl.len()) % 3 > 0
    target = 2 * pl.col("duration")
    gpus = pl.col("gpus")
    whole_gpus = pl.when(is_elastic).then(gpus.ceil()).otherwise(gpus)
    jobs = small_trace(40, rng=1).with_columns(
        model=pl.when(is_elastic).then(pl.lit("cnn")),
        target=pl.when(is_elastic).then(target),
        gpus=whole_gpus.clip(upper_bound=8),
    )
    return jobs, Speeds.from_frame(frame, sharing={("cnn", "cnn"): 0.8})


def recurring_sample(jobs: int, rng: int | np.random.Generator) -> pl.DataFrame:
    """Make a trace (frame) of 12 tasks of 4 users, each task with its own typical duration (s) and demand (GPUs)."""
    rng = np.random.default_rng(rng)
    task_of_job = rng.integers(0, 12, jobs)
    duration = np.ceil(60 * 1.8**task_of_job * rng.lognormal(0, 0.4, jobs))
    return pl.DataFrame(
        {
            "job_id": [f"job-{i}" for i in range(jobs)],
            "submit": np.cumsum(rng.exponential(600, jobs)),
            "gpus": np.array([1.0, 2.0, 4.0])[task_of_job % 3],
            "duration": duration,
            "user": [f"user-{t % 4}" for t in task_of_job],
            "vc": [f"vc-{t % 2}" for t in task_of_job],
            "name": [f"{'abcdefghijkl'[t]}-run{i}" for i, t in enumerate(task_of_job)],
            "status": rng.choice(["completed", "failed", "killed"], jobs),
        }
    )
