"""Learning curves by an ensemble of eleven families (Domhan et al., IJCAI'15): the future values of a metric, and when one is reached."""

from typing import NamedTuple

import numpy as np

TINY = 1e-9
MOST = 50.0
"""Largest exponent of a family: beyond, exp overflows."""
FORWARD = float(np.sqrt(np.finfo(float).eps))
"""Relative step of a forward difference."""


def _exp(x):
    return np.exp(np.minimum(np.maximum(x, -MOST), MOST))  # as np.clip, which takes longer for so few


def _power(x, p):
    return _exp(p * np.log(np.maximum(x, TINY)))


FAMILIES = {
    "vapor": (lambda x, a, b, c: _exp(a + b / x + c * np.log(x)), [(-0.2, -1.0, 0.0), (-0.5, -0.5, 0.05)]),
    "log": (lambda x, c, a: c - a / np.log(x + 1), [(0.8, 0.3)]),
    "weibull": (lambda x, a, b, k, d: a - (a - b) * _exp(-_power(k * x, d)), [(0.8, 0.2, 0.05, 1.0), (0.8, 0.2, 0.3, 0.5)]),
    "pow3": (lambda x, c, a, p: c - a * _power(x, -p), [(0.8, 0.5, 0.5), (1.0, 0.5, 0.1)]),
    "pow4": (lambda x, c, a, b, p: c - _power(a * x + b, -p), [(0.8, 1.0, 1.0, 0.5), (0.8, 0.2, 1.0, 1.5)]),
    "loglog": (lambda x, a, b: np.log(np.maximum(a * np.log(x) + b, TINY)), [(0.2, 1.5)]),
    "mmf": (lambda x, a, b, k, d: a - (a - b) / (1 + _power(k * x, d)), [(0.8, 0.2, 0.05, 1.0), (0.8, 0.2, 0.3, 0.5)]),
    "janoschek": (lambda x, a, b, k, d: a - (a - b) * _exp(-k * _power(x, d)), [(0.8, 0.2, 0.05, 1.0), (0.8, 0.2, 0.3, 0.5)]),
    "hill": (lambda x, t, n, k: t / (1 + _power(np.abs(k) / x, n)), [(0.8, 1.0, 2.0), (0.8, 0.5, 10.0)]),
    "logpower": (lambda x, a, b, c: a / (1 + _power(x / _exp(b), c)), [(0.8, 1.0, -1.0), (0.8, 2.0, -0.5)]),
    "exp4": (lambda x, c, a, b, p: c - _exp(-a * _power(x, p) + b), [(0.8, 0.1, -0.5, 1.0), (0.8, 0.5, 0.0, 0.5)]),
}  # fmt: skip
"""Families of curves, each with points to start its fit from."""


class Member(NamedTuple):
    """A family that was fitted: its weight, parameters, their covariance, and the variance of the noise."""

    name: str
    weight: float
    parameters: np.ndarray
    covariance: np.ndarray
    noise: float


class Ensemble(NamedTuple):
    """A mixture of fitted families; `fit_curve` makes one."""

    members: tuple[Member, ...]

    def mean(self, x) -> np.ndarray:
        """Return an array (k,): the expected metric at x."""
        x = np.asarray(x, float)
        weighted_metric = np.zeros(x.shape)
        for member in self.members:
            f, _ = FAMILIES[member.name]
            weighted_metric = weighted_metric + member.weight * f(x, *member.parameters)
        return weighted_metric

    def above(self, target: float, x) -> np.ndarray:
        """Return an array (k,): the probability that the curve is at or above a target at x."""
        from scipy.special import ndtr  # loaded when used: every import would wait for it

        x = np.asarray(x, float)
        chance = np.zeros(x.shape)
        for m in self.members:
            f = FAMILIES[m.name][0]
            slope = _slope(f, x, m.parameters)
            variance = np.einsum("ki,ij,kj->k", slope, m.covariance, slope)
            spread = np.sqrt(np.maximum(variance, 1e-12))
            margin = f(x, *m.parameters) - target
            chance += m.weight * ndtr(margin / spread)
        return chance

    def reached(self, target: float, most: float, start: float = 1.0) -> float:
        """Least whole x from `start` to `most` at which the target is reached with probability of a half or more; `most` if none is."""
        x = np.arange(np.ceil(start), np.floor(most) + 1)
        hit = np.flatnonzero(self.above(target, x) >= 0.5) if len(x) else []
        return float(x[hit[0]]) if len(hit) else float(most)


def fit_curve(x, y, horizon: float | None = None) -> Ensemble:
    """Fit all families to a metric in [0, 1] that rises, and return the `Ensemble`.

    Later points weigh more: 10^(i/n) for the i-th of n.
    """
    # A family that falls, or leaves [0, 1], by the horizon is dropped. Weights follow from the Bayesian information criterion,
    # and the uncertainty of a family's parameters from its curvature at the optimum (Laplace).
    #
    # `x` (n,) are steps from 1 up, ascending, `y` (n,) the metric there; the horizon is by default ten times the last step. Where no
    # family is left, the ensemble has no members.
    x = np.asarray(x, float)
    y = np.asarray(y, float)
    weight = 10 ** (np.arange(1, len(x) + 1) / max(len(x), 1))
    weight = weight / weight.mean() if len(x) else weight
    far = np.linspace(x[-1], horizon or 10 * x[-1], 50) if len(x) else x
    fits = []
    for family, (_, starts) in FAMILIES.items():
        if len(x) > len(starts[0]):
            fits.append(_fit_one(family, x, y, weight, far))
    fits = [fit for fit in fits if fit is not None]
    if not fits:
        return Ensemble(())
    scores = np.array([score for score, _ in fits])
    worth = np.exp(-0.5 * (scores - scores.min()))
    shares = worth / worth.sum()
    return Ensemble(tuple(member._replace(weight=float(w)) for w, (_, member) in zip(shares, fits, strict=True)))


def _fit_one(name: str, x, y, weight, far):
    """Return a tuple: score (lower is better) and fitted family, a `Member`; None if it is dropped."""
    from scipy.optimize import least_squares

    f, starts = FAMILIES[name]
    root = np.sqrt(weight)
    method = "lm" if len(x) >= len(starts[0]) else "trf"

    def errors(parameters):
        return root * (f(x, *parameters) - y)

    def slopes(parameters):
        return _forward_slopes(errors, parameters)

    fits = [least_squares(errors, start, slopes, method=method) for start in starts]
    best_fit = min(fits, key=lambda fit: fit.cost)
    ahead = f(far, *best_fit.x)
    if not np.isfinite(ahead).all() or (np.diff(ahead) < -1e-6).any() or ahead.min() < 0 or ahead.max() > 1 + 1e-6:
        return None
    n = len(x)
    k = len(best_fit.x)
    noise = max(2 * best_fit.cost / n, 1e-10)
    inner = best_fit.jac.T @ best_fit.jac
    ridge = 1e-10 * np.trace(inner) * np.eye(k)
    covariance = noise * np.linalg.pinv(inner + ridge)
    return n * np.log(noise) + k * np.log(n), Member(name, 0.0, best_fit.x, covariance, noise)


def _forward_slopes(errors, parameters) -> np.ndarray:
    """Return an array (n, p) of derivatives of errors by the parameters, by forward differences, as scipy takes them."""
    # scipy's own spends three quarters of a fit on checks of its arguments.
    base = errors(parameters)
    steps = FORWARD * np.maximum(1.0, np.abs(parameters))
    steps[parameters < 0] *= -1
    moved = parameters + np.diag(steps)
    difference = errors(moved.T[:, :, None]) - base  # row j: with parameter j moved
    return (difference / (np.diag(moved) - parameters)[:, None]).T


def _slope(f, x, parameters) -> np.ndarray:
    """Return an array (k, p) of derivatives by the parameters, by central differences."""
    derivatives = np.empty((len(x), len(parameters)))
    for j, parameter in enumerate(parameters):
        step = 1e-5 * max(1.0, abs(parameter))
        up = parameters.copy()
        down = parameters.copy()
        up[j] = parameter + step
        down[j] = parameter - step
        derivatives[:, j] = (f(x, *up) - f(x, *down)) / (2 * step)
    return derivatives
