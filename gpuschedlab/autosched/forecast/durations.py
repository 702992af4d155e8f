"""Distribution of durations, estimated from ended jobs and from those that still run."""

from dataclasses import dataclass
from typing import Self

import numpy as np


@dataclass(frozen=True)
class Durations:
    """Distribution of durations by the product-limit estimate (Kaplan and Meier, JASA 53, 1958)."""

    length: np.ndarray
    ended: np.ndarray

    @classmethod
    def of(cls, ran, over) -> Self:
        """Distribution from how long each job ran so far (n,), in s, and whether it is `over` (n,).

        Examples
        --------
        >>> Durations.of([10.0, 20.0, 30.0, 40.0], [True, False, True, True]).ended.tolist()
        [0.25, 0.625, 1.0]
        """
        ran = np.asarray(ran, float)
        over = np.asarray(over, bool)
        length, ends = np.unique(ran[over], return_counts=True)
        alive = len(ran) - np.searchsorted(np.sort(ran), length, side="left")
        return cls(length, 1 - np.cumprod(1 - ends / alive))

    def draw(self, low, high, u) -> np.ndarray:
        """Durations (q,) above `low` (q,) and below `high` (q,), at the parts `u` (q,) in [0, 1) of the mass between.

        If no job ended between them, even between `low` and `high`; above every duration that is known, 1.1 to 2.1
        times what is.

        Examples
        --------
        >>> found = Durations.of([10.0, 20.0, 30.0, 40.0], [True, False, True, True])
        >>> found.draw([10.0, 10.0, 50.0], [np.inf] * 3, [0.4, 0.6, 0.0]).round().tolist()
        [30.0, 40.0, 55.0]
        """
        low, high, u = (np.asarray(x, float) for x in (low, high, u))
        bounded = np.isfinite(high)
        first = np.searchsorted(self.length, low, side="right")
        last = np.searchsorted(self.length, high, side="left")
        share = np.concatenate([[0.0], self.ended])
        all_known = self.ended[-1]
        mass = share[first] + u * (np.where(bounded, share[last], 1.0) - share[first])
        pick = np.searchsorted(self.ended, mass, side="right")
        known = self.length[np.minimum(pick, len(self.length) - 1)]
        further = (mass - all_known) / (1 - all_known) if all_known < 1 else u
        beyond = np.maximum(low, self.length[-1]) * (1.1 + further)
        other = np.where(bounded, low + u * (np.where(bounded, high, low) - low), beyond)
        return np.where((pick < last) & (last > first), known, other)
