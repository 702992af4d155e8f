"""Usage that decays: GPU-seconds by user, of which half is forgotten after a half-life."""

import math

import numpy as np

from gpuschedlab.errors import PolicyError

WEEK = 7 * 86_400.0


class Ledger:
    """GPU-seconds charged to places (users of a `ShareTree`), decayed by 2^(-age / half-life) (Slurm, priority_multifactor.c).

    Usage decays, and the period's charge is added, after each `step` (s; 0: continuously). Slurm lets the charge decay by the whole
    period, and multiplies by 1 - 0.693 / half-life in each second: 0.50007 remain after a half-life. Here it is added undecayed.

    Examples
    --------
    >>> ledger = Ledger(1)
    >>> ledger.hold(0, 8, now=0.0)
    >>> ledger.hold(0, -8, now=86_400.0)
    >>> ledger.at(86_400.0).round(), ledger.at(86_400.0 + WEEK).round()
    (array([658080.]), array([329040.]))
    """

    def __init__(self, places: int, half_life: float = WEEK, step: float = 0.0, start: np.ndarray | None = None):
        if not half_life > 0 or not 0 <= step < math.inf:
            raise PolicyError(f"usage: found half-life {half_life} s, step {step} s; expected above 0, and 0 or more.")
        self.half_life, self.step = float(half_life), float(step)
        self.usage = np.zeros(places) if start is None else np.array(start, float)
        self.held, self.since = np.zeros(places), np.zeros(places)
        self.pending = np.zeros(places)  # charge of the step under way

    def hold(self, place: int | np.ndarray, gpus: float, now: float) -> None:
        """Charge so many GPUs more (fewer, below 0) to a place from now on."""
        self._advance(place, now)
        self.held[place] += gpus

    def at(self, now: float) -> np.ndarray:
        """(places,) usage (GPU-s) at an instant that is not before what was charged last."""
        self._advance(slice(None), now)
        return self.usage.copy()

    def _advance(self, place, now: float) -> None:
        since, held = self.since[place], self.held[place]
        if np.any(now < since):
            raise PolicyError(
                f"usage: found t={now} s, before t={np.max(since)} s; expected instants that do not fall."
            )
        if self.step:
            self._recalculate(place, since, held, now)
        else:
            self.usage[place] = self._later(self.usage[place], now - since) + held * self._worth(now - since)
        self.since[place] = now

    def _recalculate(self, place, since, held, now: float) -> None:
        """Decay and charge at the ends of the steps between; what the step under way has used is pending."""
        first, last = np.floor(since / self.step), math.floor(now / self.step)
        steps = last - first  # that end between the two instants
        charge = self.pending[place] + held * (np.where(steps > 0, (first + 1) * self.step, now) - since)
        kept = 0.5 ** (self.step / self.half_life)
        full = np.maximum(steps - 1, 0)
        whole = held * self.step * ((1 - kept**full) / (1 - kept) if kept < 1 else full)
        ended = self._later(self._later(self.usage[place], self.step) + charge, full * self.step) + whole
        self.usage[place] = np.where(steps > 0, ended, self.usage[place])
        self.pending[place] = np.where(steps > 0, held * (now - last * self.step), charge)

    def _later(self, usage, seconds):
        """What is left of usage."""
        return usage * 0.5 ** (seconds / self.half_life)

    def _worth(self, seconds):
        """What a GPU held for so long until now counts (GPU-s)."""
        if math.isinf(self.half_life):
            return seconds
        return self.half_life / math.log(2) * -np.expm1(-math.log(2) * seconds / self.half_life)
