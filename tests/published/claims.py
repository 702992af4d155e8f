"""Claims of the papers in words: whether each holds here, by the rows of the tables that it is about.

`SOURCE.toml` beside a paper's tests holds them. Both its published size and ours follow from the same rows: of the numbers, or of
their ratios to others, the mean (geometric where all are positive), or their most or least where the paper says *up to*, *at most* or
*at least*; which of `KINDS` a claim is decides what lies on its side. `range` is what ours was, with the spread over workloads and
seeds as its two ends: a later run outside of it is noticed.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import LabError
from gpuschedlab.metrics.intervals import mean_interval
from published.numbers import Number, Ours, as_ours, file_of, read_table

VERDICTS = ("holds", "holds, of another size", "not clear", "does not hold", "not measured here")
HELD = VERDICTS[:2]
"""Verdicts that count as held."""

KINDS = {
    "on average": "the mean lies on the side, and its interval over workloads and seeds excludes the threshold",
    "for all": "each row, and each workload and seed of it, lies on the side",
    "up to": "the most of the rows lies on the side",
    "at most": "the most of the rows, workloads and seeds lies on the side",
    "at least": "the least of the rows, workloads and seeds lies on the side",
    "within": "each row lies between the two ends that are published",
    "order of": "each row lies within a factor of the root of ten of the published size",
}
"""What a claim is about its rows, and when it holds."""

AGREES = 0.05
"""How near to 1 numbers of an artifact that is run again lie, divided by the published ones: their interval, or each of under three."""

SIZE = 1.25
"""Factor within which ours has the published size, and above which a range is called wide."""

LEAST = 0.05
"""Least half of a range, of ours: what has no spread is held to it."""

SMALL = 0.02
"""The same where ours is about 0."""

SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z])")
"""Between the sentences of a cause: what several rows say is said once."""

MARGIN = 0.01
"""A claim is clear where each workload or seed lies on its side by so much of the threshold, or where the interval does."""


@dataclass(frozen=True)
class Claim:
    """One claim of a paper.

    Parameters
    ----------
    says : str
        In words.
    at : str
        Where the paper says so.
    rows : dict
        Which rows it is about: their `where, workload, policy, metric`, each a word or a list of them; what is left out is any.
    over : dict
        What the names of a row are in the number that it is divided by; empty: in none.
    kind : str
        Of `KINDS`.
    plus : dict
        As `over`, of a row that is added to it.
    agrees : bool
        Whether an artifact is run again: the numbers are divided by the published ones, and lie within `AGREES` of 1.
    unpublished : bool
        Whether no page has a number: ours has no size to be compared with. So it is where a row of the table has no value.
    above, below : float
        The claim is that the size lies above, or below, or between.
    range : tuple of float, optional
        Of ours.
    cause : str
        Why it does not hold, or is of another size: after a test that would refute it; default: the causes of its rows.
    reason : str
        Why it cannot be had, or is not measured here, where it has no rows.
    """

    says: str
    at: str
    rows: dict = field(default_factory=dict)
    over: dict = field(default_factory=dict)
    kind: str = "on average"
    plus: dict = field(default_factory=dict)
    agrees: bool = False
    unpublished: bool = False
    above: float = -np.inf
    below: float = np.inf
    range: tuple[float, float] | None = None
    cause: str = ""
    reason: str = ""

    @property
    def ranged(self) -> bool:
        """Whether a range is published in place of a number."""
        return self.kind == "within" and bool(np.isfinite([self.above, self.below]).all())

    def pairs(self, table: Iterable[Number]) -> list[tuple[Number, Number | None]]:
        """Rows of a table that it is about, each with the row that it is divided by, or that is added to it."""
        if not self.rows:
            return []
        wanted = {name: [words] if isinstance(words, str) else words for name, words in self.rows.items()}
        mine = [number for number in table if all(getattr(number, name) in words for name, words in wanted.items())]
        change = self.over or self.plus
        others = [number._replace(**change) if change else None for number in mine]
        return [(a, b) for a, b in zip(mine, others, strict=True) if b is None or b in table]

    def joined(self, one: float, other: float | None) -> float:
        """One number, divided by the other or with it added."""
        return one if other is None else one + other if self.plus else one / other

    def numbers(self, table: Iterable[Number]) -> set[Number]:
        """All rows of a table that its size follows from."""
        return {number for pair in self.pairs(table) for number in pair if number}


class Judged(NamedTuple):
    """A claim beside what was measured.

    Parameters
    ----------
    claim : Claim
    verdict : str
        Of `VERDICTS`.
    published, ours : float or None
        Sizes.
    low, high : float or None
        95 % interval of ours over workloads and seeds, where there are three or more of them and it is their mean.
    right, of : int
        How many of the workloads and seeds lie on the claimed side, and how many there are.
    why : str
        Cause, or reason.
    """

    claim: Claim
    verdict: str
    published: float | None = None
    ours: float | None = None
    low: float | None = None
    high: float | None = None
    right: int = 0
    of: int = 0
    why: str = ""

    @property
    def sized(self) -> bool:
        """Whether it holds and has the published size."""
        return self.verdict == VERDICTS[0] and (self.published is not None or self.claim.ranged)

    @property
    def inside(self) -> bool:
        """Whether ours lies in the range that was committed."""
        low, high = self.claim.range or (-np.inf, np.inf)
        return self.ours is None or low <= self.ours <= high

    @property
    def wide(self) -> bool:
        """Whether the range is wider than a factor of `SIZE`."""
        low, high = self.claim.range or (1.0, 1.0)
        return bool(low <= 0 or high / low > SIZE)


def read_claims(source: str, folder: Path | None = None) -> list[Claim]:
    """Claims of a source.

    Raises
    ------
    LabError
        A claim lacks its words, has a key that is none, names rows that the table does not have, or has neither rows nor reason.

    Examples
    --------
    >>> read_claims("of no paper")
    []
    """
    path = file_of(source, ".toml", folder)
    claims = []
    for entry in tomllib.loads(path.read_text())["claim"] if path.is_file() else []:
        if strangers := {"says", "at"} - entry.keys() | entry.keys() - Claim.__dataclass_fields__.keys():
            raise LabError(
                f"{path.name}: found a claim with or without {sorted(strangers)}: {entry}; expected says, at, ..."
            )
        sides = {"above": 1 - AGREES, "below": 1 + AGREES} if entry.get("agrees") else {}
        claim = Claim(**entry | sides | ({"range": tuple(entry["range"])} if "range" in entry else {}))
        if claim.kind not in KINDS:
            raise LabError(
                f"{path.name}: {claim.says!r}: found kind {claim.kind!r}; expected one of {', '.join(KINDS)}."
            )
        if bool(claim.rows) == bool(claim.reason):
            raise LabError(f"{path.name}: found {claim.says!r} with both or neither of rows and reason; expected one.")
        if claim.rows and not claim.pairs(_published(source)):
            raise LabError(f"{path.name}: {claim.says!r}: found no rows {claim.rows} (over {claim.over}) in the table.")
        claims.append(claim)
    return claims


def judge(
    source: str, found: Mapping[Number, float | str | Ours], claims: Iterable[Claim] | None = None
) -> list[Judged]:
    """Claims of a source beside what was measured.

    Parameters
    ----------
    source : str
    found : mapping of Number to float, Ours or str
        As the function `ours` of a source gives it. A claim is judged only by whole numbers, all that it is about.
    claims : iterable of Claim, optional
        Default: those of the source.
    """
    table = _published(source)
    causes = _column(source, "cause")
    claims = read_claims(source) if claims is None else claims
    return [_explained(_judge(claim, table, found), table, causes) for claim in claims]


def _published(source: str) -> dict[Number, float]:
    return _column(source, "value")


@cache
def _column(source: str, name: str) -> dict:
    return {Number(*row[:4]): row[4] for row in read_table(source).select(*Number._fields, name).iter_rows()}


def _explained(judged: Judged, table: dict, causes: dict) -> Judged:
    """With the causes of its rows, where the claim has none of its own."""
    if judged.why or judged.verdict == VERDICTS[0]:
        return judged
    about = judged.claim.numbers(table)
    rows = [number for number in table if number in about]
    sentences = [sentence for number in rows for sentence in SENTENCE.split(causes[number] or "")]
    return judged._replace(why=" ".join(dict.fromkeys(filter(None, sentences))))


def _judge(claim: Claim, table: dict, found: Mapping) -> Judged:
    if not claim.rows:
        return Judged(claim, VERDICTS[-1], why=claim.reason)
    pairs = claim.pairs(table)
    if claim.agrees:
        found = {a: _divided(found[a], table[a]) for a, _ in pairs if a in found}
        table = dict.fromkeys(table, 1.0)
    size = {"up to": max, "at most": max, "at least": min}.get(claim.kind, _mean)
    published = _published_size(claim, pairs, table, size)
    if claim.kind == "order of":
        claim = replace(claim, above=published / 10**0.5, below=published * 10**0.5)
    missing = [found.get(number) for number in claim.numbers(table) if not _whole(found.get(number))]
    if missing:
        reason = next((text for text in missing if isinstance(text, str)), "Not measured.")
        return Judged(claim, VERDICTS[-1], published, why=claim.cause or reason)
    sizes = []
    each = []
    for a, b in pairs:
        one = as_ours(found[a])
        other = as_ours(found[b]) if b else None
        sizes.append(claim.joined(one.value, other and other.value))
        keys = one.each.keys() & other.each.keys() if other else one.each.keys()
        each += [claim.joined(one.each[key], other and other.each[key]) for key in sorted(keys)] or sizes[-1:]
    ours = size(sizes)
    low, high = _interval(each)
    off = low is not None and not low <= ours <= high
    if off or size is not _mean:  # the most or the least of them, not their mean
        low = high = None
    right = sum(claim.above <= x <= claim.below for x in each)
    side = claim.above <= ours <= claim.below
    clear = True
    if claim.kind in ("within", "order of", "for all", "at most", "at least"):
        side = all(claim.above <= x <= claim.below for x in sizes)
        side = side and (right == len(each) or claim.kind in ("within", "order of"))
    elif claim.agrees:
        side = all(claim.above <= end <= claim.below for end in ((low, high) if low is not None else each))
    elif low is not None and any(low < end < high for end in (claim.above, claim.below)):
        clear = all(_past(claim.above, x) and _past(-claim.below, -x) for x in each)
    near = None if claim.kind in ("order of", "at most", "at least") else published
    verdict = _verdict(side, near, ours, low, high) if clear else VERDICTS[2]
    return Judged(claim, verdict, published, ours, low, high, right, len(each), claim.cause)


def _published_size(claim: Claim, pairs: list, table: dict, size) -> float | None:
    """Published size of a claim, where pages have one."""
    numbers = {number for pair in pairs for number in pair if number}
    if claim.unpublished or claim.ranged or any(table[number] is None for number in numbers):
        return None
    return size([claim.joined(table[a], table[b] if b else None) for a, b in pairs])


def _past(end: float, x: float) -> bool:
    """Whether a value lies above an end by more than `MARGIN` of it."""
    return np.isneginf(end) or x >= end + MARGIN * abs(end)


def _verdict(side: bool, published: float | None, ours: float, low: float | None, high: float | None) -> str:
    if not side:
        return VERDICTS[3]
    if published is None:
        return VERDICTS[0]
    alike = published * ours > 0 and max(published / ours, ours / published) <= SIZE
    within = low is not None and low <= published <= high
    return VERDICTS[0] if alike or within or abs(published - ours) <= SMALL else VERDICTS[1]


def _divided(value, by: float):
    if isinstance(value, str):
        return value
    value = as_ours(value)
    return value._replace(value=value.value / by, each={key: one / by for key, one in value.each.items()})


def _whole(value) -> bool:
    return value is not None and not isinstance(value, str) and as_ours(value).whole


def _mean(values: list[float]) -> float:
    """Geometric where all are positive."""
    values = np.asarray(values, float)
    return float(np.exp(np.log(values).mean()) if (values > 0).all() else values.mean())


def _interval(values: list[float]) -> tuple[float | None, float | None]:
    """95 % interval of `_mean` by Student's t."""
    if len(values) < 3:
        return None, None
    values = np.asarray(values, float)
    way, back = (np.log, np.exp) if (values > 0).all() else (lambda x: x, lambda x: x)
    middle, half = mean_interval(way(values))
    return float(back(middle - half)), float(back(middle + half))


def range_of(judged: Judged, timed: bool = False) -> tuple[float, float]:
    """Range to write down: the interval, at least `LEAST` of ours each way; a factor of 2 where a clock measures it."""
    if timed:
        return judged.ours / 2, judged.ours * 2
    half = max(LEAST * abs(judged.ours), SMALL if abs(judged.ours) < SMALL / LEAST else 0.0)
    ends = (judged.ours - half, judged.ours + half)
    if judged.low is None:
        return ends
    return min(ends[0], judged.low), max(ends[1], judged.high)
