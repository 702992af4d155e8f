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
        """Return the `Forecast` with similar jobs grouped, at most a `PART` of all in one; EstimatorError if it is so already."""
        if "jobs" in forecast.trace.columns:
            raise EstimatorError("Aggregator: found a forecast that is aggregated already; expected jobs one by one.")
        most_members = max(1, math.ceil(PART * forecast.trace.height))
        bounded = replace(self, most=min(self.most, most_members))
        trace, initial = bounded.group(forecast.trace, forecast.initial, forecast.now)
        existing = 0
        if initial.height:
            existing = int((trace["submit"] <= forecast.now).sum())
        return replace(forecast, trace=trace, initial=initial, existing=existing)

    def group(self, trace: pl.DataFrame, initial: pl.DataFrame, now: float) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Group a trace: return a tuple of its frame with `jobs` and `shift` (s), and the frame of its jobs in the system.

        The state is for `Simulation(initial=...)`.
        """
        jobs = self._keyed(_state(trace, initial), now)
        job_groups = jobs.group_by("key", "chunk", maintain_order=True).agg(*_combined(jobs))
        whole_length = pl.col("left") + pl.col("progress")
        length = pl.when("known").then(whole_length).otherwise("left")
        shift = pl.col("mean_left") - pl.col("left")
        job_groups = job_groups.with_columns(duration=length, shift=shift).sort("submit", "job_id")
        first_columns = ("job_id", "submit", "gpus", "duration")
        further_columns = [column_name for column_name in trace.columns if column_name not in first_columns]
        service = [column_name for column_name in initial.columns if column_name != "job_id"]
        grouped = job_groups.select(*first_columns, *further_columns, "jobs", "shift")
        return grouped, job_groups.filter("known").select("job_id", *service)

    def _keyed(self, state: pl.DataFrame, forecast_time: float) -> pl.DataFrame:
        """Return the frame of jobs with the number of each one's group: alike ones in order of submission, cut at full ones."""
        length = pl.col("left").clip(1.0)
        grid = (length.log() / np.log(self.ratio)).floor()
        ahead = (pl.col("submit") - forecast_time).clip(0)
        windows = 1 + ahead / self.window
        when = pl.when("known").then(-1.0).otherwise(windows.log(2).floor())
        alike = ["gpus", "known", "running", "grid", "when"]
        alike += [column_name for column_name in ("stage", "kind") if column_name in state.columns]
        in_room = (self.room / pl.col("gpus")).floor()
        fits = pl.max_horizontal(1, pl.min_horizontal(self.most, in_room))
        state = state.with_columns(grid=grid, when=when)
        state = state.with_columns(key=pl.struct(alike).rank("dense"))
        number_in_group = pl.int_range(pl.len()).over("key")
        return state.with_columns(chunk=(number_in_group // fits).cast(pl.Int64))


def _state(trace: pl.DataFrame, initial: pl.DataFrame) -> pl.DataFrame:
    """Return the frame of a trace with jobs' service, whether they are `known` (in the system), and work to do, `left` (s)."""
    absent = [column_name for column_name in ("attained", "progress", "running") if column_name not in initial.columns]
    nulls = {column_name: pl.lit(None, pl.Float64) for column_name in absent}
    received = initial.with_columns(pl.col("job_id").cast(trace.schema["job_id"]), **nulls, known=True)
    state = trace.join(received, on="job_id", how="left", maintain_order="left")
    service_columns = pl.col(
        column_name for column_name in received.columns if column_name not in ("job_id", "running", "known")
    )
    truths = pl.col("known", "running").cast(pl.Boolean)
    state = state.with_columns(truths.fill_null(False), service_columns.fill_null(0.0))
    remaining = pl.col("duration") - pl.col("progress")
    return state.with_columns(left=remaining.clip(1e-3))


def _combined(jobs: pl.DataFrame) -> list[pl.Expr]:
    """Return a list of polars `Expr` by which members become one: means of times, sums of GPUs and services.

    Fractions of GPUs add up to whole ones.
    """
    gpus = pl.col("gpus")
    group_gpus = gpus.sum()
    rounded = pl.when(group_gpus > 1).then((group_gpus - 1e-9).ceil()).otherwise(group_gpus)
    service = (pl.col("left") * gpus).sum()
    mean = ("submit", "executed", "progress", "contention", "waiting_since", "started")
    mean = [column_name for column_name in mean if column_name in jobs.columns]
    return [
        pl.exclude(*mean, "gpus", "attained", "left", "duration", "key", "chunk").first(),
        pl.col(mean).mean(),
        pl.col("attained").sum(),
        rounded.alias("gpus"),
        (service / rounded).alias("left"),
        pl.col("left").mean().alias("mean_left"),
        pl.len().cast(pl.Float64).alias("jobs"),
    ]
