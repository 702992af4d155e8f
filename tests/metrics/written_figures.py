"""Figures as a sentence writes them, held against values: a figure is right if it is the value to half of its last digit."""

import math
import re

from frames_of_pair import SECONDS

SPAN = r"[\d,.]+(?:e-\d+)? (?:s|min|h|d)\b"
SHARE = r"(?:under 0\.1|[\d.]+) %"
COUNT = r"[\d,]+"
MONEY = r"\$[\d,]+\.\d\d"
SLACK = 1e-6
"""Of half a digit: what rounding may do at the border."""


def plain(number: str) -> float:
    """Value of a number with commas."""
    return float(number.replace(",", ""))


def seconds_of(words: str) -> float:
    """Seconds of "7.6 h"."""
    number, unit = words.rsplit(" ", 1)
    return plain(number) * SECONDS[unit]


def is_span(words: str, value: float) -> bool:
    """Return whether a time in words is a value: times below 10 s have two significant figures."""
    number, unit = words.rsplit(" ", 1)
    written = plain(number)
    if unit == "s" and written < 10:
        if written == 0:
            return value == 0
        half = 0.5 * 10.0 ** (math.floor(math.log10(written)) - 1)
        if "." not in number and written >= 1:
            half = max(half, 0.05)
    else:
        half = 0.5 * 10.0 ** -len(number.partition(".")[2])
    return abs(written - value / SECONDS[unit]) <= half * (1 + SLACK)


def is_share(words: str, share: float) -> bool:
    """Return whether a share in words ("12 %") is a value."""
    number = words.removesuffix(" %")
    if number == "under 0.1":
        return 0 < share < 0.001
    half = 0.05 if "." in number else 0.5
    if number == "0":
        return share == 0
    return abs(float(number) - 100 * share) <= half * (1 + SLACK)


def is_money(words: str, value: float) -> bool:
    """Return whether dollars in words are a value."""
    return abs(plain(words.removeprefix("$")) - value) <= 0.005 * (1 + SLACK) + 1e-9 * value


def is_factor(words: str, ratio: float) -> bool:
    """Return whether "3 times" or "2.5 times" is a ratio: halves below 2.75, whole times above."""
    number = plain(words)
    half = 0.25 if number < 2.75 else 0.5
    return ratio >= 1.95 * (1 - SLACK) and abs(number - ratio) <= half * (1 + SLACK) + 1e-9 * ratio


def is_percent(words: str, percent: float) -> bool:
    """Return whether whole percents in words are a value."""
    return abs(float(words) - percent) <= 0.5 * (1 + SLACK)


def is_times(words: str, ratio: float) -> bool:
    """Return whether a ratio of weeks ("1.73", "12.3") is a value."""
    half = 0.5 * 10.0 ** -len(words.partition(".")[2])
    return abs(plain(words) - ratio) <= half * (1 + SLACK) + 1e-12


def numbers_in(text: str) -> list[re.Match]:
    """Numbers of a text."""
    return list(re.finditer(r"\d[\d,]*(?:\.\d+)?", text))
