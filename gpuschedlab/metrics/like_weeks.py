"""Answer of weeks like this one on two policies: the middle week, its interval, the range, and the number of this week."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape

import numpy as np

from gpuschedlab.metrics.intervals import MedianInterval, median_interval
from gpuschedlab.metrics.queue_growth import Queue, brought, grows_without_end, served
from gpuschedlab.metrics.sentence import percent
from gpuschedlab.metrics.who_pays import CLOSE

FEWEST = 6
"""Weeks that an interval of 95 % needs."""
MOST = 12
"""Weeks that are played unless more are asked for."""
NUMBERED = 9
"""Weeks from which on the number of this one says how unusual it is."""
SURE = 1.15
"""Weeks are enough once the ends of the interval lie within this factor of its middle."""
FIGURES = {
    "jct": ("the average job", "the mean time to finish"),
    "p99": ("the slowest job in a hundred", "the 99th percentile of the times to finish"),
}
"""The measure: whose time, and which figure of it."""


@dataclass(frozen=True, eq=False)
class Weeks:
    """Two policies in weeks of several seeds, the first of which is the week that is shown.

    Parameters
    ----------
    names : tuple of str
        Policies, now and before.
    seeds : tuple of int
        Of the weeks, in the order in which they were played.
    now, before : (n,) array
        Figure of each week under both, s.
    queues : tuple of (Queue, Queue)
        Of each week, under both.
    measure : str
        "jct" (mean) or "p99".
    noun : str
        Things that the seeds make ("weeks").
    empty : bool
        Whether each begins with an empty cluster.

    Examples
    --------
    >>> calm = Queue(0.0, 0.0, 0.9, 0.0)
    >>> found = Weeks(("srtf", "easy"), (0, 1, 2, 3, 4, 5), np.ones(6), np.array([1.9, 2, 2.1, 2.2, 1.8, 2]), ((calm, calm),) * 6)
    >>> found.kind, round(found.interval.median, 2)
    ('sooner', 2.0)
    >>> print(found.text)
    In 6 such weeks the average job is done 2.0 times sooner under srtf in the middle week ...
    """

    names: tuple[str, str]
    seeds: tuple[int, ...]
    now: np.ndarray
    before: np.ndarray
    queues: tuple[tuple[Queue, Queue], ...]
    measure: str = "jct"
    noun: str = "weeks"
    empty: bool = False

    @cached_property
    def ratios(self) -> np.ndarray:
        """Array (n,): how many times sooner a job is done under the first policy than under the second, week by week."""
        return np.asarray(self.before, float) / np.asarray(self.now, float)

    @cached_property
    def interval(self) -> MedianInterval:
        """`MedianInterval` of the median of all such weeks; nan for fewer than six."""
        return median_interval(self.ratios)

    @property
    def rank(self) -> int:
        """Number of this week, from the one with the largest ratio on."""
        return 1 + int((self.ratios > self.ratios[0]).sum())

    @property
    def enough(self) -> bool:
        """Whether the interval is narrow enough to stop."""
        return enough(self.interval)

    @cached_property
    def growing(self) -> tuple[str, ...]:
        """Names of the policies whose queue grows without end, a tuple."""
        pairs = zip(self.names, zip(*self.queues, strict=True), strict=True)
        return tuple(policy_name for policy_name, queues in pairs if grows_without_end(queues))

    @property
    def kind(self) -> str:
        """Answer of the weeks, one word.

        "grows" (the queue of a policy has no end, so that no ratio holds), "same" (equal in each), "few" (fewer than six), "none" (the
        interval lies within 3 % of 1), "sooner", "later", "small" (the interval says which, and the middle lies within 3 %), or "open" (the
        interval does not say which).
        """
        (median, low, high, _) = self.interval
        if self.growing:
            return "grows"
        if (self.ratios == 1).all():
            return "same"
        if np.isnan(low):
            return "few"
        if low > 1 / CLOSE and high < CLOSE:
            return "none"
        if low > 1:
            if median < CLOSE:
                return "small"
            return "sooner"
        if high < 1:
            if median > 1 / CLOSE:
                return "small"
            return "later"
        return "open"

    @property
    def main(self) -> str:
        """The sentence, as HTML: which policy is better in the middle week, how sure that is, and how unusual this week is."""
        first_policy, second_policy = self._marked
        who = FIGURES[self.measure][0]
        beginning_words = f"In {len(self.seeds)} such {self.noun}"
        if self.empty:
            beginning_words += ", each of which begins empty,"
        answer_word = self.kind
        if answer_word == "grows":
            return self._of_growth(beginning_words)
        if answer_word == "same":
            return (
                f"{beginning_words} {who} is done after the same time under {first_policy} and {second_policy} in each."
            )
        if answer_word == "none":
            return f"{beginning_words} it makes no difference for {who}: {self._amounts(False)}."
        if answer_word == "few":
            span = f"{times(self.ratios.min())} to {times(self.ratios.max())}"
            return (
                f"{beginning_words} {who} is done {span} times sooner under {first_policy} than under {second_policy}."
            )
        if answer_word == "small":
            return f"{beginning_words} it makes little difference for {who}: {self._amounts(self.interval.median < 1)}."
        if answer_word == "open":
            return f"{beginning_words} neither is surely sooner for {who} under {first_policy}: {self._amounts(False)}."
        return f"{beginning_words} {who} is done {self._amounts(answer_word == 'later')}."

    def _amounts(self, later: bool) -> str:
        """Write the middle week, its interval, the range, and the number of this week, as text."""
        ratios = self.ratios
        direction = "sooner"
        if later:
            ratios = 1 / ratios
            direction = "later"
        middle = median_interval(ratios)
        week = self.noun.removesuffix("s")
        interval = f"95 %: {times(middle.low)} to {times(middle.high)}"
        extent = f"from {times(ratios.min())} to {times(ratios.max())}"
        amounts_in_words = f"{times(middle.median)} times {direction} under {self._marked[0]} in the middle {week} ({interval}), {extent}"
        if len(ratios) >= NUMBERED:
            rank_of_week = 1 + int((ratios > ratios[0]).sum())
            amounts_in_words += f"; this {week} is number {rank_of_week} of {len(ratios)}"
        return amounts_in_words

    @property
    def _marked(self) -> list[str]:
        """List of the names of both policies, as HTML."""
        return [
            f'<b class="{role}">{escape(policy_name)}</b>'
            for role, policy_name in zip(("now", "ref"), self.names, strict=True)
        ]

    def _of_growth(self, beginning_words: str) -> str:
        """The sentence if a queue has no end."""
        clauses = []
        for policy_name, marked, queues in zip(self.names, self._marked, zip(*self.queues, strict=True), strict=True):
            if policy_name not in self.growing:
                continue
            busy = percent(served(list(queues)))
            load = percent(brought(list(queues)))
            clauses.append(
                f"under {marked} the queue grows without end: while it is long it keeps {busy} of the GPUs busy, "
                f"and the jobs bring work for {load}"
            )
        return (
            f"{beginning_words} {'; '.join(clauses)}. How much later jobs end depends on how long one looks, so there "
            "is no ratio."
        )

    @property
    def source(self) -> str:
        """The seeds in words: "Seeds: 0, and 10,000 to 10,010."."""
        return f"Seeds: {ranges(self.seeds)}."

    @property
    def html(self) -> str:
        """The sentence and its seeds, as a paragraph."""
        if len(self.seeds) < 2:
            return ""
        return f'<p class="weeks">{self.main} {self.source}</p>'

    @property
    def text(self) -> str:
        """The same as plain text; "" of this week alone."""
        from gpuschedlab.metrics.sentence import plain

        if len(self.seeds) < 2:
            return ""
        return plain(f"{self.main} {self.source}")

    __str__ = text.fget

    def called(self, words: Mapping[str, str]) -> "Weeks":
        """Return the same `Weeks` with other names of the policies, if `words` has some."""
        return replace(self, names=tuple(words.get(policy_name, policy_name) for policy_name in self.names))

    def summary(self) -> dict:
        """Return a dict of the findings as plain values, for JSON."""
        middle = self.interval
        findings = {"now": self.names[0], "before": self.names[1], "measure": self.measure, "kind": self.kind}
        findings |= {"weeks": len(self.seeds), "seeds": list(self.seeds), "ratios": self.ratios.tolist()}
        findings |= {"median": middle.median, "low": _known(middle.low), "high": _known(middle.high)}
        return findings | {"this": float(self.ratios[0]), "rank": self.rank, "growing": list(self.growing)}

    def _repr_html_(self) -> str:
        return self.html


def _known(interval_end: float) -> float | None:
    """Return the value, or None if it is nan."""
    if np.isnan(interval_end):
        return None
    return interval_end


def enough(interval: MedianInterval) -> bool:
    """Return whether both ends of an interval lie within 15 % of its middle."""
    return bool(interval.high <= SURE**2 * interval.low)


def times(ratio: float) -> str:
    """Write a ratio as text: one decimal from 1.95 on, two below, none from 99.5 on."""
    if ratio >= 99.5:
        return f"{ratio:,.0f}"
    if ratio >= 1.95:
        return f"{ratio:,.1f}"
    return f"{ratio:,.2f}"


def ranges(seeds: tuple[int, ...]) -> str:
    """Write seeds in ascending order as text, those that follow one another as a range.

    Examples
    --------
    >>> ranges((7, 10_000, 10_001, 10_002)), ranges((3,)), ranges((1, 2))
    ('7, and 10,000 to 10,002', '3', '1 and 2')
    """
    runs: list[list[int]] = []
    for seed in sorted(seeds):
        if runs and seed == runs[-1][1] + 1:
            runs[-1][1] = seed
        else:
            runs.append([seed, seed])
    texts = []
    for first_seed, last_seed in runs:
        if first_seed == last_seed:
            texts.append(f"{first_seed:,}")
        elif last_seed == first_seed + 1:
            texts.append(f"{first_seed:,} and {last_seed:,}")
        else:
            texts.append(f"{first_seed:,} to {last_seed:,}")
    if len(texts) == 1:
        return texts[0]
    return f"{', '.join(texts[:-1])}, and {texts[-1]}"
