"""Loss by a failure: seconds between checkpoints, from the attempts that follow a failure."""

import itertools
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.stats import norm
from scipy.stats import t as student

from gpuschedlab.autosched.mechanisms.resumption import SCALES, SHAPES, Hazard, log_likelihood
from gpuschedlab.autosched.mechanisms.work.pace import Pace, restarts, work_of

PERIODS = np.geomspace(300.0, 172_800.0, 241)
"""Seconds between checkpoints that are tried, beside 0 (nothing is lost) and inf (all since the start)."""
EDGES = 0.25
"""Probability beforehand of either."""
FEWEST = 5
"""Attempts after a failure that completed their job, below which nothing is said."""
MANY = 50
"""Jobs of one attempt with a prediction from which its error is known."""
FREEDOM = 5
LEAST_ERROR = 0.05
"""Degrees of freedom of the law of errors, whose tails are heavier than normal ones, and its least scale."""
CALM = 500
"""Restarts without a failure before them that are used at most, for the hazard of a completion."""


class Checkpoint(NamedTuple):
    """Seconds between checkpoints and the ends of the 95 % interval, completed attempts after a failure, and whether the log shows them.

    `early`: how many of these completed before the work that was lost at `value` could have been done again.
    """

    value: float
    low: float
    high: float
    rows: int
    seen: bool
    early: int


def checkpoint_of(log: pl.DataFrame, pace: Pace, predicted: np.ndarray, sigma: float = 0.0) -> Checkpoint:
    """Return a `Checkpoint`, the posterior of the seconds between checkpoints.

    No attempt completes before the work that its job lost is done again.

    The believed value is `pace.period`; it is the value unless the log refutes it. `predicted` (J,) is the work that was predicted of
    each job, nan if none was: it fits the work of jobs that lost some as well as that of the others. If restarts scatter, `sigma` is
    the deviation of the logarithm of their delay; the predictions are not used then, since nobody knows the work of these jobs.
    """
    restarted = restarts(log, pace)
    failure_count = int((restarted.done & restarted.failed).sum())
    if failure_count < FEWEST:
        return Checkpoint(pace.period, 0.0, np.inf, failure_count, False, 0)
    after_failure = np.flatnonzero(restarted.failed)
    calm = np.flatnonzero(~restarted.failed)
    calm_step = 1 + len(calm) // CALM
    used = np.concatenate([after_failure, calm[::calm_step]])
    special = np.unique([0.0, pace.period, np.inf])
    periods = np.unique(np.concatenate([special, PERIODS]))
    prior_of_others = (1 - EDGES * len(special)) / len(PERIODS)
    prior = np.where(np.isin(periods, special), EDGES, prior_of_others)
    chances = np.array([_likely(log, pace._replace(period=period), used, sigma) for period in periods])
    if not sigma:
        fits = np.array([_fit(log, pace._replace(period=period), predicted) for period in periods])
        chances += fits[:, None]
    weight = prior[:, None] * np.exp(chances - chances.max())
    posterior_share = np.cumsum(weight.sum(axis=1))
    posterior_share /= posterior_share[-1]
    value, low, high = periods[np.searchsorted(posterior_share, (0.5, 0.025, 0.975))].tolist()
    if low <= pace.period <= high:
        value = pace.period
    best = restarts(log, pace._replace(period=value))
    early = 0
    if not sigma:
        early = int((best.done & best.failed & (best.spent <= 0)).sum())
    is_seen = low > 0 or np.isfinite(high)
    return Checkpoint(value, low, high, failure_count, bool(is_seen), early)


def _likely(log: pl.DataFrame, pace: Pace, used: np.ndarray, sigma: float) -> list[float]:
    """List of the log-likelihoods of attempts after a restart, one for each form of the hazard."""
    restarted = restarts(log, pace).take(used)
    median = pace.delay[restarted.row] * np.exp(-(sigma**2) / 2)
    chances = []
    for scale, shape in itertools.product(SCALES, SHAPES):
        hazard = Hazard(restarted.spent, restarted.before * scale, restarted.done, shape)
        chances.append(log_likelihood(hazard, median, sigma))
    return chances


def _fit(log: pl.DataFrame, pace: Pace, predicted: np.ndarray) -> float:
    """Logarithm of the likelihood of the predictions of jobs that lost work, by the error of the others; 0 without predictions."""
    why = pl.col("why")
    jobs = log.group_by("job", maintain_order=True)
    jobs = jobs.agg(failed=(why == "node").any(), done=why.last() == "done", pieces=pl.len())
    comparable = jobs["done"].to_numpy() & (predicted > 0)
    failed = jobs["failed"].to_numpy()
    plain = comparable & (jobs["pieces"] == 1).to_numpy()
    if plain.sum() < MANY:
        return 0.0
    prediction_ratio = np.log(np.where(predicted > 0, predicted, 1.0) / work_of(log, pace))
    usual_ratio = np.median(prediction_ratio[plain])
    ratio_spread = np.median(np.abs(prediction_ratio[plain] - usual_ratio)) / norm.ppf(0.75)
    scale = max(ratio_spread, LEAST_ERROR)
    density = student.logpdf(prediction_ratio[comparable & failed], FREEDOM, usual_ratio, scale)
    return float(density.sum())
