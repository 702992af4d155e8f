"""Delay of a restart, from the attempts alone: no attempt after a restart can complete before the delay is over."""

import itertools
from functools import cache
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.stats import norm

from gpuschedlab.autosched.mechanisms.work.pace import Pace, restarts

EXPONENTS = np.round(np.arange(-0.2, 1.21, 0.04), 2)
SCALES = (0.1, 0.5, 2.0)
SHAPES = (1.0, 1.7)
"""Parts of the work done before over which a hazard falls, and powers of the time with which it rises before: both differ by job."""
COARSE = np.array([0.0, 0.5, 1.0])
SIGMAS = np.array([0.2, 0.4, 0.6, 0.85])
LOGNORMAL = np.geomspace(30.0, 9000.0, 25)
PLACES = np.linspace(0.0, 1.0, 41)[1:] - 0.0125
"""Of a grid that is fine towards its end: no delay is above the earliest completion, and the likely ones are near it."""
FEWEST = 5
"""Completed restarts below which nothing is said."""
WIDER = 1.05
"""Factor by which an interval is widened on either side, chosen on worlds of seeds 0 to 15."""
VARY = (0.1, 0.2)
"""A delay varies if a constant one has less than this probability, and the deviation of its logarithm is above the second."""
REFUTED = 0.01
"""Probability of a constant delay below which the mean of the log-normal one is the value."""
MOST = 4000
"""Restarts that are used at most."""
ENOUGH = 50
"""Completed restarts of jobs whose nodes did not fail from which on no others are used."""
NOTHING = 1e-12
"""Likelihood of a completion within the delay."""


class Delay(NamedTuple):
    """Posterior of the delay d = `scale` gpus^`exponent` (k,) with weights; completed restarts by size (`sizes`, `counts`).

    `varied`: that of the mean of a log-normal delay of deviation `sigma`, if the log fits it better than a constant one, whose
    probability is `constant`.
    """

    scale: np.ndarray
    exponent: np.ndarray
    weight: np.ndarray
    sizes: np.ndarray
    counts: np.ndarray
    sigma: float = 0.0
    varied: "Delay | None" = None
    constant: float = 1.0

    @property
    def by_size(self) -> float:
        """Probability that the delay depends on the size of the job."""
        return float(1 - self.weight[self.exponent == 0].sum())

    def at(self, gpus: float) -> tuple[float, float, float]:
        """Return the delay (s) of a job's restart, and both ends of its 95 % interval, as a tuple."""
        seconds = self.scale * float(gpus) ** self.exponent
        delay_order = np.argsort(seconds)
        posterior_share = np.cumsum(self.weight[delay_order])
        value, low, high = np.interp([0.5, 0.025, 0.975], posterior_share / posterior_share[-1], seconds[delay_order])
        low = low / WIDER
        high = high * WIDER
        if self.varied is not None:
            mean, least_varied, most_varied = self.varied.at(gpus)
            low = min(low, least_varied)
            high = max(high, most_varied)
            if self.scatters:
                value = mean
        return float(value), float(low), float(high)

    @property
    def scatters(self) -> bool:
        """Whether the log refutes a constant delay."""
        return self.varied is not None and self.constant < REFUTED

    def of(self, gpus: np.ndarray) -> np.ndarray:
        """Return an array of the delays (s) of jobs by GPUs, those of other sizes as of the next ones that were seen."""
        seconds = [self.at(job_size)[0] for job_size in self.sizes]
        return np.interp(gpus, self.sizes, seconds)


def delay_of(log: pl.DataFrame, pace: Pace | None = None) -> Delay | None:
    """Return a restart's `Delay`, its posterior, constant or log-normal, by size or not; None if too few restarts completed.

    Restarts of jobs whose node failed before are used only if there are few others: the work that they do again is not known for sure.
    """
    if pace is None:
        pace = Pace(np.zeros(log.height), np.zeros(log.height))
    restarted = restarts(log, pace, known_delay=False)
    restarted = restarted._replace(done=restarted.done & (restarted.spent > 0))
    if (restarted.done & ~restarted.failed).sum() >= ENOUGH:
        restarted = restarted.take(~restarted.failed)
    sampled_restarts = restarted.take(slice(None, None, 1 + len(restarted.spent) // MOST))
    if sampled_restarts.done.sum() < FEWEST:
        return None
    job_sizes, size_counts = np.unique(restarted.gpus[restarted.done], return_counts=True)
    cells = []
    cells_of_varied = []
    for scale, shape in itertools.product(SCALES, SHAPES):
        hazard = Hazard(sampled_restarts.spent, sampled_restarts.before * scale, sampled_restarts.done, shape)
        cells += _constant_cells(hazard, sampled_restarts.gpus)
        cells_of_varied += _varied_cells(hazard, sampled_restarts.gpus)
    constant = np.array(cells).T
    varied = np.array(cells_of_varied).T
    top = max(constant[3].max(), varied[3].max())
    weight = np.exp(constant[3] - top)
    weight_of_varied = np.exp(varied[3] - top)
    delay = Delay(constant[0], constant[1], weight / weight.sum(), job_sizes, size_counts)
    sigma = np.average(varied[2], weights=weight_of_varied + NOTHING)
    constant_share = weight.sum() / (weight.sum() + weight_of_varied.sum())
    if constant_share > VARY[0] or sigma < VARY[1]:
        return delay
    log_normal = Delay(varied[0], varied[1], weight_of_varied / weight_of_varied.sum(), job_sizes, size_counts)
    return delay._replace(sigma=float(sigma), varied=log_normal, constant=float(constant_share))


class Hazard(NamedTuple):
    """Attempts (n,) after a restart, and the law of their completions."""

    spent: np.ndarray  # (n,) s
    before: np.ndarray  # (n,) s of work over which the hazard falls
    done: np.ndarray  # (n,) bool
    shape: float  # power of the time with which the hazard rises before


def _constant_cells(hazard: Hazard, gpus: np.ndarray) -> list[tuple[float, float, float, float]]:
    """Return a list of constant delays scale gpus^exponent to try, as tuples: scale, exponent, 0, and log-probability."""
    cells = []
    for exponent in EXPONENTS:
        powers = gpus**exponent
        greatest_scale = (hazard.spent / powers)[hazard.done].min()
        prior_of_exponent = 0.5 / (len(EXPONENTS) - 1)
        if exponent == 0:
            prior_of_exponent = 0.5
        prior = np.log(greatest_scale * np.mean(powers) * prior_of_exponent)
        scales = greatest_scale * (1 - PLACES**2)
        chances = prior + np.log(2 * PLACES / len(PLACES)) + _of_constant_delays(hazard, scales[:, None] * powers)
        for scale, chance in zip(scales, chances, strict=True):
            cells.append((scale, exponent, 0.0, chance))
    return cells


def _varied_cells(hazard: Hazard, gpus: np.ndarray) -> list[tuple[float, float, float, float]]:
    """Return a list of log-normal delays to try, as tuples: scale of the mean, exponent, deviation, log-probability.

    The deviation is that of the logarithm.
    """
    cells = []
    step = np.log(LOGNORMAL[1] / LOGNORMAL[0])
    for exponent, sigma in itertools.product(COARSE, SIGMAS):
        powers = gpus**exponent
        prior_of_exponent = 0.5 / (len(COARSE) - 1)
        if exponent == 0:
            prior_of_exponent = 0.5
        prior = np.mean(powers) / len(SIGMAS) * prior_of_exponent
        for scale in LOGNORMAL / np.median(gpus) ** exponent:
            weight = np.log(prior * scale * step)
            chance = weight + log_likelihood(hazard, scale * powers, sigma)
            cells.append((scale * np.exp(sigma**2 / 2), exponent, sigma, chance))
    return cells


def log_likelihood(attempts: Hazard, delay: np.ndarray, sigma: float) -> float:
    """Of attempts (n,): hazard 0 until the delay, then that of k log(1 + (work / before)^shape), k at its best; others are censored."""
    spent, work_before, completed, shape = attempts
    delay_factors = _delay_factors(sigma)
    mean = np.maximum(spent - delay * delay_factors.mean(), 0.0)
    rate = _rate(completed, np.log1p((mean / work_before) ** shape))
    likelihood = np.where(completed, 0.0, 1.0)  # of attempts that end before the shortest delay
    works = spent > delay * delay_factors.min()
    work = np.maximum(spent[works, None] - delay[works, None] * delay_factors, 0.0)
    power = (work / work_before[works, None]) ** shape
    alive = np.exp(-rate * np.log1p(power))
    completes = completed[works]
    of_completed = power[completes]
    hazard = rate * shape * of_completed / np.maximum(work[completes], 1e-9) / (1 + of_completed)
    alive[completes] *= hazard
    likelihood[works] = alive.sum(axis=1) / len(delay_factors)
    return float(np.log(likelihood + NOTHING).sum())


def _of_constant_delays(attempts: Hazard, delays: np.ndarray) -> np.ndarray:
    """Return an array (m,): the same for each row of delays (m, n) that do not scatter."""
    spent, work_before, completed, shape = attempts
    work = np.maximum(spent - delays, 0.0)
    power = (work / work_before) ** shape
    cumulative_hazard = np.log1p(power)
    rate = _rate(completed, cumulative_hazard)[:, None]
    likelihood = np.exp(-rate * cumulative_hazard)
    of_completed = power[:, completed]
    hazard = rate * shape * of_completed / np.maximum(work[:, completed], 1e-9) / (1 + of_completed)
    likelihood[:, completed] *= hazard
    return np.log(likelihood + NOTHING).sum(axis=1)


def _rate(completed: np.ndarray, cumulative_hazard: np.ndarray) -> np.ndarray:
    """Return an array of the factors of hazards (..., n) at which the completions are likeliest.

    The sum of hazards is 0 if no attempt is longer than its delay.
    """
    return completed.sum() / np.maximum(cumulative_hazard.sum(axis=-1), NOTHING)


@cache
def _delay_factors(sigma: float, points: int = 9) -> np.ndarray:
    """Quantiles (points,) of a log-normal variable of median 1, in the middle of shares that are alike; one if it does not scatter."""
    if sigma == 0:
        return np.ones(1)
    levels = (np.arange(points) + 0.5) / points
    return np.exp(sigma * norm.ppf(levels))
