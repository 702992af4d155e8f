"""A log's own questions that are answered by an instant: jobs that waited before it, played forward from when they did."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from gpuschedlab.papers.clusters.starts.answered import MINUTE, Answered, Calibration, Played
from gpuschedlab.papers.clusters.starts.arrivals import DAY
from gpuschedlab.papers.clusters.starts.forward import HORIZON, Forward, Plays
from gpuschedlab.papers.clusters.starts.known_log import jobs_of, known_at
from gpuschedlab.sim.recipe_base import Recipe

CALIBRATING = 16
"""Plays of a question whose answer is known."""
EVERY = 11 * 3600.0
"""Seconds between instants of answered questions: not a part of a day, so that all hours come."""
INSTANTS = 24
"""Instants of answered questions, the latest before the question's own."""
JOBS = 3
"""Jobs that are asked for at each of them."""
KEPT = "_forecasts_of_answered"
"""Where a site keeps what was played for answered questions."""


def completed_as(completed: Recipe, site: Recipe) -> Recipe:
    """Return a site, a `Recipe`, with the lines of another; it reads the same log, and knows the plays so far."""
    completed_site = replace(site, lines=completed.lines)
    completed_site.__dict__["log"] = site.log
    completed_site.__dict__[KEPT] = site.__dict__.setdefault(KEPT, {})
    return completed_site


@dataclass(frozen=True)
class Forecast:
    """Plays of one job at an instant before its start."""

    instant: float
    job: str
    played: Played


def waits_of(forward: Forward, plays: Plays, jobs: Sequence[str]) -> list[Played]:
    """Return a list: the waits of each job in several plays, as `Played`; the horizon if it does not start before."""
    return [Played(np.minimum(plays.starts[:, queue_row], HORIZON)) for queue_row in forward.rows(jobs)]


def calibrated_at(site: Recipe, instant: float, seed: int = 0) -> Calibration:
    """Return a `Calibration`: answers to the questions of a log that could be answered by an instant (s).

    It looks at none of the jobs that came later.
    """
    started = pl.col("started") < instant
    jobs = jobs_of(site).filter(started)
    begun = dict(jobs.select("job_id", "started").iter_rows())
    questions = []
    for forecast in forecasts_at(site, instant, seed):
        has_begun = forecast.job in begun
        until = begun[forecast.job] if has_begun else instant
        questions.append(Answered(forecast.played, until - forecast.instant, has_begun))
    return Calibration(tuple(questions))


def forecasts_at(site: Recipe, instant: float, seed: int = 0) -> list[Forecast]:
    """Return a list of `Forecast`: plays of jobs that waited at some instants before this one (s), the latest instant first.

    These are the first submissions after multiples of `EVERY`, from the log's second day on.
    """
    earlier = jobs_of(site).filter(pl.col("submit") < instant)
    submit = earlier["submit"].to_numpy()
    forecasts = []
    if not len(submit):
        return forecasts
    last = int(instant // EVERY)
    instants = []
    for mark in range(last, max(last - INSTANTS, 0), -1):
        after = submit[submit > mark * EVERY]
        if mark * EVERY >= submit.min() + DAY and len(after):
            instants.append(float(after.min()))
    for asked_instant in dict.fromkeys(instants):  # two multiples may have the same submission after them
        forecasts += _forecasts(site, asked_instant, seed)
    return forecasts


def _forecasts(site: Recipe, instant: float, seed: int) -> list[Forecast]:
    """Return a list of `Forecast`: plays of some jobs that waited at an instant.

    Those that start at once in all plays are no question.
    """
    kept_forecasts = site.__dict__.setdefault(KEPT, {})
    forecast_key = (instant, seed, site.lines)
    if forecast_key not in kept_forecasts:
        known_site = known_at(site, instant)
        rng = np.random.default_rng([seed, int(instant)])
        waiting_names = known_site.waiting.sort("submit", "job_id")["job_id"].to_list()
        newest = waiting_names[-1:]
        other_jobs = rng.permutation(waiting_names[:-1])[: JOBS - len(newest)].tolist()
        chosen = newest + other_jobs
        kept_forecasts[forecast_key] = []
        if chosen:
            forward = Forward(known_site)
            waits = waits_of(forward, forward.played(forward.drawn(CALIBRATING, rng), chosen), chosen)
            forecasts = [Forecast(instant, *pair) for pair in zip(chosen, waits, strict=True)]
            kept_forecasts[forecast_key] = [
                forecast for forecast in forecasts if forecast.played.quantiles[-1] > MINUTE
            ]
    return kept_forecasts[forecast_key]
