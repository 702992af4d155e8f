"""Searches that the tuner is compared with and that are not the package's: TPE, a Gaussian process, and a lasso of the offline rows."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl

from gpuschedlab._extras import need
from gpuschedlab.autosched.tuner.samplers import LatinHypercube, Sampler


class Pooled(Sampler):
    """Base: asks for the point of a fresh pool that `worth` says is best; at first, while it knows too little, for any."""

    least = 2
    size = 512

    def __init__(self, levels, rng=0, start=None):
        super().__init__(levels, rng, start)
        self.pool = LatinHypercube(levels, self.rng, size=self.size)
        self.u = []
        self.y = []

    def ask(self):
        points = np.array([self.pool.ask() for _ in range(self.size)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of scikit-learn: bounds that are reached, tolerances that are not
            return points[0] if len(self.y) < self.least else points[np.argmax(self.worth(points))]

    def tell(self, u, reward):
        self.u.append(np.array(u, float))
        self.y.append(np.log(reward))


class Gaussian(Pooled):
    """A Gaussian process with expected improvement."""

    def worth(self, points):
        from scipy.stats import norm
        from sklearn.gaussian_process import GaussianProcessRegressor, kernels

        kernel = kernels.Matern(np.full(self.k, 0.5), (0.05, 20), nu=2.5) + kernels.WhiteKernel(1e-3, (1e-6, 1.0))
        process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0).fit(self.u, self.y)
        mean, sd = process.predict(points, return_std=True)
        z = (mean - max(self.y)) / np.maximum(sd, 1e-9)
        return sd * (z * norm.cdf(z) + norm.pdf(z))


class Lasso(Pooled):
    """A quadratic model by lasso, of the offline rows and of its own, each instant's logarithms less their mean."""

    least = 0

    def __init__(self, levels, rng=0, start=None, *, rows=None):
        from sklearn.linear_model import LassoCV
        from sklearn.preprocessing import PolynomialFeatures

        super().__init__(levels, rng, start)
        if rows is not None:  # none while its options are checked
            warnings.simplefilter("ignore")
            self.shape = PolynomialFeatures(2, include_bias=False)
            y = pl.col("reward")
            self.old = (
                rows.drop("segment", "reward").to_numpy(),
                rows.select(y - y.mean().over("segment"))["reward"].to_numpy(),
            )
            self.alpha = LassoCV(cv=5, random_state=0).fit(self.shape.fit_transform(self.old[0]), self.old[1]).alpha_

    def worth(self, points):
        from sklearn import linear_model

        own = np.array(self.y) - np.mean(self.y) if self.y else np.zeros(0)
        u = np.vstack([self.old[0], *self.u])
        y = np.concatenate([self.old[1], own])
        return (
            linear_model.Lasso(self.alpha, max_iter=5000)
            .fit(self.shape.transform(u), y)
            .predict(self.shape.transform(points))
        )


class Tpe(Sampler):
    """Optuna's tree-structured Parzen estimator (Bergstra et al., NeurIPS 2011), behind the same two methods."""

    def __init__(self, levels, rng=0, start=None):
        super().__init__(levels, rng, start)
        self.optuna = need("optuna", "the sampler Tpe")
        self.optuna.logging.set_verbosity(self.optuna.logging.WARNING)
        sampler = self.optuna.samplers.TPESampler(seed=int(self.rng.integers(2**31)))
        self.study = self.optuna.create_study(direction="maximize", sampler=sampler)
        kinds = self.optuna.distributions
        self.axes = {str(i): kinds.FloatDistribution(0.0, 1.0) for i in range(self.k)}
        self.axes |= {str(i): kinds.CategoricalDistribution(values.tolist()) for i, values in self.values.items()}

    def ask(self) -> np.ndarray:
        """Coordinates (k,) to try next."""
        params = self.study.ask(self.axes).params
        return np.array([params[name] for name in self.axes])

    def tell(self, u, reward: float) -> None:
        """Learn the reward at coordinates (k,) in the box."""
        known = {"params": dict(zip(self.axes, map(float, u), strict=True)), "distributions": self.axes}
        self.study.add_trial(self.optuna.trial.create_trial(**known, value=float(reward)))
