"""Gain of a task from another: scores of task embeddings, and gains by regression on them (Ymir, equations 3.1 to 3.4)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from gpuschedlab.errors import EstimatorError
from gpuschedlab.estimators.sklearn_api import Parameters, Regressor

SMALLEST = 1e-12
"""Added to sums of embeddings, so that parameters that no task moves count as alike."""


def embedding_distance(a, b) -> np.ndarray:
    """Return the symmetric distance of task embeddings (3.3), an array: the cosine distance of a / (a + b) and b / (a + b).

    The embeddings (..., p) are diagonals of the Fisher information, >= 0. The distance (...) of one and itself is 0, at most 1.
    """
    a = np.asarray(a, float)
    b = np.asarray(b, float)
    for embedding_name, embedding in (("a", a), ("b", b)):
        if not (np.isfinite(embedding) & (embedding >= 0)).all():
            raise EstimatorError(
                f"embedding_distance: found {embedding_name} with entries below 0 or not finite; expected >= 0."
            )
    if a.shape[-1:] != b.shape[-1:]:
        raise EstimatorError(f"embedding_distance: found {a.shape[-1:]} and {b.shape[-1:]} entries; expected as many.")
    embedding_sum = a + b + 2 * SMALLEST
    x = (a + SMALLEST) / embedding_sum
    y = (b + SMALLEST) / embedding_sum
    norms = np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1)
    cosine = (x * y).sum(axis=-1) / norms
    return np.clip(np.round(1 - cosine, 12), 0.0, 1.0)


def temporal_score(source, target, again) -> np.ndarray:
    """Return an array of scores of training a target after a source (3.4): their distance, less that of two embeddings of the target.

    `again` is the target's second embedding (..., p), from another subset of its data.
    """
    return embedding_distance(source, target) - embedding_distance(target, again)


def joint_score(a, a_again, b, b_again) -> np.ndarray:
    """Return an array of scores of training two tasks jointly: the mean of the temporal scores in both directions."""
    return (temporal_score(a, b, b_again) + temporal_score(b, a, a_again)) / 2


def transfer_gain(together, alone) -> np.ndarray:
    """Return an array of gains (3.1): the metric reached with another task over that reached alone, less 1.

    A metric that is negative, such as a negated loss, is divided by its size; if one alone is 0, there is no gain.
    """
    together = np.asarray(together, float)
    alone = np.asarray(alone, float)
    if (alone == 0).any():
        raise EstimatorError("transfer_gain: found a metric of 0 alone; expected another. Leave the task out.")
    return (together - alone) / np.abs(alone)


@dataclass
class GainRegression(Regressor, Parameters):
    """Gain by a straight line through scores (section 3.4.2.1).

    Differs from the paper in
    -------------------------
    Nothing known; the paper does not say on which pairs it fits. A score is a distance, so that the slope is expected to be
    negative.
    """

    _target: ClassVar[str] = "gain"

    def fit(self, pairs: pl.DataFrame, gain=None) -> "GainRegression":
        """Fit least squares to pairs `source, target, score` and their gains (n,), and return itself, a `GainRegression`.

        Gains are by default the column `gain`.
        """
        gain = checked(self, pairs, self._labelled(pairs, gain, "pairs")["gain"], "score")
        score = pairs["score"].to_numpy()
        spread = score - score.mean()
        width = float(spread @ spread)
        self.slope_ = float(spread @ gain) / width if width > 0 else 0.0
        self.start_ = float(gain.mean() - self.slope_ * score.mean())
        return self

    def predict(self, pairs: pl.DataFrame) -> np.ndarray:
        """Return an array (n,): gains of pairs by their scores."""
        if not hasattr(self, "start_"):
            raise EstimatorError("GainRegression has not been fitted; expected fit before predict.")
        self._demand(pairs, ("score",), "pairs")
        return self.start_ + self.slope_ * pairs["score"].to_numpy()


def checked(model, pairs: pl.DataFrame, gain, *also: str) -> np.ndarray:
    """Return an array of the gains, or raise EstimatorError by the fault of them or of the pairs."""
    who = type(model).__name__
    gain = np.asarray(gain, float)
    missing = [c for c in ("source", "target", *also) if c not in pairs.columns]
    if missing:
        raise EstimatorError(
            f"{who}.fit: found no column {missing[0]!r}; expected source, target and {', '.join(also)}."
        )
    if gain.shape != (pairs.height,) or not len(gain) or not np.isfinite(gain).all():
        unknown = np.isnan(gain).sum()
        raise EstimatorError(
            f"{who}.fit: found gains of shape {gain.shape} for {pairs.height} pairs, {unknown} of them "
            "nan; expected at least one pair, and a finite gain each. Leave out pairs that were not measured."
        )
    itself = pairs.filter(pl.col("source") == pl.col("target"))
    if itself.height:
        raise EstimatorError(f"{who}.fit: found a pair of {itself['source'][0]!r} with itself; expected two tasks.")
    return gain
