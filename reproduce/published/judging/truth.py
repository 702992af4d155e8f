"""Measurements that are made up from a known truth: what the judge is tried on, and what the power of a claim is computed from."""

import math
import random
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from reproduce.published.claims import Claim
from reproduce.published.judging.rows import ENOUGH_RUNS, GUESSED_NOISE, runs_of
from reproduce.published.numbers import Number, Ours, as_ours

MOVE = 1.5
"""Factor by which a value is moved to its bad side."""

TRUTHS = ("published", "up", "down", "turned", "gone")
"""The paper is right; the first number of each ratio is moved up or down; the effect has the other sign; there is no effect."""


def has_truth(claim: Claim, table: Mapping[Number, float | None]) -> bool:
    """Whether all numbers of a claim are published."""
    pairs = claim.pairs(table)
    return bool(pairs) and all(table[number] is not None for pair in pairs for number in pair if number)


def filled_in(claim: Claim, table: Mapping[Number, float | None], found: Mapping) -> dict[Number, float | None]:
    """Published values, and for rows that have none what may be assumed if the paper is right.

    That is the middle of the sentence's range, its bound, or, if the sentence only names a side, an effect as large as ours on that
    side.
    """
    filled = dict(table)
    for one, other in claim.pairs(table):
        base = 1.0
        if other is not None:
            filled[other] = as_ours(found[other]).value if table[other] is None else table[other]
            base = filled[other]
        if table[one] is None or (other is not None and table[other] is None):
            ours = claim.joined(as_ours(found[one]).value, as_ours(found[other]).value if other else None)
            filled[one] = _assumed(claim, ours) * base
    return filled


def _assumed(claim: Claim, ours: float) -> float:
    """Value that a row without a published one may have if the paper is right."""
    ends = [end for end in (claim.above, claim.below) if math.isfinite(end)]
    if len(ends) > 1:
        return math.sqrt(ends[0] * ends[1]) if ends[0] > 0 else statistics.fmean(ends)
    if not claim.about_side:
        return ends[0] if ends else ours
    direction = 1 if math.isfinite(claim.above) else -1
    if claim.no_effect == 0:
        return direction * abs(ours)
    return math.exp(direction * abs(math.log(ours))) if ours > 0 else claim.no_effect


def has_effect(claim: Claim) -> bool:
    """Whether the effect of a claim can be removed, and the claim is wrong without it: *less than twice* is right of no effect."""
    if not claim.about_effect or claim.kind == "order of":
        return False
    holds_without = claim.above <= claim.no_effect <= claim.below
    return not (holds_without and (claim.bounded or claim.ranged))


def wrong_truths(claim: Claim, table: Mapping[Number, float | None]) -> tuple[str, ...]:
    """Truths under which a claim is clearly wrong."""
    if all(table[one] == 0 for one, _ in claim.pairs(table)):
        return ()
    end = claim.below if math.isfinite(claim.below) else claim.above
    if claim.about_side or (claim.kind == "at least" and end == claim.no_effect):
        return ("turned",)
    if claim.bounded or claim.unpublished:
        return ("up",) if math.isfinite(claim.below) else ("down",)
    return ("up", "down")


def truth_of(claim: Claim, table: Mapping[Number, float | None], truth: str = "published") -> dict[Number, float]:
    """Return the value of each number of a claim under a truth."""
    values = {number: table[number] for number in claim.numbers(table)}
    for one, other in claim.pairs(table):
        value = table[one]
        base = table[other] if other and not claim.plus else None
        if truth in ("up", "down"):
            values[one] = _moved(claim, value, truth)
            if claim.plus:
                values[other] = _moved(claim, table[other], truth)
        elif truth == "gone":
            values[one] = _without_effect(claim, base)
        elif truth == "turned":
            values[one] = _turned(claim, value, base)
    return values


def _moved(claim: Claim, value: float, truth: str) -> float:
    factor = 10.0 if claim.kind == "order of" else MOVE
    if claim.bounded or (claim.unpublished and not claim.about_side):
        end = claim.below if math.isfinite(claim.below) else claim.above
        value = max(value, end) if truth == "up" else min(value, end)
    return value * factor if truth == "up" else value / factor


def _without_effect(claim: Claim, base: float | None) -> float:
    if claim.no_effect == 0:
        return 0.0
    return 1.0 if base is None else base


def _turned(claim: Claim, value: float, base: float | None) -> float:
    if claim.no_effect == 0:
        return -value
    return 1 / value if base is None else base * base / value


def exactly(values: Mapping[Number, float]) -> dict[Number, Ours]:
    """The values themselves, of no run."""
    return {number: Ours(value) for number, value in values.items()}


@dataclass(frozen=True)
class Noise:
    """Noise that is the same for all rows.

    Parameters
    ----------
    deviation : float
        Relative standard deviation of one run; of what a share lacks, for a share.
    runs : int
    rng : random.Random
    """

    deviation: float
    runs: int
    rng: random.Random

    def measured(self, claim: Claim, values: Mapping[Number, float]) -> dict[Number, Ours]:
        """Runs with this noise around values."""
        found = {}
        for number, value in values.items():
            factors = [math.exp(self.rng.gauss(0, self.deviation)) for _ in range(self.runs)]
            found[number] = _ours([_scaled(claim, value, factor) for factor in factors])
        return found


@dataclass
class OwnNoise:
    """Noise of our own rows: their runs are drawn again, with the same draw for rows of the same runs.

    Parameters
    ----------
    found : mapping of Number to Ours, float or str
        What was measured.
    metrics : mapping of str to float
        Relative standard deviation of one run, by metric, for rows of fewer than three runs.
    rng : random.Random
    """

    found: Mapping
    metrics: Mapping[str, float]
    rng: random.Random
    draws: dict = field(default_factory=dict)

    def measured(self, claim: Claim, values: Mapping[Number, float]) -> dict[Number, Ours]:
        """Runs with this noise around values."""
        self.draws = {}
        return {number: self._row(claim, number, value) for number, value in sorted(values.items())}

    def _row(self, claim: Claim, number: Number, value: float) -> Ours:
        known = self.found.get(number)
        runs = {} if known is None or isinstance(known, str) else runs_of(known)
        if claim.agrees or claim.exact:
            return _ours([value] * max(len(runs), 1), bool(runs))
        if len(runs) < ENOUGH_RUNS:
            deviation = self.metrics.get(number.metric, GUESSED_NOISE)
            factors = [math.exp(self.rng.gauss(0, deviation)) for _ in range(max(len(runs), 1))]
            return _ours([_scaled(claim, value, factor) for factor in factors], bool(runs))
        return self._drawn_again(claim, runs, value)

    def _drawn_again(self, claim: Claim, runs: Mapping[str, float], value: float) -> Ours:
        """Residuals of the runs, drawn with replacement, and as wide as those of a sample are on average."""
        keys = tuple(sorted(runs))
        count = len(keys)
        if keys not in self.draws:
            self.draws[keys] = [self.rng.randrange(count) for _ in keys]
        lacks = [claim.share_of - runs[key] if claim.share_of else runs[key] for key in keys]
        widening = math.sqrt(count / (count - 1))
        if min(lacks) <= 0:
            mean = statistics.fmean(lacks)
            residuals = [widening * (one - mean) for one in lacks]
            return _ours([value + residuals[draw] for draw in self.draws[keys]])
        mean = statistics.fmean(map(math.log, lacks))
        factors = [math.exp(widening * (math.log(one) - mean)) for one in lacks]
        bias = statistics.fmean(factors)
        return _ours([_scaled(claim, value, factors[draw] / bias) for draw in self.draws[keys]])


def _scaled(claim: Claim, value: float, factor: float) -> float:
    """A value with noise; of a share, what it lacks of the whole has it."""
    if claim.share_of is None:
        return value * factor
    return claim.share_of - (claim.share_of - value) * factor


def _ours(runs: list[float], named: bool = True) -> Ours:
    each = {f"seed {i}": run for i, run in enumerate(runs)} if named else {}
    return Ours(statistics.fmean(runs), each=each)
