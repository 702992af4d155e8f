"""Ratios of average JCT on the same jobs: exact cases; how often the interval holds the truth: test_coverage.py."""

import numpy as np
import pytest
from scipy import stats

from gpuschedlab.errors import RunError
from gpuschedlab.metrics import paired_ratio
from gpuschedlab.metrics.intervals import INNER, WIDER

NAN = float("nan")


def test_ratio_by_hand():
    """(6 + 2) / (3 + 1) = 2, and the third job, which one schedule has not ended, is left out; of two jobs no interval."""
    found = paired_ratio([0.0, 1.0, 2.0], [6.0, 2.0, 9.0], [3.0, 1.0, NAN])
    assert (found.ratio, found.jobs) == (2.0, 2)
    assert found.verdict == "too short to tell"
    assert found.range() == "too short to tell"
    assert np.isnan([found.low, found.high]).all()


def test_interval_by_hand():
    """Five blocks of 200 jobs: the logarithm of the ratio without each of them, their spread times sqrt(5 - 1), times Student's t."""
    rng = np.random.default_rng(1)
    first = 1 + rng.random(1_000)
    second = 1 + rng.random(1_000)
    found = paired_ratio(np.arange(1_000.0), first, second)
    without = [np.delete(np.arange(1_000), slice(i, i + 200)) for i in range(0, 1_000, 200)]
    logs = np.log([first[kept].mean() / second[kept].mean() for kept in without])
    half = stats.t.ppf(1 - INNER * 0.05 / 2, 4) * logs.std() * 2 * np.sqrt(1 + WIDER / found.times)
    assert found.low == pytest.approx(found.ratio * np.exp(-half))
    assert found.high == pytest.approx(found.ratio * np.exp(half))


def test_swapped_schedules_give_the_inverse():
    rng = np.random.default_rng(0)
    submit = rng.random(900)
    first = rng.exponential(2, 900)
    second = rng.exponential(1, 900)
    one = paired_ratio(submit, first, second)
    other = paired_ratio(submit, second, first)
    assert (1 / other.ratio, 1 / other.high, 1 / other.low) == pytest.approx(one[:3])
    assert {one.verdict, other.verdict} == {"better", "worse"}
    assert paired_ratio(submit, first, first)[:4] == (1.0, 1.0, 1.0, 900)
    assert paired_ratio(submit, first, first).verdict == "same"


def test_what_is_too_short_to_tell():
    """Few jobs; a queue that never came to rest; a few jobs that carry all."""
    alone = paired_ratio([5.0], [4.0], [2.0])
    nothing = paired_ratio([5.0], [4.0], [NAN])
    assert (alone.ratio, alone.jobs, nothing.jobs) == (2.0, 1, 0)
    assert np.isnan(nothing.ratio)
    submit = np.arange(1_000.0)
    rng = np.random.default_rng(0)
    rising = 1 + submit + rng.random(1_000)
    rare = 1 + rng.random(1_000)
    rare[::100] = 1e6
    assert paired_ratio(submit, rising, rising / 2 + rng.random(1_000)).times < 30
    for first in (rising, rare):
        assert paired_ratio(submit, first, 1 + rng.random(1_000)).verdict == "too short to tell"
    assert {alone.verdict, nothing.verdict} == {"too short to tell"}


def test_jobs_count_in_order_of_submission():
    rng = np.random.default_rng(2)
    submit = np.arange(500.0)
    first = 1 + rng.random(500)
    second = 1 + rng.random(500)
    mixed = rng.permutation(500)
    found = paired_ratio(submit[mixed], first[mixed], second[mixed])
    assert found == pytest.approx(paired_ratio(submit, first, second))


@pytest.mark.parametrize(
    ("first", "options"),
    [([1.0], {}), ([0.0, 1.0], {}), ([1.0, 1.0], {"level": 0.0}), ([1.0, 1.0], {"level": 1.0})],
)
def test_bad_input(first, options):
    with pytest.raises(RunError, match="paired_ratio: found"):
        paired_ratio([0.0, 1.0], first, [1.0, 1.0], **options)
