"""Questions of a log that are answered by now, and what their answers say of how far a played range is off."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

ENOUGH = 10
"""Answered questions below which a range has no per cent."""
LEVELS = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
"""Levels of a forecast: the middle, and the ranges of one half and of 80 %."""
WIDE = 0.8
"""What the range holds."""
MINUTE = 60.0
LONGEST = 14 * 86_400.0
"""Seconds that are played forward at most."""
NARROWEST = 0.1
"""Least half-width of a played range, of logarithms: one that is a point says nothing of how far it may be off."""
OWN = 16
"""Answers as which the plays' own range counts: few questions do not make it ten times as wide. Chosen on logs of seeds 2 to 11."""


def logarithm(wait: np.ndarray) -> np.ndarray:
    """Return an array: logarithm of waits (s) and a minute; of short ones the difference counts, of long ones the ratio."""
    return np.log(np.maximum(wait, 0.0) + MINUTE)


@dataclass(frozen=True)
class Played:
    """Waits (K,) of one job in several plays, s from the instant on."""

    waits: np.ndarray

    @cached_property
    def quantiles(self) -> np.ndarray:
        """Array of waits (s) at the `LEVELS`."""
        return np.quantile(self.waits, LEVELS)

    @property
    def middle(self) -> float:
        """Logarithm of the median wait."""
        return float(logarithm(self.quantiles[2]))

    @property
    def below(self) -> float:
        """Distance of the logarithm of the 10 % quantile from the middle."""
        return max(self.middle - float(logarithm(self.quantiles[0])), NARROWEST)

    @property
    def above(self) -> float:
        """Distance of the logarithm of the 90 % quantile from the middle."""
        return max(float(logarithm(self.quantiles[-1])) - self.middle, NARROWEST)


@dataclass(frozen=True)
class Answered:
    """A question, its plays, and the wait (s) after it; `known` is false if the job still waits, and the wait is what it waited so far."""

    played: Played
    wait: float
    known: bool = True

    @property
    def score(self) -> float:
        """Distance of the wait from the median, 1 at either end of the 80 % range as it was played."""
        off = float(logarithm(self.wait)) - self.played.middle
        if off >= 0:
            return off / self.played.above
        return -off / self.played.below if self.known else 0.0


@dataclass(frozen=True)
class Calibration:
    """What answered questions say of the ranges of plays."""

    questions: tuple[Answered, ...] = ()

    @property
    def answers(self) -> int:
        """Number of questions whose answers are known."""
        return sum(question.known for question in self.questions)

    @property
    def enough(self) -> bool:
        """Whether there are so many that a range has a per cent."""
        return self.answers >= ENOUGH

    @property
    def held(self) -> float:
        """Share of known answers within the 80 % range as it was played; nan without any."""
        inside = []
        for question in self.questions:
            low, *_, high = question.played.quantiles
            if question.known:
                inside.append(low - 1 <= question.wait <= high + 1)
        return float(np.mean(inside)) if inside else np.nan

    @cached_property
    def factors(self) -> np.ndarray:
        """Array of two factors: how much wider than played the ranges of one half and of 80 % must be to hold so many answers.

        The plays' own range counts as so many answers as `OWN`, of which it holds what it says.
        """
        own_scores = np.linspace(0.0, 1 / WIDE, OWN)
        scores = np.concatenate([[question.score for question in self.questions], own_scores])
        known_answers = np.array([question.known for question in self.questions] + [True] * OWN)
        score_count = len(scores)
        levels = np.minimum(np.ceil(np.array([0.5, WIDE]) * (score_count + 1)) / score_count, 1.0)
        return censored_quantiles(scores, known_answers, levels)

    def quantiles(self, played: Played) -> np.ndarray:
        """Return an array of waits (s) at the `LEVELS`: the played range, made as much wider as answers need.

        The range is as played if the answers are too few.
        """
        if not self.enough or played.quantiles[-1] <= MINUTE:
            return played.quantiles
        half, wide = self.factors
        below = -played.below * np.array([wide, half])
        above = played.above * np.array([half, wide])
        moved = played.middle + np.concatenate([below, [0.0], above])
        return np.clip(np.exp(moved) - MINUTE, 0.0, LONGEST)


def censored_quantiles(values: np.ndarray, known: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return an array of quantiles of values of which some are only lower bounds, by the product limit (Kaplan and Meier 1958).

    A level that it does not reach has the largest value.

    Examples
    --------
    >>> censored_quantiles(np.array([1.0, 2, 3, 4]), np.array([True, False, True, True]), np.array([0.25, 0.5, 1]))
    array([1., 3., 4.])
    """
    wait_order = np.lexsort((~known, values))
    at_risk = len(values) - np.arange(len(values))
    below = 1.0 - np.cumprod(1.0 - known[wait_order] / at_risk)
    quantile_place = np.searchsorted(below, levels - 1e-9)
    return values[wait_order][np.minimum(quantile_place, len(values) - 1)]
