"""Ratios of average JCT on the same jobs: exact cases, and how often the interval holds the truth of queues that are solved."""

import numpy as np
import pytest
from scipy import stats

from gpuschedlab.errors import RunError
from gpuschedlab.metrics import paired_ratio

NAN = float("nan")


def test_ratio_by_hand():
    """Two blocks, (6 + 2) / (3 + 1) = 2, and the third job, which one schedule has not ended, is left out."""
    found = paired_ratio([0.0, 1.0, 2.0], [6.0, 2.0, 9.0], [3.0, 1.0, NAN], blocks=2)
    assert found == (2.0, 2.0, 2.0, 2, 2)
    assert found.verdict == "better"


def test_interval_by_hand():
    """Blocks (3, 1) and (1, 1): the ratio 2; left out in turn 1 and 3; in logarithms their spread times sqrt(2 - 1), times t of one."""
    found = paired_ratio([0.0, 10.0], [3.0, 1.0], [1.0, 1.0], blocks=2)
    half = stats.t.ppf(0.975, 1) * np.log(3) / 2
    assert found[:3] == pytest.approx((2.0, 2 * np.exp(-half), 2 * np.exp(half)))
    assert found.verdict == "undecided"


def test_swapped_schedules_give_the_inverse():
    rng = np.random.default_rng(0)
    submit, first, second = rng.random(200), rng.exponential(2, 200), rng.exponential(1, 200)
    one, other = paired_ratio(submit, first, second), paired_ratio(submit, second, first)
    assert (1 / other.ratio, 1 / other.high, 1 / other.low) == pytest.approx(one[:3])
    assert {one.verdict, other.verdict} == {"better", "worse"}
    assert paired_ratio(submit, first, first) == (1.0, 1.0, 1.0, 200, 10)
    assert paired_ratio(submit, first, first).verdict == "same"


def test_blocks_are_of_time_and_empty_ones_do_not_count():
    found = paired_ratio([0.0, 1.0, 2.0, 100.0], [1.0, 1.0, 1.0, 2.0], [1.0, 1.0, 1.0, 1.0], blocks=10)
    assert found.blocks == 2
    alone = paired_ratio([5.0], [4.0], [2.0])
    assert (alone.ratio, alone.jobs, alone.blocks) == (2.0, 1, 1)
    assert np.isnan([alone.low, alone.high]).all()
    assert alone.verdict == "undecided"
    nothing = paired_ratio([5.0], [4.0], [NAN])
    assert nothing.jobs == 0
    assert np.isnan(nothing.ratio)
    assert nothing.verdict == "undecided"


@pytest.mark.parametrize(
    ("first", "options"),
    [([1.0], {}), ([0.0, 1.0], {}), ([1.0, 1.0], {"blocks": 1}), ([1.0, 1.0], {"level": 1.0})],
)
def test_bad_input(first, options):
    with pytest.raises(RunError, match="paired_ratio: found"):
        paired_ratio([0.0, 1.0], first, [1.0, 1.0], **options)


def coverage(load: float, jobs: int, blocks, times: int, rng) -> dict[int, float]:
    """Share of M/M/1 queues whose interval holds the true ratio of sojourn times, served 1.25 times as fast by the second.

    Sojourn by Lindley's recursion; its mean is 1 / (rate of service - rate of arrival).
    """
    truth, held = (1.25 - load) / (1 - load), dict.fromkeys(blocks, 0)
    for _ in range(times):
        between, service = rng.exponential(1 / load, jobs - 1), rng.exponential(1.0, jobs)
        both = []
        for serving in (service, service / 1.25):
            path = np.append(0.0, np.cumsum(serving[:-1] - between))
            both.append(path - np.minimum.accumulate(path) + serving)
        for count in blocks:
            found = paired_ratio(np.append(0.0, np.cumsum(between)), *both, blocks=count)
            held[count] += (found.low <= truth <= found.high) / times
    return held


def test_interval_holds_the_truth_about_as_often_as_it_says():
    held = coverage(0.7, 10_000, (10, 5000), 100, np.random.default_rng(0))
    assert held[10] > 0.86, "95 %, less four standard deviations of 100 draws"
    assert held[5000] < 0.7, "jobs that queue together are no independent draws"


if __name__ == "__main__":
    for load in (0.7, 0.85):
        print(
            load,
            {n: f"{share:.0%}" for n, share in coverage(load, 2500, (10, 2500), 400, np.random.default_rng(0)).items()},
        )
