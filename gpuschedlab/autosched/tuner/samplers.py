"""Samplers that choose the next point in a box [0, 1]^k: BlueFin, and the searches that it is compared with."""

import math

import numpy as np
from scipy.special import softmax

from gpuschedlab._knob import check_number, numbers_of, random_generator, tuple_of
from gpuschedlab.errors import EstimatorError

MOST_LEVELS = 1_000_000
"""Values of a category, at most."""


class Sampler:
    """Base: a box with categorical axes. A point without a reported reward counts as not tried.

    Parameters
    ----------
    levels : sequence of int
        For each coordinate 0 for a number, otherwise the number of values of a category, spaced evenly from 0 to 1.
    rng : int or numpy.random.Generator
    start : (k,) array, optional
        Where to begin; default: the middle.
    """

    def __init__(self, levels, rng=0, start=None):
        name = type(self).__name__
        levels = tuple_of(levels, int | np.integer, EstimatorError, f"{name}.levels", "whole numbers, 0 for a number")
        for count in levels:
            if not 0 <= count <= MOST_LEVELS:
                raise EstimatorError(
                    f"{name}.levels: found {count}; expected 0 to {MOST_LEVELS:,} values of a coordinate."
                )
        self.k = len(levels)
        self.rng = random_generator(rng, EstimatorError, f"{name}.rng")
        self.values = {
            axis_number: np.arange(level_count) / max(1, level_count - 1)
            for axis_number, level_count in enumerate(levels)
            if level_count
        }
        if start is None:
            self.start = np.full(self.k, 0.5)
        else:
            expected = "a coordinate for each of `levels`"
            self.start = np.array(numbers_of(start, EstimatorError, f"{name}.start", expected))
        if self.start.shape != (self.k,) or not self.k:
            problem = f"{name}: found a start of shape {self.start.shape} in {self.k} dimensions of levels"
            raise EstimatorError(f"{problem}; expected one coordinate for each, and at least one.")

    def ask(self) -> np.ndarray:
        """Return an array (k,) of the coordinates to try next."""
        raise NotImplementedError

    def tell(self, u, reward: float) -> None:
        """Learn the reward (higher is better) of the point asked last, and where it was projected to: (k,) in the box."""


class LatinHypercube(Sampler):
    """Rows of Latin hypercubes: of every `size` points in turn, one lies in each of `size` slices of every axis.

    Examples
    --------
    >>> plan = LatinHypercube([0], rng=0, size=4)
    >>> sorted(int(4 * plan.ask()[0]) for _ in range(4))
    [0, 1, 2, 3]
    """

    def __init__(self, levels, rng=0, start=None, size: int = 16):
        super().__init__(levels, rng, start)
        check_number(size, EstimatorError, "LatinHypercube.size", "a whole number, 1 or more", low=1, whole=True)
        self.size = size
        self.left = []

    def ask(self) -> np.ndarray:
        """Return an array (k,) of the coordinates to try next."""
        if not self.left:
            cells = np.stack([self.rng.permutation(self.size) for _ in range(self.k)], axis=1)
            points = (cells + self.rng.random(cells.shape)) / self.size
            for i, axis_levels in self.values.items():
                points[:, i] = axis_levels.take((points[:, i] * len(axis_levels)).astype(int), mode="clip")
            self.left = list(points)
        return self.left.pop(0)


class Random(LatinHypercube):
    """Uniform in every coordinate, independent of earlier points: hypercubes of one point."""

    def __init__(self, levels, rng=0, start=None):
        super().__init__(levels, rng, start, size=1)


class BlueFin(Sampler):
    """Gradient ascent on rewards alone: try a random direction, move along it in proportion to the reward.

    With centre w and u uniform on the unit sphere of the k numerical axes, one-point feedback tries w + delta u and
    estimates the gradient as (k / delta) r u; two-point feedback also tries w - delta u and takes (k / 2 delta)
    (r+ - r-) u. The centre then moves by eta times that ("sgd"), or by eta times that over the root of its running mean
    square ("rmsprop"). With the number of moves t, eta shrinks as (1 + t)^-decay and delta as (1 + t)^(-decay / 3).

    Parameters
    ----------
    levels, rng, start
        As for `Sampler`; the start's categories are the ones favoured first.
    feedback : {2, 1}
        Points per gradient estimate.
    eta, delta : float
        Step and radius, in units of the box.
    optimizer : {"rmsprop", "sgd"}
    decay : float
        3/4 in the one-point theorem.

    Differs from the paper in
    -------------------------
    The published rule moves numbers only. A category follows a softmax over its values, moved by the same rewards as
    the centre: the log-probability gradient times the reward's advantage over its running mean. Perturbed coordinates
    are clipped to the box. A pair without a reward of its second half (the tuner rejected it) counts as one point, its
    partner's reward being measured against the running mean.

    References
    ----------
    Karthikeyan et al., SelfTune, NSDI'23, sections 3 and 4 (algorithm 1); Flaxman et al., SODA 2005 (one point);
    Shamir, JMLR 2017 (two points).

    Examples
    --------
    >>> search = BlueFin([0, 0], rng=1)
    >>> for _ in range(400):
    ...     u = search.ask()
    ...     search.tell(u, -((u - 0.8) ** 2).sum())
    >>> bool(abs(search.centre - 0.8).max() < 0.1)
    True
    """

    def __init__(self, levels, rng=0, start=None, *, feedback=2, eta=0.05, delta=0.15, optimizer="rmsprop", decay=0.25):
        super().__init__(levels, rng, start)
        for option, value in {"eta": eta, "delta": delta, "decay": decay}.items():
            check_number(value, EstimatorError, f"BlueFin.{option}", "a number above 0 (decay: or 0)")
        if feedback not in (1, 2) or optimizer not in ("rmsprop", "sgd") or not (eta > 0 and delta > 0):
            raise EstimatorError(
                f"BlueFin: found feedback={feedback}, optimizer={optimizer!r}, eta={eta}, delta={delta}, decay={decay}; "
                "expected 1 or 2, 'rmsprop' or 'sgd', eta and delta above 0, decay from 0."
            )
        self.feedback = feedback
        self.eta = eta
        self.delta = delta
        self.optimizer = optimizer
        self.decay = decay
        self.centre = self.start.copy()
        self.square = np.zeros(self.k)
        self.logits = {i: np.zeros(len(values)) for i, values in self.values.items()}
        for i, values in self.values.items():
            favoured = np.abs(values - self.start[i]).argmin()
            self.logits[i][favoured] = math.log(2.0 * max(1, len(values) - 1))
        self.mean = 0.0
        self.rewards = 0
        self.moves = 0
        self.radius = delta
        self.plan: list[tuple] = []  # points still to ask, each with its direction
        self.side = None
        self.tried = []  # direction of the point asked last; what was tried since the last move

    def ask(self) -> np.ndarray:
        """Return an array (k,) of the coordinates to try next."""
        if not self.plan:
            self._move()
            side = self.rng.standard_normal(self.k)
            side[list(self.values)] = 0.0
            side /= max(np.linalg.norm(side), 1e-12)
            self.plan = [(self._point(signed_side), signed_side) for signed_side in (side, -side)[: self.feedback]]
        point, self.side = self.plan.pop(0)
        return point

    def tell(self, u, reward: float) -> None:
        """Learn the reward of the point asked last, and where it was projected to."""
        if self.side is not None:
            self.tried.append((np.array(u, float), self.side, float(reward)))
            self.side = None
            self.rewards = self.rewards + 1
            self.mean += (reward - self.mean) / min(self.rewards, 20)

    def _point(self, side: np.ndarray) -> np.ndarray:
        """Array (k,) of coordinates on one side of the centre, categories drawn by their weights."""
        point = np.clip(self.centre + self.radius * side, 0.0, 1.0)
        for i, logits in self.logits.items():
            point[i] = self.rng.choice(self.values[i], p=softmax(logits))
        return point

    def _move(self) -> None:
        """Move the centre and the categories' weights by the rewards of the last pair."""
        tried = self.tried
        self.tried = []
        if not tried:
            return
        base = self.mean
        if len(tried) == self.feedback:
            base = 0.0
        slope = sum((reward - base) * side for _, side, reward in tried) * max(1, self.k - len(self.values))
        slope /= len(tried) * self.radius
        self.square = 0.9 * self.square + 0.1 * slope**2
        if self.optimizer == "rmsprop":
            mean_square = self.square / (1 - 0.9 ** (self.moves + 1))
            slope = slope / (np.sqrt(mean_square) + 1e-8)
        step = self.eta * (1 + self.moves) ** -self.decay
        self.centre = np.clip(self.centre + step * slope, 0.0, 1.0)
        rewards = [reward for _, _, reward in tried]
        spread = max(1e-9, np.std([*rewards, self.mean]))
        for point, _, reward in tried:
            for i, logits in self.logits.items():
                is_value = np.isclose(self.values[i], point[i])
                logits += 0.3 * (reward - self.mean) / spread * (is_value - softmax(logits))
        self.moves += 1
        self.radius = self.delta * (1 + self.moves) ** (-self.decay / 3)


SAMPLERS = {"bluefin": BlueFin, "random": Random, "lhs": LatinHypercube}
"""Samplers by the names that the command line and the tuner take."""
