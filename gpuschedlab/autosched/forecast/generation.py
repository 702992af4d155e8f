"""Traces to tune on: existing-unfinished jobs and future arrivals together (figure 6.5)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from gpuschedlab.autosched.forecast.arrivals import GlobalGenerator
from gpuschedlab.autosched.forecast.ranges import RangePredictor

HOUR = 3600.0

HORIZON = 72 * HOUR
"""Horizon of forecast arrivals (s). A configuration's effect on the queue shows after days; the thesis replicates an hour."""


@dataclass(frozen=True)
class Forecast:
    """What may happen next.

    Parameters
    ----------
    now : float
        Instant (s) at which it begins.
    trace : polars.DataFrame
        Existing-unfinished jobs with their durations in all, then arrivals after `now`.
    initial : polars.DataFrame
        What the existing jobs have received, for `Simulation(initial=...)`.
    existing : int
        Jobs that are in the system.
    """

    now: float
    trace: pl.DataFrame
    initial: pl.DataFrame
    existing: int


def true_forecast(simulation, horizon: float = HOUR) -> Forecast:
    """Forecast what will truly happen: the jobs in the system, and all arrivals of the next `horizon` seconds.

    For the baseline "Optimal" (6.6.1), and for instants of the past.
    """
    initial, now = simulation.unfinished(), simulation.now
    existing = simulation.trace.join(initial.select("job_id"), on="job_id", how="semi", maintain_order="left")
    coming = simulation.trace.filter((pl.col("submit") > now) & (pl.col("submit") <= now + horizon))
    return Forecast(now, pl.concat([existing, coming]), initial, existing.height)


def past_forecast(simulation, repository: pl.DataFrame, span: float = HOUR) -> Forecast:
    """Look back instead: the jobs submitted in the last `span` seconds, with what is known of their durations.

    For the baseline "SelfTune" (6.6.1). A job that has not ended counts for as long as it has run. So that there is a
    cluster to contend for, the jobs that are unfinished now and came earlier are in the system, each owed as long again
    as it has run.
    """
    now, initial = simulation.now, simulation.unfinished()
    seen = repository.filter(pl.col("submit") <= now)
    recent = seen.filter((pl.col("submit") > now - span) & (pl.col("submit") >= 0))
    lasted = pl.col("duration").fill_null(pl.col("executed").clip(60.0))
    again = recent.with_columns(pl.col("submit") + span + 1e-3, lasted, job_id=pl.lit("again-") + pl.col("job_id"))
    names = initial.select("job_id", "progress")
    before = seen.join(names, on="job_id", how="inner", maintain_order="left").filter(pl.col("submit") <= now - span)
    owed = before.with_columns(duration=2 * pl.col("progress").clip(60.0)).drop("progress")
    trace = _as_trace([owed, again])
    kept = initial.filter(pl.col("job_id").is_in(owed["job_id"].implode()))
    return Forecast(now, trace, kept, owed.height)


@dataclass(frozen=True)
class GenerationEngine:
    """Predicted durations for the jobs in the system, and generated arrivals (6.4.2).

    Parameters
    ----------
    generator : GlobalGenerator
    predictor : RangePredictor
        Fitted before the first forecast (`refit`).
    """

    generator: GlobalGenerator
    predictor: RangePredictor

    def refit(self, repository: pl.DataFrame, now: float) -> GenerationEngine:
        """Copy whose predictor has learnt from what ended by `now`; itself if nothing has ended yet."""
        known = repository.filter(pl.col("end") <= now)
        return replace(self, predictor=self.predictor.fit(repository, now)) if known.height else self

    def forecast(self, simulation, repository: pl.DataFrame, rng, rank: int = 0) -> Forecast:
        """Forecast the next `generator.horizon` seconds of a running simulation.

        Parameters
        ----------
        simulation : Simulation
        repository : polars.DataFrame
            `observe(simulation, history)`.
        rng : int or numpy.random.Generator
        rank : int
            Which of the likely futures, as for `GlobalGenerator.generate`.
        """
        now, initial, rng = simulation.now, simulation.unfinished(), np.random.default_rng(rng)
        names = initial.select("job_id", "progress")
        existing = repository.join(names, on="job_id", how="inner", maintain_order="left")
        coming = self.generator.generate(repository, now, rank)
        passed, existing, known = existing["progress"], existing.drop("progress"), coming["duration"].to_numpy()
        asked = pl.concat([existing, coming.filter(pl.col("duration").is_null())])
        lengths, known = self._lengths(repository, asked, now, rng), known.copy()
        existing = existing.with_columns(duration=pl.Series(lengths[: existing.height]).clip(passed + 1.0))
        known[np.isnan(known)] = lengths[existing.height :]
        coming = coming.with_columns(duration=pl.Series(known))
        return Forecast(now, _as_trace([existing, coming]), initial, existing.height)

    def _lengths(self, repository, jobs, now, rng) -> np.ndarray:
        """Durations (n,) in all; before anything has ended, as long again as each has run."""
        if not hasattr(self.predictor, "kinds_"):
            return 2 * jobs["executed"].to_numpy() + HOUR
        return self.predictor.predict(repository, jobs, now, rng)


def _as_trace(parts: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([p.drop("executed", "end") for p in parts], how="diagonal_relaxed")
