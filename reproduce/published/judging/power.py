"""Power of a claim: what its verdict could tell, by measurements that are made up from a known truth with our rows' noise."""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from reproduce.published.claims import Claim
from reproduce.published.judging.claim_verdict import verdict_of
from reproduce.published.judging.truth import OwnNoise, filled_in, has_effect, has_truth, truth_of
from reproduce.published.judging.words import AS_PUBLISHED

DRAWS = 40
"""Made-up measurements of each claim: a probability is known to within 0.08 (one standard error at a half)."""


@dataclass(frozen=True)
class Power:
    """What the verdict on a claim could tell.

    Parameters
    ----------
    confirms : float
        Probability of *as published* if the paper were right.
    refutes : float, optional
        Probability of another word if the effect were gone; None if no effect has no meaning.
    assumed : bool
        Whether a page lacks a number of some row, so that the truth is assumed (`truth.filled_in`).
    """

    confirms: float
    refutes: float | None = None
    assumed: bool = False


def power_of(claim: Claim, table: Mapping, found: Mapping, noise: Mapping[str, float], draws: int = DRAWS) -> Power:
    """Return the power of a claim whose numbers are all measured."""
    own = OwnNoise(found, noise, random.Random(f"{claim.at}: {claim.says}"))
    wanted = frozenset(claim.numbers(table))
    table = {number: value for number, value in table.items() if number in wanted}  # each draw looks through it
    right = truth_of(claim, filled_in(claim, table, found))
    confirms = _share_as_published(claim, table, right, own, draws)
    assumed = not has_truth(claim, table)
    if not has_effect(claim):
        return Power(confirms, assumed=assumed)
    gone = truth_of(claim, filled_in(claim, table, found), "gone")
    return Power(confirms, 1 - _share_as_published(claim, table, gone, own, draws), assumed)


def _share_as_published(claim: Claim, table: Mapping, values: Mapping, own: OwnNoise, draws: int) -> float:
    """Share of made-up measurements around some values of which the verdict is *as published*."""
    words = [verdict_of(claim, table, own.measured(claim, values), own.metrics).word for _ in range(draws)]
    return words.count(AS_PUBLISHED) / draws
