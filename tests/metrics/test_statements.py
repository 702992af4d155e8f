"""Each statement of a comparison's text is true of the frames, and a text that was falsified is caught."""

import re

import pytest
from clauses import Reading, read
from statements import readings
from written_figures import numbers_in

from gpuschedlab.metrics.display import round_span, round_words, span, two_spans

COUNT = 60
OPPOSITE = (
    (r"\bsooner than\b", "later than"),
    (r"\b(end|ends) ((?:over [\d.]+ \w+ )?)sooner\b", r"\1 \2later"),
    (r"\blater(,| on average)", r"sooner\1"),
    (r"\bwait ((?:over [\d.]+ \w+ )?)less\b", r"wait \1longer"),
    (r"\bfewer\b", "more"),
    (r"\bmore\.", "fewer."),
    (r"% less\b", "% more"),
    (r"\blonger than under\b", "shorter than under"),
)
"""Words of a direction, and those of the opposite."""


@pytest.fixture(scope="module")
def found() -> list[Reading]:
    """What is said of 60 pairs."""
    return [reading for _, _, pair in readings(COUNT, 8200) for reading in pair]


def test_no_statement_is_false(found):
    assert [(reading.false, reading.text) for reading in found if reading.false] == []
    assert sum(len(reading.clauses) for reading in found) > 5 * COUNT


def without_names(reading: Reading) -> list[re.Match]:
    """Numbers of a text that are no part of a name, no seed, and no border: jobs may move or not lie between two borders."""
    text = reading.text.partition(" Seeds: ")[0]
    names = "|".join(map(re.escape, reading.context.runs))
    named = [match.span() for match in re.finditer(names, text)]
    borders = re.compile(r"(over|more than|at most|need) $")
    return [
        number
        for number in numbers_in(text)
        if not any(begin <= number.start() < end for begin, end in named) and not borders.search(text[: number.start()])
    ]


def other_number(number: str) -> str:
    """Another number of as many decimals."""
    decimals = len(number.partition(".")[2])
    return f"{1.5 * float(number.replace(',', '')) + 1:,.{decimals}f}"


def some(found: list[Reading], pattern: str, most: int = 12) -> list[Reading]:
    """Some of the texts in which a pattern is, of weeks one."""
    texts = [reading for reading in found if re.search(pattern, reading.text)]
    weeks = [reading for reading in texts if "Seeds: " in reading.text]
    return [reading for reading in texts if "Seeds: " not in reading.text][:most] + weeks[:1]


def is_caught(reading: Reading, text: str) -> bool:
    """Return whether another text about the same runs is found to be false."""
    assert text != reading.text
    return bool(read(text, reading.context).false)


def test_each_number_counts(found):
    for reading in some(found, "sooner|later|less|fewer|more", 25):
        for number in without_names(reading):
            text = f"{reading.text[: number.start()]}{other_number(number[0])}{reading.text[number.end() :]}"
            assert is_caught(reading, text), (text, number)


@pytest.mark.parametrize(("words", "opposite"), OPPOSITE)
def test_each_direction_counts(found, words, opposite):
    texts = some(found, words)
    assert texts
    for reading in texts:
        for match in list(re.finditer(words, reading.text)):
            text = reading.text[: match.start()] + match.expand(opposite) + reading.text[match.end() :]
            assert is_caught(reading, text), text


OTHERS = {"more than": "at most", "at most": "more than", "nearly all": "50 %"}
"""Words of a kind of jobs, or of a share, and others in their place."""


def test_each_kind_of_jobs_counts(found):
    words = re.compile("more than|at most|nearly all")
    texts = some(found, words.pattern, 25)
    assert len(texts) > 12
    for reading in texts:
        for match in words.finditer(reading.text):
            text = reading.text[: match.start()] + OTHERS[match[0]] + reading.text[match.end() :]
            assert is_caught(reading, text), text


def test_names_count(found):
    for reading in some(found, "sooner than|takes"):
        now, before = reading.names
        either = re.compile(f"{re.escape(now)}|{re.escape(before)}")
        if re.search("under|now|before", now + before) is None:
            text = either.sub(lambda match: before if match[0] == now else now, reading.text)  # noqa: B023
            assert is_caught(reading, text), text


@pytest.mark.parametrize(
    ("pattern", "instead"),
    [
        (r"[\d,]+ jobs? pays? .*? on average[^.]*(\.\d[^.]*)*\.", "Nobody pays: no job ends later."),
        (r"Nobody pays: no job ends later\.", "3 jobs pay (10 %), ending 1.0 h later on average; no kind of job stands out."),
        (r"[^.]* of the jobs end [^.]*(\.\d[^.]*)*\.", " No job ends sooner."),
        (r"no kind of job stands out", "all of the lost time falls on jobs that need 1 GPU"),
        (r"Nobody pays", "Everybody pays"),
    ],
)  # fmt: skip
def test_what_is_said_in_the_place_of_the_truth_is_caught(found, pattern, instead):
    texts = some([reading for reading in found if reading.context.measure == "jct"], pattern)
    assert texts
    for reading in texts:
        assert is_caught(reading, re.sub(pattern, instead, reading.text, count=1)), reading.text


def test_a_difference_is_not_said_to_be_none(found):
    texts = some(found, "is done .* sooner than")
    for reading in texts:
        rest = reading.text.partition(" Too short")[0].split(". ", 1)[-1]
        now, before = reading.names
        for first in (
            f"No difference: under {now} each job ends when it did under {before}.",
            f"No difference for the average job: 1.0 h under {now}, 1.0 h under {before}.",
            f"Too close to call for the average job: 1.0 h under {now}, 1.0 h under {before}.",
        ):
            assert is_caught(reading, f"{first} {rest}"), reading.text


def test_jobs_of_seconds_by_hand():
    """Round times from which on an end counts, and times of seconds in two figures."""
    assert [round_span(x) for x in (0.0, 0.0123, 0.49, 7.0, 59.0, 60.0, 400.0, 3600.0, 2e5)] == [
        *(0.0, 0.01, 0.2, 5.0, 50.0, 60.0, 300.0, 3600.0, 172_800.0),
    ]
    assert [round_words(x) for x in (0.01, 50.0, 300.0, 172_800.0)] == ["0.01 s", "50 s", "5 min", "2 d"]
    assert [span(x) for x in (0.0, 0.0123, 0.5, 1.44, 9.94, 9.96, 47.4)] == [
        "0 s",
        "0.012 s",
        "0.5 s",
        "1.4 s",
        "9.9 s",
        "10 s",
        "47 s",
    ]
    assert two_spans(4400.0, 4200.0) == ("1.22 h", "1.17 h"), "5 % apart, and both 1.2 h"
