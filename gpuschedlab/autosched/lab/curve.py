"""Curves: a method's estimate of the outcome at each value of the knob, and of the effect between two of them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class Span(NamedTuple):
    """An estimate and the ends of its 95 % interval; nan if there is no interval."""

    mean: float
    low: float
    high: float

    @property
    def sure(self) -> bool:
        """Whether the interval says the sign."""
        return self.low > 0 or self.high < 0

    def meets(self, span: "Span") -> bool:
        """Whether two intervals have a point in common."""
        return self.low <= span.high and span.low <= self.high


@dataclass(frozen=True, eq=False)
class Curve:
    """Mean outcome at each of some values of the knob, by one method.

    Parameters
    ----------
    values : (k,) array
        Entries of the knob.
    mean, low, high : (k,) array
        Mean outcome and the ends of its 95 % interval; nan if there is no interval.
    effects : (k, k, 3) array
        Outcome at the second value less that at the first: estimate, and the ends of its 95 % interval.
    held : tuple of str
        Variables that were held fixed.
    refusal : str
        Why the rows cannot say, or "".
    word : str
        Its fault, or "": "does not fit: ...".
    """

    values: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    effects: np.ndarray
    held: tuple[str, ...] = ()
    refusal: str = ""
    word: str = ""

    def effect(self, first: int, second: int) -> Span:
        """Return the `Span` of the second value's effect against the first, by their places in `values`.

        Negative places count from the end.
        """
        return Span(*(float(effect_part) for effect_part in self.effects[first, second]))


def paired_effects(means: np.ndarray, halves: np.ndarray) -> np.ndarray:
    """Return an array (k, k, 3) of effects from means (k,) and the halves (k, k) of the intervals of their differences."""
    difference = means[None, :] - means[:, None]
    return np.stack([difference, difference - halves, difference + halves], axis=-1)
