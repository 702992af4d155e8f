"""Rolling estimates from a user's earlier jobs: half of QSSF's estimator, Helios (SC 2021)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from gpuschedlab.errors import EstimatorError
from gpuschedlab.estimators.base import Estimator
from gpuschedlab.estimators.past import LEVELS, pasts, recall, with_kin


@dataclass(frozen=True)
class History(Estimator):
    """Expect a job to last as long as its user's earlier jobs like it did.

    The estimate is the exponentially weighted mean of the durations of the most alike group that has a past:
    the same user and task; otherwise the same user and number of GPUs; the same user; the same number of
    GPUs; all jobs. A job's task is its name without digits. Recent jobs count more: the weight halves every
    `half_life` jobs of the group.

    Parameters
    ----------
    half_life : float
        Jobs after which a weight has halved, > 0.
    statistic : {"geometric", "mean"}
        Mean of the logarithms (the typical job, little moved by a few that last for days) or of the
        durations, as in the paper.
    least : int
        Jobs that a group needs to be believed, >= 1.

    Attributes
    ----------
    tables_ : dict of tuple to polars.DataFrame
        For each level its groups' past.

    Raises
    ------
    EstimatorError
        A parameter is out of range.

    References
    ----------
    .. [1] Hu et al., "Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU
       Datacenters", SC 2021, section 4.2, algorithm 1 (rolling estimate).

    Differs from the paper in
    -------------------------
    Names are alike when they are equal without digits, instead of by Levenshtein distance. Statistics are
    those of the history given to `fit` and do not roll on while the predicted trace runs. The geometric mean
    is the default. The paper weighs this estimate with that of a boosted model, here `Runtime`, which reads
    the same statistics as features.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 9.0], "gpus": [1.0, 8.0]})
    >>> jobs = jobs.with_columns(user=pl.Series(["ann", "bob"]))
    >>> history = jobs.with_columns(duration=pl.Series([50.0, 70.0]))
    >>> later = jobs.with_columns(user=pl.Series(["ann", "eve"]))
    >>> History().fit(history).predict(later).round(6)
    array([50., 70.])
    """

    half_life: float = 10.0
    statistic: Literal["geometric", "mean"] = "geometric"
    least: int = 1

    def __post_init__(self):
        if not self.half_life > 0:
            raise EstimatorError(f"History.half_life: found {self.half_life!r} jobs; expected a number > 0.")
        if self.statistic not in ("geometric", "mean"):
            raise EstimatorError(f"History.statistic: found {self.statistic!r}; expected 'geometric' or 'mean'.")
        if not self.least >= 1:
            raise EstimatorError(f"History.least: found {self.least!r} jobs; expected a whole number >= 1.")

    def _fit(self, history: pl.DataFrame) -> None:
        self._learn(tables_=pasts(with_kin(history), self.half_life))

    def _predict(self, jobs: pl.DataFrame) -> np.ndarray:
        jobs = with_kin(jobs)
        estimate = np.full(jobs.height, np.nan)
        for keys in LEVELS:
            found = recall(self.tables_[keys], keys, jobs)
            value = found["mean"] if self.statistic == "mean" else found["log_mean"].exp()
            enough = (found["count"].to_numpy() >= self.least) | (not keys)
            estimate = np.where(np.isnan(estimate) & enough, value.to_numpy(), estimate)
        return estimate
