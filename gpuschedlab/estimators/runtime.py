"""A boosted model of durations: the learnt half of QSSF's estimator, Helios (SC 2021)."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import polars as pl

from gpuschedlab._extras import need
from gpuschedlab.estimators.base import Estimator
from gpuschedlab.estimators.past import HALF_LIFE, LEVELS, pasts, recall, with_kin
from gpuschedlab.knobs import Knob

#: Columns that are names, not numbers.
CATEGORIES = ("user", "vc", "model", "name", "kin", "kind")

#: Groups with their past as a feature; the wider ones the trees find by themselves.
RECURRENT = LEVELS[:4]


@dataclass(frozen=True)
class Runtime(Estimator):
    """Predict durations with gradient-boosted trees on columns that are known at submission.

    The trees (XGBoost, squared error of the natural logarithm) read the number of GPUs, hour of the day and weekday
    (of `clock`; without it, of `submit` as if the trace began on a Monday at midnight); as categories the user,
    virtual cluster, model, kind, name, and name without digits; and, with `recurrent`, the number, weighted mean and
    last logarithm of the durations of the same user's jobs: all, with as many GPUs, with like names, with the same
    name. In training these are as they were known when that job was submitted: jobs that had finished by then. A user or
    name that was never seen is a missing value, which the trees send the way that fitted best.

    Parameters
    ----------
    trees, depth : int
        Number of trees and their depth, >= 1.
    rate : float
        Share of each tree's answer that is added, in (0, 1].
    recurrent : bool
        Whether the statistics of the past are features.
    half_life : float
        Jobs after which a weight in them has halved, > 0.

    Attributes
    ----------
    booster_ : xgboost.Booster
    codes_ : dict of str to polars.Enum
        Categories seen; their numbers are the codes.
    tables_ : dict of tuple to polars.DataFrame
        The groups' past, at the end of the history.
    range_ : tuple of float
        Shortest and longest duration seen (s); estimates stay within it.

    References
    ----------
    .. [1] Hu et al., "Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU
       Datacenters", SC 2021, section 4.2 (gradient-boosted estimate of QSSF).
    .. [2] Hu et al., "Lucid", ASPLOS 2023, section 3.5 (workload estimate model).

    Differs from the paper in
    -------------------------
    XGBoost in the place of LightGBM [1] and of a generalised additive model [2]; the logarithm of the
    duration is predicted; instead of a weighted sum of this and the rolling estimate, the rolling statistics
    are features. It is not fitted again while the predicted trace runs. Durations that the source cut off
    (`censored`) are taken as they stand if they are given to `fit`; a scenario leaves them out. One thread: the same bytes everywhere.

    Examples
    --------
    >>> n = np.arange(64)
    >>> jobs = pl.DataFrame({"job_id": n.astype(str), "submit": 1e4 * n, "gpus": 1.0 + n % 2})
    >>> jobs = jobs.with_columns(duration=10 + 90 * (pl.col("gpus") - 1))
    >>> Runtime().fit(jobs).predict(jobs[:2]).round(0)
    array([ 10., 100.])
    """

    trees: Annotated[int, Knob(1, 100_000, log=True, tuned=(10, 1000), help="number of trees")] = 150
    depth: Annotated[int, Knob(1, 64, tuned=(1, 10), help="of each tree")] = 4
    rate: Annotated[
        float, Knob(1e-9, 1, log=True, tuned=(0.01, 1), help="share of each tree's answer that is added")
    ] = 0.1
    recurrent: Annotated[bool, Knob(help="whether the statistics of the past are features")] = True
    half_life: Annotated[float, HALF_LIFE] = 10.0

    def _fit(self, history: pl.DataFrame) -> None:
        jobs = with_kin(history).sort("submit", "job_id")
        durations = jobs["duration"].to_numpy()
        category_names = {
            category: jobs[category].cast(pl.String).drop_nulls().unique().sort()
            for category in CATEGORIES
            if category in jobs.columns
        }
        self._learn(
            codes_={category: pl.Enum(names_in_history) for category, names_in_history in category_names.items()},
            tables_=pasts(jobs, self.half_life),
            range_=(float(durations.min()), float(durations.max())),
        )
        training_matrix = self._matrix(jobs, at="submit", label=np.log(durations))
        parameters = {"eta": self.rate, "max_depth": self.depth, "objective": "reg:squarederror"}
        # One thread and no sampling: sums in one order, so the same trees on any machine.
        parameters |= {"tree_method": "hist", "nthread": 1, "seed": 0, "verbosity": 0}
        self._learn(booster_=need("xgboost").train(parameters, training_matrix, num_boost_round=self.trees))

    def _predict(self, jobs: pl.DataFrame) -> np.ndarray:
        if jobs.is_empty():
            return np.zeros(0)
        predicted = np.exp(self.booster_.predict(self._matrix(with_kin(jobs))).astype(float))
        return np.clip(predicted, *self.range_)

    def _matrix(self, jobs: pl.DataFrame, at: str | None = None, label=None):
        hour = pl.col("submit") / 3600 % 24
        weekday = (pl.col("submit") / 86_400).floor() % 7  # 0: Monday
        if "clock" in jobs.columns:
            clock = pl.col("clock").dt
            hour = clock.hour() + clock.minute() / 60
            weekday = clock.weekday() - 1
        features = jobs.select("gpus", hour=hour, weekday=weekday).to_dict()
        for feature, codes in self.codes_.items():
            category_text = (
                pl.col(feature).cast(pl.String)
                if feature in jobs.columns
                else pl.repeat(None, pl.len(), dtype=pl.String)
            )
            features[feature] = jobs.select(category_text.cast(codes, strict=False).to_physical()).to_series()
        for keys in RECURRENT if self.recurrent else ():
            group_past = recall(self.tables_[keys], keys, jobs, at)
            features |= {
                f"{past_column} of {' and '.join(keys)}": group_past[past_column]
                for past_column in ("count", "log_mean", "last")
            }
        feature_columns = [
            np.asarray(feature_values.cast(pl.Float64).fill_null(np.nan).to_numpy(), np.float32)
            for feature_values in features.values()
        ]
        return need("xgboost").DMatrix(
            np.stack(feature_columns, axis=1),
            label=label,
            feature_names=list(features),
            feature_types=["c" if feature_name in self.codes_ else "float" for feature_name in features],
            enable_categorical=True,
            nthread=1,
        )
