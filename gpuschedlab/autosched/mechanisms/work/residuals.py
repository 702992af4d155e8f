"""What is left of the work of jobs once their task, size and the load at their start are held fixed."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from gpuschedlab.autosched.mechanisms.work.pace import Pace, work_of

OFTEN = 3
"""Repeats of a task beyond which its work is not known better."""
CLIP = 3.0
"""Deviations at which a row is cut."""
MANY = 20
"""Rows that an estimate of a spread needs."""
CRITICAL = 1.96
"""Test statistic at the ends of an interval."""


@dataclass(frozen=True, eq=False)
class Residuals:
    """Jobs of a log (J,), in groups of alike ones.

    Parameters
    ----------
    log : polars.DataFrame
    load : (J, k) float array
        What is held fixed by regression, centred.
    task, stratum : (J,) int array
        Jobs of one task, whose work is alike; jobs of one model and size, which have the same choice of nodes.
    offset : (J,) float array
        Logarithm of what is known of the work beforehand.
    predicted : bool
        Whether anything is known of it.
    """

    log: pl.DataFrame
    load: np.ndarray
    task: np.ndarray
    stratum: np.ndarray
    offset: np.ndarray
    predicted: bool

    def at(self, pace: Pace) -> np.ndarray:
        """Return an array (J,): the rest of the logarithm of work that the log implies at a pace."""
        logarithm = np.log(work_of(self.log, pace)) - self.offset
        residual = within(logarithm, self.task)
        return residual - self.load @ np.linalg.lstsq(self.load, residual, rcond=None)[0]

    def weights(self, residual: np.ndarray) -> np.ndarray:
        """Return an array (J,) of the weight of each job: how well its work is known depends on how often its task came."""
        often = np.minimum(np.bincount(self.task)[self.task] - 1, OFTEN)
        variance = np.full(OFTEN + 1, residual.var())
        for task_count in range(OFTEN + 1):
            jobs_of_count = often == task_count
            if jobs_of_count.sum() > MANY:
                variance[task_count] = residual[jobs_of_count].var()
        return 1 / variance[often]

    def centred(self, column: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return a column as an array (J,) less its mean within a stratum, and less what the load says of it."""
        stratum_sums = np.bincount(self.stratum, weight * column)
        mean = stratum_sums / np.bincount(self.stratum, weight)
        residual = column - mean[self.stratum]
        root = np.sqrt(weight)
        slopes = np.linalg.lstsq(self.load * root[:, None], residual * root, rcond=None)[0]
        return residual - self.load @ slopes

    def clipped(self, residual: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the residuals as an array (J,) about their mean, cut at `CLIP` deviations."""
        clip_limit = CLIP / np.sqrt(weight)
        return np.clip(residual - np.average(residual, weights=weight), -clip_limit, clip_limit)

    def statistic(self, column: np.ndarray, residual: np.ndarray, weight: np.ndarray) -> float:
        """Normal statistic of a dependence of residuals on a centred column; jobs of a task go together."""
        product = weight * column * self.clipped(residual, weight)
        of_tasks = np.bincount(self.task, product)
        return float(product.sum() / np.sqrt((of_tasks**2).sum()))


def residuals_of(log: pl.DataFrame, load: np.ndarray, offset: np.ndarray | None = None) -> Residuals:
    """Return `Residuals`: jobs of a log, load at their first start (J, k), and what is known of their work, if anything is."""
    first_attempts = log.filter(attempt=0)
    task = _groups(first_attempts, ["user", "name", "gpus"])
    stratum = _groups(first_attempts, ["model", "gpus"])
    predicted = offset is not None
    if not predicted:
        offset = np.zeros(first_attempts.height)
    return Residuals(log, load - load.mean(axis=0), task, stratum, offset, predicted)


def _groups(jobs: pl.DataFrame, column_names: list[str]) -> np.ndarray:
    """Array (J,) of the number of the group of jobs that are alike in some columns."""
    group_columns = pl.col(column_names).cast(pl.String).fill_null("?")
    group_texts = jobs.select(pl.concat_str(group_columns, separator="|"))
    return np.unique(group_texts.to_series(), return_inverse=True)[1].ravel()


def within(y: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return an array (n,): the rest of y (n,) less the shrunken mean of the others of its group."""
    residual = y - y.mean()
    group_sizes = np.bincount(group)
    group_sums = np.bincount(group, residual)
    mean = group_sums / group_sizes
    within = ((residual - mean[group]) ** 2).sum() / max(1, (group_sizes - 1).sum())
    between = max(residual.var() - within, 1e-9)
    alike = group_sizes[group] - 1
    shrunken = between * (group_sums[group] - residual) / (between * alike + within)
    return residual - np.where(alike > 0, shrunken, 0.0)


def power_range(jobs: Residuals, slow: np.ndarray, pace: Pace, powers: np.ndarray) -> tuple[float, float, float, int]:
    """Return a tuple: power of a slowdown, both ends of its 95 % interval, and number of rows behind it.

    It is (1, 0, inf, 0) if no job was slowed down.

    At the true power the work that the log implies does not depend on how slow its first attempt was (g-estimation); the interval
    holds the powers that this test does not refuse. `slow` (n,) is the logarithm of the speed of each attempt at power 1.
    """
    is_first_start = (jobs.log["attempt"] == 0).to_numpy()
    weight = jobs.weights(jobs.at(pace._replace(slow=pace.slow + slow)))
    centred_slowness = jobs.centred(slow[is_first_start], weight)
    slowed_jobs = int((slow[is_first_start] < np.log(0.99)).sum())
    if slowed_jobs == 0 or (weight * centred_slowness**2).sum() < 1e-6:
        return 1.0, 0.0, np.inf, 0
    tests = []
    for power in powers:
        residual = jobs.at(pace._replace(slow=pace.slow + power * slow))
        tests.append(abs(jobs.statistic(centred_slowness, residual, weight)))
    best = int(np.argmin(tests))
    accepted_powers = np.flatnonzero(np.array(tests) < CRITICAL)
    if not len(accepted_powers):
        accepted_powers = np.array([best])
    low = powers[accepted_powers[0]]
    high = powers[accepted_powers[-1]]
    if accepted_powers[0] == 0:
        low = 0.0
    if accepted_powers[-1] == len(powers) - 1:
        high = np.inf
    return float(powers[best]), float(low), float(high), slowed_jobs
