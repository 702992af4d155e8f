"""Fewer jobs, the same service: similar jobs of a forecast become one (the trace aggregator, 6.4.3.2)."""

import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from gpuschedlab.errors import EstimatorError
from gpuschedlab.knobs import Knob, Knobbed

PART = 1 / 128
"""Largest part of all jobs that becomes one: a small trace keeps its detail."""


@dataclass(frozen=True)
class Aggregator(Knobbed):
    """Group jobs that request the same, at about the same time, for about as long (thesis, 6.4.3.2).

    Jobs of equal demand are neighbours if they were submitted in the same window and their durations lie in the same class of a
    geometric grid; up to `most` neighbours with `room` GPUs together become one, which must still find its nodes. Windows double
    in length, from now on: late arrivals are predicted least exactly. Existing jobs are grouped by remaining duration instead,
    running ones apart from waiting ones. The group requests the sum of GPUs at the mean time of submission, and lasts as long as
    gives it the members' service (GPU-time), both in all and still to come; executed time is averaged, attained service summed. A
    scheduler treats a group as it would each member: by a member's GPUs and attained service (column `jobs` of `Simulation`), or
    twelve jobs in one would be demoted, and be slowed by distance, as one large job.

    Differs from the paper in
    -------------------------
    The thesis does not say when jobs count as similar, nor bounds a group. Jobs of a group also agree in `stage` and
    `kind`; other columns, such as the model, are those of its first job. A row keeps how many jobs it stands for (`jobs`),
    by which objectives are averaged, and by how much its members' mean duration differs from its own (`shift`, s).

    Examples
    --------
    >>> import polars as pl
    >>> jobs = {"job_id": ["a", "b", "c"], "submit": [0.0, 20.0, 30.0], "gpus": [1.0, 1.0, 4.0]}
    >>> trace = pl.DataFrame(jobs | {"duration": [100.0, 110.0, 100.0]})
    >>> Aggregator().group(trace, pl.DataFrame({"job_id": []}), 0.0)[0].select("gpus", "duration", "jobs").rows()
    [(2.0, 105.0, 2.0), (4.0, 100.0, 1.0)]
    """

    raises: ClassVar = EstimatorError
    window: Annotated[float, Knob(1e-3, 1e12, log=True, unit="s", tuned=(600, 1e6), help="of submission")] = 21_600.0
    ratio: Annotated[float, Knob(1.0001, 1e12, log=True, tuned=(1.1, 16), help="step of the grid of durations")] = 4.0
    most: Annotated[int, Knob(1, 1e9, log=True, tuned=(1, 64), help="jobs of a group")] = 12
    room: Annotated[float, Knob(1e-3, 1e9, log=True, unit="GPUs", tuned=(1, 256), help="of a group")] = 32.0

    def __call__(self, forecast):
        """Return the forecast with similar jobs grouped, at most a `PART` of all in one; EstimatorError if it is so already."""
        if "jobs" in forecast.trace.columns:
            raise EstimatorError("Aggregator: found a forecast that is aggregated already; expected jobs one by one.")
        bounded = replace(self, most=min(self.most, max(1, math.ceil(PART * forecast.trace.height))))
        trace, initial = bounded.group(forecast.trace, forecast.initial, forecast.now)
        existing = int((trace["submit"] <= forecast.now).sum()) if initial.height else 0
        return replace(forecast, trace=trace, initial=initial, existing=existing)

    def group(self, trace: pl.DataFrame, initial: pl.DataFrame, now: float) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Group a trace, with `jobs` and `shift` (s), and the state of those of its jobs that are in the system.

        The state is for `Simulation(initial=...)`.
        """
        jobs = self._keyed(_state(trace, initial), now)
        parts = jobs.group_by("key", "chunk", maintain_order=True).agg(*_combined(jobs))
        length = pl.when("known").then(pl.col("left") + pl.col("progress")).otherwise("left")
        parts = parts.with_columns(duration=length, shift=pl.col("mean_left") - pl.col("left")).sort("submit", "job_id")
        first = ("job_id", "submit", "gpus", "duration")
        grouped = parts.select(*first, *(c for c in trace.columns if c not in first), "jobs", "shift")
        return grouped, parts.filter("known").select("job_id", *(c for c in initial.columns if c != "job_id"))

    def _keyed(self, state: pl.DataFrame, now: float) -> pl.DataFrame:
        """Give each job the number of its group: alike ones in order of submission, cut where a group is full."""
        grid = (pl.col("left").clip(1.0).log() / np.log(self.ratio)).floor()
        windows = (1 + (pl.col("submit") - now).clip(0) / self.window).log(2).floor()
        when = pl.when("known").then(-1.0).otherwise(windows)
        alike = ["gpus", "known", "running", "grid", "when", *(c for c in ("stage", "kind") if c in state.columns)]
        fits = pl.max_horizontal(1, pl.min_horizontal(self.most, (self.room / pl.col("gpus")).floor()))
        state = state.with_columns(grid=grid, when=when).with_columns(key=pl.struct(alike).rank("dense"))
        return state.with_columns(chunk=(pl.int_range(pl.len()).over("key") // fits).cast(pl.Int64))


def _state(trace: pl.DataFrame, initial: pl.DataFrame) -> pl.DataFrame:
    """The trace with the service of each job, whether it is `known` (in the system), and the rest of its work, `left` (s)."""
    none = [pl.lit(None, pl.Float64).alias(c) for c in ("attained", "progress", "running") if c not in initial.columns]
    received = initial.with_columns(pl.col("job_id").cast(trace.schema["job_id"]), *none, known=True)
    state = trace.join(received, on="job_id", how="left", maintain_order="left")
    numbers = pl.col(c for c in received.columns if c not in ("job_id", "running", "known"))
    state = state.with_columns(pl.col("known", "running").cast(pl.Boolean).fill_null(False), numbers.fill_null(0.0))
    return state.with_columns(left=(pl.col("duration") - pl.col("progress")).clip(1e-3))


def _combined(jobs: pl.DataFrame) -> list[pl.Expr]:
    """How members become one: means of times, sums of GPUs (fractions, to whole ones) and services."""
    gpus = pl.col("gpus")
    whole = pl.when(gpus.sum() > 1).then((gpus.sum() - 1e-9).ceil()).otherwise(gpus.sum())
    mean = ("submit", "executed", "progress", "contention", "waiting_since", "started")
    mean = [c for c in mean if c in jobs.columns]
    return [
        pl.exclude(*mean, "gpus", "attained", "left", "duration", "key", "chunk").first(),
        pl.col(mean).mean(),
        pl.col("attained").sum(),
        whole.alias("gpus"),
        ((pl.col("left") * gpus).sum() / whole).alias("left"),
        pl.col("left").mean().alias("mean_left"),
        pl.len().cast(pl.Float64).alias("jobs"),
    ]
