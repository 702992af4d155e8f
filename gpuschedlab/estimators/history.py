"""Rolling estimates from a user's earlier jobs: half of QSSF's estimator, Helios (SC 2021)."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import polars as pl

from gpuschedlab.estimators.base import Estimator
from gpuschedlab.estimators.past import HALF_LIFE, LEVELS, pasts, recall, with_kin
from gpuschedlab.knobs import Knob

#: Priors that are tried, in jobs.
PRIORS = (0.0, 0.3, 1.0, 3.0, 10.0, 30.0, np.inf)
#: Jobs below which a history is too short to choose priors on; they are 1 job then.
FEW = 60


@dataclass(frozen=True)
class History(Estimator):
    r"""Expect a job to last as long as earlier ones like it did.

    Jobs are alike in ever narrower groups: all; the same number of GPUs; the same user; the same user and number of
    GPUs; the same user and a name that differs in digits only; the same user and name. From the widest to the
    narrowest the estimate moves towards the group's mean, the more the more jobs the group has:

    .. math:: e_g = w m_g + (1 - w) e_{g-1}, \quad w = n_g / (n_g + k_g).

    The prior k is the number of jobs that the wider estimate counts for. It is chosen for each level on the last third of the
    history, predicted from the first two thirds: if users do not repeat themselves it comes out infinite.

    Parameters
    ----------
    half_life : float
        Jobs after which a weight has halved in groups of like names, > 0.
    statistic : {"geometric", "mean"}
        Mean of the logarithms (the typical job, little moved by a few that last for days) or of the durations, as in
        the paper.
    prior : float, optional
        One prior (jobs, >= 0) for all levels; 0 is the paper's rule, which believes the narrowest group that has a
        past. None: chosen.

    Attributes
    ----------
    tables_ : dict of tuple to polars.DataFrame
        For each level its groups' past.
    priors_ : dict of tuple to float
        For each level its prior, in jobs.

    References
    ----------
    .. [1] Hu et al., "Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU Datacenters",
       SC 2021, section 4.2, algorithm 1 (rolling estimate).

    Differs from the paper in
    -------------------------
    Groups are pooled instead of believing the narrowest alone (`prior=0` does that), and the geometric mean is the
    default. Names are alike when they differ in digits only, instead of by Levenshtein distance. Statistics are
    those of the history given to `fit` and do not roll on while the predicted trace runs. The paper weighs this
    estimate with that of a boosted model, here `Runtime`, which reads the same statistics as features.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 9.0], "gpus": [1.0, 8.0]})
    >>> jobs = jobs.with_columns(user=pl.Series(["ann", "bob"]))
    >>> history = jobs.with_columns(duration=pl.Series([50.0, 70.0]))
    >>> later = jobs.with_columns(user=pl.Series(["ann", "eve"]))
    >>> History(prior=0).fit(history).predict(later).round(6)
    array([50., 70.])
    """

    half_life: Annotated[float, HALF_LIFE] = 10.0
    statistic: Annotated[str, Knob(choices=("geometric", "mean"), help="typical duration of a group")] = "geometric"
    prior: Annotated[
        float | None,
        Knob(0, 1e12, unit="jobs", tuned=(0, 30), help="jobs that the wider group counts for; none: chosen"),
    ] = None

    def _fit(self, history: pl.DataFrame) -> None:
        jobs = with_kin(history).sort("submit", "job_id")
        self._learn(tables_=pasts(jobs, self.half_life), priors_=self._priors(jobs))

    def _predict(self, jobs: pl.DataFrame) -> np.ndarray:
        jobs, estimate = with_kin(jobs), np.ones(jobs.height)
        for keys in reversed(LEVELS):
            estimate = self._narrow(estimate, recall(self.tables_[keys], keys, jobs), self.priors_[keys], not keys)
        return estimate

    def _narrow(self, estimate: np.ndarray, group_past: pl.DataFrame, prior: float, widest: bool) -> np.ndarray:
        """Return an array of estimates (s) moved from the wider group's towards that of the narrower one."""
        group_size = group_past["count"].to_numpy().astype(float)
        weight = np.where(group_size > 0, group_size / np.maximum(group_size + (0.0 if widest else prior), 1e-300), 0.0)
        mean = group_past["mean" if self.statistic == "mean" else "log_mean"].fill_null(0.0).to_numpy()
        if self.statistic == "mean":
            return weight * mean + (1 - weight) * estimate
        return np.exp(weight * mean + (1 - weight) * np.log(estimate))

    def _priors(self, jobs: pl.DataFrame) -> dict[tuple[str, ...], float]:
        """Return a dict of each level's prior, chosen from the widest level on, by the mean absolute error of the logarithm."""
        if self.prior is not None or jobs.height < FEW:
            return dict.fromkeys(LEVELS, 1.0 if self.prior is None else float(self.prior))
        cut = 2 * jobs.height // 3
        tables = pasts(jobs[:cut], self.half_life)
        later = jobs[cut:]
        truth = later["duration"].log().to_numpy()
        estimate = np.ones(later.height)
        chosen = {}
        for keys in reversed(LEVELS):
            group_past = recall(tables[keys], keys, later)
            tried = [self._narrow(estimate, group_past, prior, not keys) for prior in PRIORS]
            best_prior = int(np.argmin([np.abs(np.log(tried_estimate) - truth).mean() for tried_estimate in tried]))
            estimate = tried[best_prior]
            chosen[keys] = PRIORS[best_prior]
        return chosen
