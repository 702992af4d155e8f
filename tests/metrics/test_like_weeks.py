"""What weeks like this one say: kinds and sentences by hand, a queue that grows without end, and weeks of a log."""

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.metrics.intervals import median_interval
from gpuschedlab.metrics.like_weeks import Weeks, enough, ranges, times
from gpuschedlab.metrics.log_weeks import log_in_words, weeks_of
from gpuschedlab.metrics.queue_growth import Queue, grows_without_end, queue_of

CALM = Queue(0.0, 0.0, 0.9, 0.1)
LONG = Queue(3 * 86_400.0, 0.88, 0.9, 2.0)
DAY = 86_400.0


def weeks(ratios, queues=None, **options) -> Weeks:
    """Weeks of some ratios, of seeds from 0 on."""
    ratios = np.array(ratios, float)
    queues = queues or ((CALM, CALM),) * len(ratios)
    return Weeks(("srtf", "easy"), tuple(range(len(ratios))), np.ones(len(ratios)), ratios, queues, **options)


@pytest.mark.parametrize(
    ("ratios", "kind"),
    [
        ([2.0, 2.1, 1.9, 2.2, 1.8, 2.0], "sooner"),
        ([0.5, 0.51, 0.52, 0.49, 0.5, 0.5], "later"),
        ([1.0, 1.01, 0.99, 1.0, 1.0, 1.02], "none"),
        ([1.0, 1.3, 0.7, 1.1, 0.9, 1.0], "open"),
        ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], "same"),
        ([1.02, 1.021, 1.019, 1.06, 1.07, 1.02], "small"),
        ([0.98, 0.99, 0.981, 0.94, 0.98, 0.95], "small"),
        ([2.0, 2.1, 1.9], "few"),
    ],
)
def test_kinds(ratios, kind):
    found = weeks(ratios)
    assert found.kind == kind
    assert "too" not in found.text
    assert found.text.startswith(f"In {len(ratios)} such weeks ")


def test_sentences_by_hand():
    """Twelve weeks: the number of this one is that of its place from the largest ratio on."""
    ratios = [4.0, 3.8, 4.5, 5.0, 5.5, 5.8, 5.8, 6.0, 6.2, 6.6, 7.0, 8.2]
    found = weeks(ratios)
    middle = median_interval(np.array(ratios))
    assert found.text == (
        f"In 12 such weeks the average job is done 5.8 times sooner under srtf in the middle week (95 %: {middle.low:.1f} to "
        f"{middle.high:.1f}), from 3.8 to 8.2; this week is number 11 of 12. Seeds: 0 to 11."
    )
    assert found.rank == 11
    turned = weeks(1 / np.array(ratios))
    assert turned.kind == "later"
    assert "done 5.8 times later under srtf in the middle week" in turned.text
    assert "this week is number 11 of 12" in turned.text
    assert "each of which begins empty" in weeks(ratios, empty=True).text
    assert weeks([2.0]).text == ""


def test_names_are_escaped():
    made = Weeks(("<a>", "b"), (0, 1), np.ones(2), np.full(2, 2.0), ((CALM, CALM),) * 2)
    assert "&lt;a&gt;" in made.html
    assert "<a>" in made.text


def test_a_queue_that_grows_without_end_takes_the_place_of_the_ratio():
    found = weeks([5.0] * 6, ((CALM, LONG),) * 6)
    assert found.kind == "grows"
    assert found.growing == ("easy",)
    assert "times" not in found.text
    assert "under easy the queue grows without end: while it is long it keeps 88 % of the GPUs busy" in found.text
    assert "bring work for 90 %" in found.text
    assert found.summary()["growing"] == ["easy"]


def test_what_grows():
    assert grows_without_end([LONG])
    assert not grows_without_end([LONG._replace(busy=0.95)]), "it carries the load while the queue is long"
    assert not grows_without_end([LONG._replace(longer=-0.1)]), "the queue is shorter after the week"
    assert not grows_without_end([LONG._replace(crowded=3600.0)]), "it was long for an hour"
    assert grows_without_end([LONG._replace(crowded=0.6 * DAY)] * 2)


def test_queue_by_hand():
    """One GPU; a job of a day every quarter of a day, eight in all. Four are there from three quarters on, up to the last submission."""
    submit = [DAY * place / 4 for place in range(8)]
    trace = pl.DataFrame({"job_id": list("abcdefgh"), "submit": submit, "gpus": 1, "duration": DAY})
    found = queue_of(lab.simulate(trace, lab.Cluster.homogeneous(1, 1), lab.Fifo()))
    assert found.crowded == DAY
    assert found.busy == 1.0
    assert found.load == 8 * DAY / (2 * DAY)
    assert found.longer == pytest.approx((4 + 4 + 5 + 6) / 4)


def test_fifo_cannot_carry_what_easy_can():
    """At load 0.9, as it is generated: FIFO leaves GPUs free behind large jobs."""
    week = lab.recipe_of("week")
    queues = {"fifo": [], "easy": []}
    for seed in (101, 102, 103):
        scenario = week(seed)
        for name, policy in (("fifo", lab.Fifo()), ("easy", lab.Fifo(backfill="easy"))):
            queues[name].append(queue_of(scenario.run(policy)))
    assert grows_without_end(queues["fifo"])
    assert not grows_without_end(queues["easy"])


def test_stopping_and_words():
    assert enough(median_interval(np.linspace(1.9, 2.1, 6)))
    assert not enough(median_interval(np.linspace(1.0, 3.0, 6)))
    assert not enough(median_interval(np.ones(3)))
    assert [times(x) for x in (1.0, 1.944, 1.96, 12.34, 150.2)] == ["1.00", "1.94", "2.0", "12.3", "150"]
    assert ranges((5, 1, 2, 3)) == "1 to 3, and 5"


def test_weeks_of_a_log_by_hand():
    """Forty jobs a week, under the second policy each takes twice, three times and half as long; the fourth week is a part of one."""
    submit = np.concatenate(
        [7 * DAY * week + np.linspace(0.0, 6.9 * DAY, 40) for week in range(3)] + [[21.5 * DAY] * 40]
    )
    now = np.full(160, 100.0)
    before = 100.0 * np.repeat([2.0, 3.0, 0.5, 9.0], 40)
    frames = [
        pl.DataFrame({"job_id": np.arange(160).astype(str), "submit": submit, "end": submit + took})
        for took in (now, before)
    ]
    assert weeks_of(*frames) == pytest.approx([2.0, 3.0, 0.5])
    assert log_in_words(weeks_of(*frames)) == "By week of submission: sooner in 2 of 3 weeks, from 0.50 to 3.0 times."
    assert log_in_words(weeks_of(frames[0].head(40), frames[1].head(40))) == ""
