"""A comparison of two runs in words: a sentence that says which is better and by how much, and one that says which jobs pay."""

import math
import re
from dataclasses import dataclass
from html import escape, unescape
from typing import NamedTuple

import numpy as np

from gpuschedlab.metrics.display import SCALES

NEARLY = 0.9
"""Share from which on it is "nearly all"."""
NEARLY_EVERY = 0.995
"""Share of the jobs above which they are "nearly all jobs"."""
SHARES = {
    "late": ("jobs with deadlines", "late", "late jobs"),
    "unfair": ("jobs", "treated unfairly", "jobs that are treated unfairly"),
}
"""Jobs that a measure is a share of: those of all, those that count, and their name."""
AVERAGE = "average job"
APART = 1.03
"""Ratio of two times from which on they are written differently."""
TIMES = {"jct": ("end", "sooner", "later"), "wait": ("wait", "less", "longer")}
"""Verbs of jobs for less and for more of a time."""


class Amount(NamedTuple):
    """Words of an amount: its noun, the words before it ("the jobs cost"), and its form."""

    noun: str
    words: str
    form: str = "{:,.0f}"  # "" for a time, s
    under: str = "under"


AMOUNTS = {"cost": Amount("cost", "the jobs cost", "${:,.2f}"), "wait": Amount("waits", "the average job waits", "")}


class Group(NamedTuple):
    """Jobs on which most of a change falls: its `words` ("run for more than 4 h"), `share` of the time, and of the `jobs`."""

    words: str
    share: float
    jobs: float


class Moved(NamedTuple):
    """Jobs that end sooner, or later: their `rows`, by how much (`mean` and `most`, s), `share` of the jobs, and `group`, if any.

    All of them move by more than `over` (s); 0 if no other job ends sooner, or later.
    """

    rows: np.ndarray
    mean: float
    most: float
    share: float
    group: Group | None
    over: float = 0.0


@dataclass(frozen=True)
class Difference:
    """Findings of `gpuschedlab.metrics.who_pays.compared`."""

    # "sooner", "later" (of times), "less", "more" (of shares and costs), "short" (a difference on these jobs, and too
    # few to tell how sure), "close" (too close to call), "none" (no difference), "same" (each job as before), "few" (jobs), "self", "alone"
    kind: str
    measure: str | Amount
    names: tuple[str, str]
    now: float  # mean JCT or wait (s), share of the jobs, or cost
    before: float
    jobs: int  # that are compared
    value: float  # before / now; of shares before - now
    low: float  # of its interval: nan where the log is too short to tell
    high: float
    sooner: Moved  # of shares: late, or treated unfairly, only before
    later: Moved
    of: str = ""  # which jobs
    place: str = ""  # what is said is a fact of this week or log, not of others: "In this week"

    @property
    def main(self) -> str:
        """First sentence, as HTML: figures of now in `<b class="now">`, of before in `<b class="ref">`."""
        x, y = _names(self)
        a, b = (f'<b class="{role}">{text}</b>' for role, text in zip(("now", "ref"), self._amounts()))
        if self.kind == "self":
            return f"{x} is compared with itself."
        if self.kind == "few":
            return self._few
        at = self.amount.under if self.amount else "under"
        direction = self.kind
        under = f"{self.place}, {at} {x}" if self.place else f"{at.capitalize()} {x}"
        if self.kind == "short":
            direction = "less" if self.now < self.before else "more"
            under = under if self.of else f"On these jobs, {at} {x}"
        return (_of_times if self.measure == "jct" else _of_shares)(self, direction, under, y, a, b)

    @property
    def rest(self) -> str:
        """Second sentence, as HTML: which jobs gain, and which pay, in `<b class="pay">`."""
        a, b = self._amounts()
        fixed = {
            "alone": "",
            "same": f"The average is {b} under both." if self.measure in TIMES else "",
            "few": f"On average: {a} under {escape(self.names[0])}, {b} under {escape(self.names[1])}."
            * (self.jobs > 0),
            "self": "Choose another policy, or move its knob.",
        }
        if self.kind in fixed:
            return fixed[self.kind]
        jobs = _ends(self) if self.measure in TIMES else _becomes(self) if self.measure in SHARES else ""
        return ("Too short to tell how sure. " * (self.kind == "short") + jobs).strip()

    @property
    def html(self) -> str:
        """Both sentences, each a paragraph."""
        return f'<p class="sentence">{self.main}</p>' + (f'<p class="second">{self.rest}</p>' if self.rest else "")

    @property
    def text(self) -> str:
        """Both sentences as plain text."""
        return plain(f"{self.main} {self.rest}").strip()

    __str__ = text.fget

    @property
    def _few(self) -> str:
        """First sentence if there are too few jobs."""
        with_deadlines = " with deadlines" if self.measure == "late" else ""
        of = f"{with_deadlines} {self.of}" if self.of else with_deadlines
        if not self.jobs:
            return f"There are no jobs{of}: nothing to compare."
        return f"{count(self.jobs)}{of}: too few to compare."

    @property
    def amount(self) -> Amount | None:
        """Name of the measure, if it is an amount."""
        return self.measure if isinstance(self.measure, Amount) else AMOUNTS.get(self.measure)

    def _amounts(self) -> tuple[str, ...]:
        """Both values as they are read."""
        if self.measure == "jct" or (self.amount and not self.amount.form):
            return two_spans(self.now, self.before)
        return tuple(self.amount.form.format(x) if self.amount else percent(x) for x in (self.now, self.before))


def plain(html: str) -> str:
    """Return the text of a sentence without its marks."""
    return unescape(re.sub("<[^>]*>", "", html))


def span(seconds: float, unit: str = "", figures: int = 2) -> str:
    """Write a time in two or more figures, in a unit or in that of which there is one; days from four of them on."""
    if seconds != seconds:
        return "none"
    scale, unit = next(each for each in SCALES if each[1] == unit) if unit else _unit(seconds)
    value = seconds / scale
    if unit == "s" and value < 9.95:
        return f"{float(f'{value:.{figures}g}'):g} s"
    digits = 0 if value >= 100 or unit == "s" else figures - (2 if value >= 9.95 else 1)
    return f"{value:,.{digits}f} {unit}"


def round_span(seconds: float) -> float:
    """Return the longest time that is 1, 2 or 5 times a power of ten in its unit, and not longer than that given; 0 for 0.

    Examples
    --------
    >>> round_span(86.0), round_span(0.34), round_words(600.0), round_words(0.2)
    (60.0, 0.2, '10 min', '0.2 s')
    """
    if not seconds > 0:
        return 0.0
    scale = next((scale for scale, _ in SCALES[::-1] if seconds >= scale), SCALES[0][0])
    value = seconds / scale
    power = math.floor(math.log10(value))
    steps = [float(f"{digit}e{power}") for digit in (1, 2, 5)]
    return scale * max((step for step in steps if step <= value), default=steps[0])


def round_words(seconds: float) -> str:
    """Write a time of `round_span`."""
    scale, unit = next((each for each in SCALES[::-1] if seconds >= each[0]), SCALES[0])
    return f"{seconds / scale:g} {unit}"


def _unit(seconds: float) -> tuple[float, str]:
    return next((each for each in SCALES[::-1] if seconds >= each[0] * (4 if each[1] == "d" else 1)), SCALES[0])


def two_spans(one: float, other: float) -> tuple[str, ...]:
    """Write two times in one unit, unless that leaves less than 0.95 of it; in three figures if two do not tell them apart by 3 %."""
    scale, unit = _unit(max(one, other))
    if min(one, other) / scale < 0.95:
        unit = ""
    texts = tuple(span(each, unit) for each in (one, other))
    if texts[0] == texts[1] and max(one, other) >= APART * min(one, other):
        return tuple(span(each, unit, 3) for each in (one, other))
    return texts


def percent(share: float) -> str:
    """Write a share in percent: two figures, one below 1 %."""
    if 0 < share < 0.001:
        return "under 0.1 %"
    return f"{100 * share:.{1 if 0 < share < 0.0995 else 0}f} %"


def times_of(ratio: float) -> str:
    """Write how much sooner a ratio of times is: whole times, halves below 2.75, and percent below 1.95."""
    if ratio < 1.95:
        return f"{100 * (1 - 1 / ratio):.0f} %"
    return f"{ratio:,.0f} times" if ratio >= 2.75 else f"{round(2 * ratio) / 2:g} times"


def count(number: int) -> str:
    """Write a number of jobs."""
    return f"{number:,} job{'' if number == 1 else 's'}"


def _of_times(d: Difference, direction: str, under: str, y: str, a: str, b: str) -> str:
    x = _names(d)[0]
    job = _average(d)
    longer = 1 / d.value
    much = f"{times_of(longer)} as long as" if longer >= 1.95 else f"{100 * (longer - 1):.0f} % longer than"
    sooner = f"{under} the {job} is done {times_of(d.value)} sooner than under {y}: after {a} instead of {b}."
    later = f"{under} the {job} takes {much} under {y}: {a} instead of {b}."
    return {
        "alone": f"{under} the {job} is done after {a}.",
        "same": f"No difference: under {x} each job ends when it did under {y}.",
        **{"sooner": sooner, "less": sooner, "later": later, "more": later},
        "none": f"No difference for the {job}: {a} under {x}, {b} under {y}.",
        "close": f"Too close to call for the {job}: {a} under {x}, {b} under {y}.",
        "near": f"{under} the {job} is done after {a}, under {y} after {b}: within 3 %.",
    }[direction]


def _average(d: Difference) -> str:
    """Whose average it is."""
    return f"average of the {count(d.jobs)} {d.of}" if d.of else AVERAGE


def _of_shares(d: Difference, direction: str, under: str, y: str, a: str, b: str) -> str:
    if d.amount:
        noun = d.amount.noun
        statement = f"{under} {d.amount.words.replace(AVERAGE, _average(d))} {a}"
        ratio = d.now / d.before if d.before else 1.0
        far = f"{times_of(ratio)} as much" if ratio >= 1.95 else f"{100 * abs(1 - ratio):.0f} % {direction}"
        far = far if d.before else direction
    else:
        whose, what, noun = SHARES[d.measure]
        points = abs(100 * (d.now - d.before))
        jobs = f"{d.jobs:,} {whose} {d.of}" if d.of else whose
        statement = f"{under} {a} of the {jobs} are {what}"
        far = f"{points:.{0 if points >= 9.95 else 1}f} points {'fewer' if direction == 'less' else 'more'}"
    at = d.amount.under if d.amount else "under"
    both = f"{statement[0].lower()}{statement[1:]}, {at} {y} {b}"
    return {
        "alone": f"{statement}.",
        "same": f"No difference in {noun}: {a} {at} both.",
        "none": f"No difference in {noun}: {both}.",
        "close": f"Too close to call: {both}.",
        "near": f"{statement}, {at} {y} {b}.",
    }.get(direction, f"{statement}, {at} {y} {b}: {far}.")


def _names(d: Difference) -> list[str]:
    return [f'<b class="{role}">{escape(name)}</b>' for role, name in zip(("now", "ref"), d.names)]


def _ends(d: Difference) -> str:
    """Which jobs end sooner, and which later; or wait less, and longer."""
    verb, _, more = TIMES[d.measure]
    gain = _gain(d)
    over = _over(d.later)
    if not len(d.later.rows):
        return f'{gain} <b class="pay">Nobody pays</b>: no job {verb}s {over}{more}.'
    falls = _fall(d.later, "; {} of the lost time falls on jobs that ", "; no kind of job stands out")
    by = f", by {span(d.later.mean)}" if over else ""
    how = f"{over}{more}{by}" if over else f"{span(d.later.mean)} {more}"
    return f"{gain} {_payers(d)}, {verb}ing {how} on average{falls}."


def _gain(d: Difference) -> str:
    """Which jobs end sooner, or wait less."""
    verb, less, _ = TIMES[d.measure]
    moved = d.sooner
    number = len(moved.rows)
    over = _over(moved)
    if not number:
        return f"No job {verb}s {over}{less}."
    who = f"{percent(moved.share)} of the jobs {verb}"
    if number == d.jobs:
        who = f"All jobs {verb}" if number > 1 else f"The only job {verb}s"
    elif moved.share > NEARLY_EVERY:
        who = f"Nearly all jobs {verb}"
    elif number < 100 and d.jobs > 1000:
        who = f"{count(number)} {verb}{'s' * (number == 1)}"
    return f"{who} {over}{less}, by {span(moved.mean)} on average{_fall(moved, '; {} of it goes to jobs that ', '')}."


def _over(moved: Moved) -> str:
    """By how much jobs move at least: "over 1 min "; "" if all that move count."""
    return f"over {round_words(moved.over)} " if moved.over else ""


def _becomes(d: Difference) -> str:
    """Which jobs are late, or treated unfairly, under one of the two only."""
    _, what, _ = SHARES[d.measure]
    x, y = _names(d)
    number = len(d.sooner.rows)
    gain = f"{count(number)} {'is' if number == 1 else 'are'} {what} only under {y}. " if number else ""
    if not len(d.later.rows):
        return f'{gain}<b class="pay">Nobody pays</b>: no job is {what} only under {x}.'
    falls = _fall(d.later, "; {} of them ", "; no kind of job stands out")
    return f"{gain}{_payers(d)}: {what} only under {x}{falls}."


def _payers(d: Difference) -> str:
    number = len(d.later.rows)
    return f'<b class="pay">{count(number)} pay{"s" * (number == 1)}</b> ({percent(d.later.share)})'


def _fall(moved: Moved, words: str, none: str) -> str:
    """On which jobs a change falls."""
    if moved.group is None:
        return none
    name, share, jobs = moved.group
    part = "nearly all" if share >= NEARLY else percent(share)
    return words.format(part) + name + (f" ({percent(jobs)} of all)" if share < NEARLY else "")


def head(found, *words: str) -> str:
    """HTML of comparisons at the head of a screen: the first sentence large, then who pays, the others, and further words."""
    small = " gpuschedlab-long" * (bool(found) and len(re.sub("<[^>]*>", "", found[0].main)) > 115)
    first = f'<p class="gpuschedlab-sentence{small}">{found[0].main}</p>' if found else ""
    rest = [each for d in found for each in ((d.main, d.rest) if d is not found[0] else (d.rest,))]
    return f"{first}<p>{' '.join(filter(None, (*rest, *words)))}</p>"
