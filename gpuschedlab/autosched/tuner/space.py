"""A policy's knobs as coordinates between 0 and 1: samplers move in them, and causal models learn from them."""

import math
from dataclasses import dataclass

import numpy as np

from gpuschedlab._knob import check_kind, tuple_of
from gpuschedlab.autosched.tuner.measure import CONTEXT, OBJECTIVES, WATCHED
from gpuschedlab.errors import PolicyError
from gpuschedlab.knobs import Knobbed, KnobInfo, knobs_of

TAKEN = {"reward", "segment", *CONTEXT, *WATCHED, *(f"reward_{goal}" for goal in OBJECTIVES)}
"""Names of measured values: columns of the causal model's samples, so that no knob may be called so."""


@dataclass(frozen=True)
class Axis:
    """One coordinate: its name, its knob, and its place in it if the knob is a tuple of numbers."""

    name: str
    info: KnobInfo
    place: int | None = None

    @property
    def words(self) -> str:
        """Name as readers have it: that of its slider."""
        return self.info.words_at(self.place)

    @property
    def levels(self) -> int:
        """Values of a category or switch; 0 for a number."""
        if self.info.kind in ("choice", "bool"):
            return len(self.info.knob.choices)
        return 0

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest number that is searched, a tuple."""
        return self.info.knob.tuned or (self.info.knob.low, self.info.knob.high)

    def value(self, u: float):
        """Return the value (float or choice) at a coordinate, moved into the box; ranges marked `log` are even in the logarithm.

        If a knob may be unlimited, its end stands for that.
        """
        u = min(max(float(u), 0.0), 1.0)
        if self.levels:
            return self.info.knob.choices[round(u * (self.levels - 1))]
        low, high = self.range
        if self.info.knob.unlimited and u == 1.0:
            return math.inf
        if self.info.knob.log:
            knob_value = low * math.exp(u * math.log(high / low))
        else:
            knob_value = low + u * (high - low)
        tidy = float(f"{knob_value:.12g}")  # 0.8 there and back is 0.8, not 0.8000000000000002
        return min(max(tidy, low), high)

    def coordinate(self, value) -> float:
        """Coordinate of a knob's value: 0 or 1 outside the range that is searched, 1 if a tuple ends before this place."""
        if self.levels:
            return self.info.knob.choices.index(value) / max(1, self.levels - 1)
        if self.place is not None:
            value = next(iter(value[self.place :]), math.inf)
        low, high = self.range
        value = min(max(value, low), high)
        if high == low:
            return 0.0
        if self.info.knob.log:
            return math.log(value / low) / math.log(high / low)
        return (value - low) / (high - low)


def _axes_of(knob_name: str, info: KnobInfo) -> list[Axis]:
    """List of one `Axis`, the coordinate of a knob, or of one for each of its places if it is a tuple of numbers."""
    if info.kind != "floats":
        return [Axis(knob_name, info)]
    return [Axis(f"{knob_name}_{knob_place + 1}", info, knob_place) for knob_place in range(info.knob.many)]


class Space:
    """The knobs of a policy that are tuned, as a box [0, 1]^k.

    Numbers are scaled to the range that is tuned (in the logarithm where declared), whole numbers are rounded, a category is
    its index over the number of values less one. A knob that is a tuple takes a coordinate a place; places that a
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
    >>> from gpuschedlab.policies import Themis, Tiresias
    >>> [axis.name for axis in Space(Tiresias()).axes][:4]
    ['metric', 'queues', 'thresholds_1', 'thresholds_2']
    >>> space = Space(Themis(), ["lease_term", "priority"])
    >>> space.encode(Themis(lease_term=86_400)).tolist()
    [1.0, 1.0]
    >>> space.decode([0.0, 0.0]).priority
    'time'
    """

    def __init__(self, policy, names=None):
        check_kind(policy, Knobbed, PolicyError, "Space.policy", "a policy, such as Tiresias()")
        infos = knobs_of(policy)
        if names is not None:
            names = tuple_of(names, str, PolicyError, "Space.names", f"a list of some of {', '.join(infos)}")
        wrong = isinstance(policy, type)
        self.policy = policy
        if names is None:
            self.names = tuple(knob_name for knob_name in infos if knob_name not in policy.set_aside)
        else:
            self.names = names
        if wrong or not self.names or len({*self.names} & infos.keys() - TAKEN) < len(self.names):
            raise PolicyError(
                f"Space: found {policy!r} with the names of knobs {names} to tune; expected a policy such as Tiresias(), and a list of "
                f"some of {', '.join(infos)}, each once, and none of {', '.join(sorted(TAKEN))}."
            )
        axes = []
        for name in self.names:
            axes += _axes_of(name, infos[name])
        self.axes = tuple(axes)

    def __len__(self):
        return len(self.axes)

    def __repr__(self):
        return f"Space({self.policy.name}; {', '.join(axis.name for axis in self.axes)})"

    def decode(self, u):
        """Return the `Policy` at coordinates (k,), projected onto ranges and constraints."""
        knobs = self.policy.knobs | dict.fromkeys(self.names, ())
        for axis, x in zip(self.axes, u, strict=True):
            knob_name = axis.info.name
            if axis.place is None:
                knobs[knob_name] = axis.value(x)
            else:
                knobs[knob_name] = (*knobs[knob_name], axis.value(x))
        return self.policy.with_knobs(**self.policy.project(knobs))

    def encode(self, policy) -> np.ndarray:
        """Return an array (k,) of the coordinates of a policy; a place that it does not use lies at 1."""
        return np.array([axis.coordinate(getattr(policy, axis.info.name)) for axis in self.axes])

    def project(self, u):
        """Return a tuple: the nearest `Policy` that constraints allow, and an array (k,), its coordinates."""
        policy = self.decode(u)
        return policy, self.encode(policy)
