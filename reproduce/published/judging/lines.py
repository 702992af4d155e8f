"""Claims with their verdicts as Markdown, and what their counts say."""

from collections import Counter
from collections.abc import Callable, Iterable

from reproduce.published.judging.judged import LEANS, Judged
from reproduce.published.judging.power import Power
from reproduce.published.judging.words import AS_PUBLISHED, LESS, MORE, NOT_CLEAR, NOT_MEASURED, OTHER_WAY, ROWS_DIFFER

COLUMNS = ("claim", "where", "published", "ours", "right in", "side", "size", "verdict", "power")
NUMERIC = ("published", "ours", "right in", "power")
MORE_EFFECT = "more effect"
LESS_EFFECT = "less effect"
LARGER = "larger"
SMALLER = "smaller"
"""*More* and *less* as they are counted: of an effect, or of a level, an error, a bound or two things that should be alike."""

CONFIRMED = (AS_PUBLISHED, MORE_EFFECT)
"""Words by which a paper is confirmed. Pages count them first."""

UNCONFIRMED = (LESS_EFFECT, OTHER_WAY, LARGER, SMALLER, ROWS_DIFFER, NOT_CLEAR, NOT_MEASURED)
"""The other words that pages count."""

OTHERS = {
    LESS_EFFECT: "less of the effect",
    OTHER_WAY: "the other way",
    LARGER: "a larger level or error, or beyond a bound",
    SMALLER: "a smaller level or error, or short of a bound",
    ROWS_DIFFER: "rows differ",
    NOT_CLEAR: "not clear",
}
"""What is said of claims that are not confirmed."""

SIDE_AND_SIZE = "in side and size"
SIDE_ALONE = "in the side alone"
LEVEL = "in a level, a bound or likeness"
SENSES = (SIDE_AND_SIZE, SIDE_ALONE, LEVEL)
"""In what sense a claim is as published."""


def sense(one: Judged) -> str:
    """In what sense a claim that is as published is confirmed."""
    if not one.found.side:
        return LEVEL
    return SIDE_AND_SIZE if one.found.size == AS_PUBLISHED else SIDE_ALONE


def counted_word(one: Judged) -> str:
    """Word by which a claim is counted."""
    if one.verdict == MORE:
        return MORE_EFFECT if one.found.effect else LARGER
    if one.verdict == LESS:
        return LESS_EFFECT if one.found.effect else SMALLER
    return one.verdict


def counts(claims: Iterable[Judged]) -> Counter:
    """Number of claims by the words of `CONFIRMED` and `UNCONFIRMED`."""
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
    text = f"Of {len(measured)} claims that can be had here, {count[AS_PUBLISHED]} are as published"
    senses = Counter(sense(one) for one in measured if one.verdict == AS_PUBLISHED)
    parts = [f"{senses[word]} {word}" for word in SENSES if senses[word]]
    text += f": {listed(parts)}." if parts else "."
    if count[MORE_EFFECT]:
        text += f" More of the effect than published: {count[MORE_EFFECT]}."
    sides = [one.found.side for one in measured if one.found.side]
    if sides:
        text += f" Effects on the published side: {sides.count(AS_PUBLISHED)} of {len(sides)}."
    parts = [f"{words} {count[word]}" for word, words in OTHERS.items() if count[word]]
    if parts:
        text += f" Not as published: {', '.join(parts)}."
    few = sum(LEANS in one.leans for one in measured)
    if few:
        text += f" Verdicts that lean on rows of one or two runs: {few}."
    left = len(claims) - len(measured)
    return text + (f" Not measured, or cannot be had: {left}." if left else "")


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
