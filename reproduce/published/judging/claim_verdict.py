"""The verdict on a claim, from the words of its rows."""

import math
import statistics
from collections.abc import Mapping
from dataclasses import replace

from reproduce.published.claims import Claim
from reproduce.published.judging.one_row import judge_row
from reproduce.published.judging.rows import Row, rows_of, with_noise
from reproduce.published.judging.scales import Scale, quantile, scale_of
from reproduce.published.judging.words import (
    AS_PUBLISHED,
    LESS,
    MORE,
    NOT_CLEAR,
    NOT_MEASURED,
    OTHER_WAY,
    ROWS_DIFFER,
    RowWord,
    Verdict,
)

ENOUGH_ROWS = 3
"""Rows from which a claim that two things are alike can fail because all of them lie a little off the same way."""


SOME = 0.33
"""Share of the rows, a third, from which *less* alone, or *more* alone, is the word of a claim."""

MOST = 0.5
"""Share of the rows above which *other way* is the word of a claim."""


def verdict_of(claim: Claim, table: Mapping, found: Mapping, noise: Mapping[str, float]) -> Verdict:
    """Return the verdict on a claim.

    Parameters
    ----------
    claim : Claim
    table : mapping of Number to float or None
        Published values.
    found : mapping of Number to float, Ours or str
        What was measured.
    noise : mapping of str to float
        Relative standard deviation of one run, by metric, for rows of fewer than three runs.
    """
    rows = rows_of(claim, table, found)
    if rows is None:
        return Verdict(NOT_MEASURED)
    rows = with_noise(rows, claim, noise)
    scale = scale_of(claim, rows)
    words = tuple(judge_row(claim, row, scale) for row in _judged_rows(claim, rows))
    return Verdict(
        word=_all_a_little_off(claim, rows, scale, words) or _word(claim, words),
        side=_column([one.side for one in words if one.side], MOST),
        size=_column([one.size for one in words if one.size], SOME),
        effect=claim.about_effect,
        fewest_runs=min(max(len(row.runs), 1) for row in rows),
        rows=words,
    )


def _judged_rows(claim: Claim, rows: list[Row]) -> list[Row]:
    """All rows; of *up to* the largest of ours, beside the largest published value."""
    if claim.kind != "up to" or any(row.published is None for row in rows):
        return rows
    largest = max(rows, key=lambda row: row.ours)
    published = max(row.published[1] for row in rows)
    return [replace(largest, published=(published, published))]


def _word(claim: Claim, rows: tuple[RowWord, ...]) -> str:
    words = [row.word for row in rows]
    clearly_off = len(words) - words.count(AS_PUBLISHED) - words.count(NOT_CLEAR)
    if claim.kind == "on average" and not claim.agrees:
        for word in (LESS, MORE, OTHER_WAY):
            if 2 * words.count(word) > len(words):
                return word
        if 2 * words.count(AS_PUBLISHED) > len(words) and 4 * clearly_off <= len(words):
            return AS_PUBLISHED
    if not clearly_off:
        most = 2 * words.count(AS_PUBLISHED) > len(words)
        return AS_PUBLISHED if most and all(row.middle == AS_PUBLISHED for row in rows) else NOT_CLEAR
    if OTHER_WAY in words:
        return OTHER_WAY if words.count(OTHER_WAY) > MOST * len(words) else ROWS_DIFFER
    if LESS in words and MORE in words:
        return ROWS_DIFFER
    if clearly_off > SOME * len(words):
        return LESS if LESS in words else MORE
    return ROWS_DIFFER


def _all_a_little_off(claim: Claim, rows: list[Row], scale: Scale, words: tuple[RowWord, ...]) -> str:
    """Return *less* or *more* if the mean of rows that should be alike lies beyond the ends; otherwise an empty text.

    A mean over rows may refute, but never confirms.
    """
    off = sum(one.word in (LESS, MORE, OTHER_WAY) for one in words)
    if not (claim.kind == "alike" or claim.agrees) or len(rows) < ENOUGH_ROWS or off == len(rows):
        return ""
    middles = [scale.of(row.ours) for row in rows]
    count = len(middles)
    half = quantile(count - 1) * statistics.stdev(middles) / math.sqrt(count)
    low, high = scale.ends(claim.above, claim.below)
    if statistics.fmean(middles) + half < low:
        return LESS
    return MORE if statistics.fmean(middles) - half > high else ""


def _column(words: list[str], share: float) -> str:
    """Return the word of a column: one that is off stands if more than a share of the rows have it; *rows differ* otherwise."""
    off = set(words) - {NOT_CLEAR, AS_PUBLISHED}
    if len(off) == 1:
        (word,) = off
        return word if words.count(word) > share * len(words) else ROWS_DIFFER
    if off:
        return ROWS_DIFFER
    if not words:
        return ""
    return AS_PUBLISHED if 2 * words.count(AS_PUBLISHED) > len(words) else NOT_CLEAR
