"""A comparison of two runs in words: a sentence that says which is better and by how much, and one that says which jobs pay."""

import re
from dataclasses import dataclass
from html import escape, unescape
from typing import NamedTuple

import numpy as np

from gpuschedlab.metrics.display import count, percent, round_words, span, times_of, two_spans

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
ROLES = ("now", "ref")
"""Classes of the marks of both policies in HTML."""
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
        if self.kind == "self":
            return f"{self._marked[0]} is compared with itself."
        if self.kind == "few":
            return self._few
        if self.measure == "jct":
            return _of_times(self)
        if self.amount:
            return _of_amounts(self)
        return _of_shares(self)

    @property
    def rest(self) -> str:
        """Second sentence, as HTML: which jobs gain, and which pay, in `<b class="pay">`."""
        if self.kind == "self":
            return "Choose another policy, or move its knob."
        if self.kind == "alone":
            return ""
        amount_now, amount_before = self._amounts()
        if self.kind == "same":
            if self.measure in TIMES:
                return f"The average is {amount_before} under both."
            return ""
        if self.kind == "few":
            if self.jobs:
                return f"On average: {amount_now} under {escape(self.names[0])}, {amount_before} under {escape(self.names[1])}."
            return ""
        sentences = []
        if self.kind == "short":
            sentences.append("Too short to tell how sure.")
        if self.measure in TIMES:
            sentences.append(_ends(self))
        elif self.measure in SHARES:
            sentences.append(_becomes(self))
        return " ".join(sentences)

    @property
    def html(self) -> str:
        """Both sentences as HTML, each a paragraph."""
        first_paragraph = f'<p class="sentence">{self.main}</p>'
        if not self.rest:
            return first_paragraph
        return f'{first_paragraph}<p class="second">{self.rest}</p>'

    @property
    def text(self) -> str:
        """Both sentences as plain text."""
        return plain(f"{self.main} {self.rest}").strip()

    __str__ = text.fget

    @property
    def _few(self) -> str:
        """First sentence if there are too few jobs."""
        which_jobs = ""
        if self.measure == "late":
            which_jobs = " with deadlines"
        if self.of:
            which_jobs += f" {self.of}"
        if not self.jobs:
            return f"There are no jobs{which_jobs}: nothing to compare."
        return f"{count(self.jobs)}{which_jobs}: too few to compare."

    @property
    def amount(self) -> Amount | None:
        """`Amount` that the measure is, None if it is none."""
        if isinstance(self.measure, Amount):
            return self.measure
        return AMOUNTS.get(self.measure)

    @property
    def _marked(self) -> list[str]:
        """List of the names of both, as HTML."""
        return [f'<b class="{role}">{escape(policy_name)}</b>' for role, policy_name in zip(ROLES, self.names)]

    @property
    def _figures(self) -> list[str]:
        """List of the values of both, as HTML."""
        return [f'<b class="{role}">{amount_text}</b>' for role, amount_text in zip(ROLES, self._amounts())]

    @property
    def _direction(self) -> str:
        """The word of `kind`; of a difference that may be chance, the direction on these jobs: "less" or "more"."""
        if self.kind != "short":
            return self.kind
        if self.now < self.before:
            return "less"
        return "more"

    @property
    def _preposition(self) -> str:
        """Word before the name of a policy."""
        if self.amount:
            return self.amount.under
        return "under"

    @property
    def _beginning(self) -> str:
        """Words before the statement: "Under srtf"."""
        under = self._preposition
        policy_now = self._marked[0]
        if self.kind == "short" and not self.of:
            return f"On these jobs, {under} {policy_now}"
        if self.place:
            return f"{self.place}, {under} {policy_now}"
        return f"{under.capitalize()} {policy_now}"

    def _amounts(self) -> tuple[str, ...]:
        """Return both values as they are read, a tuple of texts."""
        if self.measure == "jct" or (self.amount and not self.amount.form):
            return two_spans(self.now, self.before)
        if self.amount:
            return self.amount.form.format(self.now), self.amount.form.format(self.before)
        return percent(self.now), percent(self.before)


def plain(html: str) -> str:
    """Return the text of a sentence without its marks."""
    return unescape(re.sub("<[^>]*>", "", html))


def _of_times(difference: Difference) -> str:
    """First sentence on the time to finish."""
    policy_now, policy_before = difference._marked
    figure_now, figure_before = difference._figures
    under = difference._beginning
    job = _average(difference)
    direction = difference._direction
    if direction == "alone":
        return f"{under} the {job} is done after {figure_now}."
    if direction == "same":
        return f"No difference: under {policy_now} each job ends when it did under {policy_before}."
    if direction == "none":
        return f"No difference for the {job}: {figure_now} under {policy_now}, {figure_before} under {policy_before}."
    if direction == "close":
        return (
            f"Too close to call for the {job}: {figure_now} under {policy_now}, {figure_before} under {policy_before}."
        )
    if direction == "near":
        return f"{under} the {job} is done after {figure_now}, under {policy_before} after {figure_before}: within 3 %."
    if direction in ("sooner", "less"):
        return (
            f"{under} the {job} is done {times_of(difference.value)} sooner than under {policy_before}: after {figure_now} "
            f"instead of {figure_before}."
        )
    times_longer = 1 / difference.value
    if times_longer >= 1.95:
        much = f"{times_of(times_longer)} as long as"
    else:
        much = f"{100 * (times_longer - 1):.0f} % longer than"
    return f"{under} the {job} takes {much} under {policy_before}: {figure_now} instead of {figure_before}."


def _average(difference: Difference) -> str:
    """Say in words whose average it is."""
    if difference.of:
        return f"average of the {count(difference.jobs)} {difference.of}"
    return AVERAGE


def _of_amounts(difference: Difference) -> str:
    """First sentence on an amount."""
    direction = difference._direction
    much = direction
    if difference.before:
        amount_ratio = difference.now / difference.before
        much = f"{100 * abs(1 - amount_ratio):.0f} % {direction}"
        if amount_ratio >= 1.95:
            much = f"{times_of(amount_ratio)} as much"
    statement = f"{difference.amount.words.replace(AVERAGE, _average(difference))} {difference._figures[0]}"
    return _beside_before(difference, difference.amount.noun, statement, much)


def _of_shares(difference: Difference) -> str:
    """First sentence on a share of the jobs."""
    jobs, state, noun = SHARES[difference.measure]
    if difference.of:
        jobs = f"{difference.jobs:,} {jobs} {difference.of}"
    percent_points = abs(100 * (difference.now - difference.before))
    much = f"{percent_points:.1f} points"
    if percent_points >= 9.95:
        much = f"{percent_points:.0f} points"
    if difference._direction == "less":
        much += " fewer"
    else:
        much += " more"
    return _beside_before(difference, noun, f"{difference._figures[0]} of the {jobs} are {state}", much)


def _beside_before(difference: Difference, noun: str, statement: str, much: str) -> str:
    """Write a statement of now beside the value of before, which differs by so `much`, as text."""
    statement = f"{difference._beginning} {statement}"
    if difference.kind == "alone":
        return f"{statement}."
    figure_now, figure_before = difference._figures
    both = f"{statement}, {difference._preposition} {difference._marked[1]} {figure_before}"
    both_within = both[0].lower() + both[1:]
    if difference.kind == "same":
        return f"No difference in {noun}: {figure_now} {difference._preposition} both."
    if difference.kind == "none":
        return f"No difference in {noun}: {both_within}."
    if difference.kind == "close":
        return f"Too close to call: {both_within}."
    if difference.kind == "near":
        return f"{both}."
    return f"{both}: {much}."


def _ends(difference: Difference) -> str:
    """Say in a text which jobs end sooner, and which later; or wait less, and longer."""
    verb, _, later_words = TIMES[difference.measure]
    gain = _gain(difference)
    over = _over(difference.later)
    if not len(difference.later.rows):
        return f'{gain} <b class="pay">Nobody pays</b>: no job {verb}s {over}{later_words}.'
    falls = _fall(difference.later, "; {} of the lost time falls on jobs that ", "; no kind of job stands out")
    how = f"{span(difference.later.mean)} {later_words}"
    if over:
        how = f"{over}{later_words}, by {span(difference.later.mean)}"
    return f"{gain} {_payers(difference)}, {verb}ing {how} on average{falls}."


def _gain(difference: Difference) -> str:
    """Say in a sentence which jobs end sooner, or wait less."""
    verb, less, _ = TIMES[difference.measure]
    moved = difference.sooner
    over = _over(moved)
    if not len(moved.rows):
        return f"No job {verb}s {over}{less}."
    falls = _fall(moved, "; {} of it goes to jobs that ", "")
    return f"{_gainers(difference, verb)} {over}{less}, by {span(moved.mean)} on average{falls}."


def _gainers(difference: Difference, verb: str) -> str:
    """Say in words how many jobs end, or wait."""
    gaining_jobs = len(difference.sooner.rows)
    if gaining_jobs == difference.jobs == 1:
        return f"The only job {verb}s"
    if gaining_jobs == difference.jobs:
        return f"All jobs {verb}"
    if difference.sooner.share > NEARLY_EVERY:
        return f"Nearly all jobs {verb}"
    if difference.jobs <= 1000 or gaining_jobs >= 100:
        return f"{percent(difference.sooner.share)} of the jobs {verb}"
    if gaining_jobs == 1:
        return f"1 job {verb}s"
    return f"{count(gaining_jobs)} {verb}"


def _over(moved: Moved) -> str:
    """Say in words by how much jobs move at least: "over 1 min "; "" if all that move count."""
    if moved.over:
        return f"over {round_words(moved.over)} "
    return ""


def _becomes(difference: Difference) -> str:
    """Say in a text which jobs are late, or treated unfairly, under one of the two only."""
    _, state, _ = SHARES[difference.measure]
    policy_now, policy_before = difference._marked
    gaining_jobs = len(difference.sooner.rows)
    gain = ""
    if gaining_jobs == 1:
        gain = f"1 job is {state} only under {policy_before}. "
    elif gaining_jobs:
        gain = f"{count(gaining_jobs)} are {state} only under {policy_before}. "
    if not len(difference.later.rows):
        return f'{gain}<b class="pay">Nobody pays</b>: no job is {state} only under {policy_now}.'
    falls = _fall(difference.later, "; {} of them ", "; no kind of job stands out")
    return f"{gain}{_payers(difference)}: {state} only under {policy_now}{falls}."


def _payers(difference: Difference) -> str:
    """Say in words how many jobs pay, as HTML."""
    paying_jobs = len(difference.later.rows)
    pay = "pay"
    if paying_jobs == 1:
        pay = "pays"
    return f'<b class="pay">{count(paying_jobs)} {pay}</b> ({percent(difference.later.share)})'


def _fall(moved: Moved, words: str, none: str) -> str:
    """Say in words on which jobs a change falls; `none` if it falls on no group."""
    if moved.group is None:
        return none
    group_name, share, jobs = moved.group
    if share >= NEARLY:
        return f"{words.format('nearly all')}{group_name}"
    return f"{words.format(percent(share))}{group_name} ({percent(jobs)} of all)"


def head(found, *words: str) -> str:
    """Return HTML of comparisons at a screen's head: the first sentence large, then who pays, the others, and further words."""
    first_sentence = ""
    sentences = []
    for difference_number, difference in enumerate(found):
        if difference_number == 0:
            small = ""
            if len(re.sub("<[^>]*>", "", difference.main)) > 115:
                small = " gpuschedlab-long"
            first_sentence = f'<p class="gpuschedlab-sentence{small}">{difference.main}</p>'
        else:
            sentences.append(difference.main)
        sentences.append(difference.rest)
    return f"{first_sentence}<p>{' '.join(filter(None, (*sentences, *words)))}</p>"
