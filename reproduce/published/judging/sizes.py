"""Size of a claim: the published one and ours, as one number over its rows, with an interval over workloads and seeds."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpuschedlab.metrics.intervals import mean_interval
from reproduce.published.claims import Claim
from reproduce.published.numbers import Ours, as_ours

EXTREMES = {"up to": max, "at most": max, "at least": min}
"""Kinds of claims whose size is that of the most or the least of the rows."""

ENOUGH = 3
"""Values from which there is an interval."""


@dataclass(frozen=True)
class Size:
    """Size of a claim, as one number.

    Parameters
    ----------
    published, ours : float, optional
        Means over the rows, geometric if all are positive; the most or the least of the rows for such kinds.
    low, high : float, optional
        95 % interval of ours over workloads and seeds, if there are three or more of them and it is their mean.
    right, of : int
        How many of the workloads and seeds lie between the ends of the claim, and how many there are.
    missing : str
        Why there is none of ours.
    """

    published: float | None = None
    ours: float | None = None
    low: float | None = None
    high: float | None = None
    right: int = 0
    of: int = 0
    missing: str = ""


def size_of(claim: Claim, table: Mapping, found: Mapping) -> Size:
    """Size of a claim that has rows."""
    pairs = claim.pairs(table)
    if claim.agrees:
        found = {one: _divided(found[one], table[one]) for one, _ in pairs if one in found}
        table = dict.fromkeys(table, 1.0)
    summary = EXTREMES.get(claim.kind, mean_of)
    published = _published(claim, pairs, table, summary)
    missing = [found.get(number) for number in claim.numbers(table) if not _whole(found.get(number))]
    if missing:
        reasons = [text for text in missing if isinstance(text, str)]
        return Size(published, missing=reasons[0] if reasons else "Not measured.")
    sizes = [_joined(claim, found, one, other) for one, other in pairs]
    each = [value for one, other in pairs for value in _each(claim, found, one, other)]
    ours = summary(sizes)
    low, high = interval_of_mean(each)
    if summary is not mean_of or (low is not None and not low <= ours <= high):
        low, high = None, None
    right = sum(claim.above <= value <= claim.below for value in each)
    return Size(published, ours, low, high, right, len(each))


def _joined(claim: Claim, found: Mapping, one, other) -> float:
    return claim.joined(as_ours(found[one]).value, as_ours(found[other]).value if other else None)


def _each(claim: Claim, found: Mapping, one, other) -> list[float]:
    """The same of each workload or seed; the row's own value if it has none."""
    first = as_ours(found[one]).each
    if other is None:
        values = [first[key] for key in sorted(first)]
    else:
        second = as_ours(found[other]).each
        values = [claim.joined(first[key], second[key]) for key in sorted(first.keys() & second.keys())]
    return values or [_joined(claim, found, one, other)]


def _published(claim: Claim, pairs: list, table: Mapping, summary) -> float | None:
    """Published size of a claim; None if a page lacks one of its numbers, or has a range."""
    numbers = {number for pair in pairs for number in pair if number}
    if claim.unpublished or claim.ranged or any(table[number] is None for number in numbers):
        return None
    return summary([claim.joined(table[one], table[other] if other else None) for one, other in pairs])


def _divided(value, by: float) -> str | Ours:
    if isinstance(value, str):
        return value
    value = as_ours(value)
    return value._replace(value=value.value / by, each={key: one / by for key, one in value.each.items()})


def _whole(value) -> bool:
    return value is not None and not isinstance(value, str) and as_ours(value).whole


def mean_of(values: list[float]) -> float:
    """Return the mean, geometric if all values are positive."""
    if all(value > 0 for value in values):
        return math.exp(math.fsum(map(math.log, values)) / len(values))
    return math.fsum(values) / len(values)


def interval_of_mean(values: list[float]) -> tuple[float, float] | tuple[None, None]:
    """Return the 95 % interval of `mean_of` by Student's t; None for fewer than three values."""
    if len(values) < ENOUGH:
        return None, None
    if not all(value > 0 for value in values):
        middle, half = mean_interval(np.asarray(values, float))
        return float(middle - half), float(middle + half)
    middle, half = mean_interval(np.log(np.asarray(values, float)))
    return float(np.exp(middle - half)), float(np.exp(middle + half))
