"""The word of one row: as published, more, less, other way or not clear."""

import math
from dataclasses import dataclass

from reproduce.published.claims import Claim
from reproduce.published.judging.rows import Row
from reproduce.published.judging.scales import Interval, Scale, interval_of
from reproduce.published.judging.words import AS_PUBLISHED, LESS, MORE, NOT_CLEAR, OTHER_WAY, RowWord

TOLERANCE = 1.25
"""Factor within which a size is the published one."""

FAR = 1.5
"""Factor beyond which an interval must not reach if its row is as published."""

RANGE_TOLERANCE = 1.1
"""Tolerance at the ends of a range that a sentence gives for many numbers."""

ALIKE_FAR = 1.2
"""The same as `FAR` for claims that two things are alike, whose ends are the tolerance."""

ORDER_TOLERANCE = math.sqrt(10)
ORDER_FAR = 10.0

TOWARD = 0.5
"""Share of the published effect that the tolerance takes away at most, toward no effect. A tolerance on the value alone would call a
gain of 1.02 as published where the paper has 1.15."""

FAR_TOWARD = 0.7
"""The same for `FAR`."""

PAPERS_NOISE = math.sqrt(2)
"""The published number has as much noise as ours: the interval of their difference is wider by this factor."""

EXACTLY = 1e-9
ROUNDING = 1e-12


@dataclass(frozen=True)
class Target:
    """What the paper says of a row, on the scale of judging.

    Parameters
    ----------
    low, high : float
        Ends of the published value; infinite if that side is open.
    tolerance, far : float
        Factors at these ends.
    no_effect : float, optional
        Place of no effect on the scale.
    sign : int
        1 if the published effect lies above no effect, -1 if below, 0 if there is no such thing.
    alike : bool
        Whether the claim is that two things are alike.
    bounded : bool
        Whether only the bad side of an end counts.
    """

    low: float
    high: float
    tolerance: float = TOLERANCE
    far: float = FAR
    no_effect: float | None = None
    sign: int = 0
    alike: bool = False
    bounded: bool = False

    @property
    def sized(self) -> bool:
        """Whether a size is published."""
        return math.isfinite(self.low) or math.isfinite(self.high)


def judge_row(claim: Claim, row: Row, scale: Scale) -> RowWord:
    """The word of a row."""
    interval = interval_of(row, scale)
    target = target_of(claim, row, scale)
    side = _side(interval, target)
    if side == OTHER_WAY:
        return RowWord(OTHER_WAY, OTHER_WAY, side, _size(interval, target, scale)[0] if target.sized else "")
    if not target.sized:
        return _word_of_side(interval, target, side)
    size, middle = _size(interval, target, scale)
    word = size
    if size == NOT_CLEAR and claim.about_side and side == AS_PUBLISHED:
        return RowWord(AS_PUBLISHED, AS_PUBLISHED, side, size)
    if size == AS_PUBLISHED and side == NOT_CLEAR and not target.bounded:
        word = NOT_CLEAR
    return RowWord(word, middle, side, size)


def target_of(claim: Claim, row: Row, scale: Scale) -> Target:
    """What the paper says of a row."""
    no_effect = None if claim.no_effect is None else scale.of(claim.no_effect)
    one_end = math.isfinite(claim.above) != math.isfinite(claim.below)
    bounded = claim.bounded or (one_end and row.published is None and not claim.about_side)
    sign = _sign(claim, row)
    alike = claim.kind == "alike" or claim.agrees
    if alike:
        low, high = scale.ends(claim.above, claim.below)
        return Target(low, high, 1.0, ALIKE_FAR, no_effect, sign, alike=True)
    if bounded:
        low, high = _bounds(claim, row, scale)
        return Target(low, high, no_effect=no_effect, sign=sign, bounded=True)
    if row.published is not None:
        low, high = scale.ends(*row.published)
        if claim.kind == "order of":
            return Target(low, high, ORDER_TOLERANCE, ORDER_FAR, no_effect, sign)
        return Target(low, high, no_effect=no_effect, sign=sign)
    if claim.about_side:
        return Target(-math.inf, math.inf, no_effect=no_effect, sign=sign)
    low, high = scale.ends(claim.above, claim.below)
    return Target(low, high, RANGE_TOLERANCE, FAR, no_effect, sign)


def _bounds(claim: Claim, row: Row, scale: Scale) -> tuple[float, float]:
    """Ends of a bound: the sentence's, or the row's own published value if that lies beyond it."""
    least, most = row.published or (math.inf, -math.inf)
    low = min(claim.above, least) if math.isfinite(claim.above) else -math.inf
    high = max(claim.below, most) if math.isfinite(claim.below) else math.inf
    return scale.ends(low, high)


def _sign(claim: Claim, row: Row) -> int:
    """Side of the published effect: that of the sentence, of the row's own value, or of the sentence's range."""
    if claim.no_effect is None or claim.kind == "at most" or claim.agrees:
        return 0
    if claim.about_side:
        return 1 if math.isfinite(claim.above) else -1
    low, high = claim.above, claim.below
    if claim.kind != "alike" and row.published is not None:
        low, high = row.published
    if math.isfinite(low) and low >= claim.no_effect and high > claim.no_effect:
        return 1
    if math.isfinite(high) and high <= claim.no_effect and low < claim.no_effect:
        return -1
    return 0


def _side(interval: Interval, target: Target) -> str:
    """Whether the interval excludes no effect, and on which side of it; empty if no side is published."""
    if not target.sign:
        return ""
    beyond = target.sign * (interval.middle - target.no_effect)
    if beyond + interval.half < -ROUNDING:
        return OTHER_WAY
    return AS_PUBLISHED if beyond - interval.half > 0 else NOT_CLEAR


def _word_of_side(interval: Interval, target: Target, side: str) -> RowWord:
    """The word of a row of which no size is published."""
    if side == AS_PUBLISHED:
        return RowWord(AS_PUBLISHED, AS_PUBLISHED, side)
    if target.no_effect is None:
        return RowWord(NOT_CLEAR, NOT_CLEAR)
    distance = target.sign * (interval.middle - target.no_effect)
    if interval.half < EXACTLY and abs(distance) < EXACTLY:
        return RowWord(LESS, LESS, side)
    return RowWord(NOT_CLEAR, AS_PUBLISHED if distance > 0 else OTHER_WAY, side)


def _size(interval: Interval, target: Target, scale: Scale) -> tuple[str, str]:
    """The word of a row's size, and that of its middle alone."""
    low, high = _widened(target, scale, target.tolerance, TOWARD)
    farthest_low, farthest_high = _widened(target, scale, target.far, FAR_TOWARD)
    above, below = (LESS, MORE) if target.sign < 0 or scale.whole is not None else (MORE, LESS)
    half = interval.half * PAPERS_NOISE
    middle = AS_PUBLISHED
    if interval.middle > high + ROUNDING:
        middle = above
    elif interval.middle < low - ROUNDING:
        middle = below
    if interval.middle - half > high + ROUNDING:
        return above, middle
    if interval.middle + half < low - ROUNDING:
        return below, middle
    near = farthest_low - ROUNDING <= interval.middle - half and interval.middle + half <= farthest_high + ROUNDING
    return (AS_PUBLISHED if middle == AS_PUBLISHED and near else NOT_CLEAR), middle


def _widened(target: Target, scale: Scale, factor: float, toward: float) -> tuple[float, float]:
    """Ends of a target with a tolerance; toward no effect it takes away at most a share of the published effect."""
    ends = []
    for end, direction in ((target.low, -1), (target.high, 1)):
        if not math.isfinite(end):
            ends.append(end)
            continue
        width = scale.width(end, factor)
        if direction * target.sign < 0 and end != target.no_effect and not target.alike:
            width = min(width, toward * abs(end - target.no_effect))
        ends.append(end + direction * width)
    return ends[0], ends[1]
