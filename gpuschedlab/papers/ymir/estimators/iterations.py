"""How long a task has to train: its loss curve, the limit of that, and the saving by another task (Ymir, 3.5 to 3.7)."""

import math
from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import EstimatorError

FLAT = 1e-3
"""Drop of the normalised loss below which training has converged (3.5)."""

MOST = 100_000
"""Iterations of a curve that never gets there."""


class LossCurve(NamedTuple):
    """L(k) = 1 / (b3 k^2 + b2 k + b1) + b0, all b >= 0 (3.6)."""

    b0: float
    b1: float
    b2: float
    b3: float = 0.0

    def of(self, k) -> np.ndarray:
        """Return an array of any shape: the loss after k epochs (or steps)."""
        k = np.asarray(k, float)
        return 1.0 / (self.b3 * k**2 + self.b2 * k + self.b1) + self.b0


def fit_loss(k, loss, *, square: bool = True) -> LossCurve:
    """Fit a loss curve, normalised to a maximum of 1, and return the `LossCurve`.

    Of 2 measurements or more, at epochs (or steps) `k` (n,), ascending; the loss (n,) is 0 or above, such as 1 less an accuracy.
    Without `square`, b3 is 0: the curve of Optimus. How it is fitted is not said in the paper. Here, for each of 50 values of b0
    below the least loss, the other coefficients follow by non-negative least squares on 1 / (L - b0), weighted so that errors of L
    count; the best is kept.
    """
    from scipy.optimize import nnls  # loaded when used: every import would wait for it

    k = np.asarray(k, float)
    loss = np.asarray(loss, float)
    if len(k) < 2 or k.shape != loss.shape or not np.isfinite(loss).all() or (loss < 0).any() or not loss.max() > 0:
        raise EstimatorError(f"fit_loss: found losses {loss.tolist()}; expected 2 or more, 0 or above, not all 0.")
    loss = loss / loss.max()
    columns = np.stack([np.ones_like(k), k, k**2][: 3 if square else 2], axis=1)
    best_curve = None
    least = np.inf
    for b0 in np.linspace(0.0, 0.999 * loss.min(), 50):
        weight = (loss - b0 + 1e-9) ** 2  # dL = (L - b0)^2 d(1 / (L - b0))
        b, _ = nnls(columns * weight[:, None], weight / (loss - b0 + 1e-9))
        if b.sum() <= 0 or (columns @ b <= 0).any():
            continue
        predicted = 1 / (columns @ b) + b0
        error = float(((predicted - loss) ** 2).sum())
        if error < least:
            best_curve = LossCurve(float(b0), *map(float, b))
            least = error
    return best_curve if best_curve is not None else LossCurve(0.0, 1.0, 0.0)


def converged(curve: LossCurve, gain: float = 0.0, *, flat: float = FLAT, most: int = MOST) -> int:
    """Return the first number k >= 1 from which one more saves no more than `flat` of the loss, divided by 1 + gain (3.5)."""
    return _first(lambda k: (curve.of(k) - curve.of(k + 1)) / _more(gain) <= flat, most)


def iterations(
    curve: LossCurve, gain: float = 0.0, *, rule: str = "target", flat: float = FLAT, goal: float | None = None
) -> int:
    """Return the number of epochs (or steps) that a task needs with a gain (above -1) from another.

    It is at least 1, and 100,000 if it never gets there.

    By the rule ``paper``, that is where the loss over 1 + gain converges (3.5); by ``target``, where it first is as low as it is
    alone at convergence, as the paper's text describes its purpose, or as low as its `goal`, if it has one.
    """
    if rule not in ("target", "paper"):
        raise EstimatorError(f"iterations: found rule {rule!r}; expected 'target' or 'paper'.")
    if rule == "paper":
        return converged(curve, gain, flat=flat)
    goal = float(curve.of(converged(curve, flat=flat))) if goal is None else goal
    return _first(lambda k: curve.of(k) / _more(gain) <= goal + 1e-12, MOST)


def saved(curve: LossCurve, gain: float, *, rule: str = "target") -> float:
    """Return a float: the epochs needed alone over those with a gain.

    It is a factor on the speed, as in `Speeds.transfer`; 0: never.
    """
    epochs_with_gain = iterations(curve, gain, rule=rule)
    return 0.0 if epochs_with_gain >= MOST else iterations(curve, rule=rule) / epochs_with_gain


def joint_iterations(k, batch, samples) -> tuple[float, float]:
    """Return a tuple: steps of a joint training until each of two tasks is there; the slower one's are those of the pair (3.7).

    From steps, batch size, samples of an epoch of each: the task's epochs, times the steps of a joint epoch.
    """
    ka, kb = k
    ma, mb = batch
    da, db = samples
    if not min(ka, kb, ma, mb, da, db) > 0 or not math.isfinite(ka + kb):
        raise EstimatorError(f"joint_iterations: found {k}, {batch}, {samples}; expected numbers above 0.")
    epoch = (da + db) / (ma + mb)
    return ka * ma / da * epoch, kb * mb / db * epoch


def _more(gain: float) -> float:
    if not gain > -1:
        raise EstimatorError(f"iterations: found gain {gain}; expected above -1.")
    return 1 + gain


def _first(holds, most: int) -> int:
    """Return the first number k of 1 to most for which a condition holds; most if none does."""
    step = 1024
    for start in range(1, most, step):
        k = np.arange(start, min(start + step, most))
        places_that_hold = np.flatnonzero(holds(k))
        if len(places_that_hold):
            return int(k[places_that_hold[0]])
    return most
