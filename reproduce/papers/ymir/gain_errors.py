"""How well gains of pairs of tasks are predicted."""

from typing import NamedTuple

import numpy as np
from scipy.stats import spearmanr


class GainErrors(NamedTuple):
    """How well gains are predicted.

    `pearson`: correlation of prediction and gain. `mape`: mean absolute error over the size of the gain, in per cent, where that
    is at least 0.001: it has no meaning near 0. `mae`: mean absolute error. `sign`: share of pairs of which it is known
    whether they gain. `majority`: share of the more frequent sign, which one word for all pairs reaches. `within`: mean over
    targets of the rank correlation of prediction and gain among the target's sources.
    """

    pearson: float
    mape: float
    mae: float
    sign: float
    majority: float
    within: float

    @classmethod
    def of(cls, target, gain, predicted) -> "GainErrors":
        """Errors of predictions (n,) for pairs with these targets and measured gains."""
        target = np.asarray(target)
        gain = np.asarray(gain, float)
        predicted = np.asarray(predicted, float)
        error = np.abs(predicted - gain)
        sized = np.abs(gain) >= 1e-3
        gains = gain >= 0
        pairs = [(predicted[target == t], gain[target == t]) for t in np.unique(target)]
        # Where one side does not vary, or there is one pair, there is no correlation.
        ranks = [spearmanr(*pair).statistic for pair in pairs if min(map(np.ptp, pair)) > 0]
        with np.errstate(invalid="ignore", divide="ignore"):
            pearson = float(np.corrcoef(predicted, gain)[0, 1]) if len(gain) > 1 else np.nan
        return cls(
            pearson,
            float(100 * (error[sized] / np.abs(gain[sized])).mean()) if sized.any() else np.nan,
            float(error.mean()),
            float((gains == (predicted >= 0)).mean()),
            float(max(gains.mean(), 1 - gains.mean())),
            float(np.mean(ranks)) if ranks else np.nan,
        )
