"""Fair ends: the mean of estimates over the time for which each held."""

import numpy as np
import pytest

from gpuschedlab.papers.shockwave.fair_finish import LAST, FairEnds


def test_a_fair_end_is_the_mean_of_its_estimates_by_time_and_a_tenth_of_the_last():
    ends = FairEnds()
    ends.add(np.array([0]), 0.0, np.array([100.0]))
    assert ends.ends(np.array([0]), 0.0).tolist() == [100.0]
    ends.add(np.array([0, 2]), 30.0, np.array([200.0, 500.0]))
    assert ends.ends(np.array([0, 2]), 30.0) == pytest.approx([0.9 * 100 + 0.1 * 200, 500.0])
    assert ends.ends(np.array([0, 2]), 90.0) == pytest.approx([0.9 * (30 * 100 + 60 * 200) / 90 + 0.1 * 200, 500.0])


@pytest.mark.parametrize("seed", range(5))
def test_fair_ends_are_those_of_all_estimates_kept_in_a_list(seed):
    rng = np.random.default_rng(seed)
    ends = FairEnds()
    logs = {}
    now = 0.0
    for _ in range(30):
        now += rng.integers(0, 3) * 120.0
        index = np.flatnonzero(rng.random(12) < 0.5)
        if len(index) == 0:
            continue
        estimates = rng.uniform(1e3, 1e4, len(index))
        ends.add(index, now, estimates)
        for job, estimate in zip(index, estimates, strict=True):
            logs.setdefault(int(job), []).append((now, estimate))
    for job, log in logs.items():
        times = np.array([time for time, _ in log] + [now + 60.0])
        values = np.array([value for _, value in log])
        mean = np.average(values, weights=np.diff(times))
        expected = (1 - LAST) * mean + LAST * values[-1]
        assert ends.ends(np.array([job]), now + 60.0)[0] == pytest.approx(expected)
