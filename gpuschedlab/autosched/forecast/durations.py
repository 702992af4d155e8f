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
        """Return `Durations` from how long each job ran so far (n,), in s, and whether it is `over` (n,).

        Examples
        --------
        >>> Durations.of([10.0, 20.0, 30.0, 40.0], [True, False, True, True]).ended.tolist()
        [0.25, 0.625, 1.0]
        """
        ran = np.asarray(ran, float)
        over = np.asarray(over, bool)
        length, ended_jobs = np.unique(ran[over], return_counts=True)
        alive = len(ran) - np.searchsorted(np.sort(ran), length, side="left")
        return cls(length, 1 - np.cumprod(1 - ended_jobs / alive))

    def draw(self, low, high, u) -> np.ndarray:
        """Return an array (q,) of durations above `low` (q,), below `high` (q,), at parts `u` (q,) in [0, 1) of the mass between.

        If no job ended between them, even between `low` and `high`; above every duration that is known, 1.1 to 2.1
        times what is.

        Examples
        --------
        >>> found = Durations.of([10.0, 20.0, 30.0, 40.0], [True, False, True, True])
        >>> found.draw([10.0, 10.0, 50.0], [np.inf] * 3, [0.4, 0.6, 0.0]).round().tolist()
        [30.0, 40.0, 55.0]
        """
        low = np.asarray(low, float)
        high = np.asarray(high, float)
        u = np.asarray(u, float)
        bounded = np.isfinite(high)
        first_longer = np.searchsorted(self.length, low, side="right")
        last_longer = np.searchsorted(self.length, high, side="left")
        ended_share = np.concatenate([[0.0], self.ended])
        share_known = self.ended[-1]
        share_below = np.where(bounded, ended_share[last_longer], 1.0)
        mass = ended_share[first_longer] + u * (share_below - ended_share[first_longer])
        pick = np.searchsorted(self.ended, mass, side="right")
        length = self.length[np.minimum(pick, len(self.length) - 1)]
        further = u
        if share_known < 1:
            further = (mass - share_known) / (1 - share_known)
        beyond = np.maximum(low, self.length[-1]) * (1.1 + further)
        range_width = np.where(bounded, high, low) - low
        even = np.where(bounded, low + u * range_width, beyond)
        return np.where((pick < last_longer) & (last_longer > first_longer), length, even)
