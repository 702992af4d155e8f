"""Conditions under which generated traces and those of files are played, and the days before them."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import TraceError
from gpuschedlab.estimators import Estimator
from gpuschedlab.knobs import Knob, Knobbed
from gpuschedlab.parse import estimator_of
from gpuschedlab.sim import Scenario
from gpuschedlab.speeds import Delays, default_speeds
from gpuschedlab.traces.intake.read import taken_of

DAY = 86_400.0


class Played:
    """Base of recipes of a trace and its history, `_parts(seed)`, on `machines` under `conditions`."""

    def trace(self, seed: int = 0) -> pl.DataFrame:
        """Return a frame of the jobs that are played."""
        return self._parts(seed)[0]

    def warm_jobs(self, seed: int = 0) -> pl.DataFrame | None:
        """Return a frame of the jobs that are played before and do not count; None: the trace begins with an empty cluster."""
        return None

    def scenario(self, seed: int = 0) -> Scenario:
        """Return the `Scenario` of a seed: jobs and cluster; with a history, which ends at 0, and warm jobs."""
        machines = self.machines
        trace, history = self._parts(seed)
        learns = history is not None and not self.knobs.get("history")
        estimator = estimator_of(self.estimator or ("runtime" if learns else "oracle"))
        jobs_before = {"history": history, "warm": self.warm_jobs(seed)}
        return self.conditions.scenario(trace, machines, jobs_before, estimator, seed)


@dataclass(frozen=True)
class Conditions(Knobbed):
    """Conditions of a trace, wherever it comes from: failing nodes, speeds and delays; and the GPUs that its load refers to."""

    raises: ClassVar = TraceError
    gpus: Annotated[
        int | None, Knob(1, 1e9, log=True, unit="GPUs", help="that load refers to; none: the cluster's")
    ] = None
    mtbf: Annotated[float, Knob(0, 1e12, unit="s", help="mean time between failures of a node; 0: none fails")] = 0.0
    mttr: Annotated[float, Knob(0, 1e12, unit="s", help="mean time of a node's repair")] = 3600.0
    speeds: Annotated[
        str, Knob(choices=("default", "none"), help="what placement, GPU type and sharing change of a job's speed")
    ] = "default"
    restart: Annotated[float, Knob(0, 1e12, unit="s", help="lost at each start after the first")] = 0.0
    switch: Annotated[float, Knob(0, 1e12, unit="s", help="lost at each start")] = 0.0
    checkpoint: Annotated[
        float | None, Knob(0, 1e12, unit="s", help="between checkpoints; none: when a job is suspended")
    ] = None

    def scenario(
        self, trace: pl.DataFrame, cluster: Cluster, before: dict, estimator: Estimator, seed: int
    ) -> Scenario:
        """Return the `Scenario` of a trace on a cluster; `before`: history and warm jobs.

        The cluster's nodes fail from 0 until a month after the last job has come.
        """
        if self.mtbf:
            cluster = cluster.with_failures(self.mtbf, self.mttr, float(trace["submit"].max()) + 30 * DAY, seed)
        delays = Delays(restart=self.restart, switch=self.switch, checkpoint=self.checkpoint)
        scenario_parts = before | {"estimator": estimator, "delays": delays, "seed": seed}
        return Scenario(trace, cluster, speeds=default_speeds if self.speeds == "default" else None, **scenario_parts)


def days_in(before: str) -> float | None:
    """Return the days that a word of a history says, a number; None: it names a file."""
    try:
        days = float(before or 0)
    except ValueError:
        return None
    return days if days >= 0 else None


def with_past(trace: pl.DataFrame, first: float, before: str) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Return a pair of frames, trace and history: days from the instant `first` on are cut off, or a file has been before.

    The history is None without either.
    """
    days = days_in(before)
    if days:
        return parted(trace, first + days * DAY, f"day {days:g}")
    if days is not None:
        return trace, None
    history = taken_of(before)[0].trace
    # Its clock is its own: it ends whole days before the trace.
    return trace, history.with_columns(pl.col("submit") - math.ceil((history["submit"].max() + 1) / DAY) * DAY)


def parted(trace: pl.DataFrame, cut: float, name: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return a pair of frames: jobs submitted at an instant (s) or later, and those before; the instant is the zero of both."""
    history_jobs = trace.filter(pl.col("submit") < cut)
    played_jobs = trace.filter(pl.col("submit") >= cut)
    if history_jobs.is_empty() or played_jobs.is_empty():
        raise TraceError(
            f"history: found {history_jobs.height:,} jobs before {name} and {played_jobs.height:,} after it; "
            "expected some of both. Choose "
            "fewer days, or a longer trace."
        )
    return played_jobs.with_columns(pl.col("submit") - cut), history_jobs.with_columns(pl.col("submit") - cut)


def past_in_words(history: pl.DataFrame | None, before: str) -> str:
    """Write the history to learn from as text: "1,000 jobs of the 7 days before"; "nothing" without one."""
    if history is None:
        return "nothing"
    days = days_in(before)
    return f"{history.height:,} jobs of {before if days is None else f'the {days:g} days before' if days else 'its first part'}"
