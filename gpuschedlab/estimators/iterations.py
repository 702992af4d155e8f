"""How many iterations fine-tuning takes (Ymir, section 4.2): a loss curve, when it has converged, and what a gain saves."""

from dataclasses import dataclass

import numpy as np

from gpuschedlab.errors import EstimatorError

FLAT = 0.001
"""Fall of the normalised loss in one unit below which training has converged (equation 2)."""

FARTHEST = 100_000


@dataclass(frozen=True)
class LossCurve:
    """Normalised loss after k units: L(k) = 1 / (b3 k^2 + b2 k + b1) + b0, all coefficients 0 or more (equation 3).

    Parameters
    ----------
    b0, b1, b2, b3 : float

    Differs from the paper in
    -------------------------
    The unit of k is the caller's: with single training steps (equation 2) the iterations depend on the batch size.
    The printed argmin of an indicator is the first k at which it holds.

    References
    ----------
    Gao et al., Ymir, ICS'24, equations 2 to 4; Peng et al., Optimus, EuroSys'18, for b3 = 0.

    Examples
    --------
    >>> true = LossCurve(0.1, 1.0, 0.5, 0.02)
    >>> k = np.arange(1, 8)
    >>> found = LossCurve.fit(k, true.at(k))
    >>> bool(np.abs(found.at(k) / true.at(k) * true.at(1) - 1).max() < 0.01)
    True
    """

    b0: float
    b1: float
    b2: float
    b3: float = 0.0

    @classmethod
    def fit(cls, k, loss, *, quadratic: bool = True) -> "LossCurve":
        """Fit to a profiled trace; the losses are divided by the largest.

        Parameters
        ----------
        k, loss : (n,) float arrays
            Three points at least, losses > 0.
        quadratic : bool
            Whether there is a b3; without, it is Optimus' curve.

        Raises
        ------
        EstimatorError
            Too few points, or a loss that is not positive.
        """
        from scipy.optimize import nnls

        k, loss = np.asarray(k, float), np.asarray(loss, float)
        if k.shape != loss.shape or len(k) < 3 or not (loss > 0).all() or not np.isfinite(loss).all():
            raise EstimatorError(
                f"LossCurve: found {k.shape} points with losses from {loss.min(initial=np.inf)}; expected three at "
                "least, all > 0. Profile for longer."
            )
        y = loss / loss.max()
        columns = np.column_stack([np.ones_like(k), k, k**2])[:, : 3 if quadratic else 2]
        best = None
        for b0 in np.linspace(0, y.min() * 0.999, 200):
            weight = (y - b0) ** 2  # errors of 1 / y weigh as errors of y
            b, _ = nnls(columns * weight[:, None], weight / (y - b0))
            if (columns @ b > 0).all():
                error = ((1 / (columns @ b) + b0 - y) ** 2).sum()
                if best is None or error < best[0]:
                    best = error, b0, b
        _, b0, b = best
        return cls(float(b0), *map(float, b))

    def at(self, k) -> np.ndarray:
        """Loss after k units."""
        k = np.asarray(k, float)
        return 1 / (self.b3 * k**2 + self.b2 * k + self.b1) + self.b0

    def converged(self, flat: float = FLAT, gain: float = 0.0) -> int:
        """First k >= 0 at which the loss, divided by 1 + gain, falls by no more than `flat` (equation 2).

        Examples
        --------
        >>> curve = LossCurve(0.0, 1.0, 1.0)
        >>> curve.converged(0.01), curve.converged(0.01, gain=0.69)
        (9, 7)
        """
        k = np.arange(FARTHEST)
        loss = self.at(k) / (1 + gain)
        still = np.flatnonzero(loss[:-1] - loss[1:] <= flat)
        return int(still[0]) if len(still) else FARTHEST

    def reaches(self, gain: float, alone: int) -> int:
        """First k >= 0 at which the loss, divided by 1 + gain, is that of `alone` units without (rule "target").

        Examples
        --------
        >>> LossCurve(0.0, 1.0, 1.0).reaches(0.5, 9)
        6
        """
        goal = self.at(alone) * (1 + gain)
        k = np.arange(FARTHEST)
        found = np.flatnonzero(self.at(k) <= goal + 1e-12)
        return int(found[0]) if len(found) else FARTHEST


def iterations_after(curve: LossCurve, gain: float, rule: str = "paper", flat: float = FLAT) -> int:
    """Iterations of a task that gains so much from another.

    Parameters
    ----------
    curve : LossCurve
        Of the task alone.
    gain : float
        Above -1.
    rule : {"paper", "target"}
        When the divided loss has converged; or when it is as low as that of the task alone at its end.

    Raises
    ------
    EstimatorError
        An unknown rule, or a gain of -1 or less.
    """
    if rule not in ("paper", "target") or not gain > -1:
        raise EstimatorError(f"iterations_after: found rule {rule!r}, gain {gain}; expected paper or target, above -1.")
    return curve.converged(flat, gain) if rule == "paper" else curve.reaches(gain, curve.converged(flat))


def joint_iterations(k_a, batch_a, samples_a, k_b, batch_b, samples_b) -> float:
    """Iterations of a joint training: epochs of the slower task, each over the samples of both (equation 4).

    Examples
    --------
    >>> joint_iterations(100, 10, 500, 30, 10, 100)  # 3 epochs of 600 samples, 20 at a time
    90.0
    """
    epochs = max(k_a * batch_a / samples_a, k_b * batch_b / samples_b)
    return float(epochs * (samples_a + samples_b) / (batch_a + batch_b))
