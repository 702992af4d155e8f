"""A policy's knobs as coordinates between 0 and 1: what samplers move in and causal models learn from."""

import math
from dataclasses import dataclass

import numpy as np

from gpuschedlab.errors import PolicyError
from gpuschedlab.knobs import KnobInfo, knobs_of


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
        u = min(max(float(u), 0.0), 1.0)
        if self.levels:
            return self.info.knob.choices[round(u * (self.levels - 1))]
        low, high = self.range
        value = low * math.exp(u * math.log(high / low)) if self.info.knob.log else low + u * (high - low)
        return min(max(float(f"{value:.12g}"), low), high)  # 0.8 there and back is 0.8, not 0.8000000000000002

    def coordinate(self, value) -> float:
        """Coordinate of a value: the inverse of `value`, 0 or 1 for one outside the range that is searched."""
        if self.levels:
            return self.info.knob.choices.index(value) / max(1, self.levels - 1)
        low, high = self.range
        value = min(max(value, low), high)
        if high == low:
            return 0.0
        return math.log(value / low) / math.log(high / low) if self.info.knob.log else (value - low) / (high - low)


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
        There is no such knob, or none at all.

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
        infos = knobs_of(policy)
        names = [n for n in infos if n not in policy.set_aside] if names is None else list(names)
        wrong = [n for n in names if n not in infos]
        if wrong or not names:
            raise PolicyError(
                f"{policy.name}: found knobs {names} to tune; expected one or more of {', '.join(infos)}."
            )
        self.policy = policy
        self.names = tuple(names)
        self.axes = tuple(
            Axis(name if infos[name].kind != "floats" else f"{name}_{i + 1}", infos[name], i)
            for name in names
            for i in range(infos[name].knob.many if infos[name].kind == "floats" else 1)
        )
        owners = [a.info.name for a in self.axes]
        self.places = {n: (owners.index(n), owners.index(n) + owners.count(n)) for n in self.names}

    def __len__(self):
        return len(self.axes)

    def decode(self, u):
        """Policy at coordinates (k,), projected onto ranges and constraints."""
        return self.policy.with_knobs(**self._values(u))

    def encode(self, policy) -> np.ndarray:
        """Coordinates (k,) of a policy."""
        return self._coordinates(policy.knobs)

    def project(self, u):
        """Nearest policy that constraints allow, and its coordinates (k,)."""
        policy = self.decode(u)
        return policy, self.encode(policy)

    def snap(self, u) -> np.ndarray:
        """Coordinates (k,) of the nearest policy that constraints allow, without making it."""
        return self._coordinates(self._values(u))

    def _values(self, u) -> dict:
        values, found = self.policy.knobs, [a.value(x) for a, x in zip(self.axes, u, strict=True)]
        for name, (first, last) in self.places.items():
            values[name] = tuple(found[first:last]) if self.axes[first].info.kind == "floats" else found[first]
        return type(self.policy).project(values)

    def _coordinates(self, values: dict) -> np.ndarray:
        u = np.ones(len(self.axes))
        for i, axis in enumerate(self.axes):
            value = values[axis.info.name]
            if axis.info.kind != "floats":
                u[i] = axis.coordinate(value)
            elif axis.place < len(value):
                u[i] = axis.coordinate(value[axis.place])
        return u
