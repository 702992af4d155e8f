"""Claims of a source beside what was measured: verdict, size, what the verdict leans on, and why it is so."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from reproduce.published.claims import Claim, column, published_values, read_claims
from reproduce.published.committed import CLOCK, CLOCKS
from reproduce.published.judging.claim_verdict import verdict_of
from reproduce.published.judging.power import Power, power_of
from reproduce.published.judging.rows import ENOUGH_RUNS, noise_of_metrics
from reproduce.published.judging.sizes import Size, size_of
from reproduce.published.judging.words import AS_PUBLISHED, NOT_MEASURED, Verdict
from reproduce.published.numbers import Number, Ours, as_ours

WIDE = 1.25
"""Factor above which a range is called wide."""

LEAST = 0.05
"""Least half of a range, of ours: what has no spread is held to it."""

SMALL = 0.02
"""The same for a size of about 0."""

LEANS = "leans on"
"""Words of a verdict that has a row of fewer than three runs."""

SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z])")
"""Between the sentences of a cause: what several rows say is said once."""


@dataclass(frozen=True)
class Judged:
    """A claim beside what was measured.

    Parameters
    ----------
    claim : Claim
    size : Size
        Published, and ours.
    found : Verdict
        Word, side and size in words.
    leans : str
        What weakens the verdict: few runs, a clock, another size than the paper's. Empty if nothing does.
    null : str
        Accuracy of always giving the same answer, if the rows let one know it.
    why : str
        Cause, or reason.
    power : Power, optional
        What the verdict could tell; None before `with_power`, and for claims that are not measured.
    """

    claim: Claim
    size: Size
    found: Verdict
    leans: str = ""
    null: str = ""
    why: str = ""
    power: Power | None = None

    @property
    def verdict(self) -> str:
        """The word of the verdict."""
        return self.found.word

    @property
    def inside(self) -> bool:
        """Whether ours lies in the range that was committed."""
        return _inside(self.claim, self.size)

    @property
    def wide(self) -> bool:
        """Whether the range is wider than a factor of `WIDE`."""
        low, high = self.claim.range or (1.0, 1.0)
        return bool(low <= 0 or high / low > WIDE)


def judge(
    source: str,
    found: Mapping[Number, float | str | Ours],
    claims: Iterable[Claim] | None = None,
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
    table = published_values(source)
    causes = column(source, "cause")
    stand_ins = {number for number, kind in column(source, "kind").items() if kind == "stand-in"}
    claims = list(read_claims(source) if claims is None else claims)
    noise = noise_of_metrics(claims, table, found)
    judged = [_judged(claim, table, found, noise, causes) for claim in claims]
    return [replace(one, leans=_leans(one, stand_ins.isdisjoint(one.claim.numbers(table)))) for one in judged]


def with_power(source: str, found: Mapping[Number, float | str | Ours], judged: Iterable[Judged]) -> list[Judged]:
    """Claims of a source with their power, which takes some milliseconds each."""
    table = published_values(source)
    noise = noise_of_metrics(read_claims(source), table, found)
    return [
        one if one.verdict == NOT_MEASURED else replace(one, power=power_of(one.claim, table, found, noise))
        for one in judged
    ]


def outside(source: str, found: Mapping[Number, float | str | Ours], claims: Iterable[Claim]) -> list[Claim]:
    """Claims whose size lies outside of the committed range."""
    table = published_values(source)
    return [claim for claim in claims if claim.rows and not _inside(claim, size_of(claim, table, found))]


def _inside(claim: Claim, size: Size) -> bool:
    low, high = claim.range or (-math.inf, math.inf)
    return size.ours is None or low <= size.ours <= high


def _judged(claim: Claim, table: dict, found: Mapping, noise: Mapping, causes: Mapping) -> Judged:
    if not claim.rows:
        return Judged(claim, Size(), Verdict(NOT_MEASURED), why=claim.reason)
    size = size_of(claim, table, found)
    if size.missing:
        return Judged(claim, size, Verdict(NOT_MEASURED), why=claim.cause or size.missing)
    verdict = verdict_of(claim, table, found, noise)
    why = claim.cause or _causes_of_rows(claim, table, causes)
    if verdict.word == AS_PUBLISHED and not claim.cause:
        why = ""
    return Judged(claim, size, verdict, null=_null(claim, table, found, causes), why=why)


def _causes_of_rows(claim: Claim, table: Mapping, causes: Mapping) -> str:
    about = frozenset(claim.numbers(table))
    sentences = [sentence for number in table if number in about for sentence in SENTENCE.split(causes[number] or "")]
    return " ".join(dict.fromkeys(filter(None, sentences)))


def _leans(judged: Judged, papers_data: bool) -> str:
    """What weakens a verdict, in words; `papers_data` says whether the workloads are those of the paper."""
    if judged.verdict == NOT_MEASURED:
        return ""
    claim = judged.claim
    runs = judged.found.fewest_runs
    parts = [claim.other_size] if claim.other_size else []
    if not papers_data:
        parts.append("stand-in data")
    if runs < ENOUGH_RUNS and not claim.exact and not claim.agrees:
        parts.append(f"{LEANS} one run" if runs == 1 else f"{LEANS} {runs} runs")
    if timed(claim):
        parts.append("a clock measures it")
    return "; ".join(parts)


def _null(claim: Claim, table: Mapping, found: Mapping, causes: Mapping) -> str:
    """Sentences of the rows' notes and causes that have the accuracy of always giving the same answer."""
    if not claim.null_note:
        return ""
    rows = sorted(claim.numbers(table))
    texts = [as_ours(found[number]).note for number in rows] + [causes[number] or "" for number in rows]
    sentences = [sentence for text in texts for sentence in SENTENCE.split(text)]
    return " ".join(dict.fromkeys(one for one in sentences if one.startswith(claim.null_note)))


def timed(claim: Claim) -> bool:
    """Whether a clock measures what a claim is about."""
    metrics = claim.rows.get("metric", [])
    metrics = [metrics] if isinstance(metrics, str) else metrics
    return any(pattern.search(metric) for pattern in (CLOCK, CLOCKS) for metric in metrics)


def range_of(judged: Judged) -> tuple[float, float]:
    """Range to write down: the interval, at least `LEAST` of ours each way; a factor of 2 if a clock measures it."""
    ours = judged.size.ours
    if timed(judged.claim):
        return ours / 2, ours * 2
    floor = SMALL if abs(ours) < SMALL / LEAST else 0.0
    half = max(LEAST * abs(ours), floor)
    if judged.size.low is None:
        return ours - half, ours + half
    return min(ours - half, judged.size.low), max(ours + half, judged.size.high)
