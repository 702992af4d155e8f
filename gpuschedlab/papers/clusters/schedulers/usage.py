"""Usage that decays: GPU-seconds by user, of which half is forgotten after a half-life."""

import math

import numpy as np

from gpuschedlab.errors import PolicyError

WEEK = 7 * 86_400.0


class Ledger:
    """GPU-seconds charged to places (users of a `ShareTree`), decayed by 2^(-age / half-life) (Slurm, priority_multifactor.c)."""

    def __init__(self, places: int, half_life: float = WEEK):
        if not half_life > 0:
            raise PolicyError(f"usage: found half-life {half_life} s; expected above 0.")
        self.half_life = float(half_life)
        self.usage, self.held, self.since = np.zeros((3, places))

    def hold(self, place: int | np.ndarray, gpus: float, now: float) -> None:
        """Charge so many GPUs more (fewer, below 0) to a place from now on."""
        self._advance(place, now)
        self.held[place] += gpus

    def at(self, now: float) -> np.ndarray:
        """(places,) usage (GPU-s) at an instant that is not before what was charged last."""
        self._advance(slice(None), now)
        return self.usage.copy()

    def _advance(self, place, now: float) -> None:
        since = self.since[place]
        if np.any(now < since):
            raise PolicyError(
                f"usage: found t={now} s, before t={np.max(since)} s; expected instants that do not fall."
            )
        left = self.usage[place] * 0.5 ** ((now - since) / self.half_life)
        self.usage[place] = left + self.held[place] * self._worth(now - since)
        self.since[place] = now

    def _worth(self, seconds):
        """What a GPU held for so long until now counts (GPU-s)."""
        if math.isinf(self.half_life):
            return seconds
        return self.half_life / math.log(2) * -np.expm1(-math.log(2) * seconds / self.half_life)
