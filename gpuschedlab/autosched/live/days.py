"""Days on which a tuner is watched: generated jobs, whose load or whose kind may change between day and night."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import EstimatorError
from gpuschedlab.knobs import Knob, Knobbed
from gpuschedlab.sim import Scenario
from gpuschedlab.speeds import Delays
from gpuschedlab.traces import generate

HOUR = 3600.0
DAY = 86_400.0
NIGHT_RUNS = "night runs"
HEAVY_NIGHTS = "heavy nights"
WHOLE_NODE_NIGHTS = "whole-node nights"


class Kind(NamedTuple):
    """Jobs of one kind: median run time (s), its sigma (of the logarithm), GPUs with their shares, and their load over the mean of both."""

    median: float
    sigma: float
    gpus: tuple[float, ...]
    shares: tuple[float, ...]
    load: float


def _short(load: float) -> Kind:
    """`Kind` of jobs of about twenty minutes."""
    return Kind(1200.0, 0.4, (2.0, 4.0, 8.0), (0.4, 0.4, 0.2), load)


NIGHTS = {
    NIGHT_RUNS: (_short(0.5 / 0.8), Kind(4 * HOUR, 0.1, (4.0,), (1.0,), 1.1 / 0.8)),
    HEAVY_NIGHTS: (_short(0.3 / 0.75), Kind(4 * HOUR, 0.1, (4.0,), (1.0,), 1.2 / 0.75)),
    WHOLE_NODE_NIGHTS: (_short(0.3 / 0.65), Kind(3 * HOUR, 0.1, (8.0,), (1.0,), 1.0 / 0.65)),
}
"""Presets in which the kind of jobs changes: by day short ones, by night long runs that are nearly equal. At load .8 night runs bring .5 of
the cluster by day and 1.1 by night; heavy nights at .75 bring .3 and 1.2; whole-node nights at .65 bring .3 and 1."""
PRESETS = ("venus", "pai", "philly", *NIGHTS)


@dataclass(frozen=True)
class LiveDays(Knobbed):
    """Days of a watched cluster of nodes with 8 GPUs: as many days are history as are played.

    The presets of `NIGHTS` have short jobs by day and long, equal ones by night, each half of every 24 hours, whatever `drift` says; the
    others are generated like the log of that name, without jobs of more than half of the GPUs.

    Examples
    --------
    >>> days = LiveDays(days=1, jobs=100)
    >>> history, trace = days.jobs_of(3)
    >>> bool(history["submit"].max() < 0 <= trace["submit"].min())
    True
    """

    raises = EstimatorError
    preset: Annotated[str, Knob(choices=PRESETS, words="jobs like", help="what the jobs are like")] = "venus"
    days: Annotated[float, Knob(1, 30, step=1, unit="d", help="days that are played")] = 2.0
    jobs: Annotated[int, Knob(50, 20_000, log=True, help="jobs of these days, if they are like those of a log")] = 600
    nodes: Annotated[int, Knob(1, 64, help="nodes of 8 GPUs")] = 4
    load: Annotated[float, Knob(0.3, 1.5, step=0.1, help="work that comes, over what all GPUs can do")] = 1.1
    drift: Annotated[
        float, Knob(0, 0.9, step=0.1, words="day over night", help="how much more comes by day than on average")
    ] = 0.0
    restart: Annotated[
        float, Knob(0, 3600, step=60, unit="s", words="true restart", help="true time without progress of a restart")
    ] = 60.0
    slack: Annotated[
        float,
        Knob(1.1, 50, log=True, words="due after", unit="run times", help="when a job is due, from its submission"),
    ] = 4.0

    @property
    def cluster(self) -> Cluster:
        """`Cluster` of nodes of 8 GPUs."""
        return Cluster.homogeneous(self.nodes, 8)

    def jobs_of(self, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the frames of history and trace of a seed as a tuple, on one clock, on which the trace begins at 0."""
        jobs = self._night_runs(seed) if self.preset in NIGHTS else self._generated(seed)
        due = 600.0 + self.slack * jobs["duration"]
        jobs = jobs.with_columns(deadline=due, submit=pl.col("submit") - self.days * DAY)
        return jobs.filter(pl.col("submit") < 0), jobs.filter(pl.col("submit") >= 0)

    def scenario(self, seed: int) -> Scenario:
        """Return the `Scenario` of a seed."""
        history, trace = self.jobs_of(seed)
        return Scenario(trace, self.cluster, history=history, delays=Delays(restart=self.restart), seed=seed)

    def _generated(self, seed: int) -> pl.DataFrame:
        gpus = self.cluster.total_gpus
        amount = {"days": 2 * self.days, "jobs": 2 * self.jobs, "load": self.load}
        jobs = generate(self.preset, **amount, cluster_gpus=gpus, rng=seed)
        jobs = jobs.filter(pl.col("gpus") <= gpus // 2)
        return jobs.with_columns(submit=drifted(jobs["submit"].to_numpy(), self.drift))

    def _night_runs(self, seed: int) -> pl.DataFrame:
        rng = np.random.default_rng([seed, 77])
        half_day = DAY / 2
        phase_jobs = []
        for phase in range(round(4 * self.days)):
            kind = NIGHTS[self.preset][phase % 2]
            phase_jobs.append(self._phase(kind, phase * half_day, half_day, rng))
        jobs = pl.concat(phase_jobs).sort("submit", maintain_order=True)
        job_ids = pl.Series("job_id", [f"{NIGHT_RUNS[:5]}-{job_number}" for job_number in range(jobs.height)])
        return jobs.insert_column(0, job_ids)

    def _phase(self, kind: Kind, phase_start: float, length: float, rng) -> pl.DataFrame:
        """Frame of the jobs of one kind that come within a phase, until they bring its load."""
        wanted_gpu_time = self.load * kind.load * self.cluster.total_gpus * length
        mean = kind.median * np.exp(kind.sigma**2 / 2) * np.dot(kind.gpus, kind.shares)
        most_jobs = 50 + 3 * int(wanted_gpu_time / mean)
        gpus = rng.choice(kind.gpus, most_jobs, p=kind.shares)
        duration = np.maximum(rng.lognormal(np.log(kind.median), kind.sigma, most_jobs), 1.0).round()
        job_count = int(np.searchsorted(np.cumsum(gpus * duration), wanted_gpu_time)) + 1
        submit = phase_start + np.sort(length * rng.random(job_count))
        return pl.DataFrame({"submit": submit, "gpus": gpus[:job_count], "duration": duration[:job_count]})


def drifted(submit: np.ndarray, drift: float) -> np.ndarray:
    """Return an array (n,) of instants moved within their day so that the rate of its first half is 1 + drift times the average.

    That of the second half is 1 - drift times the average.

    Examples
    --------
    >>> drifted(np.array([0.0, 43_200.0, 64_800.0]), 0.5).tolist()
    [0.0, 28800.0, 43200.0]
    """
    day = np.floor(submit / DAY)
    part_of_day = submit / DAY - day
    by_day = (1 + drift) / 2
    moved_part = np.where(
        part_of_day < by_day, part_of_day / (1 + drift), 0.5 + (part_of_day - by_day) / max(1 - drift, 1e-9)
    )
    return (day + moved_part) * DAY
