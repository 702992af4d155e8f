"""Claims of the papers in words: what each says, of which rows, and what no effect would be.

`SOURCE.toml` beside a paper's tests holds them. Both the published size and ours follow from the same rows of a table, or from their
ratios to others. The package `judging` judges them, row by row. `range` is what the size of ours was, with the spread over workloads
and seeds as its two ends: a later run outside of it is noticed.
"""

import math
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from gpuschedlab.errors import LabError
from reproduce.published.numbers import Number, file_of, read_table

KINDS = {
    "on average": "most of the rows are as published",
    "for all": "each row is as published",
    "up to": "the largest row is as large as the largest published one",
    "at most": "no row lies above the end",
    "at least": "no row lies below the end",
    "within": "each row lies between the two ends that are published, or has its own published value",
    "order of": "each row lies within a factor of the root of ten of the published size",
    "alike": "each row lies between the two ends, which stand close around no effect",
}
"""What a claim is about its rows."""

BOUNDS = ("at most", "at least")
"""Kinds that are bounds."""

AGREES = 0.05
"""How near to 1 numbers of an artifact that is run again lie, divided by the published ones."""

NO_EFFECTS = {0: 0.0, 1: 1.0, "none": None}
"""What a claim's file may say that no effect is: 0 for differences, 1 for ratios, "none" for levels, errors and limits."""


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
    no_effect : float, optional
        What the rows would be if there were no effect: 1 for ratios, 0 for differences. None if that has no meaning: levels, errors
        and limits have no side.
    agrees : bool
        Whether an artifact is run again: the numbers are divided by the published ones, and lie within `AGREES` of 1.
    exact : bool
        Whether nothing in the rows is random: they have no noise.
    share_of : float, optional
        The whole that a share or an accuracy is part of, 1 or 100: it is judged by what it lacks of the whole.
    unpublished : bool
        Whether no page has a number: ours has no size to be compared with. So it is where a row of the table has no value.
    above, below : float
        The claim is that the size lies above, or below, or between.
    other_size : str
        How what was measured differs from what the paper measured, if it does: other sizes, another measure. The verdict says so.
    null_note : str
        First words of the sentence, in a row's note or cause, that has the accuracy of always giving the same answer.
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
    no_effect: float | None = None
    agrees: bool = False
    exact: bool = False
    share_of: float | None = None
    unpublished: bool = False
    above: float = -math.inf
    below: float = math.inf
    other_size: str = ""
    null_note: str = ""
    range: tuple[float, float] | None = None
    cause: str = ""
    reason: str = ""

    @property
    def ranged(self) -> bool:
        """Whether a range is published in place of a number."""
        return self.kind == "within" and math.isfinite(self.above) and math.isfinite(self.below)

    @property
    def about_side(self) -> bool:
        """Whether the sentence says on which side of no effect its rows lie, and no more."""
        ends = [end for end in (self.above, self.below) if math.isfinite(end)]
        return self.kind not in BOUNDS and len(ends) == 1 and ends[0] == self.no_effect

    @property
    def about_effect(self) -> bool:
        """Whether the rows have an effect, not a level, an error, a limit or likeness."""
        return self.no_effect is not None and not self.agrees and self.kind not in ("at most", "alike")

    @property
    def bounded(self) -> bool:
        """Whether only the bad side of its one end counts, also for a row with a published number."""
        one_end = math.isfinite(self.above) != math.isfinite(self.below)
        return self.kind in BOUNDS or (self.kind == "for all" and one_end and not self.about_side)

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
        if other is None:
            return one
        if self.plus:
            return one + other
        return one / other if other else math.inf

    def numbers(self, table: Iterable[Number]) -> list[Number]:
        """All rows of a table that its size follows from, each once, in the order of its pairs."""
        return list(dict.fromkeys(number for pair in self.pairs(table) for number in pair if number))


def read_claims(source: str, folder: Path | None = None) -> list[Claim]:
    """Claims of a source.

    Raises
    ------
    LabError
        A claim lacks its words or what no effect is, has a key that is none, names rows that the table does not have, or has neither
        rows nor reason.

    Examples
    --------
    >>> read_claims("of no paper")
    []
    """
    path = file_of(source, ".toml", folder)
    entries = tomllib.loads(path.read_text())["claim"] if path.is_file() else []
    return [_claim(source, path.name, entry) for entry in entries]


def _claim(source: str, file: str, entry: dict) -> Claim:
    """A claim from its entry in a file."""
    strangers = {"says", "at", "no_effect"} - entry.keys() | entry.keys() - Claim.__dataclass_fields__.keys()
    if strangers:
        raise LabError(
            f"{file}: found a claim with or without {sorted(strangers)}: {entry}; expected says, at, no_effect, ..."
        )
    if entry["no_effect"] not in NO_EFFECTS:
        raise LabError(
            f"{file}: {entry['says']!r}: found no_effect = {entry['no_effect']!r}; expected 0 for a difference, 1 for a ratio, or "
            '"none" for a level, an error or a limit.'
        )
    ends = {"above": 1 - AGREES, "below": 1 + AGREES} if entry.get("agrees") else {}
    parts = entry | ends | {"no_effect": NO_EFFECTS[entry["no_effect"]]}
    if "range" in entry:
        parts["range"] = tuple(entry["range"])
    claim = Claim(**parts)
    if claim.kind not in KINDS:
        raise LabError(f"{file}: {claim.says!r}: found kind {claim.kind!r}; expected one of {', '.join(KINDS)}.")
    if bool(claim.rows) == bool(claim.reason):
        raise LabError(f"{file}: found {claim.says!r} with both or neither of rows and reason; expected one.")
    if claim.rows and not claim.pairs(published_values(source)):
        raise LabError(f"{file}: {claim.says!r}: found no rows {claim.rows} (over {claim.over}) in the table.")
    return claim


def published_values(source: str) -> dict[Number, float | None]:
    """Published value of each row of a source."""
    return column(source, "value")


@cache
def column(source: str, name: str) -> dict:
    """A column of a source's table, by row."""
    return {Number(*row[:4]): row[4] for row in read_table(source).select(*Number._fields, name).iter_rows()}
