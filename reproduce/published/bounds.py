"""What holds a run to the committed one: each number to its own value, and each claim to its range; and how much that notices."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from reproduce.published.claims import read_claims
from reproduce.published.committed import CLOCK, FOLDER, moved, read_measured
from reproduce.published.judging.judged import Judged, outside, range_of
from reproduce.published.numbers import Number, Ours, as_ours

FACTOR = 1.25
"""Factor, either way, that a wrong number is off by."""


def bounds(
    source: str, found: Mapping[Number, float | str | Ours], claims: list[Judged], folder: Path = FOLDER
) -> list[tuple[str, bool]]:
    """What is checked of a source that was measured, and whether it holds."""
    path = folder / f"{source}.csv"
    lines = moved(found, read_measured(path).found) if path.is_file() else []
    own = [(line, False) for line in lines] or [("every number is what was committed", True)] * path.is_file()
    return own + [
        (range_text(one), bool(one.claim.range) and one.inside) for one in claims if one.size.ours is not None
    ]


def range_text(judged: Judged) -> str:
    """A claim, its size here, and its range: the one that follows from this run, where none is written down."""
    low, high = judged.claim.range or range_of(judged)
    way = "in" if judged.claim.range else "no range is written down; of this run:"
    return f"{judged.claim.says}: {judged.size.ours:.3g}, {way} {low:.4g} to {high:.4g}" + " (wide)" * judged.wide


class Noticed(NamedTuple):
    """How many wrong numbers of a source are noticed when it is measured.

    Parameters
    ----------
    rows : int
        All.
    noticed, by_claims : int
        By its own value or a claim; by a claim alone.
    clock : int
        Rows in seconds of a clock, of which a factor of 2 is noticed.
    """

    rows: int
    noticed: int
    by_claims: int
    clock: int


def noticed(source: str, known: Mapping[Number, float | str | Ours]) -> Noticed:
    """What is noticed of each number but 0 that is off by `FACTOR`, either way, and all else as it was committed."""
    rows = 0
    by_own = 0
    by_claim = 0
    clock = 0
    ranged = [(claim, frozenset(claim.numbers(known))) for claim in read_claims(source) if claim.range]
    for number, value in known.items():
        if isinstance(value, str) or not as_ours(value).value:
            continue
        wrong = [{**known, number: _off(as_ours(value), factor)} for factor in (FACTOR, 1 / FACTOR)]
        about = [claim for claim, numbers in ranged if number in numbers]
        own = all(moved({number: each[number]}, {number: value}) for each in wrong)
        claim = all(outside(source, each, about) for each in wrong)
        rows = rows + 1
        by_own = by_own + (own or claim)
        by_claim = by_claim + claim
        clock += bool(CLOCK.search(number.metric))
    return Noticed(rows, by_own, by_claim, clock)


def _off(value: Ours, factor: float) -> Ours:
    return value._replace(value=factor * value.value, each={key: factor * one for key, one in value.each.items()})
