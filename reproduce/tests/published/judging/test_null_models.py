"""The accuracy of always giving the same answer, which stands beside a model's: as the data have it."""

import numpy as np
import pytest

from reproduce.published.claims import published_values
from reproduce.published.committed import FOLDER, read_measured
from reproduce.published.judging.judged import Judged, judge
from reproduce.published.judging.words import NOT_MEASURED
from reproduce.published.sources import SOURCES

pytestmark = pytest.mark.skipif("autosched" not in SOURCES or "ymir" not in SOURCES, reason="papers are not here")

NAMES = {"philly": "Philly", "venus": "Venus", "pai": "PAI"}


def accuracies(source: str) -> list[Judged]:
    """Claims of a source about an accuracy."""
    return [one for one in judge(source, read_measured(FOLDER / f"{source}.csv").found) if one.claim.null_note]


def nulls(source: str) -> list[str]:
    """What stands beside the measured accuracies of a source."""
    return [one.null for one in accuracies(source) if one.verdict != NOT_MEASURED]


def test_accuracies_stand_beside_that_of_one_answer():
    assert len(accuracies("autosched")) == 2
    assert len(accuracies("ymir")) == 1
    assert all(nulls("autosched") + nulls("ymir"))


def test_what_is_not_measured_stands_beside_nothing():
    for source in ("autosched", "ymir"):
        nothing = dict.fromkeys(published_values(source), "not measured")
        assert not any(one.null for one in judge(source, nothing))


@pytest.mark.data
def test_the_commonest_range_of_a_job_alone(data_dir):
    """Of the hourly queries of two weeks, as table 6.3 is measured."""
    from gpuschedlab.autosched.forecast.ranges import range_of
    from reproduce.autosched.generation import load, queries

    (text,) = (null for null in nulls("autosched") if "commonest range" in null)
    for trace, name in NAMES.items():
        frame = load(data_dir, trace, "slice")
        rows, _, hourly = queries(frame)
        ranges = range_of(frame["duration"].to_numpy())[rows][hourly]
        share = np.bincount(ranges).max() / len(ranges)
        assert f"of {name}: {100 * share:.1f}%" in text
