"""Error of predictions, by the jobs whose work is known for sure."""

from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.autosched.mechanisms.costs import Costs
from gpuschedlab.autosched.mechanisms.rates import prediction_error
from gpuschedlab.autosched.mechanisms.readings import FEWEST, Mechanism
from gpuschedlab.autosched.mechanisms.work.pace import Pace, work_of

UNSURE = 0.05
"""Part of its work up to which the time of a job's restarts may be unknown."""


class Predictions(NamedTuple):
    """Mechanism, and `ratio` (logarithm of predicted over inferred work), `user`, `model`, `failed` of the jobs behind it."""

    mechanism: Mechanism
    jobs: pl.DataFrame


def predictions_of(log: pl.DataFrame, paces: list[Pace], costs: Costs) -> Predictions:
    """Return `Predictions`: the error of predicted durations at the first of some paces; the interval holds those at the others.

    Jobs that lost work, and those of whose work over `UNSURE` may have been delay, are left out.
    """
    why = pl.col("why")
    jobs = log.group_by("job", maintain_order=True).agg(
        pl.col("predicted", "user", "model").first(),
        starts=pl.len(),
        done=why.last() == "done",
        failed=(why == "node").any(),
    )
    work = work_of(log, paces[0])
    predicted = jobs["predicted"].fill_null(0.0).to_numpy()
    comparable = jobs["done"].to_numpy() & (predicted > 0)
    unsure = _unsure_seconds(jobs["starts"].to_numpy(), log, costs)
    is_sure = comparable & (unsure <= UNSURE * work) & ~jobs["failed"].to_numpy()
    sure_jobs = int(is_sure.sum())
    if sure_jobs < FEWEST:
        unseen = 0.0, 0.0, np.inf, "", sure_jobs, 0.0, False, "no column predicted"
        return Predictions(Mechanism("prediction", *unseen), jobs.clear())
    errors = [prediction_error(predicted[is_sure], work_of(log, pace)[is_sure]) for pace in paces]
    value = errors[0][0]
    low = min(error[1] for error in errors)
    high = max(error[2] for error in errors)
    mechanism = Mechanism("prediction", value, low, high, "", sure_jobs, sure_jobs / jobs.height, True)
    prediction_ratio = np.log(np.where(comparable, predicted, 1.0) / work)
    jobs = jobs.with_columns(ratio=prediction_ratio)
    return Predictions(mechanism, jobs.filter(pl.Series(is_sure)))


def _unsure_seconds(starts: np.ndarray, log: pl.DataFrame, costs: Costs) -> np.ndarray:
    """Array (J,) of the seconds by which the time of starts may differ from the assumed one."""
    unsure = np.zeros(len(starts))
    if costs.start.seen:
        unsure += (costs.start.high - costs.start.low) / 2
    if costs.delay is None:
        return unsure
    gpus = log.filter(attempt=0)["gpus"].to_numpy()
    job_sizes, size_of_job = np.unique(gpus, return_inverse=True)
    delay_ends = np.array([costs.delay.at(job_size) for job_size in job_sizes])
    delay_width = delay_ends[:, 2] - delay_ends[:, 1]
    half_delay = delay_width / 2 + costs.delay.sigma * delay_ends[:, 0]
    return unsure + (starts - 1) * half_delay[size_of_job]
