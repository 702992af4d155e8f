"""Requested times: the knowledge of batch schedulers about run times, alone and with a user's last jobs."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from gpuschedlab.estimators.base import Estimator
from gpuschedlab.knobs import Knob

DAY = 86_400.0
DEFAULT = Knob(1.0, 1e8, log=True, unit="s", help="of a job without a limit, or without a request")


def requests(jobs: pl.DataFrame, default: float) -> np.ndarray:
    """Return an array of the requested time (s) of each job, `default` if there is none, or no limit."""
    if "requested_time" not in jobs.columns:
        return np.full(jobs.height, float(default))
    requested_time = jobs["requested_time"].cast(pl.Float64).fill_null(np.inf).to_numpy()
    return np.where(np.isfinite(requested_time), requested_time, default)


@dataclass(frozen=True)
class Requested(Estimator):
    """Expect a job to last as long as its user requested: the estimate of EASY backfilling.

    Parameters
    ----------
    default : float
        Seconds for a job whose log has no request, or no limit.

    References
    ----------
    Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995; Mu'alem and Feitelson, TPDS 2001.

    Differs from the paper in
    -------------------------
    A job that outlives its request is not killed: its recorded duration stands.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 9.0], "gpus": 1.0, "requested_time": [7200.0, None]})
    >>> Requested().predict(jobs)
    array([ 7200., 86400.])
    """

    needs_history: ClassVar[bool] = False
    default: Annotated[float, DEFAULT] = DAY

    def _predict(self, jobs: pl.DataFrame) -> np.ndarray:
        return requests(jobs, self.default)


@dataclass(frozen=True)
class Recent(Estimator):
    """Expect a job to last as long as the mean of its user's last k jobs, and never longer than requested.

    Parameters
    ----------
    k : int
        Jobs of a user that count, the last to have ended.
    default : float
        Seconds for a job without a request, or without a limit, of a user without a past.

    Attributes
    ----------
    means_ : dict of str to float
        Mean duration (s) of each user's last k jobs.

    References
    ----------
    Tsafrir, Etsion and Feitelson, "Backfilling Using System-Generated Predictions Rather than User Runtime Estimates",
    TPDS 2007, section 3.

    Differs from the paper in
    -------------------------
    The last jobs are those of the history given to `fit`, and do not roll on while the predicted trace runs; a prediction
    that a job outlives is not raised.

    Examples
    --------
    >>> past = pl.DataFrame({"job_id": ["a", "b", "c"], "submit": [0.0, 1.0, 2.0], "gpus": 1.0, "user": "ann"})
    >>> past = past.with_columns(duration=pl.Series([900.0, 60.0, 120.0]))
    >>> jobs = past.with_columns(requested_time=pl.Series([3600.0, 50.0, None]))
    >>> Recent(k=2).fit(past).predict(jobs)
    array([510.,  50., 510.])
    """

    k: Annotated[int, Knob(1, 100, unit="jobs", tuned=(1, 10), help="a user's last jobs that count")] = 2
    default: Annotated[float, DEFAULT] = DAY

    def _fit(self, history: pl.DataFrame) -> None:
        if "user" not in history.columns:
            self._learn(means_={})
            return
        ended = history.drop_nulls("user").sort(pl.col("submit") + pl.col("duration"), "job_id")
        last_jobs = ended.group_by("user", maintain_order=True).tail(self.k)
        self._learn(
            means_=dict(last_jobs.group_by("user", maintain_order=True).agg(pl.col("duration").mean()).iter_rows())
        )

    def _predict(self, jobs: pl.DataFrame) -> np.ndarray:
        requested_time = requests(jobs, self.default)
        users = jobs["user"].to_list() if "user" in jobs.columns else [None] * jobs.height
        return np.minimum(requested_time, [self.means_.get(user, np.inf) for user in users])
