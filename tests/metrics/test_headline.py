"""Which policy a comparison's sentence is about: the best that knows no more than others, or the one that was asked for, in words."""

from types import SimpleNamespace

import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.cli.commands.compare import LINEUP
from gpuschedlab.errors import PolicyError
from gpuschedlab.metrics.who_pays import pair_of
from gpuschedlab.parse import contenders_of, in_words

WEEK = lab.recipe_of("week:cluster=4x8,days=2,jobs=300,warm=0,before=2,estimator=history")
EASY = "fifo:backfill=easy@oracle"
WORDS = [EASY, "sjf", "srtf@oracle", "tiresias"]


def run(hours: float, truth: bool):
    """A run whose jobs all take so long, of a policy that knows true durations, or not."""
    jobs = pl.DataFrame({"job_id": [str(i) for i in range(40)], "submit": 0.0, "gpus": 1.0, "end": 3600.0 * hours})
    columns = {"duration": 1800.0, "queueing": 0.0, "first_start": 0.0, "warm": False}
    jobs = jobs.with_columns(**{name: pl.lit(value) for name, value in columns.items()})
    return SimpleNamespace(
        jobs=jobs, info={"sees_truth": truth}, columns=lambda _: {c.name: c.to_numpy() for c in jobs}
    )


RUNS = {"first": run(4, True), "middle": run(3, False), "seer": run(1, True), "slow": run(5, False)}


@pytest.mark.parametrize(
    ("names", "headline", "expected"),
    [
        (("first", "middle", "seer", "slow"), "", ("middle", "first")),
        (("first", "middle", "seer", "slow"), "seer", ("seer", "first")),
        (("first", "middle", "seer", "slow"), "slow", ("slow", "first")),
        (("first", "middle", "seer", "slow"), "first", ("first", "middle")),
        (("first", "middle"), "failed", ("middle", "first")),
        (("slow", "seer"), "", ("seer", "slow")),  # nobody else is there
        (("first", "seer"), "", ("seer", "first")),  # both know the truth
        (("middle", "seer", "slow"), "", ("middle", "slow")),  # the first is the best of those that do not
        (("seer",), "", ("seer",)),
    ],
)
def test_a_policy_that_knows_the_truth_is_the_headline_only_if_asked_for_or_alone(names, headline, expected):
    assert pair_of({name: RUNS[name] for name in names}, headline=headline) == expected


def test_the_sentence_its_weeks_and_its_page_are_about_the_headline():
    contenders = contenders_of(WORDS)
    found = lab.compare(WEEK, contenders, weeks=2, headline="tiresias")
    assert found.pair() == found.weeks.names == ("tiresias", EASY)
    assert [found.runs[word].info["sees_truth"] for word in WORDS] == [True, False, True, False]
    assert " under tiresias the average job is done " in found.sentence()
    assert f" than under {EASY}: " in found.sentence()
    assert '<b class="now">tiresias</b>' in found.html()
    best = lab.compare(WEEK, contenders, weeks=1)
    assert best.pair()[0] in ("sjf", "tiresias")
    assert best.pair()[1] == EASY
    with pytest.raises(PolicyError, match="found headline 'lucid'; expected one of fifo:backfill=easy@oracle, sjf"):
        lab.compare(WEEK, contenders, headline="lucid")


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("tiresias", "Tiresias"),
        (EASY, "EASY backfill with true durations"),
        ("easy", "EASY backfill"),
        ("fifo:backfill=greedy", "Fifo (backfill greedy)"),
        ("srtf:interval=600@history", "Srtf (decides every 10 min) with durations by history"),
    ],
)
def test_a_policy_has_a_name_in_words(word, words):
    ((policy, estimator),) = contenders_of([word]).values()
    assert in_words(policy, estimator) == words


def test_no_two_policies_of_the_line_up_have_the_same_name_in_words():
    names = [in_words(*contender) for contender in contenders_of(list(LINEUP)).values()]
    assert len(set(names)) == len(LINEUP)
    assert not [name for name in names if set(name) & set(":=@")]
