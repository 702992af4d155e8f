"""Intervals of medians: exact order statistics, coverage at the sizes at which they are used, and laws."""

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuschedlab.errors import RunError
from gpuschedlab.metrics import median_interval

SIZES = (6, 9, 12, 20)
DRAWS = {
    "laplace": lambda rng, size: rng.laplace(size=size),
    "normal": lambda rng, size: rng.normal(size=size),
    "uniform": lambda rng, size: rng.uniform(-1.0, 1.0, size),
    "exponential": lambda rng, size: rng.exponential(size=size) - np.log(2),
    "lognormal": lambda rng, size: rng.lognormal(0.0, 1.5, size) - 1.0,
    "cauchy": lambda rng, size: rng.standard_cauchy(size),
}
"""Distributions with the median 0."""
VALUES = st.lists(st.integers(-1000, 1000), min_size=6, max_size=40)


@pytest.mark.parametrize("count", SIZES)
def test_pairs_of_order_statistics_by_brute_force(count):
    """Each value is above the median or below it by a fair coin: the share of all ways in which a pair holds it is the pair's level."""
    values = np.arange(1.0, count + 1)
    below = np.array([comb(count, k) for k in range(count + 1)]) / 2**count
    for depth in range(1, count // 2 + 1):
        level = sum(below[k] for k in range(depth, count - depth + 1))
        found = median_interval(values, level * (1 - 1e-12))
        assert (found.low, found.high) == pytest.approx((depth, count + 1 - depth), abs=1e-6)


def test_a_pair_holds_the_median_as_often_as_it_says():
    """All 2 ** 6 ways in which six values lie about the median: the widest pair misses it in two."""
    held = [0 < sum(signs) < 6 for signs in product((0, 1), repeat=6)]
    assert np.mean(held) == median_interval(np.arange(6.0)).widest == 31 / 32


def test_interpolated_by_hand():
    """Six values: pairs reach 31/32 and 25/32; I = (31/32 - 0.95) / (6/32) = 0.1, and both ends go 5 x 0.1 / (1 + 4 x 0.1) inward."""
    found = median_interval([10.0, 20.0, 30.0, 40.0, 50.0, 60.0])
    assert found.low == pytest.approx(10 + 10 * 0.5 / 1.4)
    assert found.high == pytest.approx(60 - 10 * 0.5 / 1.4)


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("name", DRAWS)
def test_coverage(name, count):
    """95 % holds within a percent, beside three standard deviations of the share of 3,000 draws (1.2 %)."""
    rng = np.random.default_rng((count, len(name)))
    found = [median_interval(values) for values in DRAWS[name](rng, (3_000, count))]
    held = np.mean([one.low <= 0.0 <= one.high for one in found])
    assert held == pytest.approx(0.95, abs=0.01 + 0.012)


def test_few_values_have_no_interval_and_say_what_they_reach():
    for count in range(1, 6):
        found = median_interval(np.arange(float(count)))
        assert np.isnan([found.low, found.high]).all()
        assert found.widest == 1 - 2.0 ** (1 - count) < 0.95
    assert median_interval(np.arange(5.0), 0.9).low == pytest.approx(0.0, abs=1.0)
    assert np.isnan(median_interval([])).all()


@given(VALUES)
def test_laws(values):
    """Order does not matter; shifts, scales and signs go through; the median lies inside, and a higher level is no narrower."""
    values = np.array(values, float)
    found = median_interval(values)
    assert median_interval(values[::-1]) == found
    assert found.low <= found.median <= found.high
    moved = median_interval(3.0 * values - 5.0)
    assert (moved.low, moved.high) == pytest.approx((3 * found.low - 5, 3 * found.high - 5))
    turned = median_interval(-values)
    assert (-turned.high, -turned.low) == pytest.approx((found.low, found.high))
    narrow = median_interval(values, 0.8)
    assert found.low <= narrow.low + 1e-9
    assert narrow.high <= found.high + 1e-9


def test_refusals():
    with pytest.raises(RunError, match="found 1 nan among 2 values"):
        median_interval([1.0, np.nan])
    with pytest.raises(RunError, match=r"level=1\.5"):
        median_interval([1.0, 2.0], 1.5)
