"""A policy's knobs as coordinates between 0 and 1: what samplers move in and causal models learn from."""

import math
from dataclasses import dataclass

import numpy as np

from gpuschedlab.autosched.tuner.measure import CONTEXT, WATCHED
from gpuschedlab.errors import PolicyError
from gpuschedlab.knobs import KnobInfo, knobs_of

TAKEN = {"reward", "segment", *CONTEXT, *WATCHED}
"""Names of what is measured: columns of the causal model's samples, so that no knob may be called so."""


@dataclass(frozen=True)
class Axis:
    """One coordinate: its name, its knob, and the place in it where the knob is a tuple of numbers.

    Examples
    --------
    >>> from gpuschedlab.policies import Tiresias
    >>> [axis.name for axis in Space(Tiresias()).axes][:4]
    ['metric', 'queues', 'thresholds_1', 'thresholds_2']
    """

    name: str
    info: KnobInfo
    place: int = 0

    @property
    def levels(self) -> int:
        """Values of a category or switch; 0 for a number."""
        return len(self.info.knob.choices) if self.info.kind in ("choice", "bool") else 0

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest number that is searched."""
        return self.info.knob.tuned or (self.info.knob.low, self.info.knob.high)

    def value(self, u: float):
        """Value at a coordinate; ranges marked `log` are even in the logarithm."""
        if self.levels:
            return self.info.knob.choices[round(_within(u, 0.0, 1.0) * (self.levels - 1))]
        low, high = self.range
        tidy = float(f"{self._number(u):.12g}")  # 0.8 there and back is 0.8, not 0.8000000000000002
        return min(max(tidy, low), high)

    def values(self, u: np.ndarray) -> list:
        """Allowed values (n,) at coordinates (n,), numbers to some eleven digits."""
        if self.levels:
            return [self.info.knob.choices[i] for i in np.rint(_within(u, 0.0, 1.0) * (self.levels - 1)).astype(int)]
        found = self._number(u)
        if self.info.knob.step:
            return [self.info.clip(x) for x in found.tolist()]
        return (np.rint(found).astype(int) if self.info.kind == "int" else found).tolist()

    def coordinate(self, value):
        """Coordinate of a value, or (n,) of numbers: the inverse of `value`, 0 or 1 outside the range that is searched."""
        if self.levels:
            return self.info.knob.choices.index(value) / max(1, self.levels - 1)
        low, high = self.range
        value = _within(value, low, high)
        if high == low:
            return value * 0.0
        return np.log(value / low) / math.log(high / low) if self.info.knob.log else (value - low) / (high - low)

    def coordinates(self, values: list) -> np.ndarray:
        """Coordinates (n,) of values (n,)."""
        if self.levels:
            place = {value: self.coordinate(value) for value in self.info.knob.choices}
            return np.array([place[v] for v in values])
        return self.coordinate(np.array(values, float))

    def _number(self, u):
        low, high = self.range
        u = _within(u, 0.0, 1.0)
        found = low * np.exp(u * math.log(high / low)) if self.info.knob.log else low + u * (high - low)
        return _within(found, low, high)


def _within(x, low: float, high: float):
    """Nearest number to x, or to each of (n,), of a range; at the pace of a number, which `numpy.clip` is not."""
    return np.minimum(np.maximum(x, low), high)


class Space:
    """The knobs of a policy that are tuned, as a box [0, 1]^k.

    Numbers are scaled to the range that is tuned (in the logarithm where declared), whole numbers are rounded, a category is its
    index over the number of values less one. A knob that is a tuple takes a coordinate a place; places that a
    configuration does not use lie at 1, the end where a threshold is never crossed.

    Parameters
    ----------
    policy : Policy
        Its values are those of all knobs that are not tuned.
    names : iterable of str, optional
        Knobs to tune; default: all but the policy's `set_aside`.

    Raises
    ------
    PolicyError
        There is no such knob, or none at all, or one is called like a metric.

    Examples
    --------
    >>> from gpuschedlab.policies import Themis
    >>> space = Space(Themis(), ["lease_term", "priority"])
    >>> space.encode(Themis(lease_term=86_400)).tolist()
    [1.0, 1.0]
    >>> space.decode([0.0, 0.0]).priority
    'time'
    """

    def __init__(self, policy, names=None):
        if isinstance(policy, type) or isinstance(names, str):
            raise PolicyError(
                f"Space: found {policy!r}, {names!r}; expected a policy such as Tiresias(), and a list of knobs."
            )
        infos = knobs_of(policy)
        names = [n for n in infos if n not in policy.set_aside] if names is None else list(names)
        wrong = [n for n in names if n not in infos]
        if wrong or not names:
            raise PolicyError(
                f"{policy.name}: found knobs {names} to tune; expected one or more of {', '.join(infos)}."
            )
        taken = [n for n in names if n in TAKEN]
        if taken or len(set(names)) < len(names):
            problem = f"a knob called {taken[0]!r}" if taken else f"knobs {names}, one of them twice"
            raise PolicyError(
                f"{policy.name}: found {problem}; expected each once, and none of {', '.join(sorted(TAKEN))}."
            )
        self.policy = policy
        self.names = tuple(names)
        self.axes = tuple(
            Axis(name if infos[name].kind != "floats" else f"{name}_{i + 1}", infos[name], i)
            for name in names
            for i in range(infos[name].knob.many if infos[name].kind == "floats" else 1)
        )
        owners = [a.info.name for a in self.axes]
        # Where a knob's axes begin, and where they end if it is a tuple.
        ends = {n: owners.index(n) + owners.count(n) if infos[n].kind == "floats" else None for n in self.names}
        self.places = {n: (owners.index(n), ends[n]) for n in self.names}

    def __len__(self):
        return len(self.axes)

    def __repr__(self):
        return f"Space({self.policy.name}; {', '.join(a.name for a in self.axes)})"

    def decode(self, u):
        """Policy at coordinates (k,), projected onto ranges and constraints."""
        found = self._knobs([a.value(x) for a, x in zip(self.axes, u, strict=True)], self.policy.knobs)
        return self.policy.with_knobs(**self.policy.project(found))

    def encode(self, policy) -> np.ndarray:
        """Coordinates (k,) of a policy."""
        return self._coordinates([policy.knobs])[0]

    def project(self, u):
        """Nearest policy that constraints allow, and its coordinates (k,)."""
        policy = self.decode(u)
        return policy, self.encode(policy)

    def snap(self, points: np.ndarray) -> np.ndarray:
        """Coordinates (n, k) of the nearest policies that constraints allow, without making them: to some eleven digits."""
        columns = [a.values(column) for a, column in zip(self.axes, np.asarray(points, float).T, strict=True)]
        knobs, constrain = self.policy.knobs, self.policy.constrain
        return self._coordinates([constrain(self._knobs(row, knobs)) for row in zip(*columns, strict=True)])

    def _knobs(self, found, knobs: dict) -> dict:
        """Knobs with the values (k,) of the axes in place of those that are tuned."""
        return knobs | {n: found[a] if b is None else tuple(found[a:b]) for n, (a, b) in self.places.items()}

    def _coordinates(self, rows: list[dict]) -> np.ndarray:
        """Coordinates (n, k) of knobs; a place that a configuration does not use lies at 1."""
        u = np.ones((len(rows), len(self.axes)))
        for i, axis in enumerate(self.axes):
            name, place = axis.info.name, axis.place
            if axis.info.kind != "floats":
                u[:, i] = axis.coordinates([row[name] for row in rows])
            else:
                used = [n for n, row in enumerate(rows) if place < len(row[name])]
                u[used, i] = axis.coordinates([rows[n][name][place] for n in used])
        return u
