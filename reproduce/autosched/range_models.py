"""Classifiers of duration ranges that the thesis compares and no default uses, as further `MODELS`, and a sweep of XGBoost's knobs."""

from dataclasses import replace
from itertools import product

import polars as pl

from gpuschedlab.autosched.forecast.ranges import MODELS
from gpuschedlab.errors import EstimatorError

__all__ = ["MODELS", "OWN", "sweep"]

LEARNT = 0.7
"""Share of the jobs, first in time, that hyper-parameters are chosen on (6.5.1)."""
SWEPT = {"depth": (3, 5, 8), "rate": (0.05, 0.15), "trees": (30, 150)}
"""Hyper-parameters of XGBoost that `sweep` tries; which ones the thesis tries is not published."""


def _forest(rng, *_):
    from sklearn import ensemble, impute, pipeline

    forest = ensemble.RandomForestClassifier(60, min_samples_leaf=5, n_jobs=1, random_state=rng)
    return pipeline.make_pipeline(impute.SimpleImputer(keep_empty_features=True), forest)


def _scaled(last):
    from sklearn import impute, pipeline, preprocessing

    return pipeline.make_pipeline(impute.SimpleImputer(keep_empty_features=True), preprocessing.StandardScaler(), last)


def _logistic(rng, *_):
    from sklearn.linear_model import LogisticRegression

    return _scaled(LogisticRegression(C=0.01, max_iter=80))


def _mlp(rng, *_):
    from sklearn.neural_network import MLPClassifier

    return _scaled(MLPClassifier((64, 32), max_iter=40, alpha=0.01, early_stopping=True, random_state=rng))


OWN = {"forest": _forest, "mlp": _mlp, "logistic": _logistic}
"""Classifiers by name: `MODELS.update(OWN)` makes the predictor take them."""


def sweep(predictor, repository: pl.DataFrame) -> tuple:
    """Copy with the hyper-parameters of `SWEPT` that are right most often, not fitted; and what was tried, most accurate first.

    They learn from the first four fifths by time of the training queries of the first `LEARNT` of the jobs, as far as these
    were known then, and are judged on the last fifth, each with the best of `WEIGHTS`. The jobs after that, which test the
    predictor, are not looked at. EstimatorError if too few of the jobs have ended.
    """
    past = repository.head(int(LEARNT * repository.height))
    _, queries = predictor._queries(past, past["submit"].max() if past.height else 0.0)
    if not len(queries.early):
        raise EstimatorError(
            "sweep: found no job that had ended after four fifths of the time; expected some. Give a longer history."
        )
    tried = [dict(zip(SWEPT, values, strict=True)) for values in product(*SWEPT.values())]
    rows = [one | {"right": replace(predictor, **one)._judged(queries)[0]} for one in tried]
    best = pl.DataFrame(rows).sort("right", descending=True, maintain_order=True)
    return replace(predictor, **{name: best[name][0] for name in SWEPT}), best
