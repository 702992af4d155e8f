"""Reads what a comparison says clause by clause, and holds each statement against the frames of the runs.

Only the text is read, and a clause of a form that is not known is a fault as well. What is held against it comes from `frames_of_pair`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module

from frames_of_pair import Context, Pair
from written_figures import COUNT, MONEY, SHARE, SPAN

FORMS = ("clauses_of_averages", "clauses_of_jobs", "clauses_of_weeks")
"""Modules in which forms of clauses are."""
CLOSE = 1.03
FEWEST = 30
SLACK = 1e-9


@dataclass
class Reading:
    """A text that is read clause by clause: its `context`, the `clauses` that were read, and what is `false`."""

    context: Context
    text: str
    names: list[str] = field(default_factory=list)
    clauses: list[str] = field(default_factory=list)
    forms: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)
    moved: set = field(default_factory=set)
    pairs: dict = field(default_factory=dict)

    def pair(self, *names: str) -> Pair:
        """The two runs of names; those read before if there are none."""
        if names:
            self.names = list(dict.fromkeys([*names, *self.names]))
        return self.known_pair

    @property
    def known_pair(self) -> Pair:
        """Runs of the names that were read."""
        key = tuple(self.names)
        if key not in self.pairs:
            runs = [self.context.runs[name] for name in key]
            self.pairs[key] = Pair(self.context, runs[0], runs[1] if len(runs) > 1 else None)
        return self.pairs[key]

    def hold(self, true: bool, what: str):
        """Note a statement that is false."""
        if not true:
            self.false.append(f"{what} [{self.clauses[-1]}]")


RULES: list[tuple[str, Callable]] = []
"""Forms of clauses, as regular expressions in which NAME, SPAN, SHARE, COUNT, JOB and GROUP stand for their own, and how each is held."""


def clause(form: str):
    """Decorator: a function that holds clauses of a form."""

    def added(function):
        RULES.append((form, function))
        return function

    return added


def pattern(form: str, context: Context) -> re.Pattern:
    """Regular expression of a form, with the names of the runs."""
    names = "|".join(re.escape(name) for name in sorted(context.runs, key=len, reverse=True))
    begin = rf"(?P<begin>Under|On these jobs, under|In this (?:week|log|trace), under) ({names})"
    for word, words in {
        "BEGIN": begin,
        "NAME": f"({names})",
        "SPAN": f"({SPAN})",
        "SHARE": f"({SHARE})",
        "MONEY": rf"({MONEY})",
        "COUNT": f"({COUNT})",
        "JOB": rf"average (?:job|of the ({COUNT}) jobs? (.+?))",
        "OVER": rf"(?:over ({SPAN}) )?",
        "GROUP": rf"((?:run for|need) (?:more than |at most )?[\d.]+ (?:GPUs?|s|min|h|d))(?: \(({SHARE}) of all\))?",
    }.items():
        form = form.replace(word, words)
    return re.compile(form + r"(?= |$)")


def read(text: str, context: Context) -> Reading:
    """Read a whole text, and hold each of its statements."""
    for module in FORMS:
        import_module(module)
    reading = Reading(context, text)
    rest = text
    rules = [(form, pattern(form, context), function) for form, function in RULES]
    while rest:
        for name, form, function in rules:
            match = form.match(rest)
            if match:
                reading.clauses.append(match[0])
                reading.forms.append(name)
                parts = list(match.groups())
                if "begin" in form.groupindex:
                    check_begin(reading, parts.pop(form.groupindex["begin"] - 1))
                function(reading, *parts)
                rest = rest[match.end() :].lstrip()
                break
        else:
            reading.clauses.append(rest)
            reading.hold(False, "a clause of no known form")
            break
    check_whole(reading)
    return reading


def check_begin(reading: Reading, begin: str):
    """Whose facts are said: those of the place that was asked for."""
    place = reading.context.place
    if begin == "On these jobs, under":
        reading.hold(not place, "the place is known")
    else:
        reading.hold(begin == (f"{place}, under" if place else "Under"), "another place was asked for")


def check_whole(reading: Reading):
    """If the average changes by over 3 %, somebody ends sooner or later in words."""
    if reading.context.measure not in ("jct", "wait") or len(reading.names) < 2 or reading.false:
        return
    pair = reading.known_pair
    fewest = 1 if reading.context.place else FEWEST
    if len(pair.rows) < fewest or pair.now is pair.before:
        return
    low, high = sorted(pair.means)
    if high > low * CLOSE:
        reading.hold(bool(reading.moved), "the average changes by over 3 %, and no job ends sooner or later")
