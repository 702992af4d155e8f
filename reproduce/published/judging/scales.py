"""Scales on which rows are judged, and the interval of a row on them."""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from scipy.special import stdtrit

from reproduce.published.claims import Claim
from reproduce.published.judging.rows import Row

LEVEL = 0.95
SMALLEST = 0.01
"""Difference below which shares and differences count as equal, on the plain scale at a tolerance of 1.25 or more."""

SHARE_FLOOR = 0.02
"""The same for what a share lacks: so much of the whole, times the tolerance less 1."""

LEAST_POSITIVE = 1e-12
FEW_RUNS_QUANTILE = 2.0
"""Standard errors of an interval whose noise is not the row's own."""

SHARE_NOISE = 0.1
"""Relative standard deviation of what a share lacks, for a row of fewer than three runs. A guess."""


@dataclass(frozen=True)
class Scale:
    """A scale: logarithmic for ratios and levels, plain for differences, or what a share lacks of the whole.

    Parameters
    ----------
    logarithmic : bool
    whole : float, optional
        What a share is a part of: 1, or 100 for per cent.

    Examples
    --------
    >>> Scale(True).of(math.e), Scale(False).of(-2.0), Scale(False, whole=1.0).of(0.75)
    (1.0, -2.0, 0.25)
    """

    logarithmic: bool
    whole: float | None = None

    def of(self, value: float) -> float:
        """A value on this scale."""
        if self.whole is not None:
            return self.whole - value
        if not self.logarithmic:
            return value
        return math.log(max(value, LEAST_POSITIVE))

    def ends(self, low: float, high: float) -> tuple[float, float]:
        """Two ends on this scale, the lesser first; a share's ends change places."""
        ends = (self.of(low), self.of(high))
        return (min(ends), max(ends))

    def width(self, end: float, factor: float) -> float:
        """How far a factor reaches from an end."""
        if self.logarithmic:
            return math.log(factor)
        if self.whole is not None:
            return (factor - 1) * (abs(end) + SHARE_FLOOR * self.whole)
        floor = SMALLEST if abs(end) <= 1 and factor > 1 else 0.0
        return max((factor - 1) * abs(end), floor)


@dataclass(frozen=True)
class Interval:
    """Middle of a row on a scale, and half the width of its 95 % interval."""

    middle: float
    half: float


def scale_of(claim: Claim, rows: Iterable[Row]) -> Scale:
    """Scale on which all rows of a claim are judged."""
    if claim.share_of is not None:
        return Scale(False, claim.share_of)
    if claim.no_effect == 0:
        return Scale(False)
    values = [value for row in rows for value in (row.ours, *row.runs, *(row.published or ()))]
    return Scale(all(value > 0 for value in values))


def interval_of(row: Row, scale: Scale) -> Interval:
    """Interval of a row: over its own runs if there are three, otherwise by the noise of one run."""
    middle = scale.of(row.ours)
    count = max(len(row.runs), 1)
    if not row.few:
        deviation = statistics.stdev(map(scale.of, row.runs))
        return Interval(middle, deviation * quantile(count - 1) / math.sqrt(count))
    deviation = row.noise
    if scale.whole is not None:
        deviation = SHARE_NOISE * abs(middle) if row.noise else 0.0
    elif not scale.logarithmic:
        deviation *= abs(row.ours)
    return Interval(middle, FEW_RUNS_QUANTILE * deviation / math.sqrt(count))


@cache
def quantile(degrees: int) -> float:
    """Student's quantile of a two-sided interval."""
    return float(stdtrit(degrees, 0.5 + LEVEL / 2))
