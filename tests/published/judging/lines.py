"""Claims with their verdicts as Markdown, and what their counts say."""

from collections import Counter
from collections.abc import Callable, Iterable

from published.judging.judged import Judged
from published.judging.power import Power
from published.judging.words import AS_PUBLISHED, LESS, MORE, NOT_CLEAR, NOT_MEASURED, OTHER_WAY, ROWS_DIFFER

COLUMNS = ("claim", "where", "published", "ours", "right in", "side", "size", "verdict", "power")
NUMERIC = ("published", "ours", "right in", "power")
MORE_EFFECT = "more effect"
LESS_EFFECT = "less effect"
LARGER = "larger"
SMALLER = "smaller"
"""*More* and *less* as they are counted: of an effect, or of a level, an error, a bound or two things that should be alike."""

COUNTED = (AS_PUBLISHED, MORE_EFFECT, LESS_EFFECT, OTHER_WAY, LARGER, SMALLER, ROWS_DIFFER, NOT_CLEAR, NOT_MEASURED)
"""What pages count: first in what sense a paper is confirmed."""

SENTENCES = {
    LESS_EFFECT: "show less of the effect",
    OTHER_WAY: "go the other way",
    LARGER: "have a larger level or error, or lie beyond a bound",
    SMALLER: "have a smaller level or error",
    ROWS_DIFFER: "differ from row to row",
    NOT_CLEAR: "are not clear",
}
"""What is said of claims that are not confirmed."""


def counted_word(one: Judged) -> str:
    """Word by which a claim is counted."""
    if one.verdict == MORE:
        return MORE_EFFECT if one.found.effect else LARGER
    if one.verdict == LESS:
        return LESS_EFFECT if one.found.effect else SMALLER
    return one.verdict


def counts(claims: Iterable[Judged]) -> Counter:
    """Number of claims by the words of `COUNTED`."""
    return Counter(counted_word(one) for one in claims)


def score(claims: list[Judged]) -> str:
    """What the verdicts of some claims say together: first in what sense a paper is confirmed, then where it is not.

    Examples
    --------
    >>> score([])
    'No claim can be had here.'
    """
    measured = [one for one in claims if one.verdict != NOT_MEASURED]
    if not measured:
        return "No claim can be had here."
    count = counts(measured)
    sides = [one.found.side for one in measured if one.found.side]
    text = f"Of {len(measured)} claims that can be had here, {count[AS_PUBLISHED]} are as published"
    text += f", and {count[MORE_EFFECT]} show more of the effect." if count[MORE_EFFECT] else "."
    if sides:
        text += f" Of {len(sides)} effects with a side, {sides.count(AS_PUBLISHED)} lie on the published side."
    parts = [f"{count[word]} {words}" for word, words in SENTENCES.items() if count[word]]
    if parts:
        text += f" Of the others, {listed(parts)}."
    left = len(claims) - len(measured)
    return text + (f" {left} more cannot be had, or are not measured." if left else "")


def listed(parts: list[str]) -> str:
    """Parts with commas, and *and* before the last.

    Examples
    --------
    >>> listed(["one"]), listed(["one", "two", "three"])
    ('one', 'one, two and three')
    """
    if len(parts) == 1:
        return parts[0]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def claim_lines(claims: list[Judged], clean: Callable[[str], str] = str) -> list[str]:
    """Markdown of claims: the score, a table, and the causes; `clean` makes a text fit for a cell."""
    if not claims:
        return []
    whys = list(dict.fromkeys(one.why for one in claims if one.why))
    rules = ["---:" if column in NUMERIC else "---" for column in COLUMNS]
    text = [score(claims), "", line(COLUMNS), line(rules)]
    for one in claims:
        mark = f" [{whys.index(one.why) + 1}]" if one.why else ""
        text.append(line(clean(cell) for cell in _cells(one, mark)))
    text.append("")
    for i, why in enumerate(whys):
        text += [f"[{i + 1}] {clean(why)}", ""]
    return text


def _cells(one: Judged, mark: str) -> tuple[str, ...]:
    right = f"{one.size.right} of {one.size.of}" if one.size.of > 1 else ""
    ours = size(one) + " (wide)" * one.wide
    if one.null:
        ours += f". {one.null}"
    return (
        one.claim.says,
        one.claim.at,
        published(one),
        ours,
        right,
        one.found.side,
        one.found.size,
        verdict(one) + mark,
        power(one.power),
    )


def verdict(one: Judged) -> str:
    """The word of a verdict, with what it leans on."""
    return f"{one.verdict} ({one.leans})" if one.leans else one.verdict


def power(found: Power | None) -> str:
    """Power of a claim: probability of *as published* if the paper is right, and of another word if there is no effect.

    In brackets if a page lacks some of the numbers, so that the truth is assumed.

    Examples
    --------
    >>> power(Power(0.95, 1.0)), power(Power(0.5, assumed=True)), power(None)
    ('95 %, 100 %', '(50 %)', '')
    """
    if found is None:
        return ""
    shares = [found.confirms] if found.refutes is None else [found.confirms, found.refutes]
    text = ", ".join(f"{100 * share:.0f} %" for share in shares)
    return f"({text})" if found.assumed else text


def published(one: Judged) -> str:
    """Published size of a claim: a number, the two ends of a range, or that no page has one."""
    if one.claim.ranged:
        return f"{number(one.claim.above)} to {number(one.claim.below)}"
    return "no number" if one.size.published is None and one.claim.rows else number(one.size.published)


def size(one: Judged) -> str:
    """Size of ours, with its interval."""
    if one.size.low is None:
        return number(one.size.ours)
    return f"{number(one.size.ours)} ({number(one.size.low)} to {number(one.size.high)})"


def line(cells: Iterable[str]) -> str:
    """A line of a table."""
    return "| " + " | ".join(cells) + " |"


def number(value: float | None) -> str:
    """Three figures, or nothing.

    Examples
    --------
    >>> number(0.5761), number(12_345.0), number(None)
    ('0.576', '12,345', '')
    """
    if value is None:
        return ""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
