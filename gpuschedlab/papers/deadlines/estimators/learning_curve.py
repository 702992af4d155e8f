"""Durations of jobs that train until a metric is reached, renewed as their curves show (Gao, PhD thesis, NTU 2025, section 5.3.2)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated

import numpy as np

from gpuschedlab._knob import check_kind, check_number
from gpuschedlab.errors import EstimatorError
from gpuschedlab.estimators.base import Around, Estimator
from gpuschedlab.estimators.oracle import Oracle
from gpuschedlab.knobs import Knob
from gpuschedlab.papers.deadlines.estimators.families import fit_curve


@dataclass(frozen=True)
class LearningCurve(Around, Estimator):
    """Renew an estimate by the metric that a job has shown so far: when will it reach its target, at the pace it has?

    At submission the estimator inside answers, for the user's largest number of iterations. From `points` measurements on
    the curve is extrapolated by an ensemble of eleven families (`fit_curve`); the job is expected to end at the first
    measurement at which it is as likely as not at its target, or by its first estimate, if that is earlier.

    Parameters
    ----------
    estimator : Estimator
        Answers at submission.
    targets : mapping of str to float
        Metric at which a job of a model stops; jobs of other models keep their estimates. Kept as sorted pairs.
    points : int
        Measurements from which curves are extrapolated.

    References
    ----------
    Gao, PhD thesis, NTU 2025, section 5.3.2; Domhan et al., IJCAI 2015.

    Differs from the paper in
    -------------------------
    The posterior is a mixture of Laplace approximations, with weights by the Bayesian information criterion, where Domhan's
    code samples by emcee. The paper does not say by which rule the number of iterations follows from it: here it is the
    least with a probability of one half. Metrics in per cent, and those that fall, are brought to rise in [0, 1].

    Examples
    --------
    >>> LearningCurve(targets={"cifar10": 0.9}).targets
    (('cifar10', 0.9),)
    """

    estimator: Estimator = field(default_factory=Oracle)
    targets: Mapping[str, float] | tuple[tuple[str, float], ...] = field(default_factory=dict)
    points: Annotated[int, Knob(4, 100, help="measurements from which a curve is extrapolated")] = 5

    needs_history = False

    def __post_init__(self):
        super().__post_init__()
        targets = dict(self.targets)
        for model, metric in targets.items():
            check_kind(model, str, EstimatorError, "LearningCurve.targets", "metrics by the names of models")
            check_number(metric, EstimatorError, f"LearningCurve.targets[{model!r}]", "a metric", low=-math.inf)
        by_model = sorted(targets.items())
        object.__setattr__(self, "targets", tuple(by_model))

    def update(self, view) -> np.ndarray | None:
        """Return an array of estimates by the curves of jobs with a target, each as far as it has been seen; None if no job has one."""
        if not self.targets or view.speeds is None or view.speeds.curves is None:
            return None
        curves = view.speeds.curves
        estimate = view.estimate.copy()
        goal = dict(self.targets)
        for m in np.unique(view.model[view.model >= 0]):
            model_name = view.speeds.models[m]
            if model_name not in goal:
                continue
            curve = curves.frame().filter(mode="own", model=model_name).sort("progress")
            x = curve["progress"].to_numpy()
            y = curve["metric"].to_numpy()
            for i in np.flatnonzero((view.model == m) & (view.progress > 0)):
                seen_epochs = int(np.searchsorted(x, view.progress[i], side="right"))
                if seen_epochs >= self.points:
                    estimate[i] = self._renew(view, i, x[:seen_epochs], y[:seen_epochs], goal[model_name])
        return estimate

    def _renew(self, view, i: int, x: np.ndarray, y: np.ndarray, target: float) -> float:
        """Duration (s) of a job whose curve has been seen at x."""
        running = max(view.executed[i] - view.profiled[i], 1.0)
        pace = view.progress[i] / running
        every = x[-1] / len(x)  # progress from one measurement to the next
        most_epochs = max(len(x) + 1.0, view.estimate[i] * pace / every)
        ends = measurements_to(tuple(y.tolist()), float(target), float(np.ceil(most_epochs)))
        remaining = (ends * every - view.progress[i]) / pace
        return float(max(running + remaining, running + 1.0))


@lru_cache(maxsize=4096)
def measurements_to(metric: tuple[float, ...], target: float, most: float) -> float:
    """Return the number of measurements, a float, after which a target is expected, from those so far; at most so many."""
    y, goal = rising(np.array(metric), target)
    if (y >= goal).any():
        return float(np.flatnonzero(y >= goal)[0] + 1)
    ensemble = fit_curve(np.arange(1.0, len(y) + 1), y, horizon=most)
    return ensemble.reached(goal, most, start=len(y) + 1) if ensemble.members else most


def rising(metric: np.ndarray, target: float) -> tuple[np.ndarray, float]:
    """Return a tuple: a metric, an array, and its target in [0, 1], of which more is better."""
    scale = 100.0 if max(metric.max(), target) > 1 else 1.0
    falls = metric[-1] < metric[0]
    return (1 - metric / scale, 1 - target / scale) if falls else (metric / scale, target / scale)
