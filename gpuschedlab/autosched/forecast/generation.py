"""Traces to tune on: existing-unfinished jobs and future arrivals together (figure 6.5)."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from gpuschedlab.autosched.forecast.arrivals import GlobalGenerator
from gpuschedlab.autosched.forecast.ranges import RangePredictor
from gpuschedlab.autosched.forecast.repository import observe

HOUR = 3600.0
DAY = 86_400.0
HORIZON = 72 * HOUR
"""Horizon of forecast arrivals (s). The thesis copies the hour after the match (`METHODS["thesis"]`). A knob such as Tiresias'
thresholds orders the queue, and its effect on the jobs of an hour is over before its effect on those that wait behind them shows:
held for days it is another value that is best."""


@dataclass(frozen=True)
class Forecast:
    """A possible future.

    Parameters
    ----------
    now : float
        Instant (s) at which it begins.
    trace : polars.DataFrame
        Existing-unfinished jobs with their durations in all, then arrivals after `now`.
    initial : polars.DataFrame
        Service of the existing jobs, for `Simulation(initial=...)`.
    existing : int
        Jobs that are in the system.
    """

    now: float
    trace: pl.DataFrame
    initial: pl.DataFrame
    existing: int


def true_forecast(simulation, horizon: float = HOUR) -> Forecast:
    """Return the true future as a `Forecast`: the jobs in the system, and all arrivals of the next `horizon` seconds.

    For the baseline "Optimal" (6.6.1), and for instants of the past.
    """
    initial = simulation.unfinished()
    forecast_time = simulation.now
    existing = simulation.trace.join(initial.select("job_id"), on="job_id", how="semi", maintain_order="left")
    coming = simulation.trace.filter((pl.col("submit") > forecast_time) & (pl.col("submit") <= forecast_time + horizon))
    return Forecast(forecast_time, pl.concat([existing, coming]), initial, existing.height)


def past_forecast(simulation, repository: pl.DataFrame, span: float = HOUR) -> Forecast:
    """Look back instead: return a `Forecast` of the jobs submitted in the last `span` seconds.

    Their durations are given as far as they are known.

    For the baseline "SelfTune" (6.6.1). A job that has not ended counts for as long as it has run. So that there is a cluster to
    contend for, the jobs that are unfinished now and came earlier are in the system, each owed as long again as it has run.
    """
    forecast_time = simulation.now
    initial = simulation.unfinished()
    submitted = repository.filter(pl.col("submit") <= forecast_time)
    recent = submitted.filter((pl.col("submit") > forecast_time - span) & (pl.col("submit") >= 0))
    lasted = pl.col("duration").fill_null(pl.col("executed").clip(60.0))
    jobs_again = recent.with_columns(pl.col("submit") + span + 1e-3, lasted, job_id=pl.lit("again-") + pl.col("job_id"))
    progress = initial.select("job_id", "progress")
    earlier = submitted.filter(pl.col("submit") <= forecast_time - span)
    earlier = earlier.join(progress, on="job_id", how="inner", maintain_order="left")
    ran = pl.col("progress").clip(60.0)
    owed = earlier.with_columns(duration=2 * ran).drop("progress")
    trace = _as_trace([owed, jobs_again])
    is_owed = pl.col("job_id").is_in(owed["job_id"].implode())
    return Forecast(forecast_time, trace, initial.filter(is_owed), owed.height)


class GenerationEngine:
    """Likely futures of a running simulation: predicted durations for the jobs in the system, and generated arrivals (6.4.2).

    Parameters
    ----------
    generator : GlobalGenerator
    predictor : RangePredictor
        Learns once a day from the jobs that had ended by then.
    history : polars.DataFrame, optional
        Jobs before the trace, on the same clock.
    arrivals : bool
        Whether forecasts hold future arrivals, or the jobs in the system alone.
    """

    def __init__(self, generator: GlobalGenerator, predictor: RangePredictor, history=None, *, arrivals: bool = True):
        self.generator = generator
        self.predictor = predictor
        self.history = history
        self.arrivals = arrivals
        self.trained = -np.inf
        self.seen = (-np.inf, None)
        self.ranges = None

    def learn(self, simulation) -> pl.DataFrame:
        """Observe, retrain if a day has passed, and return the frame of the repository.

        A resumed loop does so at the instants of the decisions it repeats.
        """
        if simulation.now > self.seen[0]:
            self.seen = (simulation.now, observe(simulation, self.history))
            self.ranges = None
        repository = self.seen[1]
        day = np.floor(simulation.now / DAY + 1e-9) * DAY
        if day > self.trained:
            self.trained = day
            if repository.filter(pl.col("end") <= day).height:
                self.predictor = self.predictor.fit(repository, day)
        return repository

    def __call__(self, simulation, rng, rank: int = 0) -> Forecast:
        """Return a `Forecast` of the next `generator.horizon` seconds; of rank 1 and more, of another likely future.

        Ranks are those of `GlobalGenerator.match`.
        """
        repository = self.learn(simulation)
        rng = np.random.default_rng(rng)
        forecast_time = simulation.now
        initial = simulation.unfinished()
        unfinished = repository.filter(pl.col("duration").is_null())
        lengths = 2 * unfinished["executed"] + HOUR  # until a job has ended
        if hasattr(self.predictor, "kinds_"):
            if self.ranges is None:  # all futures of an instant draw from the same ranges
                self.ranges = self.predictor.predict_range(repository, unfinished, forecast_time)
            lengths = self.predictor.draw(self.ranges, unfinished["executed"].to_numpy(), rng)
        durations = repository["duration"].to_numpy().copy()
        durations[np.isnan(durations)] = lengths
        repository = repository.with_columns(duration=pl.Series(durations))
        in_system = initial.select("job_id", least=pl.col("progress") + 1.0)
        existing = repository.join(in_system, on="job_id", how="inner", maintain_order="left")
        duration = pl.col("duration").clip(pl.col("least"))
        existing = existing.with_columns(duration).drop("least")
        forecast_parts = [existing]
        coming = self.generator.generate(repository, forecast_time, rank)
        if self.arrivals:
            forecast_parts.append(coming)
        return Forecast(forecast_time, _as_trace(forecast_parts), initial, existing.height)


def _as_trace(forecast_parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Return rows of a repository as the frame of a trace."""
    return pl.concat(
        [forecast_part.drop("executed", "end") for forecast_part in forecast_parts], how="diagonal_relaxed"
    )
