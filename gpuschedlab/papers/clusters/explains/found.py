"""Limits, windows, hours and tiers that a log shows beyond its site's rules, and their lines of TOML."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from gpuschedlab.papers.clusters.explains.record import Record
from gpuschedlab.papers.clusters.explains.sweep import NONE, Rules, Seen

SHARE = 0.0001
"""Share of all waiting below which nothing is named."""


class Found(NamedTuple):
    """A limit, throttle, window, hours or tier that a log shows: whose, its value, seconds that jobs wait for it, and lines of TOML."""

    kind: str
    of: str
    value: object
    seconds: float
    toml: str

    def __str__(self) -> str:
        hours = ""
        if self.seconds:
            hours = f": {self.seconds / 3600:,.1f} h of waiting"
        value = self.value
        if self.kind == "throttle":
            value = throttles(self.value)
        return f"{self.kind} of {self.of}, {value}{hours}"


class State(NamedTuple):
    """Rules so far, the events of a pass by them, and all that was found."""

    rules: Rules
    seen: Seen
    found: tuple[Found, ...] = ()

    @property
    def left(self) -> float:
        """Unexplained seconds."""
        return float(self.seen.seconds[:, NONE].sum())


class Step(NamedTuple):
    """Rules that may explain more of a log."""

    rules: Rules
    found: Found
    free_row: int = -1  # row of `Seen.free` in which its owners wait free below the value; -1 if it has none
    free_owners: np.ndarray = np.zeros(0, np.int64)  # these owners


def could_have_started(log: Record, seen: Seen) -> np.ndarray:
    """Return a mask (n,): whether each job could have started for some time before it did."""
    return seen.seconds[:, NONE] > max(60.0, 5 * log.rules.lag)


def throttles(values: dict[str, float]) -> str:
    """Return a text that says how many arrays have which throttles.

    Examples
    --------
    >>> throttles({"7": 2.0, "9": 2.0, "12": 4.0})
    '2 jobs at once in 2 arrays, 4 in 1'
    """
    arrays_by_throttle = Counter(values.values())
    lowest, *higher = sorted(arrays_by_throttle)
    throttle_words = [f"{lowest:g} jobs at once in {arrays_by_throttle[lowest]} arrays"]
    throttle_words += [f"{throttle:g} in {arrays_by_throttle[throttle]}" for throttle in higher]
    return ", ".join(throttle_words)


def ranges(names: list[str]) -> list[str]:
    """Return a list of str: numbers of arrays as one list of ranges, which a site's TOML reads as their names.

    Examples
    --------
    >>> ranges(["12", "7", "8", "9"])
    ['[7-9,12]']
    """
    numbers = sorted(map(int, names))
    spans = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    if len(numbers) <= 1:
        return names
    ranges_of_all = []
    for first, last in spans:
        if last > first:
            ranges_of_all.append(f"{first}-{last}")
        else:
            ranges_of_all.append(f"{first}")
    return [f"[{','.join(ranges_of_all)}]"]


def lines_of(of: str, key: str, value: float | str, names: list[str] | tuple = (), qos: list[str] | tuple = ()) -> str:
    """Return a limit as lines of TOML: its owners by kind and name, in jobs of such QOS, and its key and value."""
    limit_lines = ["[[limits]]", f'of = "{of}"']
    if names:
        limit_lines.append(f"names = {names}")
    if qos:
        limit_lines.append(f"qos = {qos}")
    if isinstance(value, str):
        limit_lines.append(f'{key} = "{value}"')
    else:
        limit_lines.append(f"{key} = {value:g}")
    return "\n".join(limit_lines)


def name_of(log: Record, qos: int) -> str:
    """Return the name of a QOS by its number; "" if the log has none."""
    if "qos" not in log.trace.columns:
        return ""
    first_job_of_qos = np.argmax(log.jobs.qos == qos)
    return log.trace["qos"][int(first_job_of_qos)]
